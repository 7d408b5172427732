"""The numbers of each head: how widely it looks, how far, and whether it follows a known habit.

All take patterns (..., query, key) whose rows sum to 1 and average over the queries of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class HeadNumbers:
    """One number for each head, all (layer, head) float64.

    `entropy` is in nats, `relative_entropy` its share of ln(visible keys), `distance` in tokens; the others
    are shares of the weight. `even_first` and `even_previous` are those of a head that spreads its weight
    evenly. `induction` and `duplicate` come from `studies.circuits.induction`, `name_mover` from
    `copying_heads`, `by_target`, `even_by_target` and `word_by_distance` from `attention_targets`; None, or
    absent, where they were not measured.
    """

    entropy: np.ndarray
    relative_entropy: np.ndarray
    distance: np.ndarray
    previous: np.ndarray
    first: np.ndarray
    induction: np.ndarray | None
    even_first: float
    even_previous: float
    duplicate: np.ndarray | None = None
    name_mover: np.ndarray | None = None
    by_target: Mapping[str, np.ndarray] = field(default_factory=dict)
    even_by_target: Mapping[str, float] = field(default_factory=dict)
    word_by_distance: np.ndarray | None = None

    @property
    def choice(self) -> bool:
        """True if some query sees more than one key: with one token, every head gives it all its weight."""
        return bool(np.isfinite(self.first).any())


def head_numbers(
    patterns: np.ndarray,
    seen: np.ndarray,
    induction: np.ndarray | None = None,
    duplicate: np.ndarray | None = None,
    name_mover: np.ndarray | None = None,
) -> HeadNumbers:
    """Returns the numbers of every head from patterns (layer, head, query, key) and the visible keys `seen`
    (query, key). The others (layer, head) were measured elsewhere: see `HeadNumbers`.
    """
    even = even_pattern(seen)
    single = len(seen) == 1
    return HeadNumbers(
        entropy(patterns).mean(-1),
        relative_entropy(patterns, seen),
        mean_distance(patterns),
        previous_score(patterns),
        first_score(patterns),
        induction,
        1.0 if single else float(first_score(even)),
        1.0 if single else float(previous_score(even)),
        duplicate,
        name_mover,
    )


def even_pattern(seen: np.ndarray) -> np.ndarray:
    """Returns the pattern of even weights over visible keys: (query, key) bool -> float64."""
    return seen / seen.sum(-1, keepdims=True)


def entropy(patterns: np.ndarray) -> np.ndarray:
    """Returns -sum p ln p of each row, nats: (..., query, key) -> (..., query). ln n for n equal keys."""
    p = patterns.astype(np.float64)
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)


def relative_entropy(patterns: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Returns entropy over its maximum ln(visible keys), mean over the queries that have a choice: (...,
    query, key) -> (...); `seen` (query, key) bool. NaN for one token.
    """
    visible = seen.sum(-1)
    some = visible > 1
    if not some.any():
        return np.full(patterns.shape[:-2], np.nan)
    return (entropy(patterns)[..., some] / np.log(visible[some])).mean(-1)


def mean_distance(patterns: np.ndarray) -> np.ndarray:
    """Returns sum p |query - key|, tokens, mean over queries: (..., query, key) -> (...)."""
    place = np.arange(patterns.shape[-1])
    return (patterns * np.abs(place[:, None] - place[None, :])).sum(-1, dtype=np.float64).mean(-1)


def previous_score(patterns: np.ndarray) -> np.ndarray:
    """Returns the mean weight on the token just before: (..., query, key) -> (...). NaN for one token."""
    return over_queries(np.diagonal(patterns, -1, -2, -1))


def first_score(patterns: np.ndarray) -> np.ndarray:
    """Returns the mean weight on position 0 (Xiao et al. 2023): (..., query, key) -> (...), or NaN."""
    return over_queries(patterns[..., 1:, 0])


def over_queries(values: np.ndarray) -> np.ndarray:
    """Returns the mean over the last axis, in float64; NaN where that is empty."""
    return values.mean(-1, dtype=np.float64) if values.shape[-1] else np.full(values.shape[:-1], np.nan)


@dataclass(frozen=True)
class HeadValue:
    """A head, counted from 0, and its number."""

    layer: int
    head: int
    value: float


def ranked_heads(scores: np.ndarray) -> tuple[HeadValue, ...]:
    """Returns every head of (layer, head), the largest first; of equal ones the lower.

    >>> [(head.layer, head.head) for head in ranked_heads(np.array([[0.1, 0.3], [0.3, 0.2]]))]
    [(0, 1), (1, 0), (1, 1), (0, 0)]
    """
    flat = np.argsort(-scores, axis=None, kind="stable")
    pairs = zip(*np.unravel_index(flat, scores.shape), strict=True)
    return tuple(HeadValue(int(layer), int(head), float(scores[layer, head])) for layer, head in pairs)
