"""T5 in numbers: the paper's own, by hand, and against Hugging Face."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import ShapeError
from engine.measure import t5_buckets
from engine.measure.recording import record
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny


def test_worked_buckets_of_t5():
    found = {b.number: b.words for b in t5_buckets.bucket_ranges(False, 32, 128)}
    assert len(found) == 32
    assert [found[i] for i in (0, 15, 16, 17, 30, 31)] == [
        "0", "-15", "-16 to -18", "-19 to -20", "-99 to -112", "-113 and beyond",
    ]  # fmt: skip
    both = {b.number: b.words for b in t5_buckets.bucket_ranges(True, 32, 128)}
    assert len(both) == 31 and 16 not in both  # later, but at distance 0: there is no such token
    assert [both[i] for i in (7, 8, 15, 17, 24, 31)] == [
        "-7", "-8 to -11", "-91 and beyond", "1", "8 to 11", "91 and beyond",
    ]  # fmt: skip


@for_each("bidirectional", [True, False])
def test_ranges_cover_every_offset_once(bidirectional):
    ranges = t5_buckets.bucket_ranges(bidirectional, 16, 50)
    offsets = np.arange(-300, 301 if bidirectional else 1)
    buckets = t5_buckets.bucket_of(offsets, bidirectional, 16, 50)
    for offset, bucket in zip(offsets.tolist(), buckets, strict=True):
        same_side = [b for b in ranges if (b.first > 0) == (offset > 0) and abs(b.first) <= abs(offset)]
        assert [b.number for b in same_side if b.last is None or abs(offset) <= abs(b.last)] == [bucket]


@for_each("wrong", [(False, 32, 16), (False, 32, 1), (True, 2, 128), (False, 1, 128), (True, 128, 32)])
def test_buckets_without_room_are_refused(wrong):
    with pytest.raises(ShapeError, match="room"):
        t5_buckets.bucket_of(np.arange(3), *wrong)


@for_each("causal", [True, False])
def test_the_learned_bias_is_what_the_model_adds(causal):
    model = loud(tiny(position="t5", causal=causal))
    weight = t5_buckets.t5_weights(model)
    assert weight is not None and weight.shape == (32, 4)
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    for head in range(4):
        q, k = recording["blocks.0.q"][head], recording["blocks.0.k"][head]
        added = recording["blocks.0.scores"][head] - q @ k.T / math.sqrt(model.config.d_head)
        matrix = t5_buckets.t5_matrix(weight, head, len(q), not causal)
        seen = np.isfinite(matrix)
        assert seen.all() != causal and added[seen] == pytest.approx(matrix[seen], abs=1e-4)
    line = t5_buckets.t5_bias(weight, [-3, 0], not causal)
    assert line[2].tolist() == [weight[3, 2], weight[0, 2]]
    assert t5_buckets.t5_weights(loud(tiny(position="rope"))) is None


def test_what_a_learned_bias_favours_and_what_is_unmet():
    x = np.arange(10.0)
    assert t5_buckets.slope_of_learned(np.stack((-0.5 * x + 3, 0 * x)), x) == pytest.approx([-0.5, 0])
    found = t5_buckets.learned_bias(a_bias(), causal=True, context=16)  # distances 0 to 15: a bucket each
    assert found.last == 15 and found.favours.tolist() == [0, 3, 0]
    assert found.alibi_slope[0] == pytest.approx(0.1) and found.alibi_slope[2] == 0
    assert found.spread.tolist() == pytest.approx([1.5, 2.0, 0.0]) and found.loudest == 1
    assert found.factor == pytest.approx(math.exp(2.0))
    assert t5_buckets.learned_bias(a_bias(_0=900.0), True, 16).factor == pytest.approx(math.exp(50))
    weight = a_bias(**{f"_{n}": 7.0 for n in range(16, 32)})
    found = t5_buckets.learned_bias(weight, causal=True, context=16).unmet
    assert (found.buckets, found.distance, found.mean) == (16, 16, 7.0)
    assert found.met_mean == pytest.approx(np.mean([-1.5, 0, 0]))
    both = t5_buckets.learned_bias(np.arange(32.0)[:, None], causal=False, context=64).unmet
    # from 91 on: buckets 15 (before) and 31 (after); 64 to 90 fall into 14 and 30, which begin at 64
    met = {t5_buckets.bucket_of(np.array([o]), True, 32, 128)[0] for o in range(-63, 64)}
    unmet = sorted(set(range(32)) - met - {16})  # 16: later at distance 0, which is no offset
    assert both.buckets == len(unmet) and both.mean == pytest.approx(np.mean(unmet))
    assert t5_buckets.learned_bias(a_bias(), causal=True, context=200).unmet is None
    assert t5_buckets.learned_bias(a_bias(), causal=True, context=1).last == 0


@for_each("bidirectional", [True, False])
@for_each(("buckets", "far"), [(4, 8), (32, 128), (64, 100), (128, 1024)])
def test_what_is_said_of_all_buckets_is_so(bidirectional, buckets, far):
    found = t5_buckets.buckets_of(bidirectional, buckets, far)
    offsets = np.arange(-4 * far, (4 * far if bidirectional else 0) + 1)
    number = t5_buckets.bucket_of(offsets, bidirectional, buckets, far)
    shared = {n for n in number.tolist() if (number == n).sum() > 1}
    alone = [abs(o) for o, n in zip(offsets.tolist(), number.tolist(), strict=True) if n not in shared]
    assert set(range(found.exact)) <= set(alone)
    assert found.unused == buckets - len(set(number.tolist())) == (1 if bidirectional else 0)
    last = number[offsets == offsets.min()][0]
    assert found.open_from == np.abs(offsets[number == last]).min()
    assert len(found.ranges) == len(set(number.tolist()))


def a_bias(**rows: float) -> np.ndarray:
    """(32 buckets, 3 heads): head 0 favours distance 0, head 1 distance 3, head 2 nothing."""
    weight = np.zeros((32, 3), np.float32)
    weight[:, 0] = -np.arange(32) / 10
    weight[3, 1] = 2.0
    for name, value in rows.items():
        weight[int(name[1:])] = value
    return weight
