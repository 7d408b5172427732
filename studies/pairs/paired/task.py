"""Tasks with a source and a target: a rule makes the target, and an alignment for attention."""

from __future__ import annotations

import random
import tomllib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import TaskError
from studies.pairs.tokenizer import By
from studies.tasks.task import Sources

HELD_OUT = 0.1  # share of the keys that are never learned from
TRIES = 2000  # draws in a row that add nothing, after which a task has no more to give


@dataclass(frozen=True)
class Aligned:
    """A source, its one right target, and the source positions of each target symbol.

    `sources` has, for each symbol of the target, the places of the source's symbols that it is made of; none
    for what is always there, as the strokes of a date are. Symbols are letters or words, counted from 0. The
    decoder's query i writes symbol i of the target; key j of its cross-attention is symbol j of the source.
    """

    source: str
    target: str
    sources: Sources


@dataclass(frozen=True)
class Rule:
    """One rule of a task in words, with an example: a source and its target."""

    title: str
    words: str
    source: str
    target: str


def rules_of(task: str, answer: Callable[[str], Aligned]) -> tuple[Rule, ...]:
    """Returns the rules of a task in rules.toml, each example with its target."""
    rows = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))[task]
    return tuple(Rule(title, words, source, answer(source).target) for title, words, source in rows)


@dataclass(frozen=True)
class PairTask:
    """A task with a source and a target. `draw` makes a source; `answer` returns the target of any source
    with its alignment, and raises TaskError with a sentence for a text that is no source. Sources with the
    same `key` are never split between training and validation.
    """

    name: str
    title: str
    rule: str  # what is to be done, as a sentence
    by: By  # what a symbol is
    form: str  # what one may type, in words
    draw: Callable[[random.Random], str] = field(repr=False)
    answer: Callable[[str], Aligned] = field(repr=False)
    key: Callable[[str], str] = field(default=lambda source: source, repr=False)
    rules: tuple[Rule, ...] = field(default=(), repr=False)
    repeats: bool = False  # a source may be learned from several times: the short ones, which are few

    def truth(self, text: str) -> Aligned | None:
        """Returns the answer to a text; None where it is no source of this task."""
        try:
            return self.answer(text)
        except TaskError:
            return None

    def for_validation(self, source: str) -> bool:
        """True if a source is held out: the same answer for ever, whatever else is drawn."""
        return zlib.crc32(f"{self.name}:{self.key(source)}".encode()) < HELD_OUT * 2**32


def pairs(task: PairTask, train: int, validation: int, seed: int = 0) -> tuple[list[Aligned], list[Aligned]]:
    """Draws pairs to learn from and to hold out, by a seed, or all there are. Each source occurs once, but
    for the training split of a task that `repeats`. No source, nor one with its key, is in both.
    """
    draws = random.Random(f"{task.name}-{seed}")
    kept: tuple[list[str], list[str]] = ([], [])
    seen: set[str] = set()
    idle = 0
    while (len(kept[0]) < train or len(kept[1]) < validation) and idle < TRIES:
        source = task.draw(draws)
        part = kept[task.for_validation(source)]
        full = len(part) >= (validation if part is kept[1] else train)
        idle += 1
        if not full and (source not in seen or (task.repeats and part is kept[0])):
            seen.add(source)
            part.append(source)
            idle = 0
    return tuple([task.answer(source) for source in part] for part in kept)  # type: ignore[return-value]
