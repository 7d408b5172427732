"""Training data: a text that is always there, or a custom one. Draws the data group of the training page."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from engine.config import bpe_size
from engine.data import corpora, tokenizers
from engine.data.corpus import Corpus
from engine.errors import ConfigError, CorpusError
from pages.start.train.run_kinds import pair_rule, pair_titles
from runs import bpe_process, kinds, profiles
from runs.profiles import Profile
from studies.pairs.dataset import LabelledText, PairedText
from studies.pairs.encoders import ENCODERS
from studies.tasks.all import TASKS
from studies.tasks.recipes import task_recipe
from studies.tasks.task import Task
from ui import content, session, widgets
from ui.background_jobs import Key, known, measured
from ui.controls import fill, tokenizer_control
from ui.fields import label_of, recipe
from ui.run_text import custom_corpus, merges_of
from ui.text.markdown import sentence
from ui.text.tokens import each_shown

TEXT = content.beside(__file__)
SOURCES = ("shakespeare", "python", "paste", "upload", "task", "pairs")
OWN = ("paste", "upload")
EXCERPT, SHIFTED = 280, 12  # characters of the excerpt; of an input and its target
PAIRS = 14  # pairs that are shown
LINES = {" ": "·", "\n": "⏎\n"}  # how an excerpt of many lines shows them


@dataclass(frozen=True)
class Data:
    """`name` is what a RunSpec calls it ('text' for one's own, which is then in `text`). Without a corpus,
    `problem` says why.
    """

    name: str
    text: str | None
    corpus: Corpus | None
    problem: str = ""
    tokenizer: str = "char"  # TrainConfig.tokenizer, as asked for
    paired: PairedText | LabelledText | None = None  # in the place of a corpus: pairs, or labelled lines


def data_group(profile: Profile) -> Data:
    """Draws the data controls. The choice is in the URL; a text of one's own is not: it is too long for a
    link.
    """
    with st.expander(TEXT["data"], icon=":material/menu_book:"):
        source = widgets.select(
            TEXT["text"],
            SOURCES,
            "data",
            hint=TEXT["text hint"],
            width="stretch",
            wrap=True,
            on_change=_settle_chosen,
        )
        cut = tokenizer_control()
        source_data = _chosen(source, profile, cut)
        data = replace(source_data, tokenizer="char" if source_data.paired is not None else cut)
        if data.paired is not None:
            _describe_pairs(data.paired)
        if data.problem:
            (st.error if data.corpus is None and (data.text or source not in OWN) else st.info)(data.problem)
        if data.corpus is not None:
            _describe(data.corpus)
    return data


def _chosen(source: str, profile: Profile, cut: str) -> Data:
    """The text, cut into tokens; with a tokenizer that is not allowed here, a sentence instead."""
    try:
        profiles.check_tokenizer(profile, cut)
    except ConfigError as error:
        allowed = content.Filled(error.allowed)
        problem = TEXT("refused", label=label_of(error.field), value=cut[:40], allowed=allowed)
        return Data("text" if source in OWN else source, None, None, problem)
    if source == "task":
        return _task(cut)
    if source == "pairs":
        return _pairs()
    return _own(source, profile, cut) if source in OWN else _built_in(source, cut)


def _task(cut: str) -> Data:
    """One of the synthetic tasks, and the way to settings that solve it."""
    titles = {name: task.title for name, task in TASKS.items()}
    name = widgets.select(TEXT["task"], titles, "task", kind="pills", wrap=True)
    st.caption(TASKS[name].rule)
    st.button(
        TEXT["task settings"],
        icon=":material/task_alt:",
        on_click=_settle,
        args=(name,),
        key="task_settings",
        help=TEXT(
            "task settings late" if TASKS[name].answers_only else "task settings soon",
            title=content.Filled(TASKS[name].title),
        ),
    )
    try:
        return Data(name, None, session.corpus(name, cut))
    except CorpusError as error:
        return Data(name, None, None, sentence(error))


def _pairs() -> Data:
    """One of the tasks with a source and a target, or who speaks; and the way to settings that learn it."""
    name = widgets.select(
        TEXT["pairs choice"], pair_titles(), "pairs", kind="pills", wrap=True, on_change=_settle_chosen
    )
    st.caption(pair_rule(name))
    st.button(
        TEXT["pairs settings"],
        icon=":material/task_alt:",
        on_click=_settle_pairs,
        args=(name,),
        key="pairs_settings",
        help=TEXT["pairs settings hint"],
    )
    try:
        data = kinds.kind_of(name).read(name, "")
    except CorpusError as error:
        return Data(name, None, None, sentence(error))
    return Data(name, None, None, paired=data if not isinstance(data, Corpus) else None)


def _settle_chosen() -> None:
    """Applies the settings of pairs, or of another task of theirs, when they are chosen."""
    names = list(pair_titles())
    name = st.session_state.get("pairs", names[0])
    if st.session_state.get("data") == "pairs" and name in names:
        _settle_pairs(name)


def _settle_pairs(name: str) -> None:
    model, train = kinds.recipe(name)
    fill(model.to_dict() | train.to_dict())


def _fill_blanks() -> None:
    fill(recipe(ENCODERS["blanks"]))


def _settle(name: str) -> None:
    """Puts the recipe of a task into the controls."""
    model, train = task_recipe(TASKS[name])
    fill(model.to_dict() | train.to_dict())


def _built_in(source: str, cut: str) -> Data:
    st.button(
        TEXT["blanks settings"],
        icon=":material/format_ink_highlighter:",
        on_click=_fill_blanks,
        key="blanks_settings",
        help=TEXT["blanks settings hint"],
    )
    name, note = ("python" if source == "python" else "shakespeare"), ""
    if name == "shakespeare" and corpora.shakespeare_path() is None:
        note = _fetch_shakespeare()
        name = "python" if note else name
    try:
        text = session.corpus(name).text
    except CorpusError as error:
        name, note = "python", TEXT("instead", why=content.Filled(error))
        text = session.corpus(name).text
    key = ("merges", name, cut)
    if not _learned(key, text, cut):
        return Data(name, None, None, TEXT["first"])
    return Data(name, None, session.corpus(name, cut, known(key)), note)


def _fetch_shakespeare() -> str:
    """Downloads it with a progress bar. Returns '' or, where it cannot be had, one sentence; asks again only
    after a while.
    """
    if failed := session.refusals():
        return TEXT["missing"]
    text = TEXT["downloading"]
    bar = st.progress(0.0, text=text)
    try:
        corpora.load(
            "shakespeare",
            lambda done, total: bar.progress(min(1.0, done / total) if total else 0.0, text=text),
        )
    except CorpusError as error:
        failed.append(error)
        return TEXT["missing"]
    finally:
        bar.empty()
    return ""


def _own(source: str, profile: Profile, cut: str) -> Data:
    st.caption(TEXT("not in link", most=profile.max_text, longer=content.Filled(widgets.MUCH_LONGER)))
    if source == "paste":
        hint = TEXT["yours hint"]
        text = widgets.box(TEXT["yours"], profile.max_text, "pasted", height=160, placeholder=hint)
        problem = "" if text else TEXT["paste"]
    else:
        text, problem = _uploaded(profile)
    if not text:
        return Data("text", None, None, problem)
    if len(text) > profile.max_text:
        by = len(text) - profile.max_text
        problem = TEXT("over", length=len(text), most=profile.max_text, by=by)
        return Data("text", text, None, problem)
    try:
        if not _learned(merges_of(text, cut), text, cut, profile.max_merging):
            return Data("text", text, None, TEXT["first"])
        return Data("text", text, custom_corpus(text, cut))
    except CorpusError as error:
        return Data("text", text, None, sentence(error))


def _learned(key: Key, text: str, cut: str, most: int | None = None) -> bool:
    """True if the merges of a text are known under `key`, or it needs none. While they are learned, draws a
    bar; a sentence where that is more work than `most`, or was cancelled.
    """
    if bpe_size(cut) is None:
        return True
    return measured(key, partial(bpe_process.learning_for, text, cut, most), TEXT["learning"]) is not None


def _uploaded(profile: Profile) -> tuple[str, str]:
    """(text, sentence). The last good upload is kept, since an uploader forgets its file when another page is
    opened.
    """
    most = max(1, math.ceil(profile.max_text * 4 / 2**20))
    file = st.file_uploader(TEXT["file"], key="upload", max_upload_size=most)
    # the widget's limit is the browser's alone
    if file is not None and file.size > most << 20:
        return "", TEXT("file too large", name=file.name, most=most)
    if file is not None:
        try:
            text = file.getvalue().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            return "", TEXT("not utf8", name=file.name, byte=error.start)
        if "\0" in text:
            return "", TEXT("null bytes", name=file.name)
        if not text:
            return "", TEXT("empty", name=file.name)
        st.session_state["uploaded"] = (file.name, text)
    name, text = st.session_state.get("uploaded", ("", ""))
    if name and file is None:
        st.caption(TEXT("still in use", length=len(text)))
    return text, "" if text else TEXT["upload"]


def _describe_pairs(data: PairedText | LabelledText) -> None:
    many = TEXT(
        "labelled" if isinstance(data, LabelledText) else "pairs",
        train=len(data.train),
        held_out=len(data.validation),
        vocabulary=data.vocab_size,
    )
    st.markdown(f"{many} {TEXT['lengths']}")
    st.code(examples(data), language=None, wrap_lines=True)


def examples(data: PairedText | LabelledText) -> str:
    """Returns the first pairs that are learned from, a line each."""
    if isinstance(data, PairedText):
        return "\n".join(f"{pair.source} → {pair.target}" for pair in data.train[:PAIRS])
    return "\n".join(f"{line.text} → {line.label}" for line in data.train[:PAIRS])


def _describe(corpus: Corpus) -> None:
    if isinstance(corpus.task, Task):
        _describe_task(corpus, corpus.task)
        return
    split = TEXT("split", train=len(corpus.train), held_out=len(corpus.validation))
    if corpus.kind == "char":
        st.markdown(
            TEXT("characters", characters=corpus.characters, vocabulary=corpus.vocab_size, split=split)
        )
        st.code(visible_text(corpus.text[:EXCERPT]), language=None, wrap_lines=True)
        pair = visible_text(corpus.text[: SHIFTED + 1].replace("\n", " "))
        st.caption(TEXT["shifted"])
        st.code(f"x  {pair[:-1]}\ny  {pair[1:]}", language=None)
        return
    requested = bpe_size(corpus.cut) or 0
    fewer = corpus.vocab_size < requested
    st.markdown(
        TEXT(
            "bytes" if corpus.kind == "byte" else "fewer tokens" if fewer else "tokens",
            characters=corpus.characters,
            tokens=len(corpus.train) + len(corpus.validation),
            each=corpus.characters_per_token,
            vocabulary=corpus.vocab_size,
            requested=requested,
            split=split,
        )
    )
    st.caption(TEXT["beginning"])
    st.code(_cut_text(corpus), language=None, wrap_lines=True)


def _describe_task(corpus: Corpus, task: Task) -> None:
    """Counts a task's problems, or the letters of its stream, and shows the first."""
    train, held_out = (len(corpus.train), len(corpus.validation)) if task.stream else corpus.problems
    st.markdown(
        TEXT(
            "stream" if task.stream else "problems",
            train=train,
            held_out=held_out,
            entropy=task.entropies[-1],
            length=task.length,
        )
    )
    st.code(corpus.text[:EXCERPT].strip(), language=None, wrap_lines=True)


def _cut_text(corpus: Corpus) -> str:
    """The first tokens of the text, a bar between them."""
    bits = [
        tokenizers.readable(corpus.tokenizer.decode_bytes([i]))  # type: ignore[attr-defined]
        for i in corpus.train[: EXCERPT // 4].tolist()
    ]
    return visible_text("|".join(bits))


def visible_text(text: str) -> str:
    r"""Returns a text in which everything can be seen, as Tokens shows it; a space is a dot, and lines break.

    >>> visible_text("to be\u200b")
    'to·beU+200B'
    """
    return "".join(LINES.get(c, shown) for c, shown in zip(text, each_shown(text, len(text)), strict=True))
