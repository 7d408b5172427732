"""The view of fine-tuning: a model learns a new fact in seconds; what it answers then, and what it forgot."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import streamlit as st

from engine.data.progress import Steps
from engine.errors import GlassformerError
from engine.training.post_training.finetune import (
    MAX_SENTENCES,
    FinetuneRecipe,
    target_count,
    trained_parameters,
)
from engine.training.post_training.lessons import (
    OPENING,
    STYLES,
    TEXT_STEPS,
    TOPICS,
    Setting,
    Style,
    TextLesson,
    Topic,
    rate,
)
from engine.training.post_training.new_fact import FactEvaluation, Taught, ask, teach
from pages.lab.after import figures_finetune as figures
from pages.lab.after import guesses_finetune as guesses
from pages.lab.after import words_finetune as words
from pages.lab.after.another_text import choose_prompt, chosen, draw_text
from pages.lab.after.another_text import lessons as texts
from pages.lab.after.stored_tunings import ended, stored
from pages.lab.after.tuned_model import LORA, METHOD, changes, look_inside, take_along, use_lora
from ui import explain, guess, session, widgets
from ui.background_jobs import Key, begun, measured
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe, whole
from ui.widgets import MOST_ANSWER, MOST_PROMPT, line

OWN, REHEARSE = "own", "tune_rehearse"
WRITTEN = {Topic: 3, Style: 6}  # tokens that the model writes after each prompt
WIDTHS = {Topic: (5, 4), Style: (1, 1)}  # of the figure and the table
RANKS = {"lora-1": 1, LORA: 4, "lora-16": 16, "full": 0}
BOX, MOST_BEGINS = 2_000, 20  # characters of a visitor's sentences, and of a word that answers begin with
STEPS, MOST_STEPS = 10, 30
LEAST_OF_TEXT, MOST_OF_TEXT = 12, 120  # steps of a lesson that is a text
MOST_SEED = 100
FULL_BYTES = 16  # for each weight: a copy, its gradient, AdamW's two moments
ROW = [5, 4, 3, 5, 2, 3]  # widths of the controls of a fact
HEIGHTS = {Topic: 328, Style: 312}  # pixels


def draw_finetune(subject: Subject) -> None:
    """Draws what is taught and how, the answers step by step, and what the model writes before and after."""
    setting, pressed = _controls(subject)
    if setting is None:
        return
    memory = FULL_BYTES * trained_parameters(subject.model, setting.recipe.rank)
    if session.profile().public and memory > session.profile().max_worker_bytes:
        st.info(words.too_large(memory))
        use_lora()
        return
    key = ("fine-tuning", subject.key, setting)
    _guess(subject, setting)
    if isinstance(setting.topic, TextLesson):
        draw_text(subject, setting, setting.topic, pressed)
    elif pressed or begun(key):
        _taught(subject, setting, setting.topic, key)
    else:
        _before(subject, setting, setting.topic)


def _guess(subject: Subject, setting: Setting) -> None:
    """Offers the guess about rehearsal where stored runs tell, else that about the rank."""
    topic = setting.topic
    without, rehearsing = (stored(subject, replace(setting, rehearse=on)) for on in (False, True))
    if isinstance(topic, Topic) and without and rehearsing:
        guess.ask("rehearsed", guesses.rehearsed, topic, setting.rehearse, without, rehearsing, REHEARSE)
    else:
        guess.ask("adapter", guesses.adapter, subject.model, setting.recipe.rank, METHOD)


def _taught(subject: Subject, setting: Setting, topic: Topic | Style, key: Key) -> None:
    """Draws the fine-tuning while it goes on, and what it has taught."""
    taught = measured(
        key,
        lambda: _teach(subject, setting, topic),
        words.DOING,
        lambda looks: _by_step(subject, setting, topic, looks or ()),
        pausable=True,
    )
    if taught is None:
        return
    left, right = st.columns(WIDTHS[type(topic)], gap="small")
    with left:
        _by_step(subject, setting, topic, taught.looks)
    with right:
        _written(setting, topic, taught.before, taught.after)
        st.caption(words.trained(taught.trained, taught.total))
    with left:  # where there is room
        if runs := stored(subject, setting):
            st.caption(words.spread(topic, *ended(runs)))
        elif not setting.recipe.rank:
            st.caption(words.NO_DRAW)
        else:
            st.caption(words.single_run(setting.recipe.seed))
    explain.answer(words.learned(topic, taught))
    look_inside(subject, setting, taught)
    explain.measure_it(_more, subject, setting, topic, taught)


def _before(subject: Subject, setting: Setting, topic: Topic | Style) -> None:
    """Draws what the model answers before anything is taught."""
    lessons = topic.lessons(setting.rehearse, setting.answers_only)
    try:
        count = target_count(lessons, subject.tokenizer)
    except GlassformerError as error:
        st.warning(safe(str(error)))
        return
    questions, tokens = topic.questions, WRITTEN[type(topic)]
    first = measured(
        ("asked", subject.key, questions, tokens),
        lambda: ask(subject.model, subject.tokenizer, questions, tokens),
        words.ASKING,
    )
    if first is None:
        return
    answers, written = first
    left, right = st.columns(WIDTHS[type(topic)], gap="small")
    with left:
        _by_step(subject, setting, topic, (FactEvaluation(0, math.nan, answers),))
    with right:
        _written(setting, topic, written)
        total = trained_parameters(subject.model, 0)
        trained = trained_parameters(subject.model, setting.recipe.rank)
        st.caption(words.to_train(trained, total, len(lessons), count))
    explain.answer(words.untaught(topic, answers))
    explain.measure_it(st.markdown, words.lessons(topic, setting.rehearse))


def _teach(subject: Subject, setting: Setting, topic: Topic | Style) -> Steps[Taught[FactEvaluation]]:
    lessons = topic.lessons(setting.rehearse, setting.answers_only)
    text, written = topic.text if isinstance(topic, Style) else "", WRITTEN[type(topic)]
    return teach(subject.model, subject.tokenizer, lessons, topic.questions, setting.recipe, written, text)


def _controls(subject: Subject) -> tuple[Setting | None, bool]:
    """Returns what is to be taught, None where the visitor's own fact or text is not complete; and whether it
    is to begin now.
    """
    others = texts(subject)
    titles = {name: topic.title for name, topic in (TOPICS | STYLES).items()} | {OWN: words.OWN_FACT}
    first = next(iter(others), None)
    lessons = others | titles
    settled = widgets.settled(lessons, "tune_fact", first or next(iter(lessons)))
    of_text, of_style = settled in others, settled in STYLES
    widths = [5.4, 4, 3, 3.6, 3, 2, 3.6] if of_text else [5, 4, 3, 5, 3, 2, 4] if of_style else ROW
    a, b, c, d, *g, e, f = st.columns(widths, gap="small", vertical_alignment="bottom")
    name = widgets.select("Lesson", lessons, "tune_fact", first=first, kind="list", container=a)
    method = widgets.select("Method", words.METHODS, METHOD, kind="list", container=b)
    prompt = ""
    if of_text:
        with g[0]:
            prompt = choose_prompt(subject)
        steps = widgets.slide(
            "Steps", LEAST_OF_TEXT, MOST_OF_TEXT, TEXT_STEPS, "tune_text_steps", step=12, container=c
        )
    else:
        steps = widgets.slide("Steps", 2, MOST_STEPS, STEPS, "tune_steps", container=c)
    with d:
        label = words.REHEARSE if of_text or of_style else words.REHEARSE_FACTS
        hint = words.TEXT_REHEARSE_HINT if of_text else words.REHEARSE_HINT
        rehearse = widgets.switch(label, False, REHEARSE, hint=hint)
        label = words.ANSWERS_ONLY if of_style else words.LOSS_ON_ANSWERS
        only = not of_text and widgets.switch(label, False, "tune_answers", hint=words.ANSWERS_HINT)
    seed = widgets.whole("Seed", 0, MOST_SEED, 0, "tune_seed", container=e, hint=words.SEED_HINT)
    with f:
        # Streamlit's own: it begins something and has no value.
        pressed = st.button("Fine-tune", icon=":material/play_arrow:", type="primary", key="tune_go")
    topic: Topic | Style | TextLesson | None
    topic = chosen(name, subject, prompt) if of_text else _own() if name == OWN else (TOPICS | STYLES)[name]
    if topic is None:
        return None, False
    if isinstance(topic, Style):
        with g[0]:
            begins = topic.answer.strip() + OPENING
            begins = line(words.BEGINS, begins, "tune_begins", MOST_BEGINS, words.BEGINS_HINT)
        topic = topic.beginning(begins)
    rank = RANKS[method]
    return Setting(topic, FinetuneRecipe(rank, steps, rate(rank, of_text), seed), rehearse, only), pressed


def _own() -> Topic | None:
    """Returns the visitor's fact; None, and a sentence, while something is missing."""
    first = TOPICS["capital"]
    most = MAX_SENTENCES - len(first.rehearsed)  # so that rehearsal can be switched on
    a, b, c = st.columns([6, 4, 2], gap="small")
    with a:
        text = whole(widgets.box(words.SENTENCES.format(most), BOX, "tune_sentences", height=90)).replace(
            "\0", " "
        )
    with b:
        prompt = line("Prompt", first.prompt, "tune_prompt", MOST_PROMPT)
    with c:
        answer = line("Answer", first.answer, "tune_answer", MOST_ANSWER, words.ANSWER_HINT)
    sentences = tuple(line.strip() for line in text[:BOX].splitlines() if line.strip())[:most]
    if not (sentences and prompt.strip() and answer.strip()):
        st.info(words.OWN_MISSING)
        return None
    return Topic(words.OWN_TITLE, sentences, prompt, "", answer, first.known, first.rehearsed)


def _by_step(
    subject: Subject, setting: Setting, topic: Topic | Style, looks: tuple[FactEvaluation, ...]
) -> None:
    if not looks:
        return
    questions, steps = topic.questions, [look.step for look in looks]
    lines = np.array([look.answers for look in looks]).T
    plain = np.array([look.plain for look in looks])
    count = len(questions)
    runs = stored(subject, setting) if len(looks) > 1 else ()
    values = [np.array(run.values).T for run in runs]  # the last one of a style is the loss on plain text
    plot(
        figures.answers_by_step(
            steps,
            words.drawn(topic, lines),
            words.labels(topic),
            setting.recipe.steps,
            plain if isinstance(topic, Style) else None,
            [(r.steps, words.drawn(topic, v[:count]), v[-1]) for r, v in zip(runs, values, strict=True)],
        ),
        key="tune_answers_by_step",
        height=HEIGHTS[type(topic)],
        name="fine-tuning",
        data={"step": np.array(steps), "plain_text_loss": plain}
        | {f"{q.prompt}{q.answer}": line for q, line in zip(questions, lines, strict=True)},
        alt=words.alt(topic, looks),
    )


def _written(
    setting: Setting, topic: Topic | Style, before: tuple[str, ...], after: tuple[str, ...] = ()
) -> None:
    """Draws what the model writes after each prompt, before and after."""
    answers: dict[str, tuple[str, str]] = {}
    for i, question in enumerate(topic.questions):
        if not isinstance(topic, Style) or question.prompt in topic.listed:
            answers.setdefault(question.prompt, (before[i], after[i] if after else ""))
    st.markdown(words.written(answers, setting.recipe.steps, bool(after)))


def _more(subject: Subject, setting: Setting, topic: Topic | Style, taught: Taught[FactEvaluation]) -> None:
    changes(subject, setting, taught)
    st.markdown(words.lessons(topic, setting.rehearse))
    take_along(subject, setting, taught)
