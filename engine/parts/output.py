"""The output: what the last vectors become. A logit for each token of the vocabulary, as a rule."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import Pooling, ResolvedConfig
from engine.parts.norms import LayerNorm
from engine.parts.parameters import InitialValues
from engine.probe import Probe


class Output(nn.Module):
    """Base of the output heads."""

    present: ClassVar[bool] = True  # False: there are no logits, and the model hands its vectors on
    linear: ClassVar[bool] = False  # logits are the product with W_U, and nothing else

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        """Maps x (batch, query, d_model), by W_U^T (vocab, d_model), to logits (batch, query, vocab); x where
        there are none.
        """
        raise NotImplementedError


class LinearOutput(Output):
    """x W_U: a logit is the product of the last vector with the token's column of W_U."""

    linear: ClassVar[bool] = True

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        return probe("logits", F.linear(x, matrix))  # (batch, position, d_model) -> (batch, position, vocab)


class ScaledOutput(Output):
    """x W_U / sqrt(d_model): T5 makes its last vectors smaller where W_U is its embedding, whose numbers are
    large (Raffel et al. 2020; the factor is in its code).
    """

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        # (batch, position, d_model) -> (batch, position, vocab)
        return probe("logits", F.linear(x * matrix.shape[1] ** -0.5, matrix))


class MaskedOutput(Output):
    """LayerNorm(GELU(x W + b)) W_U + b_U: the head with which BERT guesses hidden tokens (Devlin et al. 2018,
    3.1; the layer before W_U is in its code).
    """

    initial_values: ClassVar[InitialValues] = {"w_in": "matrix", "bias": 0.0}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.w_in = nn.Linear(config.d_model, config.d_model)
        self.norm = LayerNorm(config)
        self.bias = nn.Parameter(torch.empty(config.vocab_size))

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        hidden = probe("out_post", F.gelu(probe("out_pre", self.w_in(x))))  # (batch, position, d_model)
        # (batch, position, d_model) -> (batch, position, vocab)
        return probe("logits", F.linear(probe("norm_out", self.norm(hidden)), matrix, self.bias))


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


class MeanPooler(nn.Module):
    """The mean of all last vectors: every token has the same say, padding has none, and there is no layer
    (Reimers & Gurevych 2019, 3: their default). So what is linear in it is a sum over the tokens.
    """

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor, probe: Probe, padding: Tensor | None = None) -> Tensor:
        """Averages x over the tokens, (batch, d_model); `padding` as in `padding_mask` of attention."""
        if padding is None:
            return probe("pooled", x.mean(dim=1))
        shares = padding[:, 0].softmax(-1)  # (batch, 1, position): alike for tokens, 0 for padding
        return probe("pooled", (shares @ x)[:, 0])  # (batch, 1, position) @ x -> (batch, d_model)


POOLERS: dict[Pooling, type[FirstPooler | MeanPooler]] = {"first": FirstPooler, "mean": MeanPooler}


class NoOutput(Output):
    """No output head: an encoder hands its vectors on, T5's to its decoder, BERT's to a task."""

    present: ClassVar[bool] = False

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        return x
