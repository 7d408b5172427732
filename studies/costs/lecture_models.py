"""Models that a lecture counts and nobody has published: known to the ledger only."""

from __future__ import annotations

from dataclasses import replace

from engine.config import ModelConfig
from engine.presets.preset import Preset
from engine.presets.small import SMALL

_BARE = ModelConfig(
    vocab_size=65,
    d_model=256,
    n_layers=4,
    n_heads=4,
    position="none",
    norm_gain=False,
    output_projection=False,
    tie_embeddings=False,
)

LECTURE_MODELS: dict[str, Preset] = {
    "nanogpt-192": Preset(
        "nanoGPT, 192 wide",
        "6 layers, 6 heads, 192 wide, context 256: nanoGPT's design at laptop size, with untied embeddings.",
        SMALL["nanogpt"].model,
        source="github.com/karpathy/nanoGPT (2022)",
    ),
    "block-512": Preset(
        "One block, 512 wide",
        "d = 512, d_ff = 2,048, 8 heads: matrices without biases, two LayerNorms with gain and bias.",
        ModelConfig(vocab_size=1, context=1, d_model=512, d_ff=2048, n_layers=1, n_heads=8, norm_bias=True),
        source="the block of Vaswani et al. 2017, without its biases",
    ),
    "bare-256": Preset(
        "Bare, 256 wide",
        "V = 65, d = 256, 4 layers, without biases, gains and W_O: 2·V·d + 11·L·d² on the blackboard.",
        _BARE,
        source="the lecture “A step-by-step introduction to transformer models”; no paper",
    ),
    "bare-128": Preset(
        "Bare, 128 wide",
        "V = 65, d = 128, 4 layers, without biases and gains: 2·V·d + 12·L·d² on the blackboard.",
        replace(_BARE, d_model=128, output_projection=True),
        source="the lecture “A step-by-step introduction to transformer models”; no paper",
    ),
    "lab": Preset(
        "The coding lab's model",
        "4 layers, 4 heads, 128 wide, context 128, as the lab builds it: no biases in matrices.",
        SMALL["mini"].model,
        source="the coding lab “Build a Transformer”; no paper",
    ),
}
