"""Small models of well-known families, of random odd sizes, since equal ones hide mistakes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch

from engine.config import ModelConfig
from engine.model import Transformer, build

_BIASED = {"attention_bias": True, "ffn_bias": True, "norm_bias": True}
_LLAMA = {"norm": "rmsnorm", "ffn": "swiglu", "position": "rope", "tie_embeddings": False}


@dataclass(frozen=True)
class Kind:
    """A family's parts; `grouped` with fewer key heads, `wide` where heads exceed the stream."""

    title: str
    fields: dict[str, Any]
    grouped: bool = False
    wide: bool = False


KINDS: dict[str, Kind] = {
    "llama": Kind("LLaMA", {**_LLAMA}, grouped=True),
    "gpt2": Kind("GPT-2", {"ffn": "gelu_tanh", **_BIASED}),
    "mistral": Kind("Mistral (sliding window)", {**_LLAMA, "window": 5}, grouped=True, wide=True),
    "qwen2": Kind(
        "Qwen2", {**_LLAMA, "attention_bias": True, "output_bias": False, "norm_eps": 1e-6}, grouped=True
    ),
    "neox": Kind("GPT-NeoX, Pythia", {
        "wiring": "parallel", "position": "rope", "rope_fraction": 0.5, "tie_embeddings": False, **_BIASED,
    }),
    "qwen3": Kind("Qwen3", {**_LLAMA, "qk_norm": True, "qk_gain": True}, grouped=True, wide=True),
    "gemma": Kind("Gemma", {
        **_LLAMA, "ffn": "geglu_tanh", "embedding_scale": True, "tie_embeddings": True,
    }, grouped=True),
    "bloom": Kind(
        "BLOOM (ALiBi)", {"position": "alibi", "ffn": "gelu_tanh", "embedding_norm": True, **_BIASED}
    ),
    "bert": Kind("BERT", {
        "wiring": "post", "causal": False, "embedding_norm": True, "token_types": 2, "output_head": "masked",
        "norm_eps": 1e-12, **_BIASED,
    }),
    "encoder": Kind(
        "the original encoder", {"wiring": "post", "position": "sinusoidal", "ffn": "relu", "causal": False}
    ),
    "t5": Kind("T5's encoder", {
        "norm": "rmsnorm", "ffn": "geglu_tanh", "position": "t5", "score_scale": False, "causal": False,
        "output_head": "none",
    }),
}  # fmt: skip
MOST = 999  # the largest seed


@dataclass(frozen=True, eq=False)
class Rolled:
    model: Transformer
    ids: tuple[int, ...]


def roll(kind: str, seed: int) -> Rolled:
    """Builds a model of a family of KINDS, and a text for it; the same for the same seed.

    Matrices are N(0, 1/inputs), so that every part counts; tables are N(0, 0.05), as small as they are before
    a training, so that a wrong ε shows.
    """
    model = build(sizes(kind, seed)).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        drawn = torch.randn(p.shape, generator=generator)
        if name.endswith(("gain", "bias")):
            p.add_(0.05 * drawn)
        else:
            in_block = name.startswith("blocks.")
            p.copy_(drawn / p.shape[1] ** 0.5 if in_block else 0.05 * drawn)
    ids = torch.randint(model.config.vocab_size, (12 + seed % 5,), generator=generator)
    return Rolled(model, tuple(ids.tolist()))


def sizes(kind: str, seed: int) -> ModelConfig:
    """Draws the sizes of a configuration."""
    chance, family = random.Random(seed), KINDS[kind]
    groups = chance.choice((2, 3)) if family.grouped else 1
    kv_heads = chance.choice((2, 3)) if family.grouped else chance.choice((3, 5, 6))
    heads, d_head = groups * kv_heads, chance.choice((8, 12, 20))
    d_model = heads * d_head - (2 * d_head if family.wide else 0)
    return ModelConfig(
        **{
            "vocab_size": chance.randrange(37, 97, 2),
            "context": 23,
            "d_model": d_model,
            "n_layers": chance.choice((2, 3, 5)),
            "n_heads": heads,
            "n_kv_heads": kv_heads,
            "d_head": d_head,
            "d_ff": d_model + chance.randrange(11, 60, 2),
        }
        | family.fields
    ).validate()
