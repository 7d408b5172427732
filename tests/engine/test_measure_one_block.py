"""One block number by number, held against ggml's own bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from engine.errors import ShapeError
from engine.measure.one_block import made, stored
from tests.engine.cases import for_each
from tests.engine.pretrained.test_blocks import opened_as


def test_a_block_of_ours_is_what_ggml_would_store() -> None:
    matrix = torch.randn(3, 96, generator=torch.Generator().manual_seed(1))
    found = made(matrix, 2, 1)
    raw = quantize(matrix[2, 32:64].numpy()[None], GGMLQuantizationType.Q4_1).ravel()
    assert (found.scale, found.minimum) == tuple(raw[:4].view("<f2"))
    assert found.q.tolist() == [*(raw[4:] & 15), *(raw[4:] >> 4)]
    assert np.array_equal(found.original, matrix[2, 32:64].numpy())
    assert found.numbers == pytest.approx(found.q * found.scale + found.minimum, abs=1e-6)
    assert found.largest_error == pytest.approx(abs(found.numbers - found.original).max())
    assert found.largest_error < 0.51 * found.scale
    assert found.bits == 5.0 and (found.low, found.high) == (0, 15)
    assert set(np.round(found.numbers, 5)) <= set(np.round(found.levels, 5)) and len(found.levels) == 16


def test_the_last_block_of_a_row_may_be_shorter() -> None:
    matrix = torch.randn(2, 40, generator=torch.Generator().manual_seed(1))
    found = made(matrix, 1, 1)
    assert found.q.shape == found.numbers.shape == (8,) and found.bits == 4 + 32 / 8
    for row, index in ((2, 0), (0, 2), (-1, 0), (0, -1)):
        with pytest.raises(ShapeError, match="no block"):
            made(matrix, row, index)


@for_each(
    ("kind", "bits", "span"), [("Q4_0", 4.5, (-8, 7)), ("Q4_1", 5.0, (0, 15)), ("Q8_0", 8.5, (-127, 127))]
)
def test_a_block_of_a_file(kind: str, bits: float, span: tuple[int, int], tmp_path: Path) -> None:
    opened = opened_as(kind, tmp_path)
    found = stored(opened, "blocks.1.mixer.w_qkv.weight", 33, 0)  # of the keys
    assert found is not None and found.name == "blk.1.attn_k.weight"
    expected = opened.weights()["blocks.1.mixer.w_qkv.weight"][33].numpy()
    assert np.array_equal(found.numbers, expected)
    assert found.bits == bits and (found.low, found.high) == span
    assert len(found.levels) == span[1] - span[0] + 1
    assert found.original is None and found.largest_error is None
    assert stored(opened, "blocks.1.ffn.w_out.weight", 0, 0) is None  # rows of 44: stored as float32
