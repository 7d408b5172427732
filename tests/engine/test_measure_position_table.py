"""A table of positions measured: its path, its neighbours, its first row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from engine.measure.position_table import NEAR, measured, sinusoidal


def line(length: int = 20) -> np.ndarray:
    """Positions on a quarter of a circle, and a third dimension that hardly varies."""
    angle = np.linspace(0, np.pi / 2, length)
    rest = 0.01 * np.random.default_rng(0).standard_normal(length)
    return np.stack((np.cos(angle), np.sin(angle), rest), axis=1).astype(np.float32)


def test_a_path_keeps_what_lies_in_its_plane():
    table = line()
    found = measured(table)
    centred = table - table.mean(0)
    values = np.linalg.svd(centred.astype(np.float64), compute_uv=False) ** 2
    assert found.kept == pytest.approx(values[:2] / values.sum(), abs=1e-6)
    assert found.kept_by_both == pytest.approx(values[:2].sum() / values.sum(), abs=1e-6)
    assert found.kept_by_both > 0.99
    apart = np.linalg.norm(found.path[:, None] - found.path[None], axis=-1)
    assert apart == pytest.approx(np.linalg.norm(table[:, None] - table[None], axis=-1), abs=0.05)
    table[0] *= 3
    found = measured(table)
    pairs = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairwise(table)]
    assert found.neighbours == pytest.approx(np.mean(pairs), abs=1e-5)
    assert found.first_to_median == pytest.approx(3, abs=1e-3)
    noise = np.random.default_rng(1).standard_normal((60, 32)).astype(np.float32)
    assert measured(line()).knows_near and measured(sinusoidal(64, 32)).knows_near
    assert not measured(noise).knows_near and not measured(np.ones((5, 3), np.float32)).knows_near
    assert measured(line()).alike.correlation > NEAR > abs(measured(noise).alike.correlation)
