"""The view of fine-tuning: a model learns a new fact in seconds; what it answers then, and what it forgot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.data.progress import Steps
from engine.errors import GlassformerError, PretrainedError
from engine.training.finetune import MAX_SENTENCES, Recipe, changed, counted, merged, trained_parameters
from engine.training.new_fact import FactLook, Question, Taught, ask, teach
from engine.weights.export.adapter import peft
from engine.weights.pretrained import sources
from pages.lab.after import figures_finetune as figures
from pages.lab.after import guesses_finetune as guesses
from pages.lab.after import words_finetune as words
from pages.lab.after.lessons import OPENING, STYLES, TOPICS, Style, Topic
from ui import explain, guess, models, session, tuned, widgets
from ui.background_jobs import begun, measured
from ui.fields import visible
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe, whole
from ui.widgets import MOST_ANSWER, MOST_PROMPT, line

OWN, METHOD = "own", "tune_method"  # a choice, and a key
METHODS = {
    "lora-4": "LoRA, rank 4",
    "lora-1": "LoRA, rank 1",
    "lora-16": "LoRA, rank 16",
    "full": "All weights",
}
WRITTEN = {Topic: 3, Style: 6}  # tokens that the model writes after each prompt
WIDTHS = {Topic: (5, 4), Style: (1, 1)}  # of the figure and the table
RANKS = {"lora-1": 1, "lora-4": 4, "lora-16": 16, "full": 0}
FULL_RATE, LORA_RATE = 1e-4, 4e-3  # AdamW's
BOX, MOST_BEGINS = 2_000, 20  # characters of a visitor's sentences, and of a word that answers begin with
STEPS, MOST_STEPS = 10, 30
FULL_BYTES = 16  # for each weight: a copy, its gradient, AdamW's two moments
HEIGHT = 352
NAME, MOST_NAME = "tune_name", 60  # key, and characters


@dataclass(frozen=True)
class Setting:
    """A fine-tuning: a fact or a style, recipe, and the two switches."""

    topic: Topic | Style
    recipe: Recipe
    rehearse: bool
    answers_only: bool


def draw_finetune(subject: Subject) -> None:
    """Draws what is taught and how, the answers step by step, and what the model writes before and after."""
    setting, pressed = _controls()
    if setting is None:
        return
    memory = FULL_BYTES * trained_parameters(subject.model, setting.recipe.rank)
    if session.profile().public and memory > session.profile().max_worker_bytes:
        st.info(words.too_large(memory))
        return
    key = ("fine-tuning", subject.key, setting)
    guess.ask("adapter", guesses.adapter, subject.model, setting.recipe.rank, METHOD)
    if not (pressed or begun(key)):
        _before(subject, setting)
        return
    taught = measured(
        key,
        lambda: _teach(subject, setting),
        "Fine-tuning",
        lambda looks: _by_step(setting, looks or ()),
        pausable=True,
    )
    if taught is None:
        return
    left, right = st.columns(WIDTHS[type(setting.topic)], gap="small")
    with left:
        _by_step(setting, taught.looks)
    with right:
        _written(setting, taught.before, taught.after)
        st.caption(words.trained(taught.trained, taught.total))
    explain.answer(words.learned(setting.topic, taught))
    _look_inside(subject, setting, taught)
    explain.measure_it(_more, subject, setting, taught)


def _before(subject: Subject, setting: Setting) -> None:
    """Draws what the model answers before anything is taught."""
    topic = setting.topic
    lessons = topic.lessons(setting.rehearse, setting.answers_only)
    try:
        answers, written = _asked(subject.key, topic.questions, WRITTEN[type(topic)], subject)
        count = counted(lessons, subject.tokenizer)
    except GlassformerError as error:
        st.warning(safe(str(error)))
        return
    left, right = st.columns(WIDTHS[type(topic)], gap="small")
    with left:
        _by_step(setting, (FactLook(0, math.nan, answers),))
    with right:
        _written(setting, written)
        total = trained_parameters(subject.model, 0)
        trained = trained_parameters(subject.model, setting.recipe.rank)
        st.caption(words.to_train(trained, total, len(lessons), count))
    explain.answer(words.untaught(topic, answers))
    explain.measure_it(st.markdown, words.lessons(topic, setting.rehearse))


@st.cache_resource(max_entries=32, show_spinner=False)
def _asked(
    key: tuple[str, int], questions: tuple[Question, ...], written: int, _subject: Subject
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    return ask(_subject.model, _subject.tokenizer, questions, written)


def _teach(subject: Subject, setting: Setting) -> Steps[Taught]:
    lessons = setting.topic.lessons(setting.rehearse, setting.answers_only)
    topic, text = setting.topic, setting.topic.text if isinstance(setting.topic, Style) else ""
    written = WRITTEN[type(topic)]
    return teach(subject.model, subject.tokenizer, lessons, topic.questions, setting.recipe, written, text)


def _controls() -> tuple[Setting | None, bool]:
    """Returns what is to be taught, None where the visitor's own fact is not complete; and whether it is to
    begin now.
    """
    a, b, c, d, e = st.columns([5, 4, 3, 5, 3], gap="small", vertical_alignment="bottom")
    titles = {name: topic.title for name, topic in (TOPICS | STYLES).items()} | {OWN: "Your own fact"}
    name = widgets.select("Lesson", titles, "tune_fact", kind="list", container=a)
    method = widgets.select("Method", METHODS, METHOD, kind="list", container=b)
    steps = widgets.slide("Steps", 2, MOST_STEPS, STEPS, "tune_steps", container=c)
    with d:
        rehearse = widgets.switch("Rehearse old facts", False, "tune_rehearse", hint=words.REHEARSE_HINT)
        only = widgets.switch("Loss on answers only", False, "tune_answers", hint=words.ANSWERS_HINT)
    with e:
        # Streamlit's own: it begins something and has no value.
        pressed = st.button("Fine-tune", icon=":material/play_arrow:", type="primary", key="tune_go")
    topic = _own() if name == OWN else (TOPICS | STYLES)[name]
    if topic is None:
        return None, False
    if isinstance(topic, Style):
        first = topic.answer.strip() + OPENING
        topic = topic.beginning(line(words.BEGINS, first, "tune_begins", MOST_BEGINS, words.BEGINS_HINT))
    rank = RANKS[method]
    recipe = Recipe(rank, steps, LORA_RATE if rank else FULL_RATE)
    return Setting(topic, recipe, rehearse, only), pressed


def _own() -> Topic | None:
    """Returns the visitor's fact; None, and a sentence, while something is missing."""
    first = TOPICS["capital"]
    a, b, c = st.columns([6, 4, 2], gap="small")
    with a:
        text = whole(widgets.box(words.SENTENCES, BOX, "tune_sentences", height=90)).replace("\0", " ")
    with b:
        prompt = line("Prompt", first.prompt, "tune_prompt", MOST_PROMPT)
    with c:
        answer = line("Answer", first.answer, "tune_answer", MOST_ANSWER, words.ANSWER_HINT)
    sentences = tuple(line.strip() for line in text[:BOX].splitlines() if line.strip())[:MAX_SENTENCES]
    if not (sentences and prompt.strip() and answer.strip()):
        st.info(words.OWN_MISSING)
        return None
    return Topic("Your own", sentences, prompt, "", answer, first.known, first.rehearsed)


def _by_step(setting: Setting, looks: tuple[FactLook, ...]) -> None:
    if not looks:
        return
    questions, steps = setting.topic.questions, [look.step for look in looks]
    lines = np.array([look.answers for look in looks]).T
    plain = np.array([look.plain for look in looks])
    drawn = words.drawn(setting.topic, lines)
    plot(
        figures.answers_by_step(
            steps,
            drawn,
            words.labels(setting.topic),
            setting.recipe.steps,
            plain if isinstance(setting.topic, Style) else None,
        ),
        key="tune_answers_by_step",
        height=HEIGHT,
        name="fine-tuning",
        data={"step": np.array(steps), "plain_text_loss": plain}
        | {f"{q.prompt}{q.answer}": line for q, line in zip(questions, lines, strict=True)},
        alt=words.alt(setting.topic, looks),
    )


def _written(setting: Setting, before: tuple[str, ...], after: tuple[str, ...] = ()) -> None:
    """Draws what the model writes after each prompt, before and after."""
    asked: dict[str, tuple[str, str]] = {}
    for i, question in enumerate(setting.topic.questions):
        if not isinstance(setting.topic, Style) or question.prompt in setting.topic.listed:
            asked.setdefault(question.prompt, (before[i], after[i] if after else ""))
    rows = [
        f"| {safe(prompt)} … | {safe(first.strip())} | **{safe(then.strip())}** |"
        if after
        else f"| {safe(prompt)} … | {safe(first.strip())} | ? |"
        for prompt, (first, then) in asked.items()
    ]
    head = f"| {words.PROMPT} | before | after {setting.recipe.steps} steps |"
    st.markdown("\n".join([head, "|-|-|-|", *rows]))


def _look_inside(subject: Subject, setting: Setting, taught: Taught) -> None:
    """Offers the fine-tuned model on the pages that look inside."""
    if not taught.adapters:
        st.caption(words.NOT_KEPT)
        return
    # Streamlit's own: it leads away and has no value.
    if not st.button(words.LOOK_INSIDE, icon=":material/search:", type="tertiary", key="tune_look_inside"):
        return
    query = {
        "circuits_view": "fact",
        "model": _keep(subject, setting, taught),
        "fact_question": "own",
        "fact_prompt": setting.topic.prompt,
    }
    st.switch_page(
        "pages/inside/circuits/page.py", query_params=query | {"fact_answer_text": setting.topic.answer}
    )


def _keep(subject: Subject, setting: Setting, taught: Taught) -> str:
    """Keeps the fine-tuned model on this server, titled as the visitor chose or by its lesson; returns its
    name in links.
    """
    model = merged(subject.model, changed(subject.model, taught.adapters))
    title = visible(str(widgets.held_or_linked(NAME) or "")).strip()[:MOST_NAME] or _title(subject, setting)
    return tuned.keep(
        repr((subject.key, setting, title)),
        tuned.Tuned(model, subject.tokenizer, models.origin(subject.key[0]), title),
        sum(dict(model.named_parameters())[each].nbytes for each in taught.adapters),
    )


def _title(subject: Subject, setting: Setting) -> str:
    began = subject.title.removesuffix(", pretrained").removesuffix(" (trained)")
    return f"{began}, fine-tuned: {setting.topic.answer.strip()}"


def _more(subject: Subject, setting: Setting, taught: Taught) -> None:
    st.markdown(words.change(taught, setting.recipe))
    plot(
        figures.singular_values(taught.largest.singular),
        key="tune_singular",
        height=220,
        name="singular-values",
        data={"singular_value": np.array(taught.largest.singular)},
        alt=words.singular_alt(taught),
    )
    st.markdown(words.lessons(setting.topic, setting.rehearse))
    if taught.adapters:
        _take_along(subject, setting, taught)


def _take_along(subject: Subject, setting: Setting, taught: Taught) -> None:
    """Offers a name for the model, its merged weights on the page that exports, and the adapters in PEFT's
    layout, where the model's family has one.
    """
    line(words.NAME, "", NAME, MOST_NAME, words.NAME_HINT)
    # Streamlit's own: it leads away and has no value.
    if st.button(words.EXPORT, icon=":material/download:", key="tune_export"):
        query = {"reference_view": "export", "model": _keep(subject, setting, taught)}
        st.switch_page("pages/models/reference/page.py", query_params=query)
    known = sources.KNOWN.get(subject.key[0].removeprefix(models.PRETRAINED))
    base = known.repository if known else "model"
    try:
        data = peft(subject.model, taught.adapters, base)
    except PretrainedError as error:
        st.caption(safe(f"No file for PEFT: {error}."))
        return
    # Streamlit's own: a file has no value.
    st.download_button(
        words.DOWNLOAD, data, "adapter.zip", "application/zip", icon=":material/download:", key="tune_adapter"
    )
