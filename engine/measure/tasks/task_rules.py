"""Which rule a model of a task follows: problems in which two explanations give two different answers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.data.tasks.task import Task
from engine.data.tokenizers import Tokenizer
from engine.model import Transformer
from engine.sample.problems import Answered, answered, share_right

PROBES = 300  # circles with a letter out of turn
BREAK = "\n"


@dataclass(frozen=True)
class OutOfTurn:
    """What a model of Repeat writes after a letter that came out of turn, as shares of `probes` circles:
    the letter that followed it before (`after`: what an induction head would say), the one that has not been
    seen for longest (`longest`), or another.
    """

    after: float
    longest: float
    probes: int


def out_of_turn_line(draws: random.Random, letters: str) -> tuple[str, str, str]:
    """(read, after, longest): a circle of different letters, read for more than one round, whose last letter
    is not the one whose turn it was; the letter that followed that one before; and the one not seen for
    longest, whose turn it still is.
    """
    period = draws.randint(6, 9)
    piece = draws.sample(letters, period)
    read = [piece[i % period] for i in range(draws.randint(period + 2, 20))]
    due = len(read) % period
    wrong = draws.choice([i for i in range(period) if i != due and (i + 1) % period != due])
    return "".join(read) + piece[wrong], piece[(wrong + 1) % period], piece[due]


@torch.inference_mode()
def out_of_turn(
    model: Transformer, tokenizer: Tokenizer, letters: str, probes: int = PROBES, seed: int = 0
) -> OutOfTurn:
    """Induction and "whoever was away longest" agree on every problem of Repeat, and differ here."""
    draws = random.Random(seed)
    by_length: dict[int, list[tuple[str, str, str]]] = {}
    for _ in range(probes):
        line = out_of_turn_line(draws, letters)
        by_length.setdefault(len(line[0]), []).append(line)
    after = longest = 0
    for some in by_length.values():
        read = torch.tensor([tokenizer.encode(BREAK + line) for line, _, _ in some])
        said = [tokenizer.decode([token]) for token in model(read)[:, -1].argmax(-1).tolist()]
        after += sum(one == follows for one, (_, follows, _) in zip(said, some, strict=True))
        longest += sum(one == away for one, (_, _, away) in zip(said, some, strict=True))
    return OutOfTurn(after / probes, longest / probes, probes)


def runs_on(question: str) -> bool:
    """Whether a carry runs on through a column whose digits add up to nine: then the digit before depends on
    columns further right than its neighbour.

    >>> runs_on("045+057="), runs_on("045+157="), runs_on("044+055=")
    (True, True, False)
    """
    first, second = question.rstrip("=").split("+")
    carry = 0
    for a, b in zip(map(int, reversed(first)), map(int, reversed(second)), strict=True):
        if carry and a + b == 9:
            return True
        carry = int(a + b + carry > 9)
    return False


def by_carries(
    model: Transformer, tokenizer: Tokenizer, task: Task, lines: Tensor
) -> Mapping[bool, tuple[int, float]]:
    """Sums in which a carry runs on, and the others -> (how many, the share that is right). `lines` (batch,
    period + 1) as `lines_of` gives them.
    """
    found: dict[bool, list[Answered]] = {True: [], False: []}
    for one in answered(model, tokenizer, task, lines):
        found[runs_on(one.question)].append(one)
    return {on: (len(some), _share(some)) for on, some in found.items()}


def _share(found: Sequence[Answered]) -> float:
    return share_right(found) if found else 0.0
