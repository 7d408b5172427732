"""Small models and texts that the engine's tests share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.corpora import Corpus, from_text
from engine.model import Transformer, build

TINY = ModelConfig(vocab_size=11, context=8, d_model=16, n_layers=2, n_heads=4, d_ff=24)
VERSE = "".join(
    f"{n} green bottles hanging on the wall; if one should fall there will be {n - 1}.\n"
    for n in range(60, 1, -1)
)


def tiny(**fields: Any) -> ModelConfig:
    """TINY with other fields."""
    return ModelConfig(**{**TINY.to_dict(), **fields})


def loud(config: ModelConfig, seed: int = 0, factor: float = 10.0) -> Transformer:
    """A model whose weights are large enough for every part to make a visible difference, in eval mode."""
    model = build(config, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("gain", "bias")):
                parameter.add_(torch.empty(parameter.shape).normal_(0, 0.3, generator=generator))
            else:
                parameter.mul_(factor)
    return model.eval()


def some_tokens(config: ModelConfig, batch: int = 2, length: int = 6, seed: int = 0) -> Tensor:
    """(batch, length) int64, drawn from the vocabulary."""
    return torch.randint(config.vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))


def verse() -> Corpus:
    """A text of a few thousand characters that a tiny model learns at once."""
    return from_text(VERSE, "verse")
