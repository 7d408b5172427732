"""What a part of the model must be, so that another can stand in its place; and a set of parts to build from.

A part is an `nn.Module` made from a resolved configuration. Beside its arithmetic it says what the rest of
the engine, and the screen, need to know of it: nobody else looks at its name or its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.cache import LayerCache
from engine.parts.positions import Seams
from engine.probe import Probe


class Norm(Protocol):
    """Brings each token's vector to a standard size."""

    present: ClassVar[bool]  # False: a placeholder for no part at all

    def __init__(self, config: ResolvedConfig) -> None: ...

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, query, d_model) -> the same shape."""


class Position(Protocol):
    """Tells places apart, at one or more of three seams (see `engine.parts.positions.Seams`)."""

    present: ClassVar[bool]

    def __init__(self, config: ResolvedConfig) -> None: ...

    def prepare(self, length: int, like: Tensor, start: int = 0) -> Seams:
        """The scheme made ready for positions start .. start + length - 1, in the dtype and on the device of
        `like`. Raises ShapeError where it has nothing for them.
        """


class Mixer(Protocol):
    """Lets tokens gather from each other."""

    present: ClassVar[bool]

    def __init__(self, config: ResolvedConfig) -> None: ...

    def __call__(
        self,
        x: Tensor,
        seams: Seams,
        mask: Tensor | None,
        probe: Probe,
        cache: LayerCache | None = None,
        memory: Tensor | None = None,
    ) -> Tensor | None:
        """x (batch, query, d_model) -> what is written to the stream, of the same shape; None for nothing.

        `memory` (batch, key, d_model) is what is gathered from, x itself where it is None. With a cache, x
        are the latest positions, and those before are to be taken from it.
        """


class FeedForward(Protocol):
    """Lets each token think alone."""

    present: ClassVar[bool]

    def __init__(self, config: ResolvedConfig) -> None: ...

    def __call__(self, x: Tensor, probe: Probe) -> Tensor | None:
        """(batch, query, d_model) -> what is written to the stream, of the same shape; None for nothing."""


class Sublayers(Protocol):
    """The four parts that a block wires."""

    @property
    def norm1(self) -> Callable[[Tensor], Tensor]: ...

    @property
    def norm2(self) -> Callable[[Tensor], Tensor]: ...

    @property
    def mixer(self) -> Callable[..., Tensor | None]: ...

    @property
    def ffn(self) -> Callable[[Tensor, Probe], Tensor | None]: ...


class Wiring(Protocol):
    """A block: joins the two sublayers to the residual stream."""

    ends_normed: ClassVar[bool]  # True: no norm is left for the end of the model

    def __init__(self, config: ResolvedConfig, parts: Parts) -> None: ...

    def __call__(
        self, x: Tensor, seams: Seams, mask: Tensor | None, probe: Probe, cache: LayerCache | None = None
    ) -> Tensor:
        """(batch, query, d_model) -> the same shape."""


class Mask(Protocol):
    def __call__(self, length: int, like: Tensor, start: int = 0) -> Tensor | None:
        """What is added to the scores of a causal model, (query, key): for queries start .. start + length -
        1 and all keys up to the last of them. None for nothing.
        """


Targets = Callable[[Tensor], tuple[Tensor, Tensor]]
Mode = Callable[[nn.Module, bool], Any]


@dataclass(frozen=True, eq=False)
class Parts:
    """What a model is built from: a class for each name that a configuration may hold, and three functions.

    A deliberate fault is another Parts and nothing else. `name` is how it travels to a worker and into a
    file (`engine.faults.PARTS`).
    """

    name: str
    norms: Mapping[str, type[Norm]]
    positions: Mapping[str, type[Position]]
    mixers: Mapping[str, type[Mixer]]
    feedforwards: Mapping[str, type[FeedForward]]
    wirings: Mapping[str, type[Wiring]]
    mask: Mask
    targets: Targets  # windows (batch, position + 1) -> what is read and what is to be predicted
    mode: Mode  # puts a model into training (True) or evaluation (False)

    def norm(self, config: ResolvedConfig) -> type[Norm]:
        return self.norms[config.norm]

    def position(self, config: ResolvedConfig) -> type[Position]:
        return self.positions[config.position]

    def mixer(self, config: ResolvedConfig) -> type[Mixer]:
        return self.mixers[config.mixer]

    def feedforward(self, config: ResolvedConfig) -> type[FeedForward]:
        return self.feedforwards[config.ffn]

    def wiring(self, config: ResolvedConfig) -> type[Wiring]:
        return self.wirings[config.wiring]


def swapped(
    parts: Parts,
    name: str,
    *,
    norms: Mapping[str, type[Norm]] | None = None,
    positions: Mapping[str, type[Position]] | None = None,
    mixers: Mapping[str, type[Mixer]] | None = None,
    feedforwards: Mapping[str, type[FeedForward]] | None = None,
    wirings: Mapping[str, type[Wiring]] | None = None,
    mask: Mask | None = None,
    targets: Targets | None = None,
    mode: Mode | None = None,
) -> Parts:
    """`parts` under another name, with some entries in the place of others: `mixers={"attention": Other}`."""
    return replace(
        parts,
        name=name,
        norms={**parts.norms, **(norms or {})},
        positions={**parts.positions, **(positions or {})},
        mixers={**parts.mixers, **(mixers or {})},
        feedforwards={**parts.feedforwards, **(feedforwards or {})},
        wirings={**parts.wirings, **(wirings or {})},
        mask=mask or parts.mask,
        targets=targets or parts.targets,
        mode=mode or parts.mode,
    )
