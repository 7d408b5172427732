"""The set of parts that a model is built from, and the healthy ones by name.

A part is an `nn.Module` made from a resolved configuration. Its class variables say what the rest of the
engine needs to know of it: nobody else looks at its name or its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from engine.additions import import_additions
from engine.config import ResolvedConfig
from engine.errors import ConfigError
from engine.parts import attention, blocks, feedforward, latent, norms, output, positions
from engine.parts.attention import Mixer, causal_mask, decoder_masks
from engine.parts.blocks import Block, DecoderBlock, PassContext, each_block
from engine.parts.experts import mixture
from engine.parts.feedforward import FeedForward
from engine.parts.norms import Norm
from engine.parts.output import Output
from engine.parts.positions import Scheme

Stack = Callable[[Sequence[Block], Norm, Tensor, PassContext], Tensor]
Mask = Callable[[int, Tensor, int], Tensor | None]
DecoderMasks = Callable[[Tensor | None, Tensor], tuple[Tensor | None, Tensor | None]]
Targets = Callable[[Tensor], tuple[Tensor, Tensor]]
Mode = Callable[[nn.Module, bool], None]
Spread = Callable[[str, float], float]
Split = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a model: a class for each name that a configuration may hold, and seven functions.

    A deliberate fault is another Parts and nothing else. `name` is how it travels to a worker and into a
    file (PARTS).
    """

    name: str
    norms: Mapping[str, type[Norm]]
    positions: Mapping[str, type[Scheme]]
    mixers: Mapping[str, type[Mixer]]
    feedforwards: Mapping[str, type[FeedForward]]
    wirings: Mapping[str, type[Block]]
    crossings: Mapping[str, type[DecoderBlock]]  # by the names of wirings, where a decoder reads a memory
    outputs: Mapping[str, type[Output]]
    # The blocks, the final norm (not to be applied here), the embedded tokens x (batch, query, d_model)
    # -> what that norm reads, of the same shape.
    stack: Stack
    # The number of queries, a tensor like the mask, the first query's position -> the mask of a causal model,
    # (query, key), for all keys up to the last query; None for nothing.
    mask: Mask
    decoder_masks: DecoderMasks  # the causal and the padding mask -> those of own text and of source
    spread: Spread  # a parameter's name and the spread that its recipe says -> that of its first values
    split: Split  # the texts (token,) to train on and to validate on
    targets: Targets  # windows (batch, position + 1) -> what is read and what is to be predicted
    mode: Mode  # puts a model into training (True) or evaluation (False)

    def __repr__(self) -> str:
        return f"Parts({self.name!r})"

    def __deepcopy__(self, memo: object) -> Parts:
        """A copied model is made of the same parts, not of others that are like them."""
        return self

    def norm(self, config: ResolvedConfig) -> type[Norm]:
        return self.norms[config.norm]

    def position(self, config: ResolvedConfig) -> type[Scheme]:
        return self.positions[config.position]

    def mixer(self, config: ResolvedConfig) -> type[Mixer]:
        return self.mixers[config.mixer]

    def feedforward(self, config: ResolvedConfig) -> type[FeedForward]:
        network = self.feedforwards[config.ffn]
        return mixture(network) if config.n_experts else network  # type: ignore[arg-type]

    def wiring(self, config: ResolvedConfig) -> type[Block]:
        return self.wirings[config.wiring]

    def crossing(self, config: ResolvedConfig) -> type[DecoderBlock]:
        return self.crossings[config.wiring]

    def output(self, config: ResolvedConfig) -> type[Output]:
        return self.outputs[config.output_head]

    def sums(self, config: ResolvedConfig) -> bool:
        """Returns True if the final stream is the plain sum of all writes: not where a norm sits on the
        stream, nor where nothing is added.
        """
        wiring = self.wiring(config)
        normed = wiring.ends_normed and self.norm(config).present
        return self.is_plain_stack and not wiring.replaces and not normed

    def logit_is_sum(self, config: ResolvedConfig) -> bool:
        """Returns True if a logit is a sum over the writes: the final stream is one, and the final norm, if
        there is one, divides it by a number.
        """
        norm = self.norm(config)
        return self.sums(config) and (norm.divides or not norm.present)

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

NORMS: dict[str, type[Norm]] = {
    "layernorm": norms.LayerNorm,
    "rmsnorm": norms.RMSNorm,
    "dyt": norms.DyT,
    "none": norms.NoNorm,
}
POSITIONS: dict[str, type[Scheme]] = {
    "none": positions.NoPosition,
    "sinusoidal": positions.Sinusoidal,
    "learned": positions.Learned,
    "rope": positions.Rope,
    "alibi": positions.Alibi,
    "t5": positions.T5Bias,
}
MIXERS: dict[str, type[Mixer]] = {
    "none": attention.NoMixer,
    "mean": attention.Mean,
    "similarity": attention.Similarity,
    "shared_qk": attention.SharedQK,
    "attention": attention.Attention,
    "sinks": attention.Sinks,
    "gated": attention.Gated,
    "mla": latent.LatentAttention,
}
FEEDFORWARDS: dict[str, type[FeedForward]] = {
    "relu": feedforward.Relu,
    "relu2": feedforward.SquaredRelu,
    "gelu": feedforward.Gelu,
    "gelu_tanh": feedforward.GeluTanh,
    "swiglu": feedforward.SwiGlu,
    "swiglu_clamped": feedforward.ClampedSwiGlu,
    "geglu": feedforward.GeGlu,
    "geglu_tanh": feedforward.GeGluTanh,
    "none": feedforward.NoFeedForward,
}
WIRINGS: dict[str, type[Block]] = {
    "pre": blocks.PreNormBlock,
    "post": blocks.PostNormBlock,
    "parallel": blocks.ParallelBlock,
    "none": blocks.NoResidualBlock,
}
CROSSINGS: dict[str, type[DecoderBlock]] = {
    "pre": blocks.PreNormDecoderBlock,
    "post": blocks.PostNormDecoderBlock,
}
OUTPUTS: dict[str, type[Output]] = {
    "linear": output.LinearOutput,
    "scaled": output.ScaledOutput,
    "masked": output.MaskedOutput,
    "none": output.NoOutput,
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
# Parts by the name that a run and a file carry; what adds to this module enters its own.
PARTS: dict[str, Parts] = {HEALTHY.name: HEALTHY}


def parts_of(name: str) -> Parts:
    """Returns the parts of a name in PARTS. Raises ConfigError for any other name."""
    if name not in PARTS:
        import_additions(__name__)
    if name not in PARTS:
        raise ConfigError("parts", name, f"must be one of {', '.join(PARTS)}")
    return PARTS[name]
