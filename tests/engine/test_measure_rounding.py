"""Rounding to few bits, held against ggml's own kinds and against arithmetic on a handful of numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

from engine.measure.rounding import BITS, Rounding, histogram, rounded, taken
from tests.engine.cases import for_each


def weights(rows: int = 7, columns: int = 96, seed: int = 3) -> torch.Tensor:
    found = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.05
    found[2, 40] = 1.5  # one number far out, as real matrices have
    found[3, 32:64] = 0.0  # a block of zeros
    found[4, :32] = -0.25  # a block of equal numbers
    return found


@for_each(("kind", "way"), [("Q8_0", Rounding(8)), ("Q4_1", Rounding(4, offset=True))])
def test_our_blocks_are_ggmls(kind: str, way: Rounding) -> None:
    x = weights()
    named = GGMLQuantizationType[kind]
    expected = dequantize(quantize(x.numpy(), named), named).reshape(x.shape)
    found = rounded(x, way)
    assert np.array_equal(found.values.numpy(), expected)
    assert abs(expected - x.numpy()).max() > 1e-4


def test_the_bytes_of_a_q4_1_block_are_ggmls() -> None:
    x = weights()[:1, :32]
    raw = quantize(x.numpy(), GGMLQuantizationType.Q4_1).ravel()
    found = rounded(x, Rounding(4, offset=True))
    assert found.scale.item() == raw[:2].view("<f2")[0]
    assert found.minimum.item() == raw[2:4].view("<f2")[0]
    assert found.q.ravel().tolist() == [*(raw[4:] & 15), *(raw[4:] >> 4)]


def test_levels_and_what_is_taken_by_hand() -> None:
    x = torch.tensor([[0.7, -0.35, 0.05, -0.04, 0.15, 0.0]])
    found = rounded(x, Rounding(4, block=0))  # d = 0.7 / 7
    assert found.q.ravel().tolist() == [7, -4, 1, 0, 2, 0]  # -3.5 and 0.5 and 1.5 go away from zero
    d = float(np.float16(0.1))
    assert found.values.ravel().tolist() == pytest.approx([7 * d, -4 * d, d, 0, 2 * d, 0])
    assert rounded(x, Rounding(2, block=0)).q.ravel().tolist() == [1, -1, 0, 0, 0, 0]
    x = torch.tensor([[1.0, 1.5, 2.0, 4.0]])
    found = rounded(x, Rounding(2, block=4, offset=True))  # d = 1, m = 1
    assert found.q.ravel().tolist() == [0, 1, 1, 3]
    assert found.values.tolist() == [[1.0, 2.0, 2.0, 4.0]]
    x = torch.tensor([[0.5, -1.0, 0.1, 0.0]])
    found = taken(x, rounded(x, Rounding(2, block=0)))  # 1 (half is rounded up), -1, 0, 0
    assert found.relative == pytest.approx(np.sqrt(0.26 / 1.26))
    assert found.largest == pytest.approx(0.5)
    assert found.zeros == 0.5
    assert found.bits == 2 + 16 / 4
    same = taken(x, None)
    assert (same.relative, same.largest, same.zeros, same.bits) == (0.0, 0.0, 0.25, 32)


def test_the_last_block_of_a_row_may_be_shorter() -> None:
    x = weights(columns=70)
    found = rounded(x, Rounding(3, block=32))
    assert found.q.shape == (7, 3, 32) and found.values.shape == x.shape
    alone = rounded(x[:, 64:], Rounding(3, block=6))
    assert torch.equal(found.values[:, 64:], alone.values)
    x = weights()
    block, whole = (taken(x, rounded(x, Rounding(4, block))) for block in (32, 0))
    assert whole.relative > 2 * block.relative
    assert whole.zeros > 0.8 > block.zeros


@for_each("offset", [False, True])
@for_each("block", [32, 0])
def test_fewer_bits_take_more(block: int, offset: bool) -> None:
    x = weights()
    errors = [taken(x, rounded(x, Rounding(bits, block, offset))).relative for bits in BITS]
    assert errors == sorted(errors) and errors[0] < errors[-1]


def test_a_histogram_counts_all_but_the_outermost() -> None:
    x = weights()
    found = histogram(x, rounded(x, Rounding(2, block=0)))
    assert found.edges[-1] == -found.edges[0] == pytest.approx(np.quantile(np.abs(x.numpy()), 0.999))
    assert found.before.sum() >= 0.998 and len(found.before) == len(found.middles) == 121
    assert found.after[60] == pytest.approx(1 - 1 / x.numel())  # all but the one far out became zero
    assert np.array_equal(histogram(x, None).after, histogram(x, None).before)
