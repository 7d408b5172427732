"""Cards of the output heads and poolers (`engine.parts.output`)."""

from __future__ import annotations

from engine.config import ResolvedConfig
from studies.costs.cards import BatchShape, Formula, PartCard, Product, SavedForBackward, Weight
from studies.costs.cards.norms import LayerNormCard


class OutputCard(PartCard):
    """Card of an output head."""


class PoolerCard:
    """Card of a pooler, counted for a whole text."""

    @classmethod
    def tensors(cls) -> tuple[Weight, ...]:
        return ()

    @classmethod
    def products(cls) -> tuple[Product, ...]:
        return ()


class LinearOutputCard(OutputCard):
    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        if config.tie_embeddings:
            return (Weight("W_U, which is E", (0,)),)
        return (Weight("W_U", ("d_model", "vocab_size")),)

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        return (Product("logits", ("d_model", "vocab_size")),)

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        # Its input, and the probabilities, which the loss computes in float32.
        return SavedForBackward(read=config.d_model, full=config.vocab_size)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {"logits": (r"\mathrm{logits} = x\,W_U", "x · W_U")}


class ScaledOutputCard(LinearOutputCard):
    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        scaled = (r"x' = \frac{x}{\sqrt{d}}", "x / √d")
        return {"out_scaled": scaled, "logits": (r"\mathrm{logits} = x'\,W_U", "x / √d · W_U")}


class MaskedOutputCard(OutputCard):
    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        before = (Weight("W", ("d_model", "d_model")), Weight("bias of W", ("d_model",)))
        bias = Weight("bias of W_U", ("vocab_size",))
        return (*before, *LayerNormCard.tensors(config), *LinearOutputCard.tensors(config), bias)

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        return (Product("W", ("d_model", "d_model")), *LinearOutputCard.products(config))

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        bent = SavedForBackward(read=config.d_model, internal=config.d_model)  # the input of W, and of GELU
        normed = LayerNormCard.saved(config, run)
        logits = LinearOutputCard.saved(config, run)
        return bent + SavedForBackward(internal=normed.read + normed.internal + logits.read, full=logits.full)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {
            "out_pre": (r"u = x\,W + b", "x · W + b"),
            "out_post": (r"h = u\,\Phi(u)", "u · Φ(u)"),
            "norm_out": LayerNormCard.formula(config),
            "logits": (r"\mathrm{logits} = x\,W_U + b_U", "x · W_U + b"),
        }


class FirstPoolerCard(PoolerCard):
    @classmethod
    def tensors(cls) -> tuple[Weight, ...]:
        matrix = Weight("W_pool, on the first token", ("d_model", "d_model"))
        return matrix, Weight("bias of W_pool", ("d_model",))

    @classmethod
    def products(cls) -> tuple[Product, ...]:
        """Returns the product for a whole text: every token but the first is left out."""
        return (Product("W_pool", ("d_model", "d_model")),)


class MeanPoolerCard(PoolerCard):
    pass


class NoOutputCard(OutputCard):
    pass
