"""From logits to text: every filtering stage, the draw, generation with and without a KV cache, and beam
search.
"""

from engine.sample.beam import Beam, Node, beam_search, fitting, greedy, sampled
from engine.sample.decoder import Decoder
from engine.sample.generate import Drawn, complete, fill, generate, steps, write
from engine.sample.stages import NAMES, Stage, draw, likeliest, order, stages, uniform, warp

__all__ = [
    "NAMES",
    "Beam",
    "Decoder",
    "Drawn",
    "Node",
    "Stage",
    "beam_search",
    "complete",
    "draw",
    "fill",
    "fitting",
    "generate",
    "greedy",
    "likeliest",
    "order",
    "sampled",
    "stages",
    "steps",
    "uniform",
    "warp",
    "write",
]
