"""GGUF files made here, healthy and hostile, and the real one where its package is installed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.errors import PretrainedError
from engine.pretrained import gguf
from engine.pretrained.load import open_model
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens

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
    """A GGUF file: tensors are (bytes, ggml's kind, shape). `lies` replace what the header says of
    counts, shapes and offsets.
    """
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


CONFIG = ModelConfig(
    vocab_size=37,
    context=32,
    d_model=32,
    n_layers=2,
    n_heads=4,
    n_kv_heads=2,
    d_ff=44,
    norm="rmsnorm",
    ffn="swiglu",
    position="rope",
)
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


@torch.no_grad()
def test_a_llama_comes_back(tmp_path: Path) -> None:
    model, tensors = a_llama()
    path = written(tmp_path / "a.gguf", FACTS, {name: plain(x) for name, x in tensors.items()})
    found = open_model(path).model()
    tokens = some_tokens(CONFIG, batch=2, length=11)
    assert torch.allclose(found(tokens), model(tokens), atol=1e-6)


def test_an_output_matrix_of_its_own_is_taken(tmp_path: Path) -> None:
    _, tensors = a_llama()
    tensors["output.weight"] = tensors["token_embd.weight"] + 1
    path = written(tmp_path / "a.gguf", FACTS, {name: plain(x) for name, x in tensors.items()})
    opened = open_model(path)
    assert not opened.config.tie_embeddings
    weights = opened.weights()
    assert torch.equal(weights["unembedding"], weights["embedding"] + 1)


@for_each("kind", [k for k, (_, block, _) in gguf.KINDS.items() if block > 1])
def test_blocks_of_quantised_numbers(kind: int, tmp_path: Path) -> None:
    """As `gguf` itself takes them apart; the formula of the simplest two is written out below."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    name, block, size = gguf.KINDS[kind]
    assert GGMLQuantizationType[name].value == kind
    # small: scales stay finite
    raw = np.random.default_rng(kind).integers(0, 60, (3 * 2, size), dtype=np.uint8)
    path = written(tmp_path / "a.gguf", {}, {"x": (raw, kind, (3, 2 * block))})
    file = gguf.read(path)
    assert file.stored["x"].bits == 8 * size / block
    expected = dequantize(raw, GGMLQuantizationType[name]).reshape(3, 2 * block)
    assert np.array_equal(file.numbers("x"), expected.astype(np.float32))


def test_q8_0_and_q4_1_by_hand(tmp_path: Path) -> None:
    """Q8_0: scale times byte. Q4_1: scale times four bits, plus the least; the low halves of the bytes
    come first.
    """
    scale, least = np.float16(0.5), np.float16(-3)
    eight = scale.tobytes() + np.arange(-16, 16, dtype=np.int8).tobytes()
    nibbles = np.arange(16, dtype=np.uint8) | (np.arange(16, dtype=np.uint8)[::-1] << 4)
    four = scale.tobytes() + least.tobytes() + nibbles.tobytes()
    path = written(
        tmp_path / "a.gguf",
        {},
        {"e": (np.frombuffer(eight, np.uint8), 8, (1, 32)), "f": (np.frombuffer(four, np.uint8), 3, (1, 32))},
    )
    file = gguf.read(path)
    assert file.numbers("e")[0].tolist() == [0.5 * i for i in range(-16, 16)]
    assert file.numbers("f")[0].tolist() == [0.5 * i - 3 for i in [*range(16), *range(15, -1, -1)]]


def test_half_precision(tmp_path: Path) -> None:
    x = np.array([[1.5, -2.0]], dtype=np.float32)
    upper = (x.view(np.uint32) >> 16).astype(np.uint16)
    path = written(tmp_path / "a.gguf", {}, {"h": (x.astype("<f2"), 1, (1, 2)), "b": (upper, 30, (1, 2))})
    file = gguf.read(path)
    assert file.numbers("h").tolist() == file.numbers("b").tolist() == x.tolist()


ONE = {"x": (np.zeros(32, np.float32), 0, (32,))}


@for_each(
    "lies, says",
    [
        ({"version": 9}, "its version is 9"),
        ({"tensors": 2**60}, "tensors; 100,000 are believed"),
        ({"facts": 2**60}, "facts; 10,000 are believed"),
        ({"tensors": 3}, "is damaged"),
        ({"shape": (2**40,)}, "beyond the end of the file"),
        ({"shape": (2**62, 2**62)}, "beyond the end of the file"),
        ({"shape": (0,)}, "is empty"),
        ({"shape": (1, 1, 1, 1, 1)}, "has 5 axes"),
        ({"offset": 2**62}, "beyond the end of the file"),
        ({"kind": 99}, "ggml's way 99"),
        ({"kind": 8, "shape": (31,)}, "no whole blocks of 32"),
    ],
)
def test_lies_are_refused(lies: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(PretrainedError) as error:
        gguf.read(written(tmp_path / "a.gguf", {"general.architecture": "llama"}, ONE, **lies))
    assert says in str(error.value) and str(tmp_path) not in str(error.value)


@for_each("data", [b"", b"GG", b"GGUF", b"PK\x03\x04" + bytes(100), b"GGUF\x00\x00\x00\x03" + bytes(90)])
def test_what_is_no_gguf(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(data)
    with pytest.raises(PretrainedError):
        gguf.read(tmp_path / "a.gguf")


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    """Wherever a download ended, the file is refused when it is opened, and nothing large is made of it."""
    whole = written(tmp_path / "a.gguf", {"general.name": "x", "list": ["a", "b"]}, ONE).read_bytes()
    for end in range(0, len(whole) - 1, 7):
        (tmp_path / "cut.gguf").write_bytes(whole[:end])
        with pytest.raises(PretrainedError):
            gguf.read(tmp_path / "cut.gguf")


@for_each("inner", [8, 9, 4, 77])
def test_arrays_that_lie(inner: int, tmp_path: Path) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("list") + struct.pack("<IIQ", 9, inner, 2**50)
    (tmp_path / "a.gguf").write_bytes(head + bytes(64))
    with pytest.raises(PretrainedError):
        gguf.read(tmp_path / "a.gguf")


@for_each(
    "facts, says",
    [
        ({"general.architecture": "falcon"}, "family 'falcon'"),
        ({"llama.block_count": 10**6}, "1,000,000 layers"),
        ({"llama.embedding_length": "32"}, "embedding_length = '32'"),
        ({"llama.attention.head_count": [4, 4]}, "head_count = (4, 4)"),
        ({"llama.rope.scaling.type": "yarn"}, "scales its rotations"),
        ({"llama.block_count": 3}, "lacks the tensor blk.2"),
        ({"llama.feed_forward_length": 45}, "should make"),
    ],
)
def test_facts_that_do_not_fit(facts: dict[str, Any], says: str, tmp_path: Path) -> None:
    _, tensors = a_llama()
    path = written(tmp_path / "a.gguf", FACTS | facts, {name: plain(x) for name, x in tensors.items()})
    with pytest.raises(PretrainedError) as error:
        open_model(path).weights()
    assert says in str(error.value)
