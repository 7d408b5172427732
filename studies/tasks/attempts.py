"""Test-time compute: a half-trained model answers each sum many times. The more answers, the more sums it
solves if they are put to the vote, or checked by a verifier.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb

import numpy as np
import torch
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.model import Transformer, build
from studies.after.reward import (
    ANSWER,
    ASKED,
    CONFIG,
    LETTERS,
    TASK,
    decode,
    draw_answers,
    lines,
    questions_of,
    rewards,
    teach,
)

COUNTS = (1, 2, 4, 8, 16, 32, 64)  # answers to a question
MOST = COUNTS[-1]
SEEDS = (0, 1, 2)
TEMPERATURES = (0.5, 1.0, 1.5)


@dataclass(frozen=True)
class Votes:
    """A question, its right answer, and how often each answer was given, the most frequent first."""

    question: str
    right: str
    answers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class Attempts:
    """Shares of ASKED held-out sums, each (seed, count) over SEEDS and COUNTS: with at least one right among
    so many answers (`verifier`), and with the most frequent one right (`majority`). `votes` are the questions
    of the first seed.
    """

    temperature: float
    verifier: np.ndarray = field(repr=False)
    majority: np.ndarray = field(repr=False)
    votes: tuple[Votes, ...] = field(repr=False)

    @property
    def single(self) -> np.ndarray:
        """Returns the share of answers that are right, (seed,)."""
        result: np.ndarray = self.verifier[:, 0]
        return result


def measure() -> Steps[dict[float, Attempts]]:
    """Teaches a model of every seed halfway (studies.after.reward) and draws MOST answers to
    each sum at every temperature: the teaching takes nearly all of the time. Returns them by temperature.
    """
    questions = questions_of(lines(ASKED, random.Random(-1), held_out=True))
    models: list[Transformer] = []
    yield Progress(0, len(SEEDS))
    for seed in SEEDS:
        model = build(CONFIG, seed)
        for _ in teach(model, seed):
            yield Progress(len(models), len(SEEDS))
        models.append(model)
        yield Progress(len(models), len(SEEDS))
    return {temperature: _attempts(models, questions, temperature) for temperature in TEMPERATURES}


def _attempts(models: Sequence[Transformer], questions: Tensor, temperature: float) -> Attempts:
    """Draws MOST answers of each seed's model to each question, and scores them."""
    verifier, majority = [], []
    votes: tuple[Votes, ...] = ()
    for seed, model in zip(SEEDS, models, strict=True):
        answers = draw_answers(model, questions, MOST, torch.Generator().manual_seed(seed), temperature)
        right = rewards(questions, answers, "right").bool()
        numbers = (answers * len(LETTERS) ** torch.arange(ANSWER)).sum(-1)
        verifier.append([pass_at(right, k) for k in COUNTS])
        majority.append([majority_at(numbers, right, k) for k in COUNTS])
        votes = votes or tuple(map(_votes, questions, answers))
    return Attempts(temperature, np.array(verifier), np.array(majority), votes)


def _votes(question: Tensor, answers: Tensor) -> Votes:
    assert TASK.answer is not None
    text = decode(question.tolist())
    return Votes(text, TASK.answer(text), tuple(Counter(map(decode, answers.tolist())).most_common()))


def pass_at(right: Tensor, k: int) -> float:
    """Estimates the share of questions with at least one right answer among k: `right` (question, answer) are
    True for right ones, n of them to a question. The unbiased estimate 1 - C(n - c, k) / C(n, k) of Chen et
    al. 2021, where c are right.

    >>> import torch
    >>> pass_at(torch.tensor([[True, False, False, False]]), 2)
    0.5
    """
    n = right.shape[1]
    counts: list[int] = right.sum(1).tolist()
    return sum(1 - comb(n - c, k) / comb(n, k) for c in counts) / len(counts)


def majority_at(answers: Tensor, right: Tensor, k: int) -> float:
    """Estimates the share of questions whose most frequent answer among k is right, from groups of k that do
    not overlap; a tie is drawn by lot. `answers` (question, answer) are numbers that tell answers apart, and
    the same is right wherever it stands.

    >>> import torch
    >>> majority_at(torch.tensor([[7, 7, 8, 9]]), torch.tensor([[True, True, False, False]]), 2)
    0.5
    """
    rows, groups = len(answers), answers.shape[1] // k
    answers, right = (each[:, : groups * k].reshape(rows, groups, k) for each in (answers, right))
    votes = (answers[..., None] == answers[..., None, :]).sum(-1)  # (question, group, answer)
    most = votes.amax(-1)
    leading = votes == most[..., None]
    leaders = leading.sum(-1) / most  # different answers that share the lead
    return float(((leading & right).any(-1) / leaders).mean())
