"""From logits to text: filtering stages, the draw, generation with and without a KV cache, beam search."""

from engine.sample.decoder import Decoder
from engine.sample.generate import Drawn, complete, fill, generate, steps
from engine.sample.stages import NAMES, Stage, draw, likeliest, order, stages, uniform, warp

__all__ = [
    "NAMES", "Decoder", "Drawn", "Stage", "complete", "draw", "fill", "generate", "likeliest", "order",
    "stages", "steps", "uniform", "warp",
]  # fmt: skip
