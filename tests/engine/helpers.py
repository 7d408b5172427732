"""Small models and texts that the engine's tests share."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.data.corpora import from_text
from engine.data.corpus import Corpus
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY, Parts

TINY = ModelConfig(vocab_size=11, context=8, d_model=16, n_layers=2, n_heads=4, d_ff=24)
VERSE = "".join(
    f"{n} green bottles hanging on the wall; if one should fall there will be {n - 1}.\n"
    for n in range(60, 1, -1)
)


ARCHITECTURES: dict[str, dict[str, Any]] = {
    "learned": {}, "rope": {"position": "rope"}, "alibi": {"position": "alibi"}, "t5": {"position": "t5"},
    "sinusoidal": {"position": "sinusoidal", "norm": "rmsnorm"}, "no position": {"position": "none"},
    "post": {"wiring": "post", "norm_bias": True}, "parallel": {"wiring": "parallel", "position": "rope"},
    "no residual": {"wiring": "none"},
    "grouped, window": {"n_kv_heads": 2, "window": 3, "position": "rope", "attention_bias": True},
    "gated, qk-norm": {"ffn": "swiglu", "norm": "rmsnorm", "qk_norm": True, "position": "rope"},
    "shared qk": {"mixer": "shared_qk", "tie_embeddings": False}, "mean": {"mixer": "mean", "n_layers": 3},
    "no ffn": {"ffn": "none"}, "no mixer": {"mixer": "none"}, "no projection": {"output_projection": False},
    "biases": {"norm_bias": True, "attention_bias": True, "ffn_bias": True},
}  # fmt: skip


def tiny(**fields: Any) -> ModelConfig:
    """TINY with other fields."""
    return ModelConfig(**{**TINY.to_dict(), **fields})


def stepped(steps: Generator[Any, None, Any]) -> tuple[list[Any], Any]:
    """All that it yields, and what it returns."""
    seen = []
    while True:
        try:
            seen.append(next(steps))
        except StopIteration as end:
            return seen, end.value


def loud(config: ModelConfig, seed: int = 0, factor: float = 10.0, parts: Parts = HEALTHY) -> Transformer:
    """A model whose weights are large enough for every part to make a visible difference, in eval mode."""
    return amplified(build(config, seed, parts=parts), seed, factor)


Model = TypeVar("Model", bound=nn.Module)


def amplified(model: Model, seed: int, factor: float) -> Model:
    """The model in eval mode, its matrices times `factor`, its gains and biases moved by chance."""
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


def induction_model(vocab: int = 12, context: int = 24) -> Transformer:
    """Two layers of attention and nothing else, by hand: a head that looks one back, and one of induction."""
    width = max(vocab, context)
    config = ModelConfig(
        vocab_size=vocab, context=context, d_model=4 * width, n_layers=2, n_heads=4, d_head=width,
        norm="none", ffn="none", tie_embeddings=False,
    )  # fmt: skip
    model: Any = build(config).eval().requires_grad_(False)
    token, place, before, copy = (slice(i * width, (i + 1) * width) for i in range(4))
    eye = torch.eye(width)
    for parameter in model.parameters():
        parameter.zero_()
    model.embedding[:, token] = eye[:vocab]
    model.positions.weight[:, place] = eye[:context]
    model.unembedding[:, copy] = eye[:vocab]
    back = torch.roll(eye, -1, dims=0)  # the query of position p is e(p - 1)
    for block, query, (asks, key), writes in zip(
        model.blocks, (back, eye), ((place, place), (token, before)), (before, copy), strict=True
    ):
        w_qkv = block.mixer.w_qkv.weight
        w_qkv[:width, asks] = 400 * query
        w_qkv[4 * width : 5 * width, key] = w_qkv[8 * width : 9 * width, token] = eye
        block.mixer.w_o.weight[writes, :width] = eye
    return model
