"""The parameters of one block, by part, and how a gate is paid for: three matrices of 2/3 the width are as
large as two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.config import GATED, Ffn, ModelConfig, gated_width
from engine.ledger import component_parameters
from engine.presets import PRESETS


@dataclass(frozen=True)
class BlockParameters:
    """Counts of one block; `norm` is both norms together."""

    attention: int
    feedforward: int
    norm: int

    @property
    def total(self) -> int:
        return self.attention + self.feedforward + self.norm

    @property
    def share(self) -> float:
        """The feed-forward network's share of the block, in [0, 1]."""
        return self.share_of("feedforward")

    def share_of(self, part: str) -> float:
        """Returns a part's share of the block, in [0, 1]."""
        count: int = getattr(self, part)
        return count / max(self.total, 1)


def block_of(config: ModelConfig) -> BlockParameters:
    """Returns one of a model's blocks, which are all alike."""
    counts = component_parameters(config)
    per = {part: counts[part] // config.n_layers for part in ("attention", "feedforward", "norm1", "norm2")}
    return BlockParameters(per["attention"], per["feedforward"], per["norm1"] + per["norm2"])


def block(d_model: int, d_ff: int, ffn: Ffn) -> BlockParameters:
    """Returns a block without biases, with two LayerNorms of gain and bias. The number of heads changes
    nothing.
    """
    return block_of(
        ModelConfig(
            vocab_size=1,
            context=1,
            d_model=d_model,
            n_layers=1,
            n_heads=1,
            d_ff=max(d_ff, 1),
            ffn=ffn,
            norm_bias=True,
        )
    )


@dataclass(frozen=True)
class Known:
    """One block of a named model: `times` is d_ff / d_model."""

    name: str
    d_model: int
    d_ff: int
    times: float
    gated: bool
    block: BlockParameters


def known() -> tuple[Known, ...]:
    """Returns a block of every preset that has a feed-forward network, ours first."""
    found = []
    for preset in PRESETS.values():
        c = preset.model.resolved()
        if c.ffn != "none" and c.d_ff:
            gated = c.ffn in GATED
            found.append(Known(preset.title, c.d_model, c.d_ff, c.d_ff / c.d_model, gated, block_of(c)))
    return tuple(found)


@dataclass(frozen=True)
class GatePaid:
    """Three blocks of one width: two matrices of ratio * d, three of 2/3 of that, three of the full width.
    `rounding` is what the second feed-forward network has more than the first, since it is rounded up to a
    multiple of 8 neurons.
    """

    plain: BlockParameters
    gated: BlockParameters
    full: BlockParameters

    @property
    def rounding(self) -> int:
        return self.gated.feedforward - self.plain.feedforward


def gate_paid(d_model: int, ratio: float) -> GatePaid:
    """Compares a gated network with a plain one whose d_ff / d_model is `ratio` (Shazeer 2020)."""
    return GatePaid(
        block(d_model, round(ratio * d_model), "gelu"),
        block(d_model, gated_width(round(ratio * d_model)), "swiglu"),
        block(d_model, round(ratio * d_model), "swiglu"),
    )


@dataclass(frozen=True, eq=False)
class Shares:
    """The feed-forward share of a block over d_ff / d_model: plain and gated (ratio,), and the two points
    that have the same height, at 4 and at 8/3.
    """

    ratios: np.ndarray
    plain: np.ndarray
    gated: np.ndarray
    four: float
    eight_thirds: float


def shares(d_model: int, ratios: tuple[float, ...]) -> Shares:
    """Returns the shares in [0, 1] at one width."""

    kinds: tuple[Ffn, Ffn] = ("gelu", "swiglu")
    plain, gated = (
        np.array([block(d_model, round(r * d_model), ffn).share for r in ratios]) for ffn in kinds
    )
    paid = gate_paid(d_model, 4)
    return Shares(np.array(ratios), plain, gated, paid.plain.share, paid.gated.share)
