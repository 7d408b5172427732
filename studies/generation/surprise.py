"""How surprising each token of a text was to the model that wrote it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from studies.generation.branches import Written, likelihood
from studies.generation.scoring import Scored


@dataclass(frozen=True, eq=False)
class Surprise(Scored):
    """Surprise of a path's tokens (token,), by the model's own probabilities."""

    mean: np.ndarray = field(repr=False)  # nats per token of the first 1, 2, ... tokens
    picked: np.ndarray = field(repr=False)  # whether a reader put the token there
    likeliest: float  # share of the positions where the model's likeliest token stands

    @property
    def picks(self) -> int:
        return int(np.count_nonzero(self.picked))

    @property
    def depth(self) -> np.ndarray:
        """(token,): 1 for the first that was written."""
        return np.arange(1, len(self.nats) + 1, dtype=np.int32)

    def positions(self, prompt: int) -> np.ndarray:
        """Returns (token,): where each stands in the text, from 0, behind a prompt of so many tokens."""
        return self.depth + prompt - 1


def odds(log_p: float) -> tuple[float, float]:
    """Returns (p, in how many draws it comes up once) for ln p; inf where float64 soon does not hold 1 / p.

    >>> odds(math.log(0.25)), odds(-900.0)
    ((0.25, 4.0), (0.0, inf))
    """
    return math.exp(log_p), math.exp(-log_p) if log_p >= -700 else math.inf


def surprise(path: Sequence[Written], vocab: int) -> Surprise:
    """Measures the surprise of a path's tokens, at least one, with a vocabulary of `vocab`."""
    logs = np.array([node.log_p for node in path])
    best = sum(node.token == node.alternatives[0][0] for node in path)
    return Surprise(
        np.exp(logs),
        -logs,
        likelihood(path),
        math.log(vocab),
        mean=-np.cumsum(logs) / np.arange(1, len(path) + 1),
        picked=np.array([node.picked for node in path]),
        likeliest=best / len(path),
    )
