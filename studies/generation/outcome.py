"""Effect of the sampling stages: how much they left, which one removed a token, how often each is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.errors import ShapeError
from engine.sample.stages import Stage, draws


@dataclass(frozen=True)
class Outcome:
    """The effect of all stages together. Choices are effective numbers of choices, e^entropy."""

    vocab: int
    left: int  # tokens that can be drawn
    cut: float  # share of the model's own probability that the removed tokens had
    before: float  # choices of the model
    after: float  # choices of the draw

    @property
    def removed(self) -> int:
        return self.vocab - self.left


def outcome(records: Sequence[Stage]) -> Outcome:
    """Sums up the records of `stages`: the first is the model's own, the last one is drawn from."""
    first, last = records[0], records[-1]
    kept = float(first.probabilities[np.isfinite(last.logits)].sum(dtype=np.float64))
    cut = 0.0 if last.remaining == len(last.logits) else max(0.0, 1.0 - kept)
    return Outcome(len(last.logits), last.remaining, cut, first.choices, last.choices)


def surest_and_least_sure(logits: np.ndarray) -> tuple[int, int]:
    """Returns the positions of logits (position, vocab) with the fewest and with the most effective choices,
    e^entropy; of equal ones the first. Raises ShapeError where no position has numbers.

    >>> surest_and_least_sure(np.array([[0.0, 1.0], [0.0, 9.0], [0.0, 0.0]]))
    (1, 2)
    """
    choices = np.array([_choices(row) for row in logits])
    if not np.isfinite(choices).any():
        raise ShapeError("no position has logits that are numbers")
    return int(np.nanargmin(choices)), int(np.nanargmax(choices))


def _choices(row: np.ndarray) -> float:
    """Returns the effective choices of logits (vocab,); NaN where they are no numbers."""
    shifted = row.astype(np.float64) - row.max()
    weights = np.exp(shifted)
    total = weights.sum()
    return float(np.exp(np.log(total) - (weights * shifted).sum() / total))


def last_torn(logits: np.ndarray, least: float) -> int:
    """Returns the last position of logits (position, vocab) with at least `least` effective choices,
    e^entropy, for the next token; else that with the most, or the last where they are no numbers.
    """
    torn: list[float] = []
    for row in logits[::-1]:
        torn.append(_choices(row))
        if not torn[-1] < least:  # nor where it is no number
            return len(logits) - len(torn)
    return len(logits) - 1 - int(np.argmax(torn))


@dataclass(frozen=True, eq=False)
class Cuts:
    """Probabilities (vocab,) after a token; what top-k alone and top-p alone leave of them, bool (vocab,)."""

    token: str
    probabilities: np.ndarray = field(repr=False)
    top_k: np.ndarray = field(repr=False)
    top_p: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, token: str, by_k: Sequence[Stage], by_p: Sequence[Stage]) -> Cuts:
        """Compares the records of two runs of `stages` over the same logits."""
        left = (np.isfinite(records[-1].logits) for records in (by_k, by_p))
        return cls(token, by_k[0].probabilities, *left)

    @property
    def left_by_k(self) -> int:
        return int(self.top_k.sum())

    @property
    def left_by_p(self) -> int:
        return int(self.top_p.sum())

    def left_by(self, ids: np.ndarray) -> list[str]:
        """Returns who leaves each token: both, top_k, top_p or neither."""
        names = {(True, True): "both", (True, False): "top_k", (False, True): "top_p"}
        return [names.get((bool(self.top_k[i]), bool(self.top_p[i])), "neither") for i in ids.tolist()]


def removed_by(records: Sequence[Stage]) -> dict[int, str]:
    """Returns id -> the name of the stage that took it out, for each token that is gone."""
    return {int(i): record.name for record in records for i in np.flatnonzero(record.removed)}


def likeliest_ids(values: np.ndarray, count: int) -> np.ndarray:
    """Returns the ids of the `count` largest of values (vocab,), the largest first; of equal ones the smaller
    id.

    >>> likeliest_ids(np.array([0.1, 0.4, 0.4]), 2).tolist()
    [1, 2]
    """
    if 0 < count < len(values):
        smallest = np.partition(values, -count)[-count]  # of those that are taken
        among = np.flatnonzero(values >= smallest)
        if len(among) >= count:  # else some are no numbers
            return among[np.argsort(-values[among], kind="stable")[:count]]
    return np.argsort(-values, kind="stable")[:count]


@dataclass(frozen=True, eq=False)
class Tally:
    """Draws from one distribution, `probabilities` (vocab,); `counts` (vocab,): how often each token came."""

    probabilities: np.ndarray = field(repr=False)
    counts: np.ndarray = field(repr=False)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def ids(self) -> list[int]:
        result: list[int] = np.flatnonzero(self.counts).tolist()
        return result

    @property
    def likeliest(self) -> int:
        """The id of the largest probability; of equal ones the smallest."""
        return int(self.probabilities.argmax())

    @property
    def shares(self) -> np.ndarray:
        """The share of each token in the draws, (vocab,)."""
        return self.counts / self.total

    @property
    def expected(self) -> np.ndarray:
        """Draws that each token would get if the shares were the probabilities, (vocab,)."""
        return self.total * self.probabilities

    @property
    def away(self) -> float:
        """Total variation between shares and probabilities: half the sum of what they differ by, 0 to 1."""
        return float(np.abs(self.shares - self.probabilities).sum() / 2)


def tally(probabilities: np.ndarray, numbers: np.ndarray) -> Tally:
    """Draws once for each of `numbers` (draw,) in [0, 1) from probabilities (vocab,)."""
    return Tally(probabilities, np.bincount(draws(probabilities, numbers), minlength=len(probabilities)))
