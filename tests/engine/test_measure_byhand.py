"""What is worked out by hand, and which part of a tensor is shown, against sums done here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.measure.byhand import masking, multi_head, one_weight
from engine.measure.mistakes import division
from engine.measure.slices import largest, one_place
from tests.engine.cases import for_each

Q, K, V = [[1, 2, 3, 4]], [[5, 6, 7, 8], [9, 0, 1, 2]], [[1, 0, 0, 1], [0, 1, 1, 0]]


def test_one_weight_by_hand_also_of_a_hidden_key():
    example = multi_head(Q, K, V, 2)
    found = one_weight(example, 1, 0)
    assert found.pairs == ((3, 7), (4, 8)) and found.raw == 53
    assert found.scaled == pytest.approx(53 / math.sqrt(2))
    assert found.seen == pytest.approx((53 / math.sqrt(2), 11 / math.sqrt(2))) and not found.hidden
    assert found.weight == pytest.approx(1 / (1 + math.exp(-42 / math.sqrt(2))))
    other = one_weight(example, 0, 1)
    assert other.pairs == ((1, 9), (2, 0)) and other.raw == 9
    assert other.weight == pytest.approx(1 / (1 + math.exp(8 / math.sqrt(2))))
    example = multi_head(Q, K, V, 2, (0,))
    gone, left = one_weight(example, 0, 0), one_weight(example, 0, 1)
    assert gone.hidden and gone.weight == 0 and not left.hidden and left.weight == 1
    assert gone.seen == left.seen == pytest.approx((9 / math.sqrt(2),))
    example = multi_head([[1, 2, 0.3, 0.4]], K, V, 2)
    largest_each = [max(one_weight(example, h, k).weight for k in (0, 1)) for h in (0, 1)]
    assert largest_each[0] != largest_each[1] and example.most == min(largest_each)
    (one, much), (two, all_) = multi_head(Q, K, V, 2).first
    assert (one, two) == (1, 1)
    assert much == pytest.approx(1 / (1 + math.exp(-8 / math.sqrt(2)))) and all_ == pytest.approx(1)
    assert [key for key, _ in multi_head(Q, K, V, 2, (0,)).first] == [2, 2]


def test_a_mask_after_the_softmax_leaves_less_than_one():
    example = masking([1.0, 2.5, 0.5, 3.0], [3, 0])
    e = [math.exp(x) for x in (1.0, 2.5, 0.5, 3.0)]
    assert example.visible == (1, 2) and example.powers == (2.5, 0.5)
    assert example.total == pytest.approx(e[1] + e[2])
    assert example.kept == pytest.approx((e[1] + e[2]) / sum(e)) == 1 - example.lost
    large = masking([1000.0, 999.0, 0.0], [2])
    assert large.shift == 1000 and large.powers == (0, -1) and large.total == pytest.approx(1 + 1 / math.e)


@for_each("d_model, heads, each, rest, near", [
    (128, 3, 42, 2, (1, 2, 4)), (128, 8, 16, 0, (2, 4, 8)), (7, 5, 1, 2, (1, 7)), (2, 64, 0, 2, (1, 2)),
    (1000, 60, 16, 40, (25, 40, 50)),
])  # fmt: skip
def test_numbers_shared_out_among_heads(d_model, heads, each, rest, near):
    found = division(d_model, heads)
    assert (found.each, found.rest, found.near) == (each, rest, near)
    assert all(d_model % n == 0 for n in near)


def test_one_place_of_an_axis_and_the_size_of_what_is_finite():
    values = np.arange(24.0).reshape(2, 3, 4)
    found, axes = one_place(values, ("query", "head", "d_head"), 1, 2)
    assert axes == ("query", "d_head") and np.array_equal(found, values[:, 2])
    assert largest(np.array([1.0, -3.0, -np.inf, np.nan])) == 3 and largest(np.full(2, -np.inf)) == 0
