"""Cards of the feed-forward networks (`engine.parts.feedforward`)."""

from __future__ import annotations

from typing import ClassVar

from engine.config import ResolvedConfig
from studies.costs.cards import (
    BatchShape,
    Formula,
    PartCard,
    Product,
    SavedForBackward,
    Weight,
    bias_of,
    numbers,
)


class FeedForwardCard(PartCard):
    """Card of a feed-forward network."""

    @classmethod
    def idle(cls, config: ResolvedConfig) -> int:
        """Returns the parameters that a token does not meet: those of experts that are not chosen."""
        return 0


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


class ClampedSwiGluCard(GatedCard):
    title: ClassVar[str] = "SwiGLU, clamped"
    saved_widths: ClassVar[int] = 7  # also both cut off, and the sigmoid
    activation_formula: ClassVar[Formula] = (
        r"h = g\,\sigma(1.702\,g) \odot (u + 1),\; g \le 7,\, |u| \le 7",
        "g · σ(1.702 g) · (u + 1), gate and u cut off at 7",
    )


class GeGluCard(GatedCard):
    title: ClassVar[str] = "GEGLU"
    activation_formula: ClassVar[Formula] = (r"h = \mathrm{GELU}(\mathrm{gate}) \odot u", "GELU(gate) · u")


class GeGluTanhCard(GatedCard):
    title: ClassVar[str] = "GEGLU (tanh)"
    activation_formula: ClassVar[Formula] = (
        r"h = \mathrm{GELU}(\mathrm{gate}) \odot u \text{ (tanh form)}",
        "GELU(gate) · u, by tanh",
    )


class ExpertsCard(PlainCard):
    """Card of a mixture of experts; `table` joins it with the card of its kind of network."""

    network: ClassVar[type[PlainCard]] = PlainCard
    sentence: ClassVar[str] = (
        "Several networks in the place of one: a router sends each token to a few of them, and their outputs"
        " are summed with its weights."
    )

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        count = config.n_experts + config.shared_experts
        router = (
            Weight("router W_R", ("d_model", "n_experts")),
            *bias_of("W_R", config.ffn_bias, "n_experts"),
        )
        balanced = bias_of("the choice of experts", config.balance == "bias", "n_experts")
        each = cls.network.tensors(config)
        return (*router, *balanced, *(Weight(f"{w.name}, experts", (count, *w.shape)) for w in each))

    @classmethod
    def idle(cls, config: ResolvedConfig) -> int:
        each = numbers(cls.network.tensors(config), config)
        return (config.n_experts - config.active_experts) * each

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        each = cls.network.products(config)
        kinds = ("active_experts", "shared_experts") if config.shared_experts else ("active_experts",)
        made = (Product(f"{p.name}, {kind}", (kind, *p.sizes)) for kind in kinds for p in each)
        return (Product("W_R", ("d_model", "n_experts")), *made)

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        rows = config.active_experts + config.shared_experts
        hidden = cls.network.saved(config, run).internal
        return SavedForBackward(config.d_model, rows * (2 * config.d_model + hidden), 2 * config.n_experts)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        act, words = cls.network.activation_formula
        own = {name: formula for name, formula in cls.network.formulas(config).items() if name != "ffn_in"}
        score = r"\mathrm{softmax}" if config.router == "softmax" else r"\sigma"
        name = "softmax" if config.router == "softmax" else "sigmoid"
        return own | {
            "router": (r"r = x\,W_R", "x · W_R: a logit for each expert"),
            "routing": (
                rf"g = \mathrm{{top}}_{{{config.active_experts}}}({score}(r))",
                f"the {config.active_experts} largest of {name}(router), 0 for all others",
            ),
            "ffn_post": (rf"{act} \cdot g", f"({words}) · the weight of its expert"),
            "ffn_out": (r"\mathrm{out} = \sum_e h_e\,W_{2,e}", "h · W₂, summed over the chosen experts"),
        }
