"""The embedding as a table: the lookup, its axes, its neighbours, against independent references."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from engine.config import ModelConfig
from engine.errors import ShapeError
from engine.measure import embeddings as measured
from engine.measure.analogies import analogy, directions_of
from engine.measure.embeddings import kept_neighbours, neighbours, principal, project
from engine.measure.position_table import NEAR, alike, learned_table, sinusoidal
from engine.measure.position_table import measured as of_table
from engine.measure.recording import record
from engine.measure.token_map import (
    JOINED,
    MARGIN,
    FrequencyLinks,
    frame,
    frequency_links,
    nearest,
    token_map,
)
from engine.measure.token_map import alike as same_class
from engine.model import build
from tests.engine.cases import for_each

SMALL = {"vocab_size": 11, "context": 16, "d_model": 8, "n_layers": 1, "n_heads": 2}


def cloud(rows: int = 40, width: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


@for_each("position", ["none", "learned", "sinusoidal", "rope", "alibi", "t5"])
def test_the_lookup_is_a_product_with_one_hot_rows_and_positions_are_then_added(position):
    model = build(ModelConfig(**SMALL, position=position))
    ids = (3, 3, 0, 10)
    found = measured.lookup(model, record(model, ids))
    matrix = model.embedding.detach().numpy()
    assert np.array_equal(found.rows, matrix[list(ids)]) and np.array_equal(found.rows[0], found.rows[1])
    assert found.one_hot_difference < 1e-6 and found.sum_difference < 1e-6
    assert (found.added is not None) == (position in ("learned", "sinusoidal"))
    if found.added is not None:
        assert not np.array_equal(found.entered[0], found.entered[1])  # the same token, at two places
        assert np.allclose(found.entered, found.rows + found.added)
    else:
        assert np.array_equal(found.entered, found.rows)


def test_the_lookup_counts_rows_parameters_and_multiplications():
    ids = (3, 3, 0, 10)
    for position in ("learned", "rope"):
        model = build(ModelConfig(**SMALL, position=position))
        found = measured.lookup(model, record(model, ids))
        assert (found.different, found.parameters, found.multiplications) == (3, 11 * 8, 4 * 11 * 8)
        assert [found.places(i) for i in range(4)] == [2, 2, 1, 1]
        matrix = model.embedding.detach().numpy()
        lengths = [float(np.sqrt((matrix[i] ** 2).sum())) for i in ids]
        parts = found.at(1)
        assert np.array_equal(parts[0][0], matrix[3]) and parts[0][1] == pytest.approx(lengths[1])
        if position == "rope":
            assert len(parts) == 1 and found.mean_lengths is None
            continue
        table = model.positions.weight.detach().numpy()
        assert np.array_equal(parts[1][0], table[1]) and np.allclose(parts[2][0], matrix[3] + table[1])
        assert [length for _, length in parts[1:]] == pytest.approx(
            [np.sqrt((table[1] ** 2).sum()), np.sqrt(((matrix[3] + table[1]) ** 2).sum())]
        )
        added = [float(np.sqrt((row**2).sum())) for row in table[:4]]
        assert found.mean_lengths == (pytest.approx(np.mean(lengths)), pytest.approx(np.mean(added)))


def test_the_checks_of_the_lookup_find_what_is_wrong():
    """A recording that is not the model's: the rows differ from the product, and the sum from what is read."""
    model = build(ModelConfig(**SMALL, position="learned"))
    seen = record(model, (3, 0))
    wrong = dict(seen.arrays) | {"embed": seen["embed"] + np.array([[0, 0.5] + [0] * 6, [0] * 8], np.float32)}
    found = measured.lookup(model, replace(seen, arrays=wrong))
    assert found.one_hot_difference == pytest.approx(0.5) and found.sum_difference == pytest.approx(0.5)
    wrong = dict(seen.arrays) | {"pos_embed": seen["pos_embed"] - 0.25}
    found = measured.lookup(model, replace(seen, arrays=wrong))
    assert found.one_hot_difference < 1e-6 and found.sum_difference == pytest.approx(0.25)


def test_a_scale_holds_nearly_all_entries():
    matrix = np.linspace(-1, 1, 2001).reshape(-1, 3)
    assert (np.abs(matrix) <= measured.reach(matrix)).mean() == pytest.approx(0.995, abs=1e-3)
    assert measured.reach(np.zeros((2, 2))) == 1.0
    matrix = cloud(50, 6) @ np.diag([4, 3, 2, 1, 0.5, 0.2]).astype(np.float32)
    reference = measured.principal(matrix)
    turned = measured.Principal(reference.axes * np.array([[-1.0], [1.0], [-1.0]]), reference.shares)
    assert np.allclose(measured.aligned(turned, reference).axes, reference.axes)
    later = matrix + 0.02 * cloud(50, 6, 1)
    assert ((measured.aligned(measured.principal(later), reference).axes * reference.axes).sum(1) > 0.9).all()


def test_principal_components_are_those_of_a_singular_value_decomposition():
    matrix = cloud(30, 9) @ np.diag(np.linspace(3, 0.3, 9)).astype(np.float32) + 5
    found = measured.principal(matrix)
    _, values, vectors = np.linalg.svd(
        matrix.astype(np.float64) - matrix.mean(0, dtype=np.float64), full_matrices=False
    )
    assert np.allclose(found.shares, values**2 / (values**2).sum(), atol=1e-9)
    assert found.shares.sum() == pytest.approx(1)
    assert np.allclose(np.abs((found.axes * vectors[:3]).sum(1)), 1, atol=1e-6)
    scores, kept = measured.project(matrix, found.axes)
    assert np.allclose(kept, found.shares[:3], atol=1e-9)
    assert ((scores.astype(np.float64) ** 3).sum(0) >= 0).all()  # the longer tail to the right, always
    mirrored = measured.principal(-matrix)
    assert np.allclose(mirrored.axes, -found.axes, atol=1e-6)


def test_fewer_points_or_dimensions_than_components_are_no_harm():
    for shape in ((2, 5), (5, 1), (1, 4), (5, 2)):
        found = measured.principal(cloud(*shape))
        scores, kept = measured.project(cloud(*shape), found.axes)
        assert found.axes.shape == (3, shape[1])
        assert scores.shape == (shape[0], 3)
        assert np.isfinite(scores).all()
        assert np.isfinite(kept).all()
    flat = measured.principal(np.ones((4, 3), np.float32))
    assert np.isfinite(flat.shares).all() and not flat.shares.any()
    with pytest.raises(ShapeError):
        measured.principal(np.zeros(3))


def test_neighbours_by_cosine_and_what_a_picture_keeps():
    matrix = cloud(25, 6) + 3
    ids, near = measured.neighbours(matrix, 7, 5)
    rows = matrix.astype(np.float64) - matrix.mean(0, dtype=np.float64)
    wanted = [float(rows[7] @ r / np.linalg.norm(rows[7]) / np.linalg.norm(r)) for r in rows]
    best = sorted((i for i in range(25) if i != 7), key=lambda i: -wanted[i])[:5]
    assert ids.tolist() == best and np.allclose(near, [wanted[i] for i in best], atol=1e-6)
    table = measured.cosines(matrix)
    assert np.allclose(table[7], wanted, atol=1e-6) and np.allclose(np.diag(table), 1)
    assert np.allclose(measured.cosines(matrix, [7, 3]), table[[7, 3]][:, [7, 3]], atol=1e-6)
    unit = measured.directions(cloud(30, 3)).astype(np.float32)
    assert (
        measured.kept_neighbours(unit - unit.mean(0), measured.directions(unit), 6) == 6
    ).all()  # on a sphere, nearest is most alike
    assert (
        measured.kept_neighbours(cloud(200, 40), cloud(200, 2, 1), 6).mean() < 0.6
    )  # a picture that has nothing to do with it


def test_the_learned_table_is_the_models_own_and_others_have_none():
    model = build(ModelConfig(**SMALL, position="learned"))
    table = learned_table(model)
    assert table is not None and np.array_equal(table, model.positions.weight.detach().numpy())
    for position in ("none", "sinusoidal", "rope", "alibi", "t5"):
        assert learned_table(build(ModelConfig(**SMALL, position=position))) is None


def test_in_a_sinusoidal_table_only_the_distance_counts():
    found = alike(sinusoidal(64, 32))
    assert found.spread.max() < 1e-5 and np.allclose(found.norms, 4, atol=1e-5)  # sqrt(d / 2)
    frequencies = 10_000.0 ** (-np.arange(0, 32, 2) / 32)
    assert np.allclose(found.by_distance, [np.cos(frequencies * k).mean() for k in range(64)], atol=1e-4)
    assert 0.5 < found.correlation < 1
    assert abs(alike(cloud(100, 64)).correlation) < 0.05
    angles = np.linspace(0, np.pi / 3, 40)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert alike(ring).correlation > 0.95
    assert np.isnan(alike(np.ones((5, 3))).correlation)


@for_each("position", ["rope", "learned"])
def test_a_fresh_table_is_that_of_the_whole_fresh_model(position):
    config = ModelConfig(**SMALL | {"n_layers": 5}, position=position, tie_embeddings=False)
    assert np.array_equal(measured.fresh_embedding(config), build(config).embedding.detach().numpy())


def test_many_rows_give_what_few_do(monkeypatch):
    matrix = cloud(50, 6) @ np.diag([4, 3, 2, 1, 0.5, 0.2]).astype(np.float32) + 3
    whole, map_, near = measured.principal(matrix), measured.project, measured.neighbours(matrix, 7, 5)
    kept, unit, table = map_(matrix, whole.axes)[1], measured.directions(matrix), measured.cosines(matrix)
    monkeypatch.setattr(measured, "BLOCK", 16)  # four blocks, in float32
    found = measured.principal(matrix)
    np.testing.assert_allclose(found.axes, whole.axes, atol=1e-5)
    np.testing.assert_allclose(found.shares, whole.shares, atol=1e-6)
    np.testing.assert_allclose(map_(matrix, whole.axes)[1], kept, atol=1e-6)
    assert measured.directions(matrix).dtype == np.float32 and unit.dtype == np.float64
    np.testing.assert_allclose(measured.directions(matrix), unit, atol=1e-6)
    some = measured.cosines(matrix, [40, 3])
    np.testing.assert_allclose(some, table[[40, 3]][:, [40, 3]], atol=1e-6)
    ids, cosine = measured.neighbours(matrix, 7, 5)
    assert ids.tolist() == near[0].tolist()
    np.testing.assert_allclose(cosine, near[1], atol=1e-6)


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
    found = same_class(classes, 0, np.array([1, 3, 2]), met)
    assert (found.same, found.of) == (2, 3) and found.expected == pytest.approx(3 * 2 / 6)
    assert same_class(classes, 7, np.array([1, 3, 2]), met).expected == 0  # no other of its class was met


def line(length: int = 20) -> np.ndarray:
    """Positions on a quarter of a circle, and a third dimension that hardly varies."""
    angle = np.linspace(0, np.pi / 2, length)
    rest = 0.01 * np.random.default_rng(0).standard_normal(length)
    return np.stack((np.cos(angle), np.sin(angle), rest), axis=1).astype(np.float32)


def test_a_path_keeps_what_lies_in_its_plane():
    table = line()
    found = of_table(table)
    centred = table - table.mean(0)
    values = np.linalg.svd(centred.astype(np.float64), compute_uv=False) ** 2
    assert found.kept == pytest.approx(values[:2] / values.sum(), abs=1e-6)
    assert found.kept_by_both == pytest.approx(values[:2].sum() / values.sum(), abs=1e-6)
    assert found.kept_by_both > 0.99
    apart = np.linalg.norm(found.path[:, None] - found.path[None], axis=-1)
    assert apart == pytest.approx(np.linalg.norm(table[:, None] - table[None], axis=-1), abs=0.05)
    table[0] *= 3
    found = of_table(table)
    pairs = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairwise(table)]
    assert found.neighbours == pytest.approx(np.mean(pairs), abs=1e-5)
    assert found.first_to_median == pytest.approx(3, abs=1e-3)
    noise = np.random.default_rng(1).standard_normal((60, 32)).astype(np.float32)
    assert of_table(line()).knows_near and of_table(sinusoidal(64, 32)).knows_near
    assert not of_table(noise).knows_near and not of_table(np.ones((5, 3), np.float32)).knows_near
    assert of_table(line()).alike.correlation > NEAR > abs(of_table(noise).alike.correlation)
