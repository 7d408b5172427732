"""The scores of one pair of tokens at every two positions, and where a position scheme enters a model.

Added positions (Vaswani et al. 2017, section 3.5) reach a score only through the matrices of queries and
keys: (e + p_m) W_Q . (e' + p_n) W_K has terms in which m or n stands alone. Rotated ones (Su et al. 2021,
section 3.4) leave m - n and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from engine.model import Transformer
from engine.recording import record


@dataclass(frozen=True, eq=False)
class PositionScores:
    """The score of one token as query, one as key, in block 0: (query position, key position) float32."""

    scores: np.ndarray = field(repr=False)

    def apart(self, distance: int) -> DistanceScores:
        """Returns the scores at a distance, the key first."""
        return DistanceScores(np.arange(distance, len(self.scores)), np.diagonal(self.scores, -distance))


@dataclass(frozen=True, eq=False)
class DistanceScores:
    """Scores of two tokens at one distance: `scores` (pair,), `positions` (pair,) of the query."""

    positions: np.ndarray
    scores: np.ndarray

    @property
    def lowest(self) -> float:
        return float(self.scores.min())

    @property
    def highest(self) -> float:
        return float(self.scores.max())

    @property
    def mean(self) -> float:
        return float(self.scores.mean(dtype=np.float64))

    @property
    def spread(self) -> float:
        """The highest score less the lowest."""
        return self.highest - self.lowest


def position_scores(model: Transformer, query: int, key: int, head: int, length: int) -> PositionScores:
    """Scores token `query` at each of `length` positions with token `key` at each of them, by a head of the
    first block: q . k / sqrt(d_head). In the first block a query holds its token and position alone, so a
    text of one token, again and again, has all of them. Biases on the scores are not in it.
    """
    c = model.config
    q = _first(model, query, length, "q")[head]
    k = _first(model, key, length, "k")[head // (c.n_heads // c.n_kv_heads)]
    return PositionScores(q @ k.T / np.float32(math.sqrt(c.d_head)))


def _first(model: Transformer, token: int, length: int, name: str) -> np.ndarray:
    """Returns what the first block compares, (head, position, d_head): rotated where the scheme does so."""
    result = record(model, [token] * length)
    return result[f"blocks.0.{name}_rot"]


def entrances(model: Transformer) -> tuple[tuple[str, bool], ...]:
    """Returns the embedding and every block, bottom first, each with whether positions enter there."""
    c = model.config
    hooks = model.parts.position(c).enters
    blocks = bool({"rotate", "bias"} & set(hooks))
    return (("embedding", "embed" in hooks), *((f"block {i}", blocks) for i in range(c.n_layers)))
