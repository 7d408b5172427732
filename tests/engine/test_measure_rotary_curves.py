"""What is said of RoPE's numbers, against plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.measure.distance import visible
from engine.measure.rotary import layouts
from engine.measure.rotary_curves import (
    decay,
    layout_pattern,
    mean_score,
    score_at,
    some_distances,
    turns_within,
)
from tests.engine.cases import for_each

RANDOM = np.random.default_rng(4)


def turned(x: np.ndarray, position: int, base: float) -> np.ndarray:
    half = len(x) // 2
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * position * base ** (-np.arange(half) / half))
    return np.concatenate((z.real, z.imag))


@for_each("d_rotary", [None, 4])
def test_the_score_and_the_pair_that_says_most(d_rotary):
    q, k = RANDOM.standard_normal(8), RANDOM.standard_normal(8)
    found, width = score_at(q, k, 9, 4, 100.0, d_rotary), d_rotary or 8
    a, b = turned(q[:width], 9, 100.0), turned(k[:width], 4, 100.0)
    terms = (a * b).reshape(2, -1).sum(0)
    assert found.total == pytest.approx(terms.sum() + q[width:] @ k[width:])
    assert found.pair == np.abs(terms).argmax() and found.term == pytest.approx(terms[found.pair])
    angle = np.angle(
        (a[found.pair] + 1j * a[found.pair + width // 2]) / (b[found.pair] + 1j * b[found.pair + width // 2])
    )
    assert found.near == (abs(angle) < math.pi / 2)


def test_the_mean_score_is_the_mean_over_all_pairs_of_tokens():
    q, k = RANDOM.standard_normal((3, 8)), RANDOM.standard_normal((5, 8))
    found = mean_score(q, k, 500.0, np.array([0, 1, 7]))
    for score, distance in zip(found, (0, 1, 7), strict=True):
        pairs = [turned(a, distance + 4, 500.0) @ turned(b, 4, 500.0) for a in q for b in k]
        assert score == pytest.approx(np.mean(pairs) / math.sqrt(8), abs=1e-9)
    part = mean_score(q, k, 500.0, np.array([7]), 4)[0]
    pairs = [turned(a[:4], 7, 500.0) @ b[:4] + a[4:] @ b[4:] for a in q for b in k]
    assert part == pytest.approx(np.mean(pairs) / math.sqrt(8), abs=1e-9)
    assert mean_score(np.ones((1, 16)), np.ones((1, 16)), 100.0, np.array([0]))[0] == pytest.approx(4)


@for_each("reach", [1, 64, 1_000, 1_001, 16_384])
def test_near_distances_are_all_there_and_the_last_is_the_reach(reach):
    found = some_distances(reach)
    assert found[0] == 0 and found[-1] == reach and (np.diff(found) > 0).all() and len(found) <= 2_001
    assert found[: min(reach, 1_000) + 1].tolist() == list(range(min(reach, 1_000) + 1))


def test_a_score_that_falls_and_comes_back():
    found = decay(np.array([0, 1, 2, 4, 8]), np.array([4.0, 3.0, 1.9, 2.5, -1.0]))
    assert (found.start, found.last, found.reach, found.falls) == (4.0, -1.0, 8, True)
    assert found.lowest == (-1.0, 8) and found.highest == (4.0, 0)
    assert found.below_half == 2 and not found.stays
    assert decay(np.array([0, 1, 2]), np.array([4.0, 1.9, 2.0])).stays  # half is not above half
    assert decay(np.array([0, 3]), np.array([4.0, 2.0])).below_half is None
    rises = decay(np.array([0, 5, 6]), np.array([1.0, 3.0, -3.0]))
    assert not rises.falls and rises.below_half is None and not rises.stays and rises.highest == (3.0, 5)
    assert not decay(np.array([0, 1]), np.array([-1.0, -2.0])).falls
    found = turns_within(8, 10_000.0, 63)
    assert found.count == pytest.approx([63 * 10.0**-i / (2 * math.pi) for i in range(4)])
    assert found.incomplete.tolist() == [False, False, True, True] and found.never == 2
    assert found.positions == pytest.approx([2 * math.pi * 10.0**i for i in range(4)])
    assert turns_within(128, 500_000.0, 8_192).never == sum(
        8_192 * 500_000 ** (-i / 64) < 2 * math.pi for i in range(64)
    )


@for_each("causal", [True, False])
@for_each("name", ["half", "wrong"])
def test_a_layout_s_pattern_is_the_softmax_of_its_scores(causal, name):
    found = layouts(RANDOM.standard_normal((5, 4)), RANDOM.standard_normal((5, 4)), 100.0)
    pattern = layout_pattern(found, name, visible(5, causal))
    for i, row in enumerate(getattr(found, name)):
        seen = row[: i + 1] if causal else row
        expected = np.exp(seen) / np.exp(seen).sum()
        assert pattern[i, : len(seen)] == pytest.approx(expected) and (pattern[i, len(seen) :] == 0).all()
