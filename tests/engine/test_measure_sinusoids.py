"""Sinusoidal positions against the formula written out, number by number, and against the worked example of
the curriculum.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.measure import sinusoids
from engine.parts.positions import Sinusoidal, sinusoidal_table
from tests.engine.cases import for_each


def by_hand(p: int, dimension: int, width: int, base: float) -> float:
    angle = p / base ** (2 * (dimension // 2) / width)
    return math.cos(angle) if dimension % 2 else math.sin(angle)


@for_each(
    ("width", "base", "start"), [(2, 10_000.0, 0), (8, 10_000.0, 3), (12, 50.0, 100), (6, 1_000_000.0, 511)]
)
def test_the_table_is_the_formula(width, base, start):
    expected = np.array([[by_hand(p, i, width, base) for i in range(width)] for p in range(start, start + 7)])
    assert sinusoidal_table(7, width, base, start).numpy() == pytest.approx(expected, abs=1e-4)
    assert sinusoids.table64(7, width, base, start) == pytest.approx(expected, abs=1e-12)


def test_the_part_adds_the_table_of_base_10000_bit_by_bit():
    part, like = Sinusoidal(ModelConfig(d_model=16, position="sinusoidal")), torch.zeros(1, 5, 16)
    for start in (0, 9):
        assert torch.equal(part.prepare(5, like, start).embed(like), sinusoidal_table(5, 16, 10_000.0, start))


@for_each("k", [-9, 0, 1, 40])
def test_one_matrix_carries_every_position_k_further(k):
    matrix = sinusoids.rotation_matrix(k, 12, 300.0)
    for p in range(10, 30):
        here, there = (np.array([by_hand(x, i, 12, 300.0) for i in range(12)]) for x in (p, p + k))
        assert matrix @ here == pytest.approx(there, abs=1e-12)
    assert matrix @ matrix.T == pytest.approx(np.eye(12), abs=1e-12)  # it keeps lengths
    assert not matrix[np.kron(np.eye(6), np.ones((2, 2))) == 0].any()  # nothing outside the blocks


def test_the_residual_is_rounding_and_would_be_seen_if_it_were_more(monkeypatch):
    for k in (2, -5):
        residual = sinusoids.rotation_residual(64, k, 64)
        assert 0 < residual.float64 < 1e-12 and 1e-8 < residual.float32 < 1e-4
    right = sinusoids.turn
    monkeypatch.setattr(sinusoids, "turn", lambda angle: right(angle).T)  # turned the wrong way
    assert sinusoids.rotation_residual(64, 2, 64).float64 > 0.5


def test_likeness_depends_on_the_distance_alone():
    found = sinusoids.similarity(40, 32, 1_000.0)
    for p, q in ((0, 0), (3, 17), (39, 0)):
        expected = sum(by_hand(p, i, 32, 1_000.0) * by_hand(q, i, 32, 1_000.0) for i in range(32))
        assert found.dots[p, q] == pytest.approx(expected, abs=1e-4)
        assert found.by_distance[abs(p - q)] == pytest.approx(expected, abs=1e-10)
    assert found.deviation < 1e-4 and found.deviation64 < 1e-12
    assert found.by_distance[0] == pytest.approx(16)  # the squared length, d/2
    table = sinusoids.table64(40, 32, 1_000.0)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    assert found.cosines == pytest.approx(unit @ unit.T, abs=1e-5)
    assert found.cosine_by_distance == pytest.approx(unit[0] @ unit.T, abs=1e-10)
    assert found.vector_length == pytest.approx(np.linalg.norm(table[7])) == 4.0
    assert sinusoids.similarity(64, 64).most_alike == 1
    assert sinusoids.similarity(64, 2).most_alike == 44  # one hand: 7 rounds take 43.98 positions
    assert sinusoids.similarity(2, 4).most_alike == 1


@for_each(("width", "base"), [(0, 10.0), (3, 10.0), (-2, 10.0), (4, 0.5), (4, float("nan")), (4, 1e13)])
def test_what_has_no_frequencies_is_refused(width, base):
    with pytest.raises(ConfigError):
        sinusoids.frequencies(width, base)


@for_each(("length", "width", "base"), [(64, 64, 10_000.0), (7, 2, 3.0), (512, 10, 5.0), (6, 4, 2.0)])
def test_waves_that_go_round_within_the_table_are_counted(length, width, base):
    found = sinusoids.waves(length, width, base)
    by_pair = [2 * math.pi * base ** (2 * i / width) for i in range(width // 2)]
    assert found.wavelength == pytest.approx(by_pair)
    assert found.theta == pytest.approx(2 * np.pi / np.array(by_pair))
    assert found.complete == sum(w <= length for w in by_pair)
    assert found.longer == sum(w > length for w in by_pair)
    assert found.ratio == pytest.approx(base ** (2 / width))


@for_each(("p", "k", "pair"), [(5, 2, 8), (0, 7, 0), (30, -30, 3)])
def test_a_turned_pair(p, k, pair):
    found = sinusoids.turned_pair(p, k, pair, 64)
    theta = 10_000 ** (-2 * pair / 64)
    assert found.theta == pytest.approx(theta) and found.angle == pytest.approx(k * theta)
    assert found.end_angle == pytest.approx((p + k) * theta)
    assert found.start == pytest.approx([math.sin(p * theta), math.cos(p * theta)])
    assert found.end == pytest.approx([math.sin((p + k) * theta), math.cos((p + k) * theta)], abs=1e-12)
    assert found.carried == pytest.approx(found.end, abs=1e-12)
    assert found.block == pytest.approx(sinusoids.turn(k * theta))
