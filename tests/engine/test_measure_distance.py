"""ALiBi and T5 in numbers: the papers' own, by hand, and against Hugging Face."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.errors import ShapeError
from engine.measure import distance
from engine.measure.distance import Bucket
from engine.measure.recording import record
from tests.engine.helpers import loud, some_tokens, tiny


def test_the_slopes_of_eight_heads():
    found = distance.slopes(8)
    assert found.slope.tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert np.exp(-found.slope * found.to_a_third) == pytest.approx(np.full(8, 1 / math.e))
    assert np.exp(-found.slope * found.to_a_percent) == pytest.approx(np.full(8, 0.01))
    assert found.to_a_percent[0] == pytest.approx(9.2103, abs=1e-4)


@pytest.mark.parametrize("heads", range(1, 33))
def test_every_number_of_heads_has_as_many_slopes(heads):
    found = distance.slopes(heads, 4.0)
    assert (
        len(found.slope) == heads == len(set(found.slope.tolist()))
        and (found.slope > 0).all()
        and found.slope.max() <= 4.0
    )
    power = 2 ** int(math.log2(heads))
    assert found.slope[:power] == pytest.approx([4 * 2 ** (-8 * (i + 1) / power) for i in range(power)])
    assert set(found.slope[power:]) <= set(distance.slopes(2 * power, 4.0).slope[::2])


@pytest.mark.parametrize("wrong", [(0, 1.0), (-1, 1.0), (4, 0.0), (4, -1.0), (4, float("nan"))])
def test_slopes_of_nothing_are_refused(wrong):
    with pytest.raises(ShapeError, match="head"):
        distance.slopes(*wrong)


def test_the_bias_by_hand():
    bias = distance.alibi_bias(2, 3, 2.0)  # slopes 1/16 and 1/256, doubled
    inf = math.inf
    assert bias[0].tolist() == [[0, -inf, -inf], [-0.125, 0, -inf], [-0.25, -0.125, 0]]
    both = distance.alibi_bias(2, 3, 2.0, causal=False)
    assert both[1].tolist() == [[0, -1 / 128, -2 / 128], [-1 / 128, 0, -1 / 128], [-2 / 128, -1 / 128, 0]]


def test_an_effect_by_hand():
    found = distance.alibi_effect(np.zeros((3, 3)), math.log(2), causal=True)
    assert found.before[2] == pytest.approx([1 / 3, 1 / 3, 1 / 3]) and found.after[2] == pytest.approx(
        [1 / 7, 2 / 7, 4 / 7]
    )
    assert found.before[0].tolist() == [1, 0, 0]
    assert found.distance_before == pytest.approx(
        (0 + 1 / 2 + 1) / 3
    ) and found.distance_after == pytest.approx((0 + 1 / 3 + 4 / 7) / 3)
    free = distance.alibi_effect(np.zeros((2, 2)), math.log(3), causal=False)
    assert free.after == pytest.approx(np.array([[3, 1], [1, 3]]) / 4)


@pytest.mark.parametrize("causal", [True, False])
def test_an_alibi_model_s_pattern_is_the_bare_one_with_its_slope(causal):
    model = loud(tiny(position="alibi", causal=causal))
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    for head in range(4):
        own = distance.own_slope(model.config, head)
        found = distance.alibi_effect(recording["blocks.1.scores"][head], own, causal, own)
        assert found.after == pytest.approx(recording["blocks.1.pattern"][head], abs=1e-5)
        q, k = recording["blocks.1.q"][head], recording["blocks.1.k"][head]
        seen = np.isfinite(found.bare)
        assert found.bare[seen] == pytest.approx((q @ k.T / math.sqrt(model.config.d_head))[seen], abs=1e-4)
    assert distance.own_slope(tiny(position="rope").resolved(), 0) == 0


def test_steeper_slopes_look_nearer():
    model = loud(tiny(position="learned"))
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    before, gentle = distance.distances_of_heads(recording, 0, 1.0)
    same, steep = distance.distances_of_heads(recording, 0, 1000.0)
    assert before.tolist() == same.tolist() and (gentle <= before + 1e-12).all() and (steep < gentle).all()


# T5 ---------------------------------------------------------------------------------------------


def by_hand(offset: int, bidirectional: bool, buckets: int, far: int) -> int:
    """Raffel et al. 2020 in plain Python, one offset at a time."""
    base, gap = 0, max(-offset, 0)
    if bidirectional:
        buckets //= 2
        base, gap = (buckets if offset > 0 else 0), abs(offset)
    exact = buckets // 2
    if gap < exact:
        return base + gap
    return base + min(
        buckets - 1, exact + int(math.log(gap / exact) / math.log(far / exact) * (buckets - exact) + 1e-7)
    )


@pytest.mark.parametrize("buckets", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("far", [64, 128, 1024])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_equal_the_rule_and_hugging_face(buckets, far, bidirectional):
    offsets = np.arange(-1500, 1501)
    ours = distance.bucket_of(offsets, bidirectional, buckets, far)
    assert ours.tolist() == [by_hand(o, bidirectional, buckets, far) for o in offsets.tolist()]
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5", reason="transformers is not installed")
    theirs = t5.T5Attention._relative_position_bucket(torch.from_numpy(offsets), bidirectional, buckets, far)
    assert ours.tolist() == theirs.tolist()


def test_worked_buckets_of_t5():
    found = {b.number: b.words for b in distance.bucket_ranges(False, 32, 128)}
    assert len(found) == 32
    assert [found[i] for i in (0, 15, 16, 17, 30, 31)] == [
        "0",
        "-15",
        "-16 to -18",
        "-19 to -20",
        "-99 to -112",
        "-113 and beyond",
    ]
    both = {b.number: b.words for b in distance.bucket_ranges(True, 32, 128)}
    assert len(both) == 31 and 16 not in both  # later, but at distance 0: there is no such token
    assert [both[i] for i in (7, 8, 15, 17, 24, 31)] == [
        "-7",
        "-8 to -11",
        "-91 and beyond",
        "1",
        "8 to 11",
        "91 and beyond",
    ]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_ranges_cover_every_offset_once(bidirectional):
    ranges = distance.bucket_ranges(bidirectional, 16, 50)
    offsets = np.arange(-300, 301 if bidirectional else 1)
    for offset, bucket in zip(
        offsets.tolist(), distance.bucket_of(offsets, bidirectional, 16, 50).tolist(), strict=True
    ):
        holds = [b.number for b in ranges if inside(b, offset)]
        assert holds == [bucket]


def inside(bucket: Bucket, offset: int) -> bool:
    if (offset > 0) != (bucket.first > 0):
        return False
    return abs(bucket.first) <= abs(offset) and (bucket.last is None or abs(offset) <= abs(bucket.last))


@pytest.mark.parametrize(
    "wrong", [(False, 32, 16), (False, 32, 1), (True, 2, 128), (False, 1, 128), (True, 128, 32)]
)
def test_buckets_without_room_are_refused(wrong):
    with pytest.raises(ShapeError, match="room"):
        distance.bucket_of(np.arange(3), *wrong)


@pytest.mark.parametrize("causal", [True, False])
def test_the_learned_bias_is_what_the_model_adds(causal):
    model = loud(tiny(position="t5", causal=causal))
    weight = distance.t5_weights(model)
    assert weight is not None and weight.shape == (32, 4)
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    for head in range(4):
        q, k = recording["blocks.0.q"][head], recording["blocks.0.k"][head]
        added = recording["blocks.0.scores"][head] - q @ k.T / math.sqrt(model.config.d_head)
        matrix = distance.t5_matrix(weight, head, len(q), not causal)
        seen = np.isfinite(matrix)
        assert seen.all() != causal and added[seen] == pytest.approx(matrix[seen], abs=1e-4)
    line = distance.t5_bias(weight, [-3, 0], not causal)
    assert line[2].tolist() == [weight[3, 2], weight[0, 2]]
    assert distance.t5_weights(loud(tiny(position="rope"))) is None


def test_the_slope_of_a_straight_bias_is_its_own():
    x = np.arange(10.0)
    assert distance.slope_of_learned(np.stack((-0.5 * x + 3, 0 * x)), x) == pytest.approx([-0.5, 0])
