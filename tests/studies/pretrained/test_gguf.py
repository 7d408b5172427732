"""GGUF files made here, healthy and hostile, and the real one where its package is installed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType

from engine.errors import PretrainedError
from studies.weights.pretrained import gguf
from studies.weights.pretrained.blocks import block_at, kinds
from studies.weights.pretrained.gguf import KINDS
from studies.weights.pretrained.load import open_model
from tests.engine.cases import for_each
from tests.engine.helpers import some_tokens
from tests.studies.pretrained.gguf_files import (
    CONFIG,
    FACTS,
    a_llama,
    llama_file,
    opened_as,
    plain,
    text,
    written,
)


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


@for_each("name", ["F16", "BF16"])
def test_half_precision(name: str, tmp_path: Path) -> None:
    x = np.array([[1.5, -2.0]], dtype=np.float32)
    upper = (x.view(np.uint32) >> 16).astype(np.uint16)
    stored = (x.astype("<f2"), 1, (1, 2)) if name == "F16" else (upper, 30, (1, 2))
    assert gguf.read(written(tmp_path / "a.gguf", {}, {"x": stored})).numbers("x").tolist() == x.tolist()


ONE = {"x": (np.zeros(32, np.float32), 0, (32,))}


@for_each("lies, says", [
    ({"version": 9}, "its version is 9"),
    ({"version": 3 << 24}, "is big-endian"),
    ({"kind": 23}, "type 23 (IQ4_XS)"),
    ({"tensors": 2**60}, "tensors; at most 100,000 are accepted"),
    ({"facts": 2**60}, "facts; at most 10,000 are accepted"),
    ({"tensors": 3}, "is damaged"),
    ({"shape": (2**40,)}, "beyond the end of the file"),
    ({"shape": (2**62, 2**62)}, "beyond the end of the file"),
    ({"shape": (0,)}, "is empty"),
    ({"shape": (1, 1, 1, 1, 1)}, "has 5 axes"),
    ({"offset": 2**62}, "beyond the end of the file"),
    ({"kind": 99}, "quantisation type 99"),
    ({"kind": 8, "shape": (31,)}, "not whole blocks of 32"),
])  # fmt: skip
def test_lies_are_refused(lies: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(PretrainedError) as error:
        gguf.read(written(tmp_path / "a.gguf", {"general.architecture": "llama"}, ONE, **lies))
    assert says in str(error.value) and str(tmp_path) not in str(error.value)


def test_every_cut_is_noticed(tmp_path: Path) -> None:
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


@for_each("facts, says", [
    ({"general.architecture": "falcon"}, "family 'falcon'"),
    ({"llama.block_count": 10**6}, "1,000,000 layers"),
    ({"llama.embedding_length": "32"}, "embedding_length = '32'"),
    ({"llama.attention.head_count": [4, 4]}, "head_count = (4, 4)"),
    ({"llama.rope.scaling.type": "yarn"}, "scales its rotations (llama.rope.scaling.type is 'yarn')"),
    ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}, "scales its rotations"),
    ({"llama.rope.scaling.factor": 4.0}, "scales its rotations"),
    ({"llama.rope.scale_linear": 2.0}, "scales its rotations"),
    ({"llama.expert_count": 8}, "8 experts"),
    ({"split.count": 3, "split.no": 1}, "part 2 of 3"),
    ({"general.type": "adapter"}, "adapter without its base"),
    ({"general.type": "mmproj"}, "general.type is 'mmproj'"),
    ({"llama.block_count": 3}, "lacks the tensor blk.2"),
    ({"llama.feed_forward_length": 45}, "should make"),
])  # fmt: skip
def test_facts_that_do_not_fit(facts: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = llama_file(tmp_path / "a.gguf", facts)
    with pytest.raises(PretrainedError) as error:
        open_model(path).weights()
    assert says in str(error.value)


def test_a_scale_of_1_is_none(tmp_path: Path) -> None:
    plain_one = open_model(llama_file(tmp_path / "plain.gguf"))
    for n, facts in enumerate(
        (
            {"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 8.0},
            {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 1.0, "llama.expert_count": 0},
            {"split.count": 1, "split.no": 0, "general.type": "model"},
        )
    ):
        assert open_model(llama_file(tmp_path / f"{n}.gguf", facts)).config == plain_one.config


def test_factors_of_rotations(tmp_path: Path) -> None:
    _, tensors = a_llama()
    for factors, refused in (([1.0] * 4, False), ([1.0, 1.0, 4.0, 8.0], True)):
        held = tensors | {"rope_freqs.weight": np.array(factors, np.float32)}
        path = written(tmp_path / "a.gguf", FACTS, {name: plain(x) for name, x in held.items()})
        if refused:
            with pytest.raises(PretrainedError, match=r"factors of its own \(rope_freqs\.weight\)"):
                open_model(path)
        else:
            open_model(path).weights()


@for_each("begin, says", [
    (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
    (b"PK\x03\x04" + bytes(40), "pickle"),
    (b"<!DOCTYPE html>" + bytes(40), "web page"),
    (b"tjgg" + bytes(40), "before GGUF"),
])  # fmt: skip
def test_a_file_of_another_kind_is_named(begin: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(begin)
    with pytest.raises(PretrainedError, match=says):
        gguf.read(tmp_path / "a.gguf")


@for_each("kind", ["Q4_0", "Q4_1", "Q8_0"])
def test_a_block_is_the_numbers_that_the_model_has(kind: str, tmp_path: Path) -> None:
    """Rows of q and k, which the file keeps in another order, and of matrices that are stacked here."""
    opened = opened_as(kind, tmp_path)
    weights = opened.weights()
    for name in ("blocks.1.mixer.w_qkv.weight", "blocks.0.ffn.w_in.weight", "embedding"):
        assert set(kinds(opened, name)) == {kind}
        for row, expected in enumerate(weights[name].numpy()):
            found = block_at(opened, name, row, 0)
            assert found is not None and found.kind == kind
            assert np.array_equal(found.numbers, expected)
            assert len(found.raw) == next(size for named, _, size in KINDS.values() if named == kind)


def test_a_block_by_hand_and_what_has_none(tmp_path: Path) -> None:
    opened = opened_as("Q4_1", tmp_path)
    found = block_at(opened, "blocks.0.ffn.w_in.weight", 44, 0)  # the first row below the gate: of ffn_up
    assert found is not None and (found.name, found.row) == ("blk.0.ffn_up.weight", 0)
    d, m = np.frombuffer(found.raw[:4], "<f2")
    assert (found.scale, found.minimum) == (d, m)
    assert found.q[0] == found.raw[4] & 15 and found.q[16] == found.raw[4] >> 4
    assert found.q[15] == found.raw[19] & 15 and found.q[31] == found.raw[19] >> 4
    opened = open_model(llama_file(tmp_path / "a.gguf"))
    assert block_at(opened, "embedding", 0, 0) is None
    assert block_at(opened, "norm_final.gain", 0, 0) is None
    assert kinds(opened, "blocks.0.ffn.w_in.weight") == ("F32", "F32")
    with pytest.raises(PretrainedError, match="no tensor"):
        block_at(opened, "nothing", 0, 0)
    with pytest.raises(PretrainedError, match="no row 88"):
        block_at(opened, "blocks.0.ffn.w_in.weight", 88, 0)
    with pytest.raises(PretrainedError, match="no block 1"):
        block_at(opened_as("Q4_1", tmp_path), "embedding", 0, 1)
