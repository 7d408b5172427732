"""Why raw similarity looks at itself: scores of untrained vectors, in numbers.

With entries drawn from N(0, 1) a vector's product with itself is about d, over sqrt(d) that is sqrt(d): 16 at
d = 256. With another vector it is about as often positive as negative, and of size 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine.lab.faults import parts_of
from engine.measure.recording import record
from engine.model import build
from engine.presets.ladder import LADDER

KINDS = ("similarity", "one-matrix", "two-matrices")
WIDTHS = (4, 16, 64, 256)


@dataclass(frozen=True, eq=False)
class SelfTerm:
    """One rung before any training, reading a text: `scores` (query, key) as compared, before the mask, and
    `weights` (query, key) behind mask and softmax. `same` (query, key): both are the same letter.
    """

    kind: str
    d_model: int
    scores: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    same: np.ndarray = field(repr=False)

    @property
    def own(self) -> float:
        """Mean score of a letter with itself."""
        return float(np.diag(self.scores).mean())

    @property
    def others(self) -> float:
        """How large a score with another letter is: the root of the mean square."""
        return float(np.sqrt(np.square(self.scores[~self.same]).mean()))

    @property
    def kept(self) -> float:
        """Share of the weights that stays on the letter itself, where it has others to look at: mean over all
        places but the first. A second copy of the letter counts as the letter.
        """
        return float((self.weights * self.same).sum(1)[1:].mean())

    @cached_property
    def fair(self) -> float:
        """That share, were all places looked at alike."""
        seen = np.tril(np.ones_like(self.weights))
        return float(((self.same * seen).sum(1) / seen.sum(1))[1:].mean())

    @property
    def root(self) -> float:
        """sqrt(d_model), which `own` is near where vectors are compared with themselves."""
        return math.sqrt(self.d_model)


def self_term(kind: str, d_model: int, ids: Sequence[int], seed: int = 0) -> SelfTerm:
    """A rung of the ladder (one of KINDS) at that width, on distinct `ids` for distinct letters."""
    rung = LADDER[kind]
    config = rung.at(max(ids) + 1, len(ids), d_model)
    model = build(config, seed, parts=parts_of(rung.parts), init="normal").eval().requires_grad_(False)
    found = record(model, tuple(ids))
    named = np.asarray(ids)
    scores, weights = (found[f"blocks.0.{name}"][0].astype(np.float64) for name in ("scores", "pattern"))
    return SelfTerm(kind, d_model, scores, weights, named[:, None] == named[None, :])
