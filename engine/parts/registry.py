"""The parts of a healthy model, by the names that a configuration holds."""

from __future__ import annotations

from torch import Tensor, nn

from engine.parts import norms
from engine.parts.attention import Attention, Mean, NoMixer, SharedQK, Similarity
from engine.parts.blocks import (
    NoResidualBlock,
    ParallelBlock,
    PostNormBlock,
    PostNormDecoderBlock,
    PreNormBlock,
    PreNormDecoderBlock,
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
from engine.parts.forward_pass import each_block
from engine.parts.masks import causal_mask, decoder_masks
from engine.parts.output import LinearOutput, MaskedOutput, NoOutput, ScaledOutput
from engine.parts.positions import Alibi, Learned, NoPosition, Rope, Sinusoidal, T5Bias
from engine.parts.protocols import (
    Crossing,
    FeedForward,
    Mixer,
    Output,
    Parts,
    Position,
    Wiring,
    swapped,
)

__all__ = [
    "CROSSINGS",
    "FEEDFORWARDS",
    "HEALTHY",
    "MIXERS",
    "NORMS",
    "OUTPUTS",
    "POSITIONS",
    "WIRINGS",
    "Parts",
    "mode",
    "shifted",
    "split",
    "spread",
    "swapped",
]

NORMS: dict[str, type[norms.Norm]] = {norm.card.name: norm for norm in norms.NORMS}
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
