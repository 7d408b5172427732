"""The feed-forward network: after the tokens have talked, each thinks alone. About 2/3 of a block's
parameters.
"""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.errors import ShapeError
from engine.parts.costs import BatchShape, Product, SavedForBackward, Weight, bias_of
from engine.parts.formula import Formula
from engine.parts.initial import InitialValues
from engine.parts.linear import StackedLinear
from engine.probe import Probe


def relu2(x: Tensor) -> Tensor:
    """max(0, x)^2 (So et al. 2021): as cheap as ReLU, and learns faster here."""
    return F.relu(x).square()


def gelu_tanh(x: Tensor) -> Tensor:
    """GPT-2's tanh approximation of GELU (Hendrycks & Gimpel 2016)."""
    return F.gelu(x, approximate="tanh")


def _matrices(config: ResolvedConfig, *read: str) -> tuple[Weight, ...]:
    rows: list[Weight] = []
    for name in read:
        rows += [Weight(name, ("d_model", "d_ff")), *bias_of(name.split()[-1], config.ffn_bias, "d_ff")]
    return (*rows, Weight("W_2", ("d_ff", "d_model")), *bias_of("W_2", config.ffn_bias, "d_model"))


def _products(*read: str) -> tuple[Product, ...]:
    return (*(Product(name, ("d_model", "d_ff")) for name in read), Product("W_2", ("d_ff", "d_model")))


class FeedForward(nn.Module):
    """W2 act(W1 x): (batch, query, d_model) -> (batch, query, d_ff) -> (batch, query, d_model)."""

    present: ClassVar[bool] = True
    title: ClassVar[str] = "Feed-forward"
    sentence: ClassVar[str] = (
        "Each token thinks for itself: its vector is widened, passed through a bend, and narrowed again. No"
        " token sees another here."
    )
    gated: ClassVar[bool] = False
    exact_zeros: ClassVar[bool] = False
    act: ClassVar[str] = ""
    initial_values: ClassVar[InitialValues] = {"w_in": "matrix", "w_out": "to_stream"}
    activation_formula: ClassVar[Formula] = ("", "")  # what `activation` does
    widths_kept: ClassVar[int] = 2  # vectors of d_ff that backward needs: what is bent, and what comes of it

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.w_in = nn.Linear(config.d_model, config.d_ff, bias=config.ffn_bias)
        self.w_out = nn.Linear(config.d_ff, config.d_model, bias=config.ffn_bias)

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        """Bends each number for itself; kinds differ here."""
        raise NotImplementedError

    def forward(self, x: Tensor, probe: Probe) -> Tensor | None:
        pre = probe("ffn_pre", self.w_in(x))  # (batch, query, d_ff)
        post = probe("ffn_post", self.activation(pre))
        return probe("ffn_out", F.dropout(self.w_out(post), self.dropout, self.training))

    def column(self, neuron: int) -> Tensor:
        """What a neuron writes for each unit of `ffn_post`: its column of W2, (d_model,)."""
        return self.w_out.weight[:, neuron]

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return _matrices(config, "W_1")

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        return _products("W_1")

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward(read=config.d_model, own=cls.widths_kept * config.d_ff)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        ffn, wide = (r" + b", " + b") if config.ffn_bias else ("", "")
        return {
            "ffn_pre": (rf"u = x\,W_1{ffn}", f"x · W₁{wide}"),
            "ffn_post": cls.activation_formula,
            "ffn_out": (rf"\mathrm{{out}} = h\,W_2{ffn}", f"h · W₂{wide}"),
        }


class GatedFeedForward(nn.Module):
    """W2 (act(G x) * W1 x): one half decides how much of the other passes (Shazeer 2020).

    `w_in` holds G and W1, in that order.
    """

    present: ClassVar[bool] = True
    title: ClassVar[str] = "Gated feed-forward"
    sentence: ClassVar[str] = (
        "Each token thinks for itself: one half of the widened vector decides how much of the other passes,"
        " then it is narrowed again."
    )
    gated: ClassVar[bool] = True
    exact_zeros: ClassVar[bool] = False
    act: ClassVar[str] = ""
    initial_values: ClassVar[InitialValues] = {"w_in": "matrix", "w_out": "to_stream"}
    activation_formula: ClassVar[Formula] = ("", "")

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.w_in = StackedLinear(config.d_model, (config.d_ff, config.d_ff), bias=config.ffn_bias)
        self.w_out = nn.Linear(config.d_ff, config.d_model, bias=config.ffn_bias)

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        """Bends each number for itself; kinds differ here."""
        raise NotImplementedError

    def forward(self, x: Tensor, probe: Probe) -> Tensor | None:
        gate, pre = self.w_in(x).chunk(2, dim=-1)  # each (batch, query, d_ff)
        pre, gate = probe("ffn_pre", pre), probe("ffn_gate", gate)
        post = probe("ffn_post", self.activation(gate) * pre)
        return probe("ffn_out", F.dropout(self.w_out(post), self.dropout, self.training))

    def column(self, neuron: int) -> Tensor:
        """What a neuron writes for each unit of `ffn_post`: its column of W2, (d_model,)."""
        return self.w_out.weight[:, neuron]

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return _matrices(config, "gate W_G", "W_1")

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        return _products("gate W_G", "W_1")

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward(
            read=config.d_model, own=4 * config.d_ff
        )  # both halves, the bent gate, their product

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        ffn, wide = (r" + b", " + b") if config.ffn_bias else ("", "")
        return {
            "ffn_in": (
                rf"[\mathrm{{gate}}, u] = x\,[W_G, W_1]{ffn}",
                f"x · [W_G, W₁]{wide}, one product for both",
            ),
            "ffn_gate": (r"\mathrm{gate} = x\,W_G", "the first half of that product: the gate"),
            "ffn_pre": (r"u = x\,W_1", "the second half of that product"),
            "ffn_post": cls.activation_formula,
            "ffn_out": (rf"\mathrm{{out}} = h\,W_2{ffn}", f"h · W₂{wide}"),
        }


class NoFeedForward(nn.Module):
    """No feed-forward network: attention only."""

    present: ClassVar[bool] = False
    title: ClassVar[str] = "No feed-forward network"
    sentence: ClassVar[str] = "No token thinks for itself."
    gated: ClassVar[bool] = False
    exact_zeros: ClassVar[bool] = False
    act: ClassVar[str] = ""

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        raise ShapeError("this model has no feed-forward networks, so nothing is bent")

    def forward(self, x: Tensor, probe: Probe) -> Tensor | None:
        return None

    def column(self, neuron: int) -> Tensor:
        raise ShapeError("this model has no feed-forward networks, so it has no neurons")

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return ()

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        return ()

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward()

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {}


class Relu(FeedForward):
    """max(0, x) (Nair & Hinton 2010)."""

    title: ClassVar[str] = "ReLU"
    act: ClassVar[str] = "relu"
    widths_kept: ClassVar[int] = 1  # its slope can be told from what it gives
    exact_zeros: ClassVar[bool] = True
    activation_formula: ClassVar[Formula] = (r"h = \max(0, u)", "max(0, u)")

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return F.relu(x)


class SquaredRelu(FeedForward):
    """max(0, x)^2 (So et al. 2021)."""

    title: ClassVar[str] = "squared ReLU"
    act: ClassVar[str] = "relu2"
    exact_zeros: ClassVar[bool] = True
    activation_formula: ClassVar[Formula] = (r"h = \max(0, u)^2", "max(0, u)²")

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return relu2(x)


class Gelu(FeedForward):
    """x Φ(x) (Hendrycks & Gimpel 2016)."""

    title: ClassVar[str] = "GELU"
    act: ClassVar[str] = "gelu"
    activation_formula: ClassVar[Formula] = (r"h = u\,\Phi(u)", "u · Φ(u)")

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return F.gelu(x)


class GeluTanh(FeedForward):
    """x Φ(x) in GPT-2's approximation."""

    title: ClassVar[str] = "GELU (tanh)"
    act: ClassVar[str] = "gelu_tanh"
    activation_formula: ClassVar[Formula] = (r"h = u\,\Phi(u) \text{ (tanh form)}", "u · Φ(u), by tanh")

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return gelu_tanh(x)


class SwiGlu(GatedFeedForward):
    """SiLU on the gate (Shazeer 2020)."""

    title: ClassVar[str] = "SwiGLU"
    act: ClassVar[str] = "silu"
    activation_formula: ClassVar[Formula] = (r"h = \mathrm{SiLU}(\mathrm{gate}) \odot u", "SiLU(gate) · u")

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return F.silu(x)


class GeGlu(GatedFeedForward):
    """GELU on the gate (Shazeer 2020)."""

    title: ClassVar[str] = "GEGLU"
    act: ClassVar[str] = "gelu"
    activation_formula: ClassVar[Formula] = (r"h = \mathrm{GELU}(\mathrm{gate}) \odot u", "GELU(gate) · u")

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return F.gelu(x)


class GeGluTanh(GatedFeedForward):
    """GELU on the gate, in GPT-2's approximation (Gemma, T5 1.1)."""

    title: ClassVar[str] = "GEGLU (tanh)"
    act: ClassVar[str] = "gelu_tanh"
    activation_formula: ClassVar[Formula] = (
        r"h = \mathrm{GELU}(\mathrm{gate}) \odot u \text{ (tanh form)}",
        "GELU(gate) · u, by tanh",
    )

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return gelu_tanh(x)
