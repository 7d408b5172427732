"""Texts for encoder-decoders and classifiers, by name: a task's pairs, and who speaks in Shakespeare."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from engine import corpora
from engine.errors import CorpusError
from engine.paired import Labelled, LabelledText, Pair, PairedText
from engine.tasks.paired import PAIR_TASKS, Aligned, pairs
from engine.tokenizers.paired import PairTokenizer

LEARNED, HELD_OUT = 20_000, 1_000  # pairs of a task
SPEAKERS = 8
SHORTEST, LONGEST = 20, 60  # characters of a line: a shorter one says too little


@lru_cache(maxsize=8)
def pair_text(name: str, learned: int = LEARNED, held_out: int = HELD_OUT, seed: int = 0) -> PairedText:
    """The pairs of a task, by its name; the same ones for the same seed. Raises CorpusError for a name that
    is none.
    """
    if name not in PAIR_TASKS:
        raise CorpusError(f"there is no task {name!r}; there are {', '.join(PAIR_TASKS)}")
    task = PAIR_TASKS[name]
    train, validation = pairs(task, learned, held_out, seed)
    both = [text for one in (*train, *validation) for text in (one.source, one.target)]
    tokenizer = PairTokenizer.train(both, task.by)
    return PairedText(name, task.title, tokenizer, _plain(train), _plain(validation))


def _plain(found: list[Aligned]) -> tuple[Pair, ...]:
    return tuple(Pair(one.source, one.target) for one in found)


@dataclass(frozen=True)
class Speakers:
    """Lines with who says them. `majority`: what share of the held-out lines the most frequent speaker of the
    learned ones says; a model that knows no more is right as often.
    """

    text: LabelledText
    majority: float


@lru_cache(maxsize=2)
def speakers(count: int = SPEAKERS) -> Speakers:
    """Single lines of Tiny Shakespeare, SHORTEST to LONGEST characters long, of the `count` characters who
    speak most lines; without their names. Whole speeches are held out, so that no line's neighbours are
    learned from; a line that stands on both sides is left out of what is learned.

    Raises CorpusError where the text cannot be had.
    """
    found = speeches(corpora.load("shakespeare").text)
    said = [(who, speech, line) for who, speech in found for line in speech.split("\n")]
    said = [one for one in said if SHORTEST <= len(one[2]) <= LONGEST]
    most = [who for who, _ in Counter(who for who, _, _ in said).most_common(count)]
    lines = [one for one in said if one[0] in most]
    held = tuple(Labelled(line, who) for who, speech, line in lines if _is_held_out(speech))
    there = {one.text for one in held}
    learned = tuple(
        Labelled(line, who) for who, speech, line in lines if not _is_held_out(speech) and line not in there
    )
    tokenizer = PairTokenizer.train(one.text for one in (*learned, *held))
    text = LabelledText("speakers", "Who speaks?", tokenizer, tuple(most), learned, held)
    return Speakers(text, majority(text))


def speeches(text: str) -> list[tuple[str, str]]:
    """(who, what is said) of every speech of a play, which begins with a name and a colon.

    >>> speeches("KING:\\nWho is there?\\n\\nNurse:\\nI,\\nmy lord.")
    [('KING', 'Who is there?'), ('Nurse', 'I,\\nmy lord.')]
    """
    parts = [block.partition(":\n") for block in text.strip().split("\n\n")]
    return [(who, said) for who, colon, said in parts if colon]


def _is_held_out(speech: str) -> bool:
    return zlib.crc32(speech.encode()) % 5 == 0


def majority(text: LabelledText) -> float:
    """The share of the held-out texts that have the label most frequent among the learned ones: 0 to 1."""
    label = Counter(one.label for one in text.train).most_common(1)[0][0]
    return sum(one.label == label for one in text.validation) / len(text.validation)
