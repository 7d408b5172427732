"""Faults in how a model learns where a token stands."""

from __future__ import annotations

from torch import Tensor

from engine.config import ResolvedConfig
from engine.parts.positions import Added, PositionHooks, Sinusoidal, sinusoidal_table
from studies.costs.cards import Formula
from studies.costs.cards.positions import SinusoidalCard
from studies.costs.cards.table import CARDS
from studies.lab.faults.fault import fault, settings_fault

settings_fault("no_positions", model={"position": "none"})


class TwiceAddedCard(SinusoidalCard):
    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        latex, words = super().formulas(config)["pos_embed"]
        return {"pos_embed": (rf"2\,({latex})", f"{words}, twice")}


@fault(
    "positions_twice",
    "positions.sinusoidal",
    "prepare",
    on_model={"position": "sinusoidal", "embedding_scale": True},
)
class TwiceAdded(Sinusoidal):
    """Sinusoids that are added where the tokens are embedded, and once more before the first block."""

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        table = sinusoidal_table(length, self.d_model, 10_000.0, start, like.device)
        return Added((table + table).to(like.dtype))


CARDS[TwiceAdded] = TwiceAddedCard
