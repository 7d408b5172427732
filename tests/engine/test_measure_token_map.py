"""Tokens as dots: axes of the tokens that were met, a scale that holds still, and what a picture loses."""

from __future__ import annotations

import numpy as np
import pytest

from engine.measure.embeddings import kept_neighbours, neighbours, principal, project
from engine.measure.token_map import (
    JOINED,
    MARGIN,
    FrequencyLinks,
    alike,
    frame,
    frequency_links,
    nearest,
    token_map,
)


def cloud(rows: int = 40, width: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


EVERY = np.arange(40)


def test_rows_that_nothing_has_taught_decide_neither_axes_nor_neighbours():
    taught = cloud(8, 16)
    matrix = np.concatenate((taught, np.full((200, 16), -5, np.float32)))
    ids, cosine = nearest(matrix, 3, np.arange(8), 10)
    alone = neighbours(taught, 3, 10)
    assert ids.tolist() == alone[0].tolist() and np.allclose(cosine, alone[1])
    assert cosine.max() < 0.7 < neighbours(matrix, 3, 1)[1][0]
    seen, own = token_map(matrix, np.arange(8)), token_map(taught, np.arange(8))
    assert np.allclose(seen.scores[:8], own.scores, atol=1e-4) and np.allclose(seen.kept, own.kept)
    assert seen.ranges == own.ranges and seen.overlap == own.overlap
    found, _ = nearest(
        matrix, 100, np.arange(8), 3
    )  # a token that was never met has neighbours among the others
    assert set(found.tolist()) <= set(range(8))


def test_a_map_is_the_projection_on_the_principal_axes_with_a_margin():
    matrix = cloud()
    found, own = token_map(matrix, EVERY), principal(matrix)
    scores, kept = project(matrix, own.axes)
    assert np.allclose(found.scores, scores, atol=1e-5) and np.allclose(found.kept, kept)
    assert found.share(2) == pytest.approx(kept[0] + kept[1]) and found.share(3) == pytest.approx(kept.sum())
    for axis, (low, high) in enumerate(found.ranges):
        width = scores[:, axis].max() - scores[:, axis].min()
        assert low == pytest.approx(scores[:, axis].min() - MARGIN * width, abs=1e-5)
        assert high == pytest.approx(scores[:, axis].max() + MARGIN * width, abs=1e-5)
    assert found.reach == pytest.approx(max(np.sqrt((row**2).sum()) for row in scores), abs=1e-5)
    assert found.overlap == (
        pytest.approx(kept_neighbours(matrix, scores[:, :2], JOINED).mean()),
        pytest.approx(kept_neighbours(matrix, scores, JOINED).mean()),
    )
    assert found.overlap[0] < found.overlap[1]


def test_the_scale_of_the_newest_step_holds_still_and_own_axes_keep_more():
    first, last = cloud() * 0.1, cloud(seed=1)
    newest = frame(last, EVERY)
    at_last = token_map(last, EVERY)
    still, own = token_map(first, EVERY, newest, False), token_map(first, EVERY, newest, True)
    for low, high, (a, b) in zip(newest.low, newest.high, still.ranges, strict=True):
        assert a <= low and b >= high
    assert still.reach == pytest.approx(newest.reach) == pytest.approx(at_last.reach)
    assert own.share(2) > still.share(2)
    assert np.allclose(still.scores, project(first, newest.found.axes)[0], atol=1e-5)
    assert ((own.own.axes * newest.found.axes).sum(1) >= 0).all()  # turned to the same side
    assert np.allclose(token_map(last, EVERY, newest, False).scores, at_last.scores, atol=1e-5)


def test_a_dot_outside_gets_room_and_hits_are_near():
    matrix = np.concatenate((cloud(), np.full((1, 12), 50, np.float32)))
    found = token_map(matrix, EVERY)
    ranges, reach = found.holding(40)
    assert all(low <= at <= high for (low, high), at in zip(ranges, found.scores[40], strict=True))
    assert reach == pytest.approx(np.sqrt((found.scores[40].astype(float) ** 2).sum()))
    assert reach > found.reach
    assert found.holding(0) == (list(found.ranges), found.reach)
    matrix = cloud()
    found = token_map(matrix, EVERY)
    for token in (0, 7, 39):
        near = neighbours(matrix, token, JOINED)[0]
        for count in (2, 3):
            flat = found.scores[:, :count].astype(float)
            away = sorted(
                (i for i in range(40) if i != token), key=lambda i: ((flat[i] - flat[token]) ** 2).sum()
            )
            assert found.hits(token, near, EVERY, count) == len(set(away[:JOINED]) & set(near.tolist()))
    met = np.arange(20)
    inside = token_map(matrix, met)
    assert inside.hits(0, np.arange(30, 36), met, 2) == 0  # no dot, no hit


def test_frequency_is_found_on_the_axis_where_it_lies():
    generator = np.random.default_rng(0)
    frequency = generator.random(40)
    scores = np.stack([generator.random(40), -2 * frequency, generator.random(40)], axis=1)
    matrix = np.ones((40, 4)) * (1 + frequency[:, None])
    found = frequency_links(matrix, scores, frequency, EVERY)
    wanted = [np.corrcoef(scores[:, i], frequency)[0, 1] for i in range(3)]
    assert np.allclose(found.components, wanted) and found.best == 1  # however it is turned
    assert found.lengths == pytest.approx(1)
    some = frequency_links(matrix, scores, frequency, np.arange(10))
    assert some.components[0] == pytest.approx(np.corrcoef(scores[:10, 0], frequency[:10])[0, 1])
    assert FrequencyLinks((float("nan"),) * 3, 0.0).best == 0


def test_how_many_of_the_nearest_are_of_the_same_class():
    classes = np.array([0, 0, 0, 1, 1, 1, 1, 2])
    met = np.arange(7)
    found = alike(classes, 0, np.array([1, 3, 2]), met)
    assert (found.same, found.of) == (2, 3) and found.expected == pytest.approx(3 * 2 / 6)
    assert alike(classes, 7, np.array([1, 3, 2]), met).expected == 0  # no other of its class was met
