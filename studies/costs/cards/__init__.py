"""Cards of the parts: names, sentences and formulas for the screen, parameters and memory for the ledger.

Sizes are named by their fields, so that a formula can be written in letters and in numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from engine.config import ResolvedConfig

Formula = tuple[str, str]  # LaTeX, and the same in plain signs. Rows are tokens: a weight W acts as x Wᵀ
Size = int | str  # a number; or a size by its field's name, `T` the tokens that are looked at


@dataclass(frozen=True)
class Weight:
    """A tensor of parameters."""

    name: str
    shape: tuple[Size, ...]


@dataclass(frozen=True)
class Product:
    """A matrix product: 2 * the product of `sizes` FLOPs for each token."""

    name: str
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class BatchShape:
    """A forward pass in training: `batch` texts of `tokens`. `narrow`: in fewer bits than float32; `turned`:
    positions turn queries and keys.
    """

    batch: int
    tokens: int
    narrow: bool = False
    turned: bool = False


@dataclass(frozen=True)
class SavedForBackward:
    """Numbers that backward needs for each token.

    `read` are the part's input, which another part that reads the same need not save again. `internal` are as
    wide as the model computes in, `full` are float32 whatever that is.
    """

    read: int = 0
    internal: int = 0
    full: int = 0

    def __add__(self, other: SavedForBackward) -> SavedForBackward:
        return SavedForBackward(
            self.read + other.read, self.internal + other.internal, self.full + other.full
        )

    def times(self, copies: int) -> SavedForBackward:
        return SavedForBackward(copies * self.read, copies * self.internal, copies * self.full)

    def size(self, width: float) -> float:
        """Returns the bytes for each token, with numbers of `width` bytes."""
        return (self.read + self.internal) * width + self.full * 4


def numbers(weights: Iterable[Weight], config: ResolvedConfig) -> int:
    """Returns how many numbers the tensors hold."""
    return sum(
        prod(size if isinstance(size, int) else int(getattr(config, size)) for size in weight.shape)
        for weight in weights
    )


def bias_of(name: str, given: bool, *shape: Size) -> Iterable[Weight]:
    """Yields the bias of a matrix, if it has one."""
    return (Weight(f"bias of {name}", shape),) if given else ()


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
