"""The lesson that is a text: a small model learns another one, and forgets the one it was trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from engine.data import corpora
from engine.data.tokenizers import Tokenizer
from engine.errors import CorpusError, GlassformerError
from pages.lab.after.stored_tunings import (
    between,
    last_values,
    live_line,
    spread,
    stored,
    stored_line,
)
from pages.lab.after.tuned_model import changes, counted, look_inside, take_along
from studies.after.finetune import trained_parameters
from studies.after.lessons import Setting, TextLesson
from studies.after.new_fact import Taught
from studies.after.new_text import (
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
from studies.experiments.finetune_runs import FinetuneRun
from ui import content, explain, memo, models, session, widgets
from ui.background_jobs import begun, measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe, whole
from ui.widgets import MOST_PROMPT, line

TEXT = content.beside(__file__)
TEXTS = ("python", "shakespeare")  # lessons
OWN_TEXT = "own-text"  # the lesson that a visitor pastes
FIRST_PROMPT = "The "
BOX = 20_000  # characters of a visitor's text
HEIGHT, SAMPLE, BOX_ROW = 336, 112, 124  # pixels: the figure, a sample, and the row of a visitor's text
FORGETS = 0.1  # nats per token: a loss that rises further is said to be forgotten, one that falls, learned
FORGETS_MUCH = 0.3  # nats per token
MOST_LACKING = 10  # characters that are named
SHADES = ("output", "validation")  # of the losses on the new text and the old


def lessons(subject: Subject) -> dict[str, str]:
    """Returns the texts that a model can be taught, by name -> title: none for a model whose own text is not
    here, and none for one of a synthetic task.
    """
    if _old_text(subject) is None or models.kind_of(subject.key[0]) != "letters":
        return {}
    old = _old_name(subject)
    return {name: TEXT(f"lesson {name}") for name in (*TEXTS, OWN_TEXT) if name != old}


def choose_prompt(subject: Subject) -> str:
    """Draws the prompt of the sample; returns it in the model's vocabulary, as much as its context holds."""
    prompt = line(TEXT["prompt"], FIRST_PROMPT, "tune_sample", MOST_PROMPT, TEXT["text hint"])
    return in_alphabet(prompt, subject.tokenizer)[-subject.config.context :]


def chosen(name: str, subject: Subject, prompt: str) -> TextLesson | None:
    """Draws the box of a visitor's text, and returns the lesson; None, and a sentence, while there is no
    text.
    """
    if name == OWN_TEXT:
        label = TEXT("box", least=LEAST, most=BOX)
        typed = whole(widgets.box(label, BOX, "tune_text", height=68)).replace("\0", " ")[:BOX]
        if not typed.strip():
            st.info(TEXT["missing"])
            return None
        lesson = _lesson(typed, subject.tokenizer)
    else:
        try:
            lesson = _shipped_lesson(name, subject.key, subject.tokenizer)
        except CorpusError as error:
            st.info(safe(str(error)))
            return None
    return replace(lesson, name=name, title=str(TEXT(f"title {name}")), prompt=prompt)


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
    return _old_name(subject) if _old_name(subject) in corpora.TEXTS else None


def _old_title(subject: Subject) -> str:
    name = _old_name(subject)
    return TEXT(f"title {name}") if name in TEXTS else TEXT["its own text"]


def _texts(subject: Subject, lesson: TextLesson) -> Texts:
    """Returns both texts. Raises CorpusError where the old one cannot be had, ConfigError for a new one that
    is too short.
    """
    text = _old_text(subject)
    assert text is not None
    old = session.corpus(text).text if text in corpora.TEXTS else text
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

    taught = measured(
        key,
        partial(
            teach_text,
            subject.model,
            subject.tokenizer,
            texts,
            setting.recipe,
            setting.rehearse,
            lesson.prompt,
        ),
        TEXT["fine-tuning"],
        lambda looks: _by_step(subject, setting, lesson, looks or ()),
        pausable=True,
    )
    if taught is None:
        return
    left, right = st.columns([5, 4], gap="small")
    with left:
        _by_step(subject, setting, lesson, taught.looks)
        says = counted(taught.trained, taught.total, done=True)
        runs = stored(subject, setting)
        st.caption(f"{says} {_spread(runs)}" if runs else says)
    with right:
        _samples(lesson, setting.recipe.steps, taught.before, taught.after)
    explain.answer(learned(lesson.title, _old_title(subject), taught.looks))
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
        st.caption(
            TEXT(
                "step of both" if setting.rehearse else "step",
                counted=counted(trained, total, done=False),
                windows=BATCH,
                tokens=min(subject.config.context, len(texts.new) - 1),
                new=len(texts.new),
            )
        )
    with right:
        _samples(lesson, setting.recipe.steps, written)
    explain.answer(
        TEXT(
            "untaught",
            old=_old_title(subject),
            old_loss=look.old,
            new=lesson.title,
            new_loss=look.new,
            steps=setting.recipe.steps,
        )
    )


def learned(new: str, old: str, looks: Sequence[TextEvaluation]) -> str:
    """Returns the answer: both losses before and after (Markdown)."""
    first, last = looks[0], looks[-1]
    rose = last.old - first.old
    became = "forgotten" if rose > FORGETS_MUCH else "a little forgotten" if rose > FORGETS else "still known"
    knows = "learned" if first.new - last.new > FORGETS else "not learned"
    losses = TEXT(
        "losses",
        steps=last.step,
        new=last.new,
        new_before=first.new,
        old=last.old,
        old_before=first.old,
    )
    return TEXT(f"{knows}, {became}", new=new, old=old, steps=last.step, losses=losses)


def _spread(runs: Sequence[FinetuneRun]) -> str:
    """Says at what the stored runs ended."""
    new, old = (between(losses, ".2f") for losses in last_values(runs).T)
    return spread(runs, [", ".join((TEXT("end of new", between=new), TEXT("end of old", between=old)))])


def _by_step(
    subject: Subject, setting: Setting, lesson: TextLesson, looks: tuple[TextEvaluation, ...]
) -> None:
    if not looks:
        return
    steps, losses = [look.step for look in looks], np.array([(look.new, look.old) for look in looks]).T
    names = TEXT("new line", title=lesson.title), TEXT("old line", title=_old_title(subject))
    plot(
        losses_by_step(
            steps, losses, names, setting.recipe.steps, stored(subject, setting) if len(looks) > 1 else ()
        ),
        key="tune_losses_by_step",
        height=HEIGHT - (BOX_ROW if lesson.name == OWN_TEXT else 0),
        name="fine-tuning",
        data={"step": np.array(steps), "new_text": losses[0], "old_text": losses[1]},
        alt=text_alt(names, looks),
    )


def text_alt(names: Sequence[str], looks: Sequence[TextEvaluation]) -> str:
    last = looks[-1]
    return TEXT("alt", steps=last.step, new_line=names[0], new=last.new, old_line=names[1], old=last.old)


def _samples(
    lesson: TextLesson, steps: int, before: tuple[str, ...], after: tuple[str, ...] | None = None
) -> None:
    """Draws what the model writes after the prompt, before and after, with the same draws."""
    if not before:
        return
    height = SAMPLE - (BOX_ROW // 2 if lesson.name == OWN_TEXT else 0)
    for when, texts in (("before", before), ("after", after)):
        st.caption(TEXT(f"sample {when}", prompt=lesson.prompt.strip(), steps=steps))
        written = lesson.prompt + texts[0] if texts else "?"
        st.code(whole(written), language=None, wrap_lines=True, height=height)
    if lesson.lacking:
        st.caption(lacking(lesson.lacking))


def lacking(characters: str) -> str:
    """Says which characters of a text were left out."""
    few, more = [repr(c)[1:-1] for c in characters[:MOST_LACKING]], len(characters) - MOST_LACKING
    return TEXT("lacking many" if more > 0 else "lacking", few=" ".join(few), more=more)


def _more(subject: Subject, setting: Setting, taught: Taught[TextEvaluation]) -> None:
    changes(subject, setting, taught)
    take_along(subject, setting, taught)


def losses_by_step(
    steps: Sequence[int],
    losses: np.ndarray,
    names: Sequence[str],
    end: int,
    stored: Sequence[FinetuneRun] = (),
) -> go.Figure:
    """Draws the loss on the new text and on the old one (line, step) by step up to `end`; `stored` runs as
    thin lines.
    """
    hover = TEXT["hover"]
    traces = [
        live_line(steps, values, name, {"color": colour(shade), "width": 3.0}, hover)
        for values, name, shade in zip(losses, names, SHADES, strict=True)
    ]
    for run in stored:
        for values, name, shade in zip(np.array(run.values).T, names, SHADES, strict=True):
            traces.append(stored_line(run.steps, values, name, shade, hover))
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        showlegend=True,
        xaxis=go.axis(TEXT["step axis"], range=[-0.02 * end, 1.02 * end]),
        yaxis=go.axis(TEXT["loss axis"], showgrid=True),
    )
