"""The families of published models that this engine's one definition covers, by the name that their files
give.
"""

from __future__ import annotations

from engine.pretrained.decoders import DECODERS
from engine.pretrained.encoders import ENCODERS
from engine.pretrained.family import Family
from engine.pretrained.ggml import GGUF

__all__ = ["GGUF", "HUGGING_FACE", "Family"]

HUGGING_FACE: dict[str, Family] = DECODERS | ENCODERS
