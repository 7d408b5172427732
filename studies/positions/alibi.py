"""ALiBi in numbers: slopes and how far they let a head see, the bias, and what it does to a pattern.

The numbers come from `engine.parts.positions` (`Alibi`, `alibi_slopes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from engine.config import ModelConfig, ResolvedConfig
from engine.parts.positions import Alibi, alibi_slopes
from engine.parts.registry import HEALTHY, Parts
from engine.recording import Recording, softmax
from studies.attention.heads import mean_distance
from studies.costs.cards.table import card_of


@dataclass(frozen=True, eq=False)
class Slopes:
    """The slope of each head, (head,), and the distances where e^(-slope * distance) is 1/e and 1%."""

    slope: np.ndarray
    to_a_third: np.ndarray  # 1/e = 0.368
    to_a_percent: np.ndarray

    @property
    def steepest(self) -> float:
        return float(self.slope.max())

    @property
    def flattest(self) -> float:
        return float(self.slope.min())

    def within(self, context: int) -> int:
        """Returns how many heads come down to 1 percent within the context."""
        return int((self.to_a_percent < context).sum())

    def farthest(self, length: int) -> float:
        """Returns the factor on the flattest head's weight at the far end of `length` tokens."""
        return farthest_key(self.flattest, length).factor


def factors(slope: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Returns e^(-slope * distance), the factor on a weight before the sum is divided out."""
    return np.exp(-np.outer(slope, distances))


@dataclass(frozen=True)
class FarthestKey:
    """The penalty on the farthest key's score, and the factor on its weight."""

    penalty: float
    factor: float


def farthest_key(slope: float, length: int) -> FarthestKey:
    """Returns those of `length` keys, for the last query.

    >>> farthest_key(0.5, 3)
    FarthestKey(penalty=1.0, factor=0.36787944117144233)
    """
    penalty = slope * (length - 1)
    return FarthestKey(penalty, math.exp(-penalty))


@dataclass(frozen=True)
class SlopeRule:
    """The heads with slopes by the rule itself (`power` of two), and the `rest` by twice as many."""

    power: int
    rest: int


def slope_rule(n_heads: int) -> SlopeRule:
    """Splits the heads (Press et al. 2022, section 3).

    >>> slope_rule(12), slope_rule(8)
    (SlopeRule(power=8, rest=4), SlopeRule(power=8, rest=0))
    """
    power = 1 << (n_heads.bit_length() - 1)
    return SlopeRule(power, n_heads - power)


def slopes(n_heads: int, multiplier: float = 1.0) -> Slopes:
    """Returns the slopes of Press et al. 2022, section 3, times `multiplier`.

    >>> slopes(8).to_a_third.tolist()
    [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]
    """
    slope = multiplier * np.asarray(alibi_slopes(n_heads), dtype=np.float64)
    return Slopes(slope, 1 / slope, math.log(100) / slope)


def alibi_bias(n_heads: int, length: int, multiplier: float = 1.0, causal: bool = True) -> np.ndarray:
    """Returns -slope * distance on the scores: (head, query, key) float32, -inf under a causal mask."""
    scheme = Alibi(ModelConfig(d_model=n_heads, n_heads=n_heads, position="alibi").resolved())
    table = (
        multiplier * scheme.prepare(length, torch.zeros(1)).bias(torch.zeros(n_heads, length, length)).numpy()
    )
    return np.where(visible(length, causal), table, -np.inf).astype(np.float32)


def visible(length: int, causal: bool) -> np.ndarray:
    """Returns which keys may be looked at: (query, key) bool."""
    return np.tri(length, dtype=bool) if causal else np.ones((length, length), dtype=bool)


@dataclass(frozen=True, eq=False)
class Effect:
    """Scores without and with a bias, (query, key), their patterns, and mean distances in tokens."""

    bare: np.ndarray
    biased: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def distance_before(self) -> float:
        return float(mean_distance(self.before))

    @property
    def distance_after(self) -> float:
        return float(mean_distance(self.after))

    @property
    def moved(self) -> float:
        """The share of the weight that moves, 0 to 1: half the sum of |after - before|, mean over queries."""
        return float(np.abs(self.after - self.before).sum(-1).mean() / 2)


def alibi_effect(scores: np.ndarray, slope: float, seen: np.ndarray, recorded_slope: float = 0.0) -> Effect:
    """Compares scores (query, key), before the mask, without and with a slope; `seen` (query, key) bool is
    visible. The `recorded_slope` that the scores of an ALiBi model hold already is taken out first.
    """
    place = np.arange(len(scores))
    distance = np.abs(place[:, None] - place[None, :])
    hidden = np.where(seen, 0.0, -np.inf)
    bare = scores.astype(np.float64) + recorded_slope * distance + hidden
    biased = bare - slope * distance
    return Effect(bare, biased, softmax(bare), softmax(biased))


def recorded_slope(config: ResolvedConfig, head: int, parts: Parts = HEALTHY) -> float:
    """Returns the linear, unlearned slope that a head's recorded scores hold already; else 0."""
    scheme = parts.position(config)
    if "bias" not in scheme.enters or card_of(scheme).tensors(config):
        return 0.0
    table = scheme(config).prepare(3, torch.zeros(1)).bias(torch.zeros(config.n_heads, 3, 3))[head]
    near, far = -float(table[2, 1]), -float(table[2, 0])
    return near if math.isclose(far, 2 * near, rel_tol=1e-5) else 0.0


def distances_of_heads(recording: Recording, layer: int, multiplier: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns every head's mean distance without and with ALiBi's bias: two arrays (head,), tokens."""
    c = recording.config
    steps = slopes(c.n_heads, multiplier).slope
    scores = recording[f"blocks.{layer}.scores"]
    own = [recorded_slope(c, h, recording.parts) for h in range(c.n_heads)]
    seen = recording.seen()
    effects = [alibi_effect(scores[h], float(steps[h]), seen, own[h]) for h in range(c.n_heads)]
    return np.array([e.distance_before for e in effects]), np.array([e.distance_after for e in effects])
