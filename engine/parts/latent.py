"""Multi-head latent attention: keys and values of all heads are made of one short vector a token."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.attention import HeadMixer, output_matrix
from engine.parts.parameters import InitialValues

if TYPE_CHECKING:
    from engine.parts.blocks import PassContext

EPS = 1e-6  # of the norms of compressed vectors, whatever the other norms have


class LatentAttention(HeadMixer):
    """Multi-head latent attention, MLA (DeepSeek-AI 2024, 2.1). Keys and values are W_UK c and W_UV c of the
    latent c = norm(W_DKV x); positions turn `d_rotated` more dimensions, whose key is the same for all heads.
    A cache holds c and that key. Queries are compressed too, to `d_query`, where that is not 0.

    Here the turned dimensions of a query or key stand first: (d_rotated | d_head).
    """

    initial_values: ClassVar[InitialValues] = {
        **HeadMixer.initial_values,
        **dict.fromkeys(("w_dq", "w_q", "w_dkv", "w_ukv"), "matrix"),
        "query_gain": 1.0,
        "latent_gain": 1.0,
    }

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.d_latent, self.d_rotated, self.d_query = config.d_latent, config.d_rotated, config.d_query
        wide, biased = self.d_rotated + self.d_head, config.attention_bias
        if config.score_scale:
            self.scale = 1.0 / math.sqrt(wide)
        self.w_dq = nn.Linear(config.d_model, self.d_query, bias=biased) if self.d_query else None
        self.query_gain = nn.Parameter(torch.empty(self.d_query)) if self.d_query else None
        self.w_q = nn.Linear(self.d_query or config.d_model, self.n_heads * wide, bias=False)
        self.w_dkv = nn.Linear(config.d_model, self.d_latent + self.d_rotated, bias=biased)
        self.latent_gain = nn.Parameter(torch.empty(self.d_latent))
        self.w_ukv = nn.Linear(self.d_latent, 2 * self.n_heads * self.d_head, bias=False)
        self.w_o = output_matrix(config, self.n_heads * self.d_head)

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Returns q and k (batch, position, head, d_rotated + d_head), and v (batch, key, head, d_head)."""
        latent, turned = self.compressed(x if memory is None else memory)
        if self.w_dq is not None:
            x = F.rms_norm(self.w_dq(x), (self.d_query,), self.query_gain, EPS)  # -> (batch, query, d_query)
        q = self.w_q(x).unflatten(-1, (self.n_heads, -1))
        return q, *self.expanded(latent, turned)

    def compressed(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Maps x (batch, key, d_model) to the latent (batch, key, d_latent) and the key of all heads that is
        to be turned (batch, key, d_rotated).
        """
        latent, turned = self.w_dkv(x).split([self.d_latent, self.d_rotated], dim=-1)
        return F.rms_norm(latent, (self.d_latent,), self.latent_gain, EPS), turned

    def expanded(self, latent: Tensor, turned: Tensor) -> tuple[Tensor, Tensor]:
        """Maps what `compressed` returns to keys (batch, key, head, d_rotated + d_head) and values (batch,
        key, head, d_head).
        """
        both = self.w_ukv(latent).unflatten(-1, (self.n_heads, -1))  # -> (batch, key, head, 2 d_head)
        k, v = both.chunk(2, dim=-1)
        return torch.cat((turned.unsqueeze(2).expand(-1, -1, self.n_heads, -1), k), -1), v

    def extended(self, k: Tensor, v: Tensor, x: Tensor, context: PassContext) -> tuple[Tensor, Tensor]:
        """Caches the latent and the turned key, and expands those of all positions."""
        if context.cache is None:
            return k, v
        latent = torch.cat((k[:, 0, :, : self.d_rotated], self.compressed(x)[0]), -1).unsqueeze(1)
        cached, _ = context.extend(latent, latent)  # (batch, 1, key, d_rotated + d_latent)
        turned, latent = cached.squeeze(1).split([self.d_rotated, self.d_latent], dim=-1)
        k, v = self.expanded(latent, turned)
        return k.transpose(1, 2), v.transpose(1, 2)  # (batch, key, head, ...) -> (batch, head, key, ...)
