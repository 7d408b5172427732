"""The lesson that is a text: a small model learns another one, and forgets the one it was trained on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import streamlit as st

from engine.data import corpora
from engine.data.progress import Steps
from engine.data.tokenizers import Tokenizer
from engine.errors import CorpusError, GlassformerError
from engine.training.post_training.finetune import trained_parameters
from engine.training.post_training.lessons import Setting, TextLesson
from engine.training.post_training.new_fact import Taught
from engine.training.post_training.new_text import (
    BATCH,
    LEAST,
    MOST,
    TextEvaluation,
    Texts,
    held_out_losses,
    in_alphabet,
    sample,
    split,
    teach_text,
)
from pages.lab.after import figures_finetune as figures
from pages.lab.after import words_finetune as words
from pages.lab.after.stored_tunings import ended, stored
from pages.lab.after.tuned_model import changes, look_inside, take_along
from ui import explain, memo, models, session, widgets
from ui.background_jobs import begun, measured
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe, whole
from ui.widgets import MOST_PROMPT, line

OWN_TEXT = "own-text"  # the lesson that a visitor pastes
FIRST_PROMPT = "The "
BOX = 20_000  # characters of a visitor's text
HEIGHT, SAMPLE, BOX_ROW = 336, 112, 124  # pixels: the figure, a sample, and the row of a visitor's text


def lessons(subject: Subject) -> dict[str, str]:
    """Returns the texts that a model can be taught, by name -> title: none for a model whose own text is not
    here, and none for one of a synthetic task.
    """
    if _old_text(subject) is None or models.kind_of(subject.key[0]) != "letters":
        return {}
    others = {name: words.text_lesson(title) for name, title in words.TEXTS.items()}
    others.pop(_old_name(subject) or "", None)
    return others | {OWN_TEXT: words.OWN_TEXT}


def choose_prompt(subject: Subject) -> str:
    """Draws the prompt of the sample; returns it in the model's vocabulary, as much as its context holds."""
    prompt = line(words.PROMPT.capitalize(), FIRST_PROMPT, "tune_sample", MOST_PROMPT, words.SAMPLE_HINT)
    return in_alphabet(prompt, subject.tokenizer)[-subject.config.context :]


def chosen(name: str, subject: Subject, prompt: str) -> TextLesson | None:
    """Draws the box of a visitor's text, and returns the lesson; None, and a sentence, while there is no
    text.
    """
    if name == OWN_TEXT:
        label = words.TEXT_BOX.format(LEAST, BOX)
        typed = whole(widgets.box(label, BOX, "tune_text", height=68)).replace("\0", " ")[:BOX]
        if not typed.strip():
            st.info(words.TEXT_MISSING)
            return None
        lesson = _lesson(typed, subject.tokenizer)
    else:
        try:
            lesson = _shipped_lesson(name, subject.key, subject.tokenizer)
        except CorpusError as error:
            st.info(safe(str(error)))
            return None
    return replace(lesson, name=name, title=words.TEXTS.get(name, words.YOUR_TEXT), prompt=prompt)


@memo.measured()
def _shipped_lesson(name: str, _key: tuple[str, int], _tokenizer: Tokenizer) -> TextLesson:
    return _lesson(session.corpus(name).text, _tokenizer)


def _lesson(text: str, tokenizer: Tokenizer) -> TextLesson:
    return TextLesson("", "", in_alphabet(text, tokenizer)[:MOST], "", "".join(tokenizer.unknown(text)))


def _old_name(subject: Subject) -> str | None:
    """Returns the name of the text that a model was trained on; None where nobody knows it."""
    name = models.origin(subject.key[0])
    if name.startswith(models.UNTRAINED):
        return None
    shakespeare = name in models.SHIPPED or name in models.LAPSES
    return subject.corpus or ("shakespeare" if shakespeare else None)


def _old_text(subject: Subject) -> str | None:
    """Returns the text of a run that was typed, or the name of a text; None where nobody knows it."""
    run = models.run_of(models.origin(subject.key[0]))
    if run is not None and run.spec.text:
        return run.spec.text
    return _old_name(subject) if _old_name(subject) in corpora.CORPORA else None


def _old_title(subject: Subject) -> str:
    return words.TEXTS.get(_old_name(subject) or "", words.ITS_TEXT)


def _texts(subject: Subject, lesson: TextLesson) -> Texts:
    """Returns both texts. Raises CorpusError where the old one cannot be had, ConfigError for a new one that
    is too short.
    """
    text = _old_text(subject)
    assert text is not None
    old = session.corpus(text).text if text in corpora.CORPORA else text
    return split(lesson.text, old, subject.tokenizer)


def draw_text(subject: Subject, setting: Setting, lesson: TextLesson, pressed: bool) -> None:
    """Draws both losses step by step, and what the model writes before and after."""
    key = ("fine-tuning", subject.key, setting)
    try:
        texts = _texts(subject, lesson)
        if not (pressed or begun(key)):
            _before(subject, setting, lesson, texts)
            return
    except GlassformerError as error:
        st.warning(safe(str(error)))
        return

    def teach() -> Steps[Taught[TextEvaluation]]:
        return teach_text(
            subject.model, subject.tokenizer, texts, setting.recipe, setting.rehearse, lesson.prompt
        )

    taught = measured(
        key,
        teach,
        words.DOING,
        lambda looks: _by_step(subject, setting, lesson, looks or ()),
        pausable=True,
    )
    if taught is None:
        return
    left, right = st.columns([5, 4], gap="small")
    with left:
        _by_step(subject, setting, lesson, taught.looks)
        says = words.trained(taught.trained, taught.total)
        runs = stored(subject, setting)
        st.caption(f"{says} {words.spread_of_losses(*ended(runs))}" if runs else says)
    with right:
        _samples(lesson, setting.recipe.steps, taught.before, taught.after)
    explain.answer(words.text_learned(lesson.title, _old_title(subject), taught.looks))
    look_inside(subject, setting, taught)
    explain.measure_it(_more, subject, setting, taught)


@memo.measured()
def _first(
    key: tuple[str, int], lesson: TextLesson, seed: int, _subject: Subject, _texts: Texts
) -> tuple[TextEvaluation, tuple[str, ...]]:
    look = TextEvaluation(0, math.nan, *held_out_losses(_subject.model, _texts))
    return look, sample(_subject.model, _subject.tokenizer, lesson.prompt, seed)


def _before(subject: Subject, setting: Setting, lesson: TextLesson, texts: Texts) -> None:
    """Draws both losses and a sample before anything is taught."""
    look, written = _first(subject.key, lesson, setting.recipe.seed, subject, texts)
    left, right = st.columns([5, 4], gap="small")
    with left:
        _by_step(subject, setting, lesson, (look,))
        total, trained = (trained_parameters(subject.model, rank) for rank in (0, setting.recipe.rank))
        windows = (BATCH, min(subject.config.context, len(texts.new) - 1))
        st.caption(words.text_to_train(trained, total, windows, len(texts.new), setting.rehearse))
    with right:
        _samples(lesson, setting.recipe.steps, written)
    explain.answer(words.text_untaught(lesson.title, _old_title(subject), look, setting.recipe.steps))


def _by_step(
    subject: Subject, setting: Setting, lesson: TextLesson, looks: tuple[TextEvaluation, ...]
) -> None:
    if not looks:
        return
    steps, losses = [look.step for look in looks], np.array([(look.new, look.old) for look in looks]).T
    names = words.text_labels(lesson.title, _old_title(subject))
    runs = stored(subject, setting) if len(looks) > 1 else ()
    plot(
        figures.losses_by_step(
            steps, losses, names, setting.recipe.steps, [(r.steps, r.values) for r in runs]
        ),
        key="tune_losses_by_step",
        height=HEIGHT - (BOX_ROW if lesson.name == OWN_TEXT else 0),
        name="fine-tuning",
        data={"step": np.array(steps), "new_text": losses[0], "old_text": losses[1]},
        alt=words.text_alt(names, looks),
    )


def _samples(
    lesson: TextLesson, steps: int, before: tuple[str, ...], after: tuple[str, ...] | None = None
) -> None:
    """Draws what the model writes after the prompt, before and after, with the same draws."""
    if not before:
        return
    height = SAMPLE - (BOX_ROW // 2 if lesson.name == OWN_TEXT else 0)
    for when, texts in ((words.BEFORE, before), (words.after(steps), after)):
        st.caption(words.sample(lesson.prompt, when))
        written = lesson.prompt + texts[0] if texts else "?"
        st.code(whole(written), language=None, wrap_lines=True, height=height)
    if lesson.lacking:
        st.caption(words.lacking(lesson.lacking))


def _more(subject: Subject, setting: Setting, taught: Taught[TextEvaluation]) -> None:
    changes(subject, setting, taught)
    take_along(subject, setting, taught)
