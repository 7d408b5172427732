"""The same small GPT written with other people's parts, trained the way their users train it: eager, fused
AdamW.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ModelConfig


class EncoderGPT(nn.Module):
    """torch.nn.TransformerEncoder with a causal mask: pre-norm, GELU, learned positions, tied."""

    def __init__(self, c: ModelConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.position = nn.Embedding(c.context, c.d_model)
        layer = nn.TransformerEncoderLayer(
            c.d_model,
            c.n_heads,
            4 * c.d_model,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(
            layer, c.n_layers, norm=nn.LayerNorm(c.d_model), enable_nested_tensor=False
        )
        self.register_buffer(
            "mask", nn.Transformer.generate_square_subsequent_mask(c.context), persistent=False
        )

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        x = self.embedding(tokens) + self.position.weight[:length]
        x = self.encoder(x, mask=self.mask[:length, :length].to(x.dtype), is_causal=True)
        return F.linear(x, self.embedding.weight)


def hugging_face(c: ModelConfig) -> nn.Module:
    """transformers' GPT2LMHeadModel of the same size, with its own default attention."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = GPT2Config(
        vocab_size=c.vocab_size,
        n_positions=c.context,
        n_embd=c.d_model,
        n_layer=c.n_layers,
        n_head=c.n_heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        activation_function="gelu",
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPT2LMHeadModel(sizes)

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: Tensor) -> Tensor:
            return self.model(tokens).logits

    return Logits()


class PlainStep:
    """One training step as in a tutorial: forward, cross-entropy, backward, clip, AdamW (fused), and the loss
    read.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        self.model = model.to(dtype)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)

    def __call__(self, inputs: Tensor, targets: Tensor) -> float:
        self.optimiser.zero_grad(set_to_none=True)
        logits = self.model(inputs)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        return loss.item()
