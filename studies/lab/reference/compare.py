"""The engine's forward pass beside the second one: the largest differences, and where they begin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.model import Transformer
from engine.recording import Recording
from studies.lab.reference.second import RIGHT, Choices, forward

TOLERANCE = 1e-4
STATES = ("resid_mid", "resid_post", "norm_final", "logits")  # of the stream, after the embedding


@dataclass(frozen=True)
class Difference:
    """The largest difference between an activation in both implementations."""

    name: str  # scoped
    largest: float  # the distance itself
    size: float  # of the largest number there, in ours

    @property
    def relative(self) -> float:
        """The difference as a share of the largest number there, or itself where none is above 1: float32
        keeps seven digits, so a stream of size 10,000 cannot agree within 0.0001.
        """
        return self.largest / max(1.0, self.size)

    @property
    def block(self) -> int | None:
        return int(self.name.split(".")[1]) if self.name.startswith("blocks.") else None

    @property
    def bare(self) -> str:
        """The name without its block's."""
        return self.name.rpartition(".")[2]

    @property
    def close(self) -> bool:
        return self.relative <= TOLERANCE


@dataclass(frozen=True)
class Comparison:
    """Every activation that both have, in the order in which data meets them."""

    rows: tuple[Difference, ...]

    @property
    def states(self) -> tuple[Difference, ...]:
        """The stream from its beginning to the logits (to its last norm, where there are none)."""
        return tuple(
            row for row in self.rows if row.bare in STATES or (row.bare == "resid_pre" and row.block == 0)
        )

    @property
    def last(self) -> Difference:
        """The logits, or the last vectors of a model that has none."""
        return self.rows[-1]

    @property
    def worst(self) -> Difference:
        """The state of the stream that differs most."""
        return max(self.states, key=lambda row: row.relative)

    @property
    def begins(self) -> Difference | None:
        """The first activation that is out of tolerance; None where all agree."""
        return next((row for row in self.rows if not row.close), None)


@torch.no_grad()
def compare(model: Transformer, ours: Recording, choices: Choices = RIGHT) -> Comparison:
    """Compares the engine's recording with the second implementation on the same weights and ids.

    Raises ConfigError for a configuration that the second one does not cover.
    """
    weights = {name: p.detach().float() for name, p in model.named_parameters()}
    return held(ours, forward(model.config, weights, torch.tensor(ours.ids), choices))


def held(ours: Recording, theirs: Mapping[str, Tensor]) -> Comparison:
    """Compares both recordings name by name; a number that is not finite counts as infinitely far."""
    rows = []
    for name, other in theirs.items():
        mine = ours.get(name)
        if mine is not None and mine.shape == tuple(other.shape):
            apart = float(np.abs(mine - other.numpy()).max())
            rows.append(Difference(name, math.inf if math.isnan(apart) else apart, float(np.abs(mine).max())))
    return Comparison(tuple(rows))
