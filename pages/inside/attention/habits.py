"""Habits of a subject's heads, measured once for all views, with their names and colours."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from engine.data.tokenizers import Tokenizer, token_bytes
from engine.measure.attention.attention_targets import shares
from engine.measure.attention.copying_heads import name_mover_scores
from engine.measure.attention.head_patterns import (
    Habit,
    counts,
    habit_of_each,
    score_of,
)
from engine.measure.attention.heads import HeadNumbers, head_numbers
from engine.measure.circuits.induction import Repeated, ordinary, repeatable, repeated
from engine.measure.recording import Recording
from engine.model import Transformer
from ui import memo
from ui.background_jobs import measured
from ui.model_bar import Subject

NAMES: dict[Habit, str] = {
    "previous": "previous token",
    "word_start": "start of the word",
    "breaks": "spaces and punctuation",
    "same": "same token earlier",
    "itself": "the token itself",
    "induction": "induction",
    "duplicate": "duplicate token",
    "name_mover": "name mover",
    "own_word": "its own word",
    "broad": "broad",
    "near": "tokens nearby",
    "first": "first token",
}
SHORT: dict[Habit, str] = {  # below a small picture
    "previous": "previous",
    "word_start": "word start",
    "breaks": "spaces",
    "same": "same token",
    "itself": "itself",
    "duplicate": "duplicate",
    "own_word": "own word",
    "near": "nearby",
}
COLOURS: dict[Habit, str] = {
    "previous": "run0",
    "word_start": "run1",
    "breaks": "run2",
    "same": "run3",
    "itself": "run4",
    "induction": "attention",
    "duplicate": "run5",
    "name_mover": "output",
    "own_word": "validation",
    "broad": "training",
    "near": "position",
    "first": "quiet",
}
REPEATED = 24  # tokens that are read twice: as many as Circuits reads first, the same ones


def numbers_of(subject: Subject) -> HeadNumbers:
    """Returns what could be measured so far: where reading twice takes longer than a glance, a bar is drawn,
    and the page again when that is done.
    """
    twice = None
    if can_repeat(subject):
        pool = _pool(subject.key[0], subject.config.vocab_size, subject.tokenizer)
        key = ("repeated", subject.key)
        measure = partial(repeated, subject.model, sequences=1, pool=pool, count=REPEATED)
        twice = measured(key, measure, "Reading random tokens twice")
    return _numbers(
        subject.key,
        subject.ids,
        twice is not None,
        subject.recording(),
        subject.model,
        subject.tokenizer,
        twice,
    )


def can_repeat(subject: Subject) -> bool:
    """True if induction can be measured."""
    return repeatable(subject.model, min(subject.tokenizer.vocab_size, subject.config.vocab_size)) > 0


@memo.loaded()
def _pool(name: str, vocab_size: int, _tokenizer: Tokenizer) -> np.ndarray:
    return ordinary(token_bytes(_tokenizer)[:vocab_size])


@memo.measured()
def _numbers(
    key: tuple[str, int],
    ids: tuple[int, ...],
    known: bool,
    _recording: Recording,
    _model: Transformer,
    _tokenizer: Tokenizer,
    _repeated: Repeated | None,
) -> HeadNumbers:
    """`known`, whether there are numbers of reading twice, stands for them in the key."""
    patterns, visible = _recording.stacked("pattern"), _recording.seen()
    names = token_bytes(_tokenizer)
    texts = [names[i].decode("utf-8", "replace") if i < len(names) else "" for i in ids]
    where = shares(patterns, visible, ids, texts)
    measures = head_numbers(
        patterns,
        visible,
        _repeated.induction if _repeated else None,
        _repeated.duplicate if _repeated else None,
        name_mover_scores(_model, _recording),
    )
    return replace(
        measures, by_target=where.weight, even_by_target=where.even, word_by_distance=where.word_by_distance
    )


def legend(numbers: HeadNumbers) -> list[tuple[str, str, str]]:
    """Returns the name, the colour and the words of each habit that a head has, with how many have it."""
    many = counts(numbers).by_habit
    return [(name, COLOURS[name], f"{NAMES[name]} {many[name]}") for name in NAMES if many[name]]


def hints(numbers: HeadNumbers) -> list[str]:
    """Returns where each head is and what it does, layer by layer."""
    layers, heads = numbers.entropy.shape
    titles = [f"Head {i}.{h}: " for i in range(layers) for h in range(heads)]
    if not numbers.choice:
        return [f"{title}one token, which takes all the weight" for title in titles]
    habits = habit_of_each(numbers)
    return [title + _does(habit) for title, habit in zip(titles, habits, strict=True)]


def _does(strongest: tuple[Habit, float] | None) -> str:
    if strongest is None:
        return "no single pattern stands out"
    habit, value = strongest
    if habit == "broad":
        return f"broad, {value:.0%} of the maximum entropy"
    elsewhere = " on random text" if habit in ("induction", "duplicate") else ""
    return f"{NAMES[habit]}, {value:.0%}{elsewhere}"


def names(numbers: HeadNumbers, by: Habit | None) -> list[str]:
    """Returns the line below each head: what it does, or the habit that all are sorted by."""
    if by is not None:
        return [SHORT.get(by, NAMES[by])] * numbers.entropy.size
    return ["mixed" if top is None else SHORT.get(top[0], NAMES[top[0]]) for top in habit_of_each(numbers)]


def scores(numbers: HeadNumbers, by: Habit | None) -> list[str]:
    """Returns the number beside each head's name: its score of a habit, or of its own."""
    if by is None:
        return ["" if top is None else f"{top[1]:.0%}" for top in habit_of_each(numbers)]
    values = score_of(numbers, by)
    if values is None:
        return [""] * numbers.entropy.size
    return ["" if np.isnan(value) else f"{value:.0%}" for value in values.reshape(-1)]
