"""The parameters of one block, by part, and how a gate is paid for: three matrices of 2/3 the width are as
large as two.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from engine.config import GATED, Ffn, ModelConfig, ResolvedConfig, gated_width
from studies.costs.ledger import PER_BLOCK, Ledger, Row, ledger
from studies.costs.presets import PRESETS


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
        count: int = getattr(self, part)
        return count / max(self.total, 1)


def rows_of_block(ledger: Ledger) -> tuple[Row, ...]:
    """Returns the tensors of one block, all being alike; of an encoder-decoder, of its encoder's."""
    stack = "encoder" if ledger.encoder else ""
    return tuple(row for row in ledger.rows if row.component in PER_BLOCK and row.stack == stack)


def block_of(ledger: Ledger) -> BlockParameters:
    counts = Counter[str]()
    for row in rows_of_block(ledger):
        counts[row.component] += row.each
    return BlockParameters(counts["attention"], counts["feedforward"], counts["norm1"] + counts["norm2"])


def block(d_model: int, d_ff: int, ffn: Ffn) -> BlockParameters:
    """Returns a block without biases, with two LayerNorms; the number of heads changes nothing."""
    one = ModelConfig(1, 1, d_model, n_layers=1, n_heads=1, d_ff=max(d_ff, 1), ffn=ffn, norm_bias=True)
    return block_of(ledger(one))


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
    result = []
    for preset in PRESETS.values():
        c = preset.model.resolved()
        if c.ffn != "none" and c.d_ff:
            gated = c.ffn in GATED
            result.append(
                Known(preset.title, c.d_model, c.d_ff, c.d_ff / c.d_model, gated, block_of(ledger(c)))
            )
    return tuple(result)


@dataclass(frozen=True)
class GatePaid:
    """Three blocks of one width: two matrices of ratio * d, three of 2/3 of that, three of the full width.
    `rounding` is what rounding up to 8 neurons adds to the second network.
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


def plain_ratio(config: ResolvedConfig) -> float:
    """Returns d_ff / d_model of the network, of the plain one as large where it is gated; 4 for none."""
    if config.ffn == "none":
        return 4.0
    return config.d_ff / config.d_model * (1.5 if config.ffn in GATED else 1.0)


@dataclass(frozen=True, eq=False)
class Shares:
    """Feed-forward share of a block over d_ff / d_model (ratio,); plain at 4 is as high as gated at 8/3."""

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
