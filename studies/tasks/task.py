"""Synthetic tasks: problems drawn from a known source, so that the lowest possible loss is known too.

A problem is a line of fixed length: first what is asked, which is drawn at random, then the answer, which
follows from it. No model can guess the random part better than the source's entropy allows, and a model that
has learned the rule is certain of the rest: that sum is the floor.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Sources = tuple[tuple[int, ...], ...]
HELD_OUT = 0.1  # share of the problems that are never trained on


@dataclass(frozen=True)
class Task:
    """A synthetic task. `length` is the tokens of a problem with its line break, `given` how many of them
    stand before the answer. A stream (`length` 1) has no problems: it goes on for ever.

    `entropies` (length,): of each place's token, in nats, given those before it in its problem; of a stream
    (first, second, ...), where the last one goes on. `draw` makes one problem without its line break, of a
    stream as many letters as it is asked for. `right` says of any line whether it is a problem with a right
    answer; of a stream, whether every letter can follow those before it. `answer` is the answer to a problem,
    None where there are several; of a stream the likeliest next letter. `sources` says, for each place of the
    answer of a problem, at which places of the problem stands what it is made of. `asks` makes the question
    of what somebody typed in this `form`, None where it is none. `key`: problems with the same one are never
    parted between training and validation.
    """

    name: str
    title: str
    rule: str  # what is to be done, as a sentence
    alphabet: str  # without the line break
    length: int
    given: int
    entropies: tuple[float, ...]
    draw: Callable[[random.Random, int], str] = field(repr=False)
    right: Callable[[str], bool] = field(repr=False)
    answer: Callable[[str], str] | None = field(default=None, repr=False)
    sources: Callable[[str], Sources] | None = field(default=None, repr=False)
    form: str = ""  # what one types to ask a question, in words: eight letters from a to h
    asks: Callable[[str], str | None] = field(default=lambda typed: None, repr=False)
    key: Callable[[str], str] = field(default=lambda line: line, repr=False)
    everything: Callable[[], Sequence[str]] | None = field(default=None, repr=False)  # where they are few
    held_out: float = HELD_OUT
    answers_only: bool = False  # the loss is of the answers alone

    @property
    def stream(self) -> bool:
        return self.length == 1

    @property
    def graded(self) -> tuple[bool, ...]:
        """Marks the positions of a problem that count in the loss: (length,)."""
        last = self.length - 1
        return tuple(not self.answers_only or self.given <= i < last for i in range(self.length))

    def position_entropy(self, position: int) -> float:
        """Returns the nats of the token that is predicted at a position of a window, counted from 0."""
        if self.stream:
            return self.entropies[min(position, len(self.entropies) - 1)]
        return self.entropies[position % self.length]

    def floor(self, context: int) -> float:
        """Returns the lowest mean loss, in nats per token, that a model can expect on so many tokens.

        Windows begin where problems do. NaN where no token of such a window counts.
        """
        counted = [i for i in range(context) if self.graded[i % self.length]]
        return sum(map(self.position_entropy, counted)) / len(counted) if counted else math.nan

    def for_validation(self, line: str) -> bool:
        """True if a problem is held out: the same answer for ever, whatever else is drawn."""
        return zlib.crc32(f"{self.name}:{self.key(line)}".encode()) < self.held_out * 2**32


def problems(task: Task, train: int, validation: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Draws problems to train and to validate on, never both, with one key; of few, each once."""
    draws = random.Random(f"{task.name}-{seed}")
    if task.everything is not None:
        lines = list(task.everything())
        draws.shuffle(lines)
        return (
            [line for line in lines if not task.for_validation(line)],
            [line for line in lines if task.for_validation(line)],
        )
    kept: tuple[list[str], list[str]] = ([], [])
    while len(kept[0]) < train or len(kept[1]) < validation:
        line = task.draw(draws, task.length - 1)
        part = kept[task.for_validation(line)]
        if len(part) < (validation if part is kept[1] else train):
            part.append(line)
    return kept


def examples(task: Task, count: int) -> list[str]:
    """Returns problems as a model was trained to read them, or pieces of a stream; always the same ones."""
    draws = [random.Random(f"{task.name}-example-{i}") for i in range(count)]
    if task.stream:
        return [task.draw(chance, 24) for chance in draws]
    return ["\n" + task.draw(chance, task.length - 1) for chance in draws]


def marked(task: Task, text: str) -> list[tuple[str, bool]]:
    """Returns the complete lines of a text that a model wrote, each with True if it is right.

    A stream is cut into pieces, each right where all its letters can follow those before.
    """
    if task.stream:
        pieces = [(max(0, i - 2), i, min(i + 20, len(text))) for i in range(0, len(text), 20)]
        return [(text[start:end], task.right(text[before:end])) for before, start, end in pieces]
    lines = text.split("\n")
    whole = lines if len(lines[-1]) == task.length - 1 else lines[:-1]
    return [(line, task.right(line)) for line in whole if line]
