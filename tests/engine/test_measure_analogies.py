"""Analogies: arithmetic by hand in a small space, and the ranks that are shown."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ShapeError
from engine.measure.analogies import analogy, directions_of
from tests.engine.cases import for_each

RNG = np.random.default_rng(3)
MATRIX = RNG.standard_normal((60, 7)).astype(np.float32) + 0.5


def by_hand(a: int, b: int, c: int) -> np.ndarray:
    """Cosine of every row with b - a + c, in plain loops."""
    centred = MATRIX.astype(float) - MATRIX.astype(float).mean(0)
    unit = [row / np.sqrt(sum(x * x for x in row)) for row in centred]
    total = unit[b] - unit[a] + unit[c]
    return np.array([sum(row * total) / np.sqrt(sum(total * total)) for row in unit])


@for_each(("terms", "expected"), [((1, 2, 3), 4), ((9, 50, 7), 0), ((5, 5, 6), 8)])
def test_the_nearest_and_the_places(terms: tuple[int, int, int], expected: int) -> None:
    near = by_hand(*terms)
    found = analogy(directions_of(MATRIX), terms, expected, 6)
    order = sorted(range(60), key=lambda i: -near[i])
    assert found.ids.tolist() == order[:6]
    assert np.allclose(found.cosine, near[order[:6]], atol=1e-5)
    assert found.rank_of_all == order.index(expected) + 1
    left = [i for i in order if i not in terms]
    assert found.rank == left.index(expected) + 1 and found.nearest == order[0] and found.answer == left[0]
    alone = by_hand(terms[2], terms[2], terms[2])
    others = sorted((i for i in range(60) if i not in terms), key=lambda i: -alone[i])
    assert found.rank_near_c == others.index(expected) + 1
    assert found.holds is (found.rank == 1)
    assert found.needs_arithmetic is (found.rank < found.rank_near_c)


def test_a_space_made_for_it_holds() -> None:
    noise = RNG.standard_normal((20, 8)) * 0.1
    noise[:4, :2] += [[-3, -3], [3, -3], [-3, 3], [3, 3]]
    found = analogy(directions_of(noise), (0, 1, 2), 3, 5)
    assert found.holds and found.answer == 3 and found.needs_arithmetic
    rows = np.array([[1.0, 2.0], [3.0, 2.0], [2.0, 3.0], [2.0, 1.0], [2.0, 2.0]])  # the last is their mean
    known = directions_of(rows)
    assert known.row(4).tolist() == [0, 0] and known.row(1).tolist() == [1, 0]
    assert known.near(np.array([1.0, 0.0])).tolist() == [-1, 1, 0, 0, 0]


@for_each(("terms", "expected"), [((1, 2), 3), ((1, 2, 60), 3), ((1, 2, 3), 2), ((1, 2, 3), -1)])
def test_what_is_no_analogy_is_refused(terms: tuple[int, ...], expected: int) -> None:
    with pytest.raises(ShapeError):
        analogy(directions_of(MATRIX), terms, expected)
