"""Texts for encoder-decoders and classifiers, by name: a task's pairs, and who speaks in Shakespeare."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from engine.data import corpora
from engine.errors import CorpusError
from studies.pairs.dataset import Labelled, LabelledText, Pair, PairedText
from studies.pairs.paired import PAIR_TASKS, Aligned, pairs
from studies.pairs.tokenizer import PairTokenizer

LEARNED, HELD_OUT = 20_000, 1_000  # pairs of a task
SPEAKERS = 8
STRETCHES = {1: 1, 2: 1, 4: 2, 8: 4}  # lines of a speech that are one text, and lines from one to the next
SHORTEST = 20  # characters of a text: a shorter one says too little
OTHER = "<other>"  # is read for words that were heard less than OFTEN times
OFTEN = 2


@lru_cache(maxsize=8)
def pair_text(name: str, learned: int = LEARNED, held_out: int = HELD_OUT, seed: int = 0) -> PairedText:
    """Returns the pairs of a task, the same for the same seed. Raises CorpusError for an unknown name."""
    if name not in PAIR_TASKS:
        raise CorpusError(f"there is no task {name!r}; there are {', '.join(PAIR_TASKS)}")
    task = PAIR_TASKS[name]
    train, validation = pairs(task, learned, held_out, seed)
    both = [text for each in (*train, *validation) for text in (each.source, each.target)]
    tokenizer = PairTokenizer.train(both, task.by)
    return PairedText(name, task.title, tokenizer, _plain(train), _plain(validation))


def _plain(aligned: list[Aligned]) -> tuple[Pair, ...]:
    return tuple(Pair(entry.source, entry.target) for entry in aligned)


@dataclass(frozen=True)
class Speakers:
    """Stretches of speeches with their speakers; `lines`: of each held-out one. `majority` is the accuracy,
    on the held-out ones, of always naming the most frequent speaker of the training split.
    """

    text: LabelledText
    lines: tuple[int, ...]
    majority: float


@lru_cache(maxsize=2)
def speakers() -> Speakers:
    """Returns stretches of 1, 2, 4 and 8 lines of Tiny Shakespeare, by the SPEAKERS characters with most
    lines, without their names. Whole speeches are held out, so that no text's neighbours are learned from,
    and cut into stretches that do not overlap; what is learned from may. A text that stands on both sides is
    left out of what is learned.

    Raises CorpusError where the text cannot be had.
    """
    spoken = speeches(corpora.load("shakespeare").text)
    most = Counter({who: 0 for who, _ in spoken})
    for who, speech in spoken:
        most[who] += speech.count("\n") + 1
    labels = tuple(who for who, _ in most.most_common(SPEAKERS))
    chosen = [entry for entry in spoken if entry[0] in labels]
    held = _stretches(
        [entry for entry in chosen if _is_held_out(entry[1])], {size: size for size in STRETCHES}
    )
    learned = _stretches([entry for entry in chosen if not _is_held_out(entry[1])], STRETCHES)
    texts = [entry for entry in learned if entry not in held]
    lines = [entry for entry in texts if learned[entry][1] == 1]
    text = LabelledText(
        "speakers",
        "Who speaks?",
        PairTokenizer.train(lines, "speech", OTHER, OFTEN),
        labels,
        tuple(Labelled(entry, learned[entry][0]) for entry in texts),
        tuple(Labelled(entry, who) for entry, (who, _) in held.items()),
        "mean",
    )
    right = frequent_right(text)
    return Speakers(text, tuple(size for _, size in held.values()), sum(right) / len(right))


def _stretches(spoken: list[tuple[str, str]], steps: dict[int, int]) -> dict[str, tuple[str, int]]:
    """Text -> (who says it, how many lines it has), each text once; `steps` as STRETCHES."""
    stretches: dict[str, tuple[str, int]] = {}
    for who, speech in spoken:
        lines = speech.split("\n")
        for size, step in steps.items():
            for first in range(0, len(lines) - size + 1, step):
                text = " ".join(lines[first : first + size])
                if len(text) >= SHORTEST:
                    stretches.setdefault(text, (who, size))
    return stretches


def speeches(text: str) -> list[tuple[str, str]]:
    """Splits a play into its speeches (name, text); each begins with a name and a colon.

    >>> speeches("KING:\\nWho is there?\\n\\nNurse:\\nI,\\nmy lord.")
    [('KING', 'Who is there?'), ('Nurse', 'I,\\nmy lord.')]
    """
    parts = [block.partition(":\n") for block in text.strip().split("\n\n")]
    return [(who, speech) for who, colon, speech in parts if colon]


def _is_held_out(speech: str) -> bool:
    return zlib.crc32(speech.encode()) % 5 == 0


def frequent_right(text: LabelledText) -> list[bool]:
    """Returns for each held-out text True if its label is the most frequent one of the training split."""
    label = Counter(example.label for example in text.train).most_common(1)[0][0]
    return [example.label == label for example in text.validation]
