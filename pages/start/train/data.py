"""Training data: a text that is always there, or a custom one. Draws the data group of the training page."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from engine.config import bpe_size
from engine.data import corpora, tokenizers
from engine.data.corpus import Corpus
from engine.data.pairs import LabelledText, PairedText
from engine.data.tasks.all import TASKS
from engine.errors import ConfigError, CorpusError
from engine.presets import ENCODERS, Preset
from engine.presets.task_recipes import task_recipe
from engine.service import profiles
from engine.service.profiles import Profile
from engine.training import kinds
from pages.start.train import pairs, words, words_pairs, words_tasks
from ui import session, widgets
from ui.background_jobs import Key, known, measured
from ui.controls import fill, tokenizer_control
from ui.fields import label_of
from ui.text.markdown import safe

SOURCES = ("shakespeare", "python", "paste", "upload", "task", "pairs")
OWN = ("paste", "upload")
LEARNING = "Training the tokenizer on the text"
FIRST = "The tokenizer has to be trained on this text first."
EXCERPT, SHIFTED = 280, 12  # characters of the excerpt; of an input and its target


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
    with st.expander("Data", icon=":material/menu_book:"):
        hint = (
            "Tiny Shakespeare, the Python manual, your own text (pasted or uploaded as UTF-8), problems with"
            " answers that can be checked, or pairs: a source with its target, or a line with its speaker."
        )
        source = widgets.select(
            "Text", SOURCES, "data", hint=hint, width="stretch", wrap=True, on_change=_settle_chosen
        )
        cut = tokenizer_control()
        found = _chosen(source, profile, cut)
        data = replace(found, tokenizer="char" if found.paired is not None else cut)
        if data.paired is not None:
            st.markdown(pairs.described(data.paired))
            st.code(pairs.examples(data.paired), language=None, wrap_lines=True)
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
        return Data(
            "text" if source in OWN else source,
            None,
            None,
            f"**{label_of(error.field)}** {safe(cut[:40])}: {error.allowed}.",
        )
    if source == "task":
        return _task(cut)
    if source == "pairs":
        return _pairs()
    return _own(source, profile, cut) if source in OWN else _built_in(source, cut)


def _task(cut: str) -> Data:
    """One of the synthetic tasks, and the way to settings that solve it."""
    titles = {name: task.title for name, task in TASKS.items()}
    name = widgets.select("Task", titles, "task", kind="pills", wrap=True)
    st.caption(TASKS[name].rule)
    st.button(
        "Settings that solve it",
        icon=":material/task_alt:",
        on_click=_settle,
        args=(name,),
        key="task_settings",
        help=words_tasks.settings(TASKS[name]),
    )
    try:
        return Data(name, None, session.corpus(name, cut))
    except CorpusError as error:
        return Data(name, None, None, f"{str(error)[0].upper()}{str(error)[1:]}.")


def _pairs() -> Data:
    """One of the tasks with a source and a target, or who speaks; and the way to settings that learn it."""
    name = widgets.select("Pairs", pairs.TITLES, "pairs", kind="pills", wrap=True, on_change=_settle_chosen)
    paired = pairs.paired_of(name)
    assert paired is not None
    st.caption(paired.rule)
    st.button(
        words_pairs.SETTLE,
        icon=":material/task_alt:",
        on_click=_settle_pairs,
        args=(name,),
        key="pairs_settings",
        help=words_pairs.SETTLE_HELP,
    )
    try:
        data = kinds.kind_of(name).read(name, "")
    except CorpusError as error:
        return Data(name, None, None, f"{str(error)[0].upper()}{str(error)[1:]}.")
    return Data(name, None, None, paired=data if not isinstance(data, Corpus) else None)


def _settle_chosen() -> None:
    """Applies the settings of pairs, or of another task of theirs, when they are chosen."""
    name = st.session_state.get("pairs", next(iter(pairs.TITLES)))
    if st.session_state.get("data") == "pairs" and name in pairs.TITLES:
        _settle_pairs(name)


def _settle_pairs(name: str) -> None:
    model, train = kinds.recipe(name)
    fill(model.to_dict() | train.to_dict())


def _fill_blanks() -> None:
    preset: Preset = ENCODERS["blanks"]
    assert preset.train is not None
    fill(preset.model.to_dict() | preset.train.to_dict())


def _settle(name: str) -> None:
    """Puts the recipe of a task into the controls."""
    model, train = task_recipe(TASKS[name])
    fill(model.to_dict() | train.to_dict())


def _built_in(source: str, cut: str) -> Data:
    st.button(
        words_pairs.BLANKS,
        icon=":material/format_ink_highlighter:",
        on_click=_fill_blanks,
        key="blanks_settings",
        help=words_pairs.BLANKS_HELP,
    )
    name, note = ("python" if source == "python" else "shakespeare"), ""
    if name == "shakespeare" and corpora.shakespeare_path() is None:
        note = _fetch_shakespeare()
        name = "python" if note else name
    try:
        text = session.corpus(name).text
    except CorpusError as error:
        name, note = "python", f"{error}. The Python manual is used instead."
        text = session.corpus(name).text
    key = ("merges", name, cut)
    if not _learned(key, text, cut):
        return Data(name, None, None, FIRST)
    return Data(name, None, session.corpus(name, cut, known(key)), note)


def _fetch_shakespeare() -> str:
    """Downloads it with a progress bar. Returns '' or, where it cannot be had, one sentence; asks again only
    after a while.
    """
    missing = (
        "Tiny Shakespeare is not on this machine and could not be downloaded, so the Python manual is used:"
        " it needs no network."
    )
    if failed := session.refusals():
        return missing
    words = "Downloading Tiny Shakespeare (1.1 MB), once"
    bar = st.progress(0.0, text=words)
    try:
        corpora.load(
            "shakespeare",
            lambda done, total: bar.progress(min(1.0, done / total) if total else 0.0, text=words),
        )
    except CorpusError as error:
        failed.append(error)
        return missing
    finally:
        bar.empty()
    return ""


def _own(source: str, profile: Profile, cut: str) -> Data:
    most = f"At most {profile.max_text:,} characters"
    st.caption(f"Your text is too long to be part of the link. {most}; {widgets.MUCH_LONGER}")
    if source == "paste":
        hint = "Paste at least a few thousand characters: the more, the better."
        text = widgets.box("Your text", profile.max_text, "pasted", height=160, placeholder=hint)
        problem = "" if text else "Paste a text to train on."
    else:
        text, problem = _uploaded(profile)
    if not text:
        return Data("text", None, None, problem)
    if len(text) > profile.max_text:
        over = len(text) - profile.max_text
        return Data(
            "text",
            text,
            None,
            f"The text has {len(text):,} characters; at most {profile.max_text:,} are allowed here. Shorten"
            f" it by {over:,}.",
        )
    try:
        if not _learned(_merges_of(text, cut), text, cut, profile.max_merging):
            return Data("text", text, None, FIRST)
        return Data("text", text, custom_corpus(text, cut))
    except CorpusError as error:
        return Data("text", text, None, f"{str(error)[0].upper()}{str(error)[1:]}.")


def _learned(key: Key, text: str, cut: str, most: int | None = None) -> bool:
    """True if the merges of a text are known under `key`, or it needs none. While they are learned, draws a
    bar; a sentence where that is more work than `most`, or was cancelled.
    """
    if bpe_size(cut) is None:
        return True
    return measured(key, partial(corpora.learning, text, cut, most), LEARNING) is not None


def _uploaded(profile: Profile) -> tuple[str, str]:
    """(text, sentence). The last good upload is kept, since an uploader forgets its file when another page is
    opened.
    """
    most = max(1, math.ceil(profile.max_text * 4 / 2**20))
    file = st.file_uploader("A text file (UTF-8)", key="upload", max_upload_size=most)
    # the widget's limit is the browser's alone
    if file is not None and file.size > most << 20:
        return "", f"{safe(file.name)} is too large: at most {most} MB are allowed here."
    if file is not None:
        try:
            text = file.getvalue().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            return (
                "",
                (
                    f"{safe(file.name)} is not UTF-8 text (byte {error.start:,} is not valid): save it as"
                    " UTF-8 plain text and upload it again."
                ),
            )
        if "\0" in text:
            return (
                "",
                (
                    f"{safe(file.name)} is not text: it contains null bytes, as pictures, archives and office"
                    " documents do. Save it as plain text."
                ),
            )
        if not text:
            return "", f"{safe(file.name)} is empty."
        st.session_state["uploaded"] = (file.name, text)
    name, text = st.session_state.get("uploaded", ("", ""))
    if name and file is None:
        st.caption(f"Still in use: {len(text):,} characters uploaded earlier.")
    return text, "" if text else "Upload a text to train on."


def _merges_of(text: str, cut: str) -> Key:
    """Under this key their training is known (ui.background_jobs)."""
    return "merges", hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), cut


@st.cache_resource(max_entries=6, show_spinner=False)
def custom_corpus(text: str, tokenizer: str) -> Corpus:
    """Tokenizes and splits a text, once for each text and tokenizer. Raises CorpusError."""
    return corpora.from_text(text, tokenizer=tokenizer, cutter=known(_merges_of(text, tokenizer)))


def _describe(corpus: Corpus) -> None:
    split = (
        f"Train on the first **{len(corpus.train):,}**, validate on the last **{len(corpus.validation):,}**."
    )
    if corpus.task is not None:
        st.markdown(words_tasks.described(corpus.task, *_counts(corpus)))
        st.code(corpus.text[:EXCERPT].strip(), language=None, wrap_lines=True)
        return
    if corpus.kind == "char":
        st.markdown(f"**{corpus.characters:,}** characters, **{corpus.vocab_size}** distinct. {split}")
        st.code(visible_text(corpus.text[:EXCERPT]), language=None, wrap_lines=True)
        pair = visible_text(corpus.text[: SHIFTED + 1].replace("\n", " "))
        st.caption(words.SHIFTED)
        st.code(f"x  {pair[:-1]}\ny  {pair[1:]}", language=None)
        return
    what, short = ("bytes", "") if corpus.kind == "byte" else ("tokens", _fewer(corpus))
    st.markdown(
        f"**{corpus.characters:,}** characters make **{len(corpus.train) + len(corpus.validation):,}** {what}"
        f" of **{corpus.characters_per_token:.2f}** characters on average, from a vocabulary of"
        f" **{corpus.vocab_size:,}**{short}. {split}"
    )
    st.caption("The beginning, with a bar between tokens:")
    st.code(_cut_text(corpus), language=None, wrap_lines=True)


def _counts(corpus: Corpus) -> tuple[int, int]:
    """Counts a task's problems, or the letters of its stream."""
    stream = corpus.task is not None and corpus.task.stream
    return (len(corpus.train), len(corpus.validation)) if stream else corpus.problems


def _fewer(corpus: Corpus) -> str:
    """Said where a text had no more pairs to merge than these."""
    asked = bpe_size(corpus.cut) or 0
    return f" ({asked:,} requested, but this text has no more pairs)" if corpus.vocab_size < asked else ""


def _cut_text(corpus: Corpus) -> str:
    """The first tokens of the text, a bar between them."""
    bits = [
        tokenizers.readable(corpus.tokenizer.decode_bytes([i]))  # type: ignore[attr-defined]
        for i in corpus.train[: EXCERPT // 4].tolist()
    ]
    return visible_text("|".join(bits))


def visible_text(text: str) -> str:
    """Spaces and line breaks that can be seen.

    >>> visible_text("to be")
    'to·be'
    """
    return text.replace(" ", "·").replace("\n", "⏎\n").replace("\t", "⇥")
