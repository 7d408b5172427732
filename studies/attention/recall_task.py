"""Recall with models whose blocks, all or three of four, have a memory of fixed size in place of attention.

A text is a sequence of pairs, "k v k v ...": a key has the same value wherever it stands in a text, another
in the next text. A model learns the value of each key that has come before (Arora et al. 2023). A token's
vector has its predecessor's added, as the short convolutions of such models give it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ModelConfig, ResolvedConfig
from engine.model import Transformer, build
from engine.parts.attention import Attention
from engine.parts.blocks import PassContext
from engine.training.optim import AdamW

Kind = Literal["attention", "adding", "delta", "hybrid"]
KINDS: tuple[Kind, ...] = ("attention", "hybrid", "adding", "delta")
BLOCKS: dict[Kind, tuple[str, ...]] = {
    "attention": ("attention",) * 4,
    "hybrid": (*("delta",) * 3, "attention"),
    "adding": ("adding",) * 4,
    "delta": ("delta",) * 4,
}
KEYS, LENGTH = 16, 32  # and as many values; pairs of a text
STEPS, BATCH, WARMUP, EVERY = 400, 16, 50, 25
RATE, DECAY, BETAS = 3e-3, 0.01, (0.9, 0.99)
WIDTH, HEADS = 64, (16, 4)  # heads of 4, whose matrices have room for four keys, and of 16
SPREAD = 0.5  # standard deviation of the first vectors


class FixedMemory(Attention):
    """Heads that read one matrix S each instead of all pairs: S + k v^T, or with the delta rule
    S + b k (v - k S)^T with a learned b in (0, 1) for each token and head. Queries and keys have length 1.

    All steps at once (Yang et al. 2024): u = b v - b tril(k k^T, -1) u, read as tril(q k^T) u.
    """

    def __init__(self, config: ResolvedConfig, delta: bool) -> None:
        super().__init__(config)
        self.rate = nn.Linear(config.d_model, config.n_heads) if delta else None

    def forward(self, x: Tensor, context: PassContext) -> Tensor:
        q, k, v = (each.transpose(1, 2) for each in self.heads(x))  # (batch, head, token, d_head)
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        if self.rate is not None:
            rate = self.rate(x).sigmoid().transpose(1, 2)[..., None]  # (batch, head, token, 1)
            earlier = torch.eye(x.shape[1]) + rate * (k @ k.transpose(-1, -2)).tril(-1)
            v = torch.linalg.solve_triangular(earlier, rate * v, upper=False, unitriangular=True)
        read = (q @ k.transpose(-1, -2)).tril() @ v / self.scale
        return self.output(self.merged(read))


def recaller(kind: Kind, heads: int, seed: int) -> Transformer:
    """Builds a model with its initial weights, where a `kind` has fixed memories in its blocks."""
    config = ModelConfig(
        vocab_size=2 * KEYS, context=2 * LENGTH, d_model=WIDTH, n_layers=4, n_heads=heads, position="none"
    )
    model = build(config, seed)
    torch.manual_seed(seed)
    for block, part in zip(model.blocks, BLOCKS[kind], strict=True):
        if part != "attention":
            memory = FixedMemory(model.config, part == "delta")
            memory.load_state_dict(dict(block.get_submodule("mixer").named_parameters()), strict=False)
            block.mixer = memory
    return model


class Before(nn.Module):
    """A token's vector and another one for its predecessor, added."""

    def __init__(self, model: Transformer, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.model = model
        self.here, self.before = (nn.Embedding(2 * KEYS, WIDTH) for _ in range(2))
        for table in (self.here, self.before):
            nn.init.normal_(table.weight, std=SPREAD)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.here(tokens) + F.pad(self.before(tokens)[:, :-1], (0, 0, 1, 0))
        context = PassContext(mask=self.model.mask(tokens.shape[1], x, 0))
        for index, block in enumerate(self.model.blocks):
            x = block(x, context.block(index))
        return self.model.logits(x)


def texts(count: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draws texts (text, 2 LENGTH); which of their pairs have a key that has come before, (text, LENGTH)."""
    values = torch.randint(KEYS, (count, KEYS), generator=draw) + KEYS
    keys = torch.randint(KEYS, (count, LENGTH), generator=draw)
    known = (keys[:, :, None] == keys[:, None, :]).tril(-1).any(-1)
    return torch.stack([keys, values.gather(1, keys)], 2).flatten(1), known


@dataclass(frozen=True)
class Look:
    """How many values of known keys are right, a share, on texts that no training has."""

    step: int
    right: float


def learn(kind: Kind, heads: int, seed: int, steps: int = STEPS) -> Iterator[Look]:
    """Trains a model to recall, and looks at it every EVERY steps and at the end."""
    model, draw = Before(recaller(kind, heads, seed), seed), torch.Generator().manual_seed(seed)
    held_out = texts(64, torch.Generator().manual_seed(10_000 + seed))
    optimiser = AdamW(model.parameters(), RATE, BETAS, DECAY)
    for step in range(1, steps + 1):
        optimiser.rate = RATE * min(1, step / WARMUP) * (1 - (step - 1) / steps)
        read, known = texts(BATCH, draw)
        logits, values = model(read)[:, ::2], read[:, 1::2]
        optimiser.zero_grad()
        F.cross_entropy(logits[known], values[known]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimiser.step()
        if step % EVERY == 0 or step == steps:
            yield Look(step, recalled(model, *held_out))


@torch.inference_mode()
def recalled(model: Before, read: Tensor, known: Tensor) -> float:
    """Returns the share of values of known keys that the model finds likeliest."""
    return float((model(read)[:, ::2].argmax(-1) == read[:, 1::2])[known].float().mean())
