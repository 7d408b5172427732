"""Several answers to a question: how often one of them is right, and how often the one that most agree on."""

from __future__ import annotations

from math import comb

from torch import Tensor


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
