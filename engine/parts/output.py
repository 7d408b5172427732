"""The output: what the last vectors become. A logit for each token of the vocabulary, as a rule."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import Pooling, ResolvedConfig
from engine.parts.cards.norms import LayerNormCard
from engine.parts.costs import BatchShape, Product, SavedForBackward, Weight
from engine.parts.formula import Formula
from engine.parts.initial import InitialValues
from engine.parts.norms import LayerNorm
from engine.probe import Probe


class LinearOutput(nn.Module):
    """x W_U: a logit is the product of the last vector with the token's column of W_U."""

    present: ClassVar[bool] = True
    linear: ClassVar[bool] = True

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        return probe("logits", F.linear(x, matrix))  # (batch, position, d_model) -> (batch, position, vocab)

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        if config.tie_embeddings:
            return (Weight("W_U, which is E", (0,)),)
        return (Weight("W_U", ("d_model", "vocab_size")),)

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        return (Product("logits", ("d_model", "vocab_size")),)

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        # Its input, and the probabilities, which the loss computes in float32.
        return SavedForBackward(read=config.d_model, full=config.vocab_size)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {"logits": (r"\mathrm{logits} = x\,W_U", "x · W_U")}


class ScaledOutput(LinearOutput):
    """x W_U / sqrt(d_model): T5 makes its last vectors smaller where W_U is its embedding, whose numbers are
    large (Raffel et al. 2020; the factor is in its code).
    """

    linear: ClassVar[bool] = False

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        return probe("logits", F.linear(x * matrix.shape[1] ** -0.5, matrix))

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        scaled = (r"x' = \frac{x}{\sqrt{d}}", "x / √d")
        return {"out_scaled": scaled, "logits": (r"\mathrm{logits} = x'\,W_U", "x / √d · W_U")}


class MaskedOutput(nn.Module):
    """LayerNorm(GELU(x W + b)) W_U + b_U: the head with which BERT guesses hidden tokens (Devlin et al. 2018,
    3.1; the layer before W_U is in its code).
    """

    present: ClassVar[bool] = True
    linear: ClassVar[bool] = False
    initial_values: ClassVar[InitialValues] = {"w_in": "matrix", "bias": 0.0}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.w_in = nn.Linear(config.d_model, config.d_model)
        self.norm = LayerNorm(config)
        self.bias = nn.Parameter(torch.empty(config.vocab_size))

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        hidden = probe("out_post", F.gelu(probe("out_pre", self.w_in(x))))  # (batch, position, d_model)
        return probe("logits", F.linear(probe("norm_out", self.norm(hidden)), matrix, self.bias))

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        before = (Weight("W", ("d_model", "d_model")), Weight("bias of W", ("d_model",)))
        bias = Weight("bias of W_U", ("vocab_size",))
        return (*before, *LayerNormCard.tensors(config), *LinearOutput.tensors(config), bias)

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        return (Product("W", ("d_model", "d_model")), *LinearOutput.products(config))

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        bent = SavedForBackward(read=config.d_model, own=config.d_model)  # the input of W, and of GELU
        normed = LayerNormCard.saved(config, run)
        found = LinearOutput.kept(config, run)
        return bent + SavedForBackward(own=normed.read + normed.own + found.read, full=found.full)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {
            "out_pre": (r"u = x\,W + b", "x · W + b"),
            "out_post": (r"h = u\,\Phi(u)", "u · Φ(u)"),
            "norm_out": LayerNormCard.formula(config),
            "logits": (r"\mathrm{logits} = x\,W_U + b_U", "x · W_U + b"),
        }


class FirstPooler(nn.Module):
    """tanh(x_0 W + b): one vector for a whole text, made of its first token's last one, which is put there
    for this (Devlin et al. 2018: [CLS]; the layer is in its code).
    """

    initial_values: ClassVar[InitialValues] = {"w_pool": "matrix"}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.w_pool = nn.Linear(config.d_model, config.d_model)

    def forward(self, x: Tensor, probe: Probe, padding: Tensor | None = None) -> Tensor:
        return probe("pooled", self.w_pool(x[:, 0]).tanh())  # (batch, position, d_model) -> (batch, d_model)

    @classmethod
    def tensors(cls) -> tuple[Weight, ...]:
        matrix = Weight("W_pool, on the first token", ("d_model", "d_model"))
        return matrix, Weight("bias of W_pool", ("d_model",))

    @classmethod
    def products(cls) -> tuple[Product, ...]:
        """Those of a whole text: every token but the first is left out."""
        return (Product("W_pool", ("d_model", "d_model")),)


class MeanPooler(nn.Module):
    """The mean of all last vectors: every token has the same say, padding has none, and there is no layer
    (Reimers & Gurevych 2019, 3: their default). So what is linear in it is a sum over the tokens.
    """

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor, probe: Probe, padding: Tensor | None = None) -> Tensor:
        """`padding` as in engine.parts.masks.padding_mask."""
        if padding is None:
            return probe("pooled", x.mean(dim=1))
        shares = padding[:, 0].softmax(-1)  # (batch, 1, position): alike for tokens, 0 for padding
        return probe("pooled", (shares @ x)[:, 0])

    @classmethod
    def tensors(cls) -> tuple[Weight, ...]:
        return ()

    @classmethod
    def products(cls) -> tuple[Product, ...]:
        return ()


POOLERS: dict[Pooling, type[FirstPooler | MeanPooler]] = {"first": FirstPooler, "mean": MeanPooler}


class NoOutput(nn.Module):
    """No output head: an encoder hands its vectors on, T5's to its decoder, BERT's to a task."""

    present: ClassVar[bool] = False
    linear: ClassVar[bool] = False

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        return x

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
