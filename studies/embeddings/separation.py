"""Separation: classes of tokens that lie together in the embedding, against chance, over a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from studies.embeddings.table import directions

STRATUM = 8  # tokens of neighbouring frequency that exchange their labels in the stricter baseline
CHANCE = 0.05  # of the shuffles: where more of them reach the true classes, nothing can be claimed
MIDDLE = (0.025, 0.975)  # of the shuffles lie between these
FEW = 2  # tokens of a class whose one pair tells little


class ClassCosines(NamedTuple):
    """A class of tokens: how many, and their mean cosine with each other and with all others, or NaN."""

    tokens: int
    within: float
    across: float

    @property
    def difference(self) -> float:
        return self.within - self.across


@dataclass(frozen=True)
class Shuffled:
    """Scores of shuffled labels: mean, highest, middle 95%, and how many reach the true classes."""

    count: int
    mean: float
    highest: float
    low: float  # 2.5% of the shuffles are below
    high: float  # 97.5% are
    reached: int

    @property
    def like_chance(self) -> bool:
        """True if so many shuffles reach the true classes that nothing can be claimed."""
        return self.reached > CHANCE * self.count


@dataclass(frozen=True, eq=False)
class Separation:
    """The mean cosine within classes minus that across classes; and the same for shuffled labels."""

    within: float
    across: float
    chance: np.ndarray = field(repr=False)  # (shuffles,): the difference, with the labels dealt out at random
    # (shuffles,): dealt out among tokens of like frequency only; None where none is known
    matched: np.ndarray | None = field(repr=False)
    by_class: dict[str, ClassCosines]

    @property
    def difference(self) -> float:
        return self.within - self.across

    @property
    def by_chance(self) -> Shuffled:
        return _shuffled(self.chance, self.difference)

    @property
    def by_frequency(self) -> Shuffled | None:
        """The scores of labels exchanged among tokens of like frequency."""
        return None if self.matched is None else _shuffled(self.matched, self.difference)

    @property
    def most(self) -> tuple[str, float] | None:
        """The class, of more than FEW tokens, whose tokens are most alike, and by how much."""
        differences = [
            (cosines.difference, name) for name, cosines in self.by_class.items() if cosines.tokens > FEW
        ]
        best = max((row for row in differences if np.isfinite(row[0])), default=None)
        return None if best is None else (best[1], best[0])


def separation(
    matrix: np.ndarray,
    names: Sequence[str],
    classes: np.ndarray,
    *,
    counts: np.ndarray | None = None,
    shuffles: int = 100,
    seed: int = 0,
) -> Separation:
    """Measures how classes of tokens lie together: matrix (vocab, d_model), classes (vocab,). With counts
    (vocab,), tokens that never occur are left out, and `matched` exchanges labels only among STRATUM tokens
    of neighbouring frequency: what is above that is not explained by frequency alone.
    """
    kept = (
        np.flatnonzero(counts > 0)
        if counts is not None and (counts > 0).sum() > 2
        else np.arange(len(matrix))
    )
    rows = matrix if len(kept) == len(matrix) else matrix[kept]
    unit, labels = directions(rows), np.unique(classes[kept], return_inverse=True)[1]
    within, across = (float(values[0]) for values in _within_across(unit, labels[None]))
    generator = np.random.default_rng(seed)
    chance = _differences(unit, np.stack([generator.permutation(labels) for _ in range(shuffles)]))
    matched = None
    if counts is not None:
        order = np.argsort(-counts[kept], kind="stable")
        matched = _differences(unit, np.stack([_dealt(labels, order, generator) for _ in range(shuffles)]))
    every = unit.sum(0, dtype=np.float64)
    table = {
        name: _one_class(unit, every, classes[kept] == i)
        for i, name in enumerate(names)
        if (classes[kept] == i).any()
    }
    return Separation(within, across, chance, matched, table)


def _dealt(labels: np.ndarray, order: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Exchanges labels among neighbours in `order`; the strata's borders move from shuffle to shuffle."""
    stratum = (np.arange(len(order)) + generator.integers(0, STRATUM)) // STRATUM
    # within a stratum only: a random number below 1 decides
    shuffled = np.argsort(stratum + generator.random(len(order)))
    result = np.empty_like(labels)
    result[order] = labels[order[shuffled]]
    return result


def _within_across(unit: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean cosines over pairs of unit rows, within and across classes, for each labelling (labelling,
    vocab). A class's pairs sum to |sum of its rows|^2 - sum of |row|^2, so that no matrix of pairs is made.
    """
    count = int(labels.max()) + 1
    sizes = np.bincount(labels[0], minlength=count)
    own = float(np.vdot(unit, unit))
    every = float((unit.sum(0, dtype=np.float64) ** 2).sum()) - own
    rows, same = unit.astype(np.float32, copy=False), np.empty(len(labels))
    for first in range(0, len(labels), 16):  # one product for several labellings at once
        some = labels[first : first + 16]
        # (labelling, class, vocab)
        member = (some[:, None, :] == np.arange(count)[None, :, None]).astype(np.float32)
        sums = member.reshape(-1, len(rows)) @ rows  # (labelling * class, d_model)
        same[first : first + 16] = (sums.astype(np.float64) ** 2).reshape(len(some), -1).sum(1) - own
    pairs, all_pairs = float((sizes * (sizes - 1)).sum()), float(len(unit) * (len(unit) - 1))
    nothing = np.full(len(labels), np.nan)
    return same / pairs if pairs else nothing, (
        (every - same) / (all_pairs - pairs) if all_pairs > pairs else nothing
    )


def _differences(unit: np.ndarray, labels: np.ndarray) -> np.ndarray:
    within, across = _within_across(unit, labels)
    return within - across


def case_cosines(matrix: np.ndarray, pairs: np.ndarray) -> tuple[float, float]:
    """Returns the mean cosine of small tokens with their capital, and with another's, (pair, 2)."""
    count = len(pairs)
    if count < 2:
        return float("nan"), float("nan")
    small, capital = (directions(matrix, rows=some) for some in pairs.T)
    own = float((small * capital).sum())
    every = float(small.sum(0, dtype=np.float64) @ capital.sum(0, dtype=np.float64))
    return own / count, (every - own) / (count * (count - 1))


def _one_class(unit: np.ndarray, every: np.ndarray, member: np.ndarray) -> ClassCosines:
    """Measures one class; `every` (d_model,) is the sum of all unit rows."""
    size, own = int(member.sum()), unit[member]
    total = own.sum(0, dtype=np.float64)
    squares = float(np.vdot(own, own))
    within = (float(total @ total) - squares) / (size * (size - 1)) if size > 1 else float("nan")
    rest = len(unit) - size
    across = float(total @ (every - total)) / (size * rest) if rest else float("nan")
    return ClassCosines(size, within, across)


def _shuffled(values: np.ndarray, truth: float) -> Shuffled:
    low, high = (float(each) for each in np.quantile(values, MIDDLE))
    reached = int((values >= truth).sum())
    return Shuffled(len(values), float(values.mean()), float(values.max()), low, high, reached)


# Over a training --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SeparationCurve:
    """The separation at the snapshots of a training, by step, with the middle 95% of its shuffles."""

    steps: tuple[int, ...]
    differences: np.ndarray = field(repr=False)  # (step,): of the true classes
    chance: np.ndarray = field(repr=False)  # (step, 2): low and high
    matched: np.ndarray | None = field(repr=False)  # the same among like frequency; None where not known

    @property
    def risen(self) -> int | None:
        """The step from which on the true classes stay above both bands; None where the last one is not."""
        tops = (
            self.chance[:, 1] if self.matched is None else np.maximum(self.chance[:, 1], self.matched[:, 1])
        )
        under = np.flatnonzero(~(self.differences > tops))
        first = int(under[-1]) + 1 if len(under) else 0
        return self.steps[first] if first < len(self.steps) else None


def separation_curve(points: dict[int, Separation]) -> SeparationCurve:
    """Joins snapshots (step -> separation), in the order of their steps."""
    steps = tuple(sorted(points))
    chance = [points[step].by_chance for step in steps]
    matched = [shuffled for step in steps if (shuffled := points[step].by_frequency) is not None]
    return SeparationCurve(
        steps,
        np.array([points[step].difference for step in steps]),
        np.array([(each.low, each.high) for each in chance]).reshape(-1, 2),
        np.array([(each.low, each.high) for each in matched]) if len(matched) == len(steps) else None,
    )
