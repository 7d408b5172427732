"""Zips of a tiny model, whole or with other files, for the tests of uploads."""

from __future__ import annotations

import io
import json
import zipfile

import torch
from safetensors.torch import save as save_tensors

from engine.checkpoints import CONFIG, METRICS, TOKENIZER, WEIGHTS
from engine.config import ModelConfig
from engine.data.tokenizers.char import CharTokenizer

LETTERS = CharTokenizer("ab")
TINY = ModelConfig(vocab_size=2, context=8, d_model=8, n_layers=1, n_heads=1)


def zipped(**changes: bytes) -> bytes:
    """A zip of a model whose files may be other ones, so that nothing of its size need be built here."""
    buffer = io.BytesIO()
    plain = {
        WEIGHTS: save_tensors({"embedding": torch.zeros(2, 8)}),
        CONFIG: json.dumps(TINY.to_dict()).encode(),
        TOKENIZER: json.dumps(LETTERS.to_dict()).encode(),
        METRICS: b"{}",
    }
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (plain | {name.replace("__", "."): d for name, d in changes.items()}).items():
            archive.writestr(name, data)
    return buffer.getvalue()
