"""Interfaces of the parts, the set of parts that a model is built from, and the healthy ones by name.

A part is an `nn.Module` made from a resolved configuration. Its `card` says what the rest of the engine, and
the screen, need to know of it: nobody else looks at its name or its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts import norms
from engine.parts.attention import Attention, Mean, NoMixer, SharedQK, Similarity, causal_mask, decoder_masks
from engine.parts.blocks import (
    NoResidualBlock,
    ParallelBlock,
    PassContext,
    PostNormBlock,
    PostNormDecoderBlock,
    PreNormBlock,
    PreNormDecoderBlock,
    each_block,
)
from engine.parts.feedforward import (
    GeGlu,
    GeGluTanh,
    Gelu,
    GeluTanh,
    NoFeedForward,
    Relu,
    SquaredRelu,
    SwiGlu,
)
from engine.parts.norms import Norm
from engine.parts.output import LinearOutput, MaskedOutput, NoOutput, ScaledOutput
from engine.parts.positions import (
    Alibi,
    HookName,
    Learned,
    NoPosition,
    PositionHooks,
    Rope,
    Sinusoidal,
    T5Bias,
)
from engine.probe import Probe

if TYPE_CHECKING:
    from engine.parts.cards.blocks import BlockCard, DecoderBlockCard
    from engine.parts.cards.feedforward import FeedForwardCard
    from engine.parts.cards.mixers import MixerCard
    from engine.parts.cards.output import OutputCard
    from engine.parts.cards.positions import PositionCard


class Position(Protocol):
    """Tells positions apart, by one or more of three hooks (see `engine.parts.positions.PositionHooks`)."""

    card: ClassVar[type[PositionCard]]
    present: ClassVar[bool]
    enters: ClassVar[tuple[HookName, ...]]  # the hooks that it uses

    def __init__(self, config: ResolvedConfig) -> None: ...

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        """Returns the hooks of positions start .. start + length - 1, in the dtype and on the device of
        `like`. Raises ShapeError for positions beyond a table.
        """

    @classmethod
    def reach(cls, config: ResolvedConfig) -> int | None:
        """Returns how many positions the scheme covers; None: any number."""


class Mixer(Protocol):
    """Moves information between positions. `engine.parts.attention.HeadMixer` is one to begin from."""

    card: ClassVar[type[MixerCard]]
    present: ClassVar[bool]
    cacheable: ClassVar[bool]  # under the causal mask, later tokens change nothing that it wrote before them

    def __init__(self, config: ResolvedConfig) -> None: ...

    def __call__(self, x: Tensor, context: PassContext) -> Tensor | None:
        """x (batch, query, d_model) -> what is written to the stream, of the same shape; None for nothing.

        `context.memory` is what is gathered from, x itself where it is None. The keys and values of earlier
        positions come from `context.extend`.
        """


class FeedForward(Protocol):
    """Transforms each token's vector by itself."""

    card: ClassVar[type[FeedForwardCard]]
    present: ClassVar[bool]
    gated: ClassVar[bool]  # one half of the widened vector decides how much of the other passes
    act: ClassVar[
        str
    ]  # the name of `activation`, a key of `engine.measure.feedforward.activation_functions`; "" for none
    exact_zeros: ClassVar[bool]  # many activations are exactly 0

    def __init__(self, config: ResolvedConfig) -> None: ...

    def __call__(self, x: Tensor, probe: Probe) -> Tensor | None:
        """(batch, query, d_model) -> what is written to the stream, of the same shape; None for nothing."""

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        """Applies the nonlinearity to each number of `ffn_pre`, or of `ffn_gate` if it is gated. Shape in =
        shape out. Not called where `act` is empty.
        """

    def column(self, neuron: int) -> Tensor:
        """Returns what a neuron adds to the stream for each unit of its activation `ffn_post`, (d_model,)."""


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

    card: ClassVar[type[BlockCard]]
    ends_normed: ClassVar[bool]  # norms sit on the stream, after each sum; none is left for the model's end
    parallel: ClassVar[bool]  # both sublayers read at one place and write at one place
    replaces: ClassVar[bool]  # what a sublayer makes takes the place of what it read

    def __init__(self, config: ResolvedConfig, parts: Parts) -> None: ...

    def __call__(self, x: Tensor, context: PassContext) -> Tensor:
        """(batch, query, d_model) -> the same shape."""


class Crossing(Protocol):
    """A block of a decoder that reads a memory too. `engine.parts.blocks.DecoderBlock` is one to begin
    from.
    """

    card: ClassVar[type[DecoderBlockCard]]
    ends_normed: ClassVar[bool]

    def __init__(self, config: ResolvedConfig, parts: Parts) -> None: ...

    def __call__(self, x: Tensor, context: PassContext) -> Tensor:
        """x (batch, query, d_model) -> the same shape. `context.cross` has the memory that is read."""


class Output(Protocol):
    """Makes logits of the last vectors."""

    card: ClassVar[type[OutputCard]]
    present: ClassVar[bool]  # False: there are none, and the model hands its vectors on
    linear: ClassVar[bool]  # logits are the product with W_U, and nothing else

    def __init__(self, config: ResolvedConfig) -> None: ...

    def __call__(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        """x (batch, query, d_model) and W_U^T (vocab, d_model) -> logits (batch, query, vocab), or x where
        there are none.
        """


class Mask(Protocol):
    def __call__(self, length: int, like: Tensor, start: int = 0) -> Tensor | None:
        """Returns the mask of a causal model, (query, key), for queries start .. start + length - 1 and all
        keys up to the last of them. None for nothing.
        """


class Stack(Protocol):
    def __call__(
        self,
        blocks: Sequence[Wiring],
        norm: Norm,
        x: Tensor,
        context: PassContext,
    ) -> Tensor:
        """The embedded tokens x (batch, query, d_model) -> what the final norm reads, of the same shape.
        `norm` is that norm, which is not this function's to apply.
        """


DecoderMasks = Callable[[Tensor | None, Tensor], tuple[Tensor | None, Tensor | None]]
Targets = Callable[[Tensor], tuple[Tensor, Tensor]]
Mode = Callable[[nn.Module, bool], None]
Spread = Callable[[str, float], float]
Split = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a model: a class for each name that a configuration may hold, and seven functions.

    A deliberate fault is another Parts and nothing else. `name` is how it travels to a worker and into a
    file (`engine.lab.faults.PARTS`).
    """

    name: str
    norms: Mapping[str, type[Norm]]
    positions: Mapping[str, type[Position]]
    mixers: Mapping[str, type[Mixer]]
    feedforwards: Mapping[str, type[FeedForward]]
    wirings: Mapping[str, type[Wiring]]
    crossings: Mapping[str, type[Crossing]]  # by the names of wirings, where a decoder reads a memory
    outputs: Mapping[str, type[Output]]
    stack: Stack  # which blocks read what
    mask: Mask
    decoder_masks: DecoderMasks  # the causal and the padding mask -> those of own text and of source
    spread: Spread  # a parameter's name and the spread that its recipe says -> that of its first values
    split: Split  # the texts (token,) to train on and to validate on
    targets: Targets  # windows (batch, position + 1) -> what is read and what is to be predicted
    mode: Mode  # puts a model into training (True) or evaluation (False)

    def __deepcopy__(self, memo: object) -> Parts:
        """A copied model is made of the same parts, not of others that are like them."""
        return self

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

    def crossing(self, config: ResolvedConfig) -> type[Crossing]:
        return self.crossings[config.wiring]

    def output(self, config: ResolvedConfig) -> type[Output]:
        return self.outputs[config.output_head]

    def sums(self, config: ResolvedConfig) -> bool:
        """Returns True if the final stream is the plain sum of all writes: not where a norm sits on the
        stream, nor where nothing is added.
        """
        wiring = self.wiring(config)
        normed = wiring.ends_normed and self.norm(config).card.present
        return self.is_plain_stack and not wiring.replaces and not normed

    def logit_is_sum(self, config: ResolvedConfig) -> bool:
        """Returns True if a logit is a sum over the writes: the final stream is one, and the final norm, if
        there is one, divides it by a number.
        """
        card = self.norm(config).card
        return self.sums(config) and (card.divides or not card.present)

    @property
    def is_plain_stack(self) -> bool:
        """True for the plain loop over all blocks, which may also be run block by block."""
        return self.stack is each_block

    def can_cache(self, config: ResolvedConfig) -> bool:
        """Returns True if keys and values can be cached: later tokens change nothing before them."""
        return config.causal and self.mask is causal_mask and self.mixer(config).cacheable


def swapped(parts: Parts, name: str, **others: Any) -> Parts:
    """Returns `parts` under another name, with some entries in the place of others: `mixers={"attention":
    Other}`, and other functions: `mask=other`. Raises TypeError for what is no field of Parts.
    """
    changed: dict[str, Any] = {
        field: {**getattr(parts, field), **other} if isinstance(other, Mapping) else other
        for field, other in others.items()
    }
    return replace(parts, name=name, **changed)


# The parts of a healthy model ----------------------------------------------------------------------

NORMS: dict[str, type[Norm]] = {norm.card.name: norm for norm in norms.NORMS}
POSITIONS: dict[str, type[Position]] = {
    "none": NoPosition,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "rope": Rope,
    "alibi": Alibi,
    "t5": T5Bias,
}
MIXERS: dict[str, type[Mixer]] = {
    "none": NoMixer,
    "mean": Mean,
    "similarity": Similarity,
    "shared_qk": SharedQK,
    "attention": Attention,
}
FEEDFORWARDS: dict[str, type[FeedForward]] = {
    "relu": Relu,
    "relu2": SquaredRelu,
    "gelu": Gelu,
    "gelu_tanh": GeluTanh,
    "swiglu": SwiGlu,
    "geglu": GeGlu,
    "geglu_tanh": GeGluTanh,
    "none": NoFeedForward,
}
WIRINGS: dict[str, type[Wiring]] = {
    "pre": PreNormBlock,
    "post": PostNormBlock,
    "parallel": ParallelBlock,
    "none": NoResidualBlock,
}
CROSSINGS: dict[str, type[Crossing]] = {"pre": PreNormDecoderBlock, "post": PostNormDecoderBlock}
OUTPUTS: dict[str, type[Output]] = {
    "linear": LinearOutput,
    "scaled": ScaledOutput,
    "masked": MaskedOutput,
    "none": NoOutput,
}


def shifted(windows: Tensor) -> tuple[Tensor, Tensor]:
    """Splits windows (batch, position + 1) into inputs and targets, each (batch, position): the target is the
    token that follows.
    """
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def mode(model: nn.Module, training: bool) -> None:
    """Puts a model into training, where dropout drops, or into evaluation."""
    model.train(training)


def spread(name: str, std: float) -> float:
    """Returns the standard deviation of a parameter's first values as its recipe has it
    (engine.parts.parameters).
    """
    return std


def split(train: Tensor, validation: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the texts (token,) to train on and to validate on: two parts that share nothing."""
    return train, validation


HEALTHY = Parts(
    "healthy",
    NORMS,
    POSITIONS,
    MIXERS,
    FEEDFORWARDS,
    WIRINGS,
    CROSSINGS,
    OUTPUTS,
    stack=each_block,
    mask=causal_mask,
    decoder_masks=decoder_masks,
    spread=spread,
    split=split,
    targets=shifted,
    mode=mode,
)
