"""Cards of the feed-forward networks (`engine.parts.feedforward`)."""

from __future__ import annotations

from typing import ClassVar

from engine.config import ResolvedConfig
from studies.costs.cards import BatchShape, Formula, PartCard, Product, SavedForBackward, Weight, bias_of


class FeedForwardCard(PartCard):
    """Card of a feed-forward network."""


class PlainCard(FeedForwardCard):
    title: ClassVar[str] = "Feed-forward"
    sentence: ClassVar[str] = (
        "Applied to each position separately: its vector is widened, passed through a nonlinearity, and"
        " narrowed"
        " again. No"
        " token sees another here."
    )
    activation_formula: ClassVar[Formula] = ("", "")  # what `activation` does
    saved_widths: ClassVar[int] = 2  # vectors of d_ff that backward needs: what is bent, and what comes of it
    matrices: ClassVar[tuple[str, ...]] = ("W_1",)  # those that read the stream

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        rows: list[Weight] = []
        for name in cls.matrices:
            rows += [Weight(name, ("d_model", "d_ff")), *bias_of(name.split()[-1], config.ffn_bias, "d_ff")]
        return (*rows, Weight("W_2", ("d_ff", "d_model")), *bias_of("W_2", config.ffn_bias, "d_model"))

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        read = (Product(name, ("d_model", "d_ff")) for name in cls.matrices)
        return (*read, Product("W_2", ("d_ff", "d_model")))

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward(read=config.d_model, internal=cls.saved_widths * config.d_ff)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias = " + b" if config.ffn_bias else ""
        return {
            "ffn_pre": (rf"u = x\,W_1{bias}", f"x · W₁{bias}"),
            "ffn_post": cls.activation_formula,
            "ffn_out": (rf"\mathrm{{out}} = h\,W_2{bias}", f"h · W₂{bias}"),
        }


class GatedCard(PlainCard):
    title: ClassVar[str] = "Gated feed-forward"
    sentence: ClassVar[str] = (
        "Applied to each position separately: one half of the widened vector decides how much of the other"
        " passes,"
        " then it is narrowed again."
    )
    saved_widths: ClassVar[int] = 4  # both halves, the bent gate, their product
    matrices: ClassVar[tuple[str, ...]] = ("gate W_G", "W_1")

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias = " + b" if config.ffn_bias else ""
        return {
            "ffn_in": (
                rf"[\mathrm{{gate}}, u] = x\,[W_G, W_1]{bias}",
                f"x · [W_G, W₁]{bias}, one product for both",
            ),
            "ffn_gate": (r"\mathrm{gate} = x\,W_G", "the first half of that product: the gate"),
            "ffn_pre": (r"u = x\,W_1", "the second half of that product"),
            "ffn_post": cls.activation_formula,
            "ffn_out": (rf"\mathrm{{out}} = h\,W_2{bias}", f"h · W₂{bias}"),
        }


class NoFeedForwardCard(FeedForwardCard):
    title: ClassVar[str] = "No feed-forward network"
    sentence: ClassVar[str] = "No feed-forward network: nothing is computed per token."


class ReluCard(PlainCard):
    title: ClassVar[str] = "ReLU"
    saved_widths: ClassVar[int] = 1  # its slope can be told from what it gives
    activation_formula: ClassVar[Formula] = (r"h = \max(0, u)", "max(0, u)")


class SquaredReluCard(PlainCard):
    title: ClassVar[str] = "squared ReLU"
    activation_formula: ClassVar[Formula] = (r"h = \max(0, u)^2", "max(0, u)²")


class GeluCard(PlainCard):
    title: ClassVar[str] = "GELU"
    activation_formula: ClassVar[Formula] = (r"h = u\,\Phi(u)", "u · Φ(u)")


class GeluTanhCard(PlainCard):
    title: ClassVar[str] = "GELU (tanh)"
    activation_formula: ClassVar[Formula] = (r"h = u\,\Phi(u) \text{ (tanh form)}", "u · Φ(u), by tanh")


class SwiGluCard(GatedCard):
    title: ClassVar[str] = "SwiGLU"
    activation_formula: ClassVar[Formula] = (r"h = \mathrm{SiLU}(\mathrm{gate}) \odot u", "SiLU(gate) · u")


class GeGluCard(GatedCard):
    title: ClassVar[str] = "GEGLU"
    activation_formula: ClassVar[Formula] = (r"h = \mathrm{GELU}(\mathrm{gate}) \odot u", "GELU(gate) · u")


class GeGluTanhCard(GatedCard):
    title: ClassVar[str] = "GEGLU (tanh)"
    activation_formula: ClassVar[Formula] = (
        r"h = \mathrm{GELU}(\mathrm{gate}) \odot u \text{ (tanh form)}",
        "GELU(gate) · u, by tanh",
    )
