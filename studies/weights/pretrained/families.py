"""The families of published models that are built here, by the names that their files give."""

from __future__ import annotations

from engine.config import ModelConfig
from studies.pairs.config import Seq2SeqConfig
from studies.weights.pretrained import t5
from studies.weights.pretrained.decoders import DECODERS
from studies.weights.pretrained.encoders import ENCODERS
from studies.weights.pretrained.family import Family
from studies.weights.pretrained.ggml import GGUF

__all__ = ["GGUF", "HUGGING_FACE", "PAIRS", "Family"]

HUGGING_FACE: dict[str, Family[ModelConfig]] = DECODERS | ENCODERS

PAIRS: dict[str, Family[Seq2SeqConfig]] = {  # read whole: an encoder, and a decoder that looks at it
    "t5": Family(t5.pair_config, t5.pair_pieces, t5.pair_ignored, t5.pair_copies)
}
