"""What the heads of a subject do, measured once for all views; and how habits are named and coloured."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from engine.measure.copying import name_mover_scores
from engine.measure.habits import STRONG, Habit, counts, habit_of_each, measured_habits
from engine.measure.heads import HeadNumbers, head_numbers
from engine.measure.recording import Recording
from engine.measure.repeating import Repeated, repeatable, repeated
from engine.model import Transformer
from ui.slow import measured
from ui.subject import Subject

NAMES: dict[Habit, str] = {
    "previous": "Previous token",
    "first": "First token",
    "induction": "Induction",
    "duplicate": "Duplicate token",
    "name_mover": "Name mover",
}
COLOURS: dict[Habit, str] = {
    "previous": "run0",
    "first": "quiet",
    "induction": "attention",
    "duplicate": "run1",
    "name_mover": "output",
}


def numbers_of(subject: Subject) -> HeadNumbers:
    """What could be measured so far: where reading twice takes longer than a glance, a bar is drawn, and the
    page again when that is done.
    """
    twice = None
    if can_repeat(subject):
        key, vocab = ("repeated", subject.key), _vocab(subject)
        twice = measured(key, partial(repeated, subject.model, vocab=vocab), "Reading random tokens twice")
    return _numbers(subject.key, subject.ids, twice is not None, subject.recording(), subject.model, twice)


def can_repeat(subject: Subject) -> bool:
    """Whether induction can be measured at all."""
    return repeatable(subject.model, _vocab(subject)) > 0


def _vocab(subject: Subject) -> int:
    return min(subject.tokenizer.vocab_size, subject.config.vocab_size)


@st.cache_resource(max_entries=64, show_spinner=False)
def _numbers(
    key: tuple[str, int],
    ids: tuple[int, ...],
    known: bool,
    _recording: Recording,
    _model: Transformer,
    _repeated: Repeated | None,
) -> HeadNumbers:
    """`known`, whether there are numbers of reading twice, stands for them in the key."""
    return head_numbers(
        _recording.stacked("pattern"),
        _recording.seen(),
        _repeated.induction if _repeated else None,
        _repeated.duplicate if _repeated else None,
        name_mover_scores(_model, _recording),
    )


def answer(numbers: HeadNumbers) -> str:
    """One sentence: how many heads do something that has a name (Markdown)."""
    found = counts(numbers)
    if not measured_habits(numbers):
        return "The text has one token only: there is nothing to compare."
    return (
        f"**{found.named} of {found.heads} heads** give {STRONG:.0%} or more to a known habit;"
        f" **{found.resting}** others rest on the first token."
    )


def legend(numbers: HeadNumbers) -> list[tuple[str, str, str]]:
    """The name, the colour and the words of each habit that a head has, with how many have it."""
    found = counts(numbers).by_habit
    return [(name, COLOURS[name], f"{NAMES[name].lower()} {found[name]}") for name in NAMES if found[name]]


def hints(numbers: HeadNumbers) -> list[str]:
    """A sentence for each head, layer by layer."""
    layers, heads = numbers.entropy.shape
    if not np.isfinite(numbers.first).any():
        return [
            f"Layer {i}, head {h}: there is one token, and it takes all the weight."
            for i in range(layers)
            for h in range(heads)
        ]
    return [
        f"Layer {i}, head {h}: looks {numbers.distance[i, h]:.1f} tokens away on average,"
        f" {numbers.previous[i, h]:.0%} of its weight on the previous token, {numbers.first[i, h]:.0%} on the"
        f" first.{_besides(own)}"
        for (i, h), own in zip(np.ndindex(layers, heads), habit_of_each(numbers), strict=True)
    ]


def _besides(own: tuple[Habit, float] | None) -> str:
    """What else is known of a head."""
    if own is None or own[0] in ("previous", "first"):
        return ""
    return f" {NAMES[own[0]]}: {own[1]:.0%}."


def scores(numbers: HeadNumbers, by: Habit | None) -> list[str]:
    """What is written beside each head's name: its score of a habit, or of its own."""
    if by is None:
        return ["" if own is None else f"{own[1]:.2f}" for own in habit_of_each(numbers)]
    values = measured_habits(numbers).get(by)
    if values is None:
        return [""] * numbers.entropy.size
    return ["" if np.isnan(value) else f"{value:.2f}" for value in values.reshape(-1)]
