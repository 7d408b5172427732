"""GGUF files made by hand, with or without lies in their headers, and a small LLaMA as such a file names it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from engine.config import ModelConfig
from studies.weights.pretrained.gguf import KINDS
from studies.weights.pretrained.load import Opened, open_model
from tests.engine.helpers import loud

TYPES = {bool: 7, int: 4, float: 6, str: 8}


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(one: Any) -> bytes:
    if isinstance(one, list):
        return struct.pack("<IIQ", 9, TYPES[type(one[0])], len(one)) + b"".join(value(v)[4:] for v in one)
    kind = TYPES[type(one)]
    packed = text(one) if kind == 8 else struct.pack({7: "<?", 4: "<I", 6: "<f"}[kind], one)
    return struct.pack("<I", kind) + packed


def written(
    path: Path,
    facts: dict[str, Any],
    tensors: dict[str, tuple[np.ndarray, int, tuple[int, ...]]],
    /,
    **lies: Any,
) -> Path:
    """A GGUF file: tensors are (bytes, ggml's kind, shape). `lies` replace what its header says."""
    head = b"GGUF" + struct.pack("<I", lies.get("version", 3))
    head += struct.pack("<QQ", lies.get("tensors", len(tensors)), lies.get("facts", len(facts)))
    for name, one in facts.items():
        head += text(name) + value(one)
    body = b""
    for name, (raw, kind, shape) in tensors.items():
        shape = lies.get("shape", shape)
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
        head += struct.pack("<IQ", lies.get("kind", kind), lies.get("offset", len(body)))
        body += raw.tobytes() + bytes(-raw.nbytes % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + body)
    return path


def plain(array: np.ndarray) -> tuple[np.ndarray, int, tuple[int, ...]]:
    return array.astype("<f4"), 0, array.shape


SIZES: dict[str, Any] = {
    "vocab_size": 37,
    "context": 32,
    "d_model": 32,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
}
CONFIG = ModelConfig(**SIZES, d_ff=44, norm="rmsnorm", ffn="swiglu", position="rope")
FACTS = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 32,
    "llama.embedding_length": 32,
    "llama.feed_forward_length": 44,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.vocab_size": 37,
}


def interleaved(x: np.ndarray, heads: int) -> np.ndarray:
    """The rows of q or k as llama.cpp's converter stores them: those that turn together side by side."""
    halves = x.reshape(heads, 2, -1, x.shape[1])  # (head, half, pair, d_model)
    return np.stack([halves[:, 0], halves[:, 1]], axis=2).reshape(x.shape)


def a_llama() -> tuple[torch.nn.Module, dict[str, np.ndarray]]:
    """A model of ours, and its tensors as GGUF names and orders them."""
    model = loud(CONFIG)
    ours = {name: p.detach().numpy() for name, p in model.named_parameters()}
    found = {"token_embd.weight": ours["embedding"], "output_norm.weight": ours["norm_final.gain"]}
    for i in range(CONFIG.n_layers):
        q, k, v = np.split(ours[f"blocks.{i}.mixer.w_qkv.weight"], [32, 48])
        gate, up = np.split(ours[f"blocks.{i}.ffn.w_in.weight"], 2)
        found |= {
            f"blk.{i}.attn_q.weight": interleaved(q, 4),
            f"blk.{i}.attn_k.weight": interleaved(k, 2),
            f"blk.{i}.attn_v.weight": v,
            f"blk.{i}.attn_output.weight": ours[f"blocks.{i}.mixer.w_o.weight"],
            f"blk.{i}.ffn_gate.weight": gate,
            f"blk.{i}.ffn_up.weight": up,
            f"blk.{i}.ffn_down.weight": ours[f"blocks.{i}.ffn.w_out.weight"],
            f"blk.{i}.attn_norm.weight": ours[f"blocks.{i}.norm1.gain"],
            f"blk.{i}.ffn_norm.weight": ours[f"blocks.{i}.norm2.gain"],
        }
    return model, found


def llama_file(path: Path, facts: dict[str, Any] | None = None) -> Path:
    _, tensors = a_llama()
    return written(path, FACTS | (facts or {}), {name: plain(x) for name, x in tensors.items()})


LETTERS = [*"abcdefghijklmnopqrstuvwxyz .,!?", "ab"]  # as byte-level BPE writes them, but for the blank
WORDS = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": [letter.replace(" ", "Ġ") for letter in LETTERS],
    "tokenizer.ggml.merges": ["a b"],
}


NUMBER = {name: number for number, (name, _, _) in KINDS.items()}


def opened_as(kind: str, path: Path) -> Opened:
    """A llama whose matrices with rows of whole blocks are of a kind."""
    _, tensors = a_llama()
    stored = {}
    for name, x in tensors.items():
        if x.ndim == 2 and x.shape[1] % 32 == 0:
            packed = quantize(np.ascontiguousarray(x), GGMLQuantizationType[kind])
            stored[name] = (packed, NUMBER[kind], x.shape)
        else:
            stored[name] = plain(x)
    return open_model(written(path / "a.gguf", FACTS, stored))
