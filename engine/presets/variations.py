"""Changes to the Transformer since 2017, choice by choice."""

from __future__ import annotations

from engine.config import ModelConfig
from engine.presets.preset import Preset
from engine.presets.published import ENCODER_DECODERS, PUBLISHED

# The base model of Vaswani et al. 2017 (table 3), seen as one stack: sizes, and the six choices below.
ORIGINAL = ModelConfig(
    vocab_size=37_000,
    context=512,
    d_model=512,
    n_layers=6,
    n_heads=8,
    d_ff=2048,
    norm="layernorm",
    wiring="post",
    position="sinusoidal",
    ffn="relu",
    tie_embeddings=True,
    attention_bias=False,
    ffn_bias=True,
    norm_bias=True,
    dropout=0.1,
)
# The models of the table of variations, in the order of their years.
MODELS: dict[str, Preset] = {
    name: (PUBLISHED | ENCODER_DECODERS)[name]
    for name in (
        *("transformer-base", "bert-base", "gpt2", "t5-base", "gpt3-175b", "llama2-7b", "llama2-70b"),
        *("pythia-70m", "mistral-7b", "gemma-2b", "llama3-8b", "qwen2.5-0.5b", "smollm2-135m"),
    )
}
ASPECTS = ("norm", "wiring", "position", "ffn", "heads", "tying")


def variation(config: ModelConfig) -> dict[str, str]:
    """Returns a model's choice at each of ASPECTS: a value of the configuration's field, for the last two a
    word.

    `heads` is "own" where each query head has a key head (Vaswani et al. 2017), "grouped" (Ainslie et al.
    2023) or "one" (Shazeer 2019); `tying` is "tied" (Press & Wolf 2017) or "untied".
    """
    c = config.resolved()
    heads = "own" if c.n_kv_heads == c.n_heads else "one" if c.n_kv_heads == 1 else "grouped"
    return {
        "norm": c.norm,
        "wiring": c.wiring,
        "position": c.position,
        "ffn": c.ffn,
        "heads": heads,
        "tying": "tied" if c.tie_embeddings else "untied",
    }


def unchanged_aspects(config: ModelConfig) -> tuple[str, ...]:
    """Returns those of ASPECTS at which a model does what the original did."""
    first, present = variation(ORIGINAL), variation(config)
    return tuple(aspect for aspect in ASPECTS if present[aspect] == first[aspect])
