"""Faults in the first weights, and in the matrix that embedding and output share."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from engine.config import ResolvedConfig
from engine.parts.output import LinearOutput
from engine.probe import Probe
from studies.costs.cards import Formula
from studies.costs.cards.output import LinearOutputCard
from studies.costs.cards.table import CARDS
from studies.lab.faults.fault import ADAMW, DEEP, fault, settings_fault

settings_fault("unscaled_writes", train={"init": "plain"}, on_model={"n_layers": 8}, on_train=ADAMW | DEEP)


@fault("loud_embedding", "spread", on_train=ADAMW)
def loud_embedding(name: str, std: float) -> float:
    """Keeps the standard deviation 1 with which `torch.nn.Embedding` draws the embedding."""
    return 1.0 if name == "embedding" else std


@fault("loud_positions", "spread", on_model={"position": "learned"}, on_train=ADAMW)
def loud_positions(name: str, std: float) -> float:
    """Keeps the standard deviation 1 with which `torch.nn.Embedding` draws the table of positions."""
    return 1.0 if name == "positions.weight" else std


class ReshapedTieCard(LinearOutputCard):
    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {"logits": (r"\mathrm{logits} = x\,\mathrm{reshape}(E)", "x · E, reshaped as it lies")}


@fault("reshaped_tie", "outputs.linear", "forward")
class ReshapedTie(LinearOutput):
    """An output that reshapes the embedding to the shape of its transpose: the numbers stay where they lie,
    so that the column of a token is made of other tokens' rows.
    """

    linear: ClassVar[bool] = False  # with W_U itself, that is

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        return probe("logits", x @ matrix.reshape(matrix.shape[1], -1))


CARDS[ReshapedTie] = ReshapedTieCard
