"""Cards of the parts: names, sentences and formulas for the screen, parameters and memory for the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engine.parts.costs import BatchShape, Product, SavedForBackward, Weight
from engine.parts.formula import Formula

if TYPE_CHECKING:  # a configuration takes the names of the norms from their cards
    from engine.config import ResolvedConfig


class PartCard:
    """Name, sentence, formulas and costs of a part. One without parameters needs no more than this."""

    title: ClassVar[str] = ""  # its name on the map
    sentence: ClassVar[str] = ""  # what it does, for somebody who heard one lecture

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        """Returns every tensor of parameters, in the order in which data meets them."""
        return ()

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        """Returns every matrix product of a forward pass, for one token."""
        return ()

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        """Returns how many numbers backward needs, for each token, without dropout's masks."""
        return SavedForBackward()

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        """Returns the formula of every activation that the part shows, by bare name."""
        return {}
