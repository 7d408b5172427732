"""Parts that the engine has never seen: what stands in another's place must be honoured everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.attention import Attention, HeadMixer, Mixer
from engine.parts.blocks import PassContext
from engine.parts.norms import FixedDivisor
from engine.parts.parameters import InitialValues
from engine.parts.positions import HookName, PositionHooks, Scheme
from engine.parts.registry import HEALTHY, Parts, swapped
from studies.costs.cards import BatchShape, Formula, Product, SavedForBackward, Weight
from studies.costs.cards.mixers import HeadMixerCard, MixerCard
from studies.costs.cards.norms import NormCard
from studies.costs.cards.positions import PositionCard
from studies.costs.cards.table import CARDS


class MeanSizeCard(NormCard):
    name: ClassVar[str] = "mean_size"
    title: ClassVar[str] = "MeanSizeNorm"
    sentence: ClassVar[str] = "Each token's vector is scaled to mean size 1."

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward(read=config.d_model, internal=1)

    @classmethod
    def formula(cls, config: ResolvedConfig) -> Formula:
        return r"g \odot \frac{x}{\overline{|x|}}", "g · x / mean size"


class MeanSizeNorm(nn.Module):
    """g * x / mean|x|: the vector's mean size becomes 1."""

    present: ClassVar[bool] = True
    divides: ClassVar[bool] = True
    initial_values: ClassVar[InitialValues] = {"gain": 1.0}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.empty(config.d_model))

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * x / x.abs().mean(-1, keepdim=True)

    def linear_part(self, x: Tensor) -> Tensor:
        return self.gain * x

    def with_fixed_divisor(self, x: Tensor, u: Tensor) -> FixedDivisor | None:
        scale = x.abs().mean()
        return FixedDivisor(u * self.gain.to(u.dtype) / scale, 0.0, float(scale))


class _LogBiased(PositionHooks):
    def __init__(self, table: Tensor) -> None:
        self.table = table  # (head, query, key)

    def bias(self, scores: Tensor) -> Tensor:
        return scores + self.table


class LogBiasCard(PositionCard):
    title: ClassVar[str] = "Log bias"
    sentence: ClassVar[str] = "Each head takes off a multiple of the distance's logarithm."

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return (Weight("strengths", ("n_heads",)),)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {"position": (r"-s_h \ln(1 + |i - j|)", "− strength · ln(1 + distance)")}

    @classmethod
    def biased(cls, scores: Formula, config: ResolvedConfig) -> Formula:
        return scores[0] + r" - s_h \ln(1 + |i - j|)", scores[1] + " − strength · ln(1 + distance)"


class LogBias(Scheme):
    """-strength_h * ln(1 + distance), with a learned strength for each head."""

    enters: ClassVar[tuple[HookName, ...]] = ("bias",)
    initial_values: ClassVar[InitialValues] = {"strength": "table"}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.strength = nn.Parameter(torch.empty(config.n_heads, 1))

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        place = torch.arange(start + length, device=like.device, dtype=like.dtype)
        distance = (place[start:, None] - place[None, :]).abs()
        return _LogBiased(-(30 * self.strength[:, :, None]) * distance.log1p())


class SharpMixerCard(HeadMixerCard):
    title: ClassVar[str] = "Sharp attention"
    sentence: ClassVar[str] = "Tokens talk, and listen to few."
    flat: ClassVar[Mapping[str, str]] = {"q": "q", "k": "k", "v": "v"}

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return tuple((name, ("n_heads", "d_head")) for name in ("W_Q", "W_K", "W_V"))

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return (*super().tensors(config), Weight("sharpness", ("n_heads",)))

    @classmethod
    def vectors_saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward(internal=3 * config.n_heads * config.d_head)


class SharpMixer(HeadMixer):
    """Attention with three matrices of its own, no W_O, a learned sharpness in its scores, and weights that are
    the softmax of the doubled scores."""

    initial_values: ClassVar[InitialValues] = {
        **HeadMixer.initial_values,
        **dict.fromkeys(("w_q", "w_k", "w_v", "sharpness"), "matrix"),
    }

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        self.w_q, self.w_k, self.w_v = (nn.Linear(config.d_model, width, bias=False) for _ in range(3))
        self.sharpness = nn.Parameter(torch.empty(self.n_heads, 1))

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        source = x if memory is None else memory
        q, k, v = (w(t) for w, t in ((self.w_q, x), (self.w_k, source), (self.w_v, source)))
        return tuple(t.unflatten(-1, (self.n_heads, self.d_head)) for t in (q, k, v))

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(q, k) * (1 + 30 * self.sharpness[:, :, None])

    def weights(self, masked: Tensor, mask: Tensor | None = None) -> Tensor:
        return (2 * masked).softmax(-1)


class RunningMeanCard(MixerCard):
    title: ClassVar[str] = "Running mean"
    sentence: ClassVar[str] = "Every token takes the average of what came before."
    scored: ClassVar[bool] = False
    learned: ClassVar[bool] = False
    flat: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return (Weight("W", ("d_model", "d_model")),)

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        return (Product("W", ("d_model", "d_model")),)

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward(internal=config.d_model)

    @classmethod
    def cached_numbers(cls, config: ResolvedConfig) -> int:
        return 2 * config.d_model

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {"attn_out": (r"\mathrm{out}_i = W \sum_{j \le i} x_j / i", "W · mean so far")}


class RunningMean(Mixer):
    """A mixer that is no HeadMixer: the plain average of what there is so far, times a matrix."""

    initial_values: ClassVar[InitialValues] = {"w_mean": "matrix"}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.heads = config.n_heads
        self.w_mean = nn.Linear(config.d_model, config.d_model, bias=False)

    def forward(
        self,
        x: Tensor,
        context: PassContext,
    ) -> Tensor:
        length = x.shape[1]
        by_head = x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        x = context.extend(by_head, by_head)[1].transpose(1, 2).flatten(2)
        count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device)
        mean = x.cumsum(1) / count[:, None]
        return context.probe("attn_out", self.w_mean(mean[:, -length:]))


class BareNorm(MeanSizeNorm):
    """A norm that cannot be written as a division by one number: it says so."""

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * x.tanh()

    def with_fixed_divisor(self, x: Tensor, u: Tensor) -> FixedDivisor | None:
        return None


class PlainProducts(Attention):
    """An Attention whose scores are not divided: only `scores` is another."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(q, k) * self.d_head**0.5


class DoubledAttention(Attention):
    """An Attention that writes twice as much, but says of itself what Attention says."""

    def output(self, z: Tensor) -> Tensor:
        return 2 * super().output(z)


CARDS |= {
    MeanSizeNorm: MeanSizeCard,
    LogBias: LogBiasCard,
    SharpMixer: SharpMixerCard,
    RunningMean: RunningMeanCard,
}
TOYS: dict[str, Parts] = {
    "norm": swapped(HEALTHY, "toy norm", norms={"layernorm": MeanSizeNorm}),
    "position": swapped(HEALTHY, "toy position", positions={"learned": LogBias}),
    "mixer": swapped(HEALTHY, "toy mixer", mixers={"attention": SharpMixer}),
}
