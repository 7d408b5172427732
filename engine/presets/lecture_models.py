"""Models that a lecture counts and nobody has published: known to the ledger only."""

from __future__ import annotations

from dataclasses import replace

from engine.config import ModelConfig
from engine.presets.preset import Preset
from engine.presets.small import SMALL

_LAB = replace(SMALL["mini"].model, attention_bias=False, ffn_bias=False)  # the norms keep their biases
_NANO = ModelConfig(
    vocab_size=65,
    context=256,
    d_model=192,
    n_layers=6,
    n_heads=6,
    ffn="gelu",
    tie_embeddings=False,
    attention_bias=True,
    ffn_bias=True,
    norm_bias=True,
)

LECTURE_MODELS: dict[str, Preset] = {
    "nanogpt-192": Preset(
        "nanoGPT, 192 wide",
        "6 layers, 6 heads, 192 wide, 256 characters at once: nanoGPT's design at a laptop's size, with a"
        " matrix of its own for the output.",
        _NANO,
        source="after github.com/karpathy/nanoGPT (2022)",
    ),
    "lab": Preset(
        "The lab's own model",
        "4 layers, 4 heads, 128 wide, 128 characters at once: the model that the course's lab builds, whose"
        " matrices have no biases.",
        _LAB,
        source="the lab that this app goes with (2026); no paper",
    ),
}
