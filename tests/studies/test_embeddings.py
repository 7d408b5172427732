"""The embedding as a table: the lookup, its axes, its neighbours, and whether classes find each other."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import checkpoints
from engine.config import ModelConfig
from engine.data.tokenizers import bpe, token_bytes
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import ShapeError
from engine.model import build
from engine.recording import record
from studies.embeddings import separation, token_classes
from studies.embeddings import table as measured
from studies.embeddings import token_map as maps
from studies.embeddings.analogies import analogy, directions_of
from studies.embeddings.table import neighbours, preserved_neighbours, principal, project
from studies.positions.position_table import NEAR, alike, learned_table, sinusoidal
from studies.positions.position_table import measured as of_table
from tests.engine.cases import for_each

SMALL = {"vocab_size": 11, "context": 16, "d_model": 8, "n_layers": 1, "n_heads": 2}


def cloud(rows: int = 40, width: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


def test_a_sum_of_orthogonal_vectors_is_told_apart_and_one_of_equal_vectors_is_not():
    """Tokens on the first axes, positions on others: nothing is lost. Both on the same axes: token v at t is t at v."""
    axes = 3 * np.eye(8)
    found = measured.readout(axes[:5], axes[5:])
    assert (found.sums, found.tokens, found.positions, found.cosine) == (15, 1.0, 1.0, 0.0)
    mixed = measured.readout(axes[:3], axes[:3])
    assert mixed.tokens < 0.8 and mixed.cosine == pytest.approx(1 / 3)
    assert measured.readout(np.zeros((measured.READABLE, 1)), np.zeros((2, 1))) is None


@for_each("position", ["none", "learned", "sinusoidal", "rope", "alibi", "t5"])
def test_the_lookup_is_a_product_with_one_hot_rows_and_positions_are_then_added(position):
    model = build(ModelConfig(**SMALL, position=position))
    ids = [3, 3, 0, 10]
    found = measured.lookup(model, record(model, ids))
    rows = model.embedding.detach().numpy()[ids]
    assert np.array_equal(found.rows, rows)
    assert found.onehot_difference < 1e-6 and found.sum_difference < 1e-6
    assert (found.different, found.parameters, found.multiplications) == (3, 11 * 8, 4 * 11 * 8)
    assert [found.occurrences(i) for i in range(4)] == [2, 2, 1, 1]
    table = learned_table(model)
    assert (table is None) == (position != "learned")
    assert (found.added is not None) == (position in ("learned", "sinusoidal"))
    vectors = [rows]
    if found.added is not None:
        added = sinusoidal(16, 8) if table is None else model.positions.weight.detach().numpy()
        assert table is None or np.array_equal(table, added)
        vectors += [added[:4], rows + added[:4]]
        means = [float(np.linalg.norm(x, axis=1).mean()) for x in vectors[:2]]
        assert found.mean_lengths == pytest.approx(means)
    else:
        assert found.mean_lengths is None
    np.testing.assert_allclose(found.entered, vectors[-1], atol=1e-6)
    for (part, length), own in zip(found.at(1), vectors, strict=True):
        np.testing.assert_allclose(part, own[1], atol=1e-6)
        assert length == pytest.approx(np.linalg.norm(own[1]))


def test_the_checks_of_the_lookup_find_what_is_wrong():
    """A recording that is not the model's: the rows differ from the product, and the sum from what is read."""
    model = build(ModelConfig(**SMALL, position="learned"))
    seen = record(model, (3, 0))
    wrong = dict(seen.arrays) | {"embed": seen["embed"] + np.array([[0, 0.5] + [0] * 6, [0] * 8], np.float32)}
    found = measured.lookup(model, replace(seen, arrays=wrong))
    assert found.onehot_difference == pytest.approx(0.5) and found.sum_difference == pytest.approx(0.5)
    wrong = dict(seen.arrays) | {"pos_embed": seen["pos_embed"] - 0.25}
    found = measured.lookup(model, replace(seen, arrays=wrong))
    assert found.onehot_difference < 1e-6 and found.sum_difference == pytest.approx(0.25)


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
    _, values, vectors = np.linalg.svd((matrix - matrix.mean(0)).astype(np.float64), full_matrices=False)
    assert np.allclose(found.shares, values**2 / (values**2).sum(), atol=1e-6)
    assert found.shares.sum() == pytest.approx(1)
    assert np.allclose(np.abs((found.axes * vectors[:3]).sum(1)), 1, atol=1e-6)
    scores, kept = measured.project(matrix, found.axes)
    assert np.allclose(kept, found.shares[:3], atol=1e-9)
    assert ((scores.astype(np.float64) ** 3).sum(0) >= 0).all()  # the longer tail to the right, always
    assert np.allclose(measured.principal(-matrix).axes, -found.axes, atol=1e-6)


def test_fewer_points_or_dimensions_than_components_are_no_harm():
    for shape in ((2, 5), (5, 1), (1, 4), (5, 2)):
        found = measured.principal(cloud(*shape))
        scores, kept = measured.project(cloud(*shape), found.axes)
        assert found.axes.shape == (3, shape[1]) and scores.shape == (shape[0], 3)
        assert np.isfinite(scores).all() and np.isfinite(kept).all()
    assert not measured.principal(np.ones((4, 3), np.float32)).shares.any()
    with pytest.raises(ShapeError):
        measured.principal(np.zeros(3))


def test_neighbours_by_cosine_and_what_a_picture_keeps():
    matrix = cloud(25, 6) + 3
    ids, near = measured.neighbours(matrix, 7, 5)
    rows = matrix.astype(np.float64) - matrix.mean(0, dtype=np.float64)
    wanted = rows @ rows[7] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[7])
    best = np.argsort(-wanted)[1:6]
    assert ids.tolist() == best.tolist() and np.allclose(near, wanted[best], atol=1e-6)
    table = measured.cosines(matrix)
    assert np.allclose(table[7], wanted, atol=1e-6) and np.allclose(np.diag(table), 1)
    assert np.allclose(measured.cosines(matrix, [7, 3]), table[[7, 3]][:, [7, 3]], atol=1e-6)
    unit = measured.directions(cloud(30, 3)).astype(np.float32)
    on_a_sphere = measured.preserved_neighbours(unit - unit.mean(0), measured.directions(unit), 6)
    assert (on_a_sphere == 6).all(), "on a sphere, nearest is most alike"
    of_another_picture = measured.preserved_neighbours(cloud(200, 40), cloud(200, 2, 1), 6)
    assert of_another_picture.mean() < 0.6


def test_in_a_sinusoidal_table_only_the_distance_counts():
    found = alike(sinusoidal(64, 32))
    assert found.spread.max() < 1e-5 and np.allclose(found.norms, 4, atol=1e-5)  # sqrt(d / 2)
    frequencies = 10_000.0 ** (-np.arange(0, 32, 2) / 32)
    assert np.allclose(found.by_distance, [np.cos(frequencies * k).mean() for k in range(64)], atol=1e-4)
    assert 0.5 < found.correlation < 1
    assert abs(alike(cloud(100, 64)).correlation) < 0.05 and np.isnan(alike(np.ones((5, 3))).correlation)
    angles = np.linspace(0, np.pi / 3, 40)
    assert alike(np.stack([np.cos(angles), np.sin(angles)], axis=1)).correlation > 0.95


@for_each("position", ["rope", "learned"])
def test_a_fresh_table_is_that_of_the_whole_fresh_model(position):
    config = ModelConfig(**SMALL | {"n_layers": 5}, position=position, tie_embeddings=False)
    assert np.array_equal(measured.fresh_embedding(config), build(config).embedding.detach().numpy())


def test_many_rows_give_what_few_do(monkeypatch):
    matrix = cloud(50, 6) @ np.diag([4, 3, 2, 1, 0.5, 0.2]).astype(np.float32) + 3
    axes = measured.principal(matrix).axes

    classes, pairs = np.arange(50) % 3, np.array([[1, 2], [30, 40], [49, 3]])

    def everything():
        found, (ids, cosine) = measured.principal(matrix), measured.neighbours(matrix, 7, 5)
        some, cases = measured.cosines(matrix, [40, 3]), separation.case_cosines(matrix, pairs)
        apart = separation.separation(matrix, list("abc"), classes, shuffles=5)
        numbers = [apart.within, apart.across, *apart.chance, *itertools.chain(*apart.by_class.values())]
        return found.axes, found.shares, measured.project(matrix, axes)[1], some, ids, cosine, cases, numbers

    few, unit = everything(), measured.directions(matrix)
    monkeypatch.setattr(measured, "BLOCK", 16)  # four blocks, in float32
    for one, other in zip(few, everything(), strict=True):
        np.testing.assert_allclose(other, one, atol=1e-5)
    assert measured.directions(matrix).dtype == np.float32 and unit.dtype == np.float64
    np.testing.assert_allclose(measured.directions(matrix), unit, atol=1e-6)


RNG = np.random.default_rng(3)
MATRIX = RNG.standard_normal((60, 7)).astype(np.float32) + 0.5


def by_hand(a: int, b: int, c: int) -> np.ndarray:
    """Cosine of every row with b - a + c."""
    unit = MATRIX.astype(float) - MATRIX.astype(float).mean(0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    total = unit[b] - unit[a] + unit[c]
    return unit @ total / np.linalg.norm(total)


@for_each(("terms", "expected"), [((1, 2, 3), 4), ((9, 50, 7), 0), ((5, 5, 6), 8)])
def test_the_nearest_and_the_places(terms: tuple[int, int, int], expected: int) -> None:
    near, alone = by_hand(*terms), by_hand(terms[2], terms[2], terms[2])
    found = analogy(directions_of(MATRIX), terms, expected, 6)
    order = np.argsort(-near).tolist()
    assert found.ids.tolist() == order[:6]
    assert np.allclose(found.cosine, near[order[:6]], atol=1e-5)
    left = [i for i in order if i not in terms]
    assert found.rank == left.index(expected) + 1 and found.nearest == order[0] and found.answer == left[0]
    others = [i for i in np.argsort(-alone) if i not in terms]
    assert found.rank_near_c == others.index(expected) + 1
    assert found.needs_arithmetic is (found.rank < found.rank_near_c)


def test_a_space_made_for_it_holds() -> None:
    noise = RNG.standard_normal((20, 8)) * 0.1
    noise[:4, :2] += [[-3, -3], [3, -3], [-3, 3], [3, 3]]
    found = analogy(directions_of(noise), (0, 1, 2), 3, 5)
    assert found.rank == 1 and found.answer == 3 and found.needs_arithmetic
    rows = np.array([[1.0, 2.0], [3.0, 2.0], [2.0, 3.0], [2.0, 1.0], [2.0, 2.0]])  # the last is their mean
    known = directions_of(rows)
    assert known.row(4).tolist() == [0, 0] and known.row(1).tolist() == [1, 0]
    assert known.near(np.array([1.0, 0.0])).tolist() == [-1, 1, 0, 0, 0]


EVERY = np.arange(40)


def test_rows_that_nothing_has_taught_decide_neither_axes_nor_neighbours():
    taught, met = cloud(8, 16), np.arange(8)
    matrix = np.concatenate((taught, np.full((200, 16), -5, np.float32)))
    ids, cosine = maps.nearest(matrix, 3, met, 10)
    alone = neighbours(taught, 3, 10)
    assert ids.tolist() == alone[0].tolist() and np.allclose(cosine, alone[1])
    assert cosine.max() < 0.7 < neighbours(matrix, 3, 1)[1][0]
    seen, own = maps.token_map(matrix, met), maps.token_map(taught, met)
    assert np.allclose(seen.scores[:8], own.scores, atol=1e-4)
    assert np.allclose(seen.variance_shares, own.variance_shares)
    assert seen.ranges == own.ranges and seen.overlap == own.overlap
    assert set(maps.nearest(matrix, 100, met, 3)[0]) <= set(met)  # of a token that was never met


def test_a_map_is_the_projection_on_the_principal_axes_with_a_margin():
    matrix = cloud()
    found, own = maps.token_map(matrix, EVERY), principal(matrix)
    scores, kept = project(matrix, own.axes)
    assert np.allclose(found.scores, scores, atol=1e-5) and np.allclose(found.variance_shares, kept)
    assert found.share(2) == pytest.approx(kept[0] + kept[1]) and found.share(3) == pytest.approx(kept.sum())
    low, high = scores.min(0), scores.max(0)
    margin = maps.MARGIN * (high - low)
    assert np.allclose(found.ranges, np.stack([low - margin, high + margin], 1), atol=1e-5)
    assert found.reach == pytest.approx(np.linalg.norm(scores, axis=1).max(), abs=1e-5)
    overlap = [preserved_neighbours(matrix, scores[:, :count], maps.JOINED).mean() for count in (2, 3)]
    assert found.overlap == pytest.approx(overlap) and overlap[0] < overlap[1]


def test_the_scale_of_the_newest_step_holds_still_and_own_axes_keep_more():
    first, last = cloud() * 0.1, cloud(seed=1)
    newest, at_last = maps.frame(last, EVERY), maps.token_map(last, EVERY)
    still, own = maps.token_map(first, EVERY, newest, False), maps.token_map(first, EVERY, newest, True)
    for low, high, (a, b) in zip(newest.low, newest.high, still.ranges, strict=True):
        assert a <= low and b >= high
    assert still.reach == pytest.approx(newest.reach) == pytest.approx(at_last.reach)
    assert own.share(2) > still.share(2)
    assert np.allclose(still.scores, project(first, newest.principal.axes)[0], atol=1e-5)
    assert ((own.principal.axes * newest.principal.axes).sum(1) >= 0).all()  # turned to the same side
    assert np.allclose(maps.token_map(last, EVERY, newest, False).scores, at_last.scores, atol=1e-5)


def test_a_dot_outside_gets_room_and_hits_are_near():
    found = maps.token_map(np.concatenate((cloud(), np.full((1, 12), 50, np.float32))), EVERY)
    ranges, reach = found.holding(40)
    assert all(low <= at <= high for (low, high), at in zip(ranges, found.scores[40], strict=True))
    assert reach == pytest.approx(np.linalg.norm(found.scores[40])) and reach > found.reach
    assert found.holding(0) == (list(found.ranges), found.reach)
    matrix = cloud()
    found = maps.token_map(matrix, EVERY)
    for token in (0, 7, 39):
        near = neighbours(matrix, token, maps.JOINED)[0]
        for count in (2, 3):
            flat = found.scores[:, :count]
            away = np.argsort(np.linalg.norm(flat - flat[token], axis=1))[1 : maps.JOINED + 1]
            assert found.hits(token, near, EVERY, count) == len(set(away) & set(near))
    met = np.arange(20)
    assert maps.token_map(matrix, met).hits(0, np.arange(30, 36), met, 2) == 0  # no dot, no hit


def test_frequency_is_found_on_the_axis_where_it_lies():
    generator = np.random.default_rng(0)
    frequency = generator.random(40)
    scores = np.stack([generator.random(40), -2 * frequency, generator.random(40)], axis=1)
    matrix = np.ones((40, 4)) * (1 + frequency[:, None])
    found = maps.frequency_links(matrix, scores, frequency, EVERY)
    wanted = [np.corrcoef(scores[:, i], frequency)[0, 1] for i in range(3)]
    assert np.allclose(found.components, wanted) and found.best == 1  # however it is turned
    assert found.lengths == pytest.approx(1)
    some = maps.frequency_links(matrix, scores, frequency, np.arange(10))
    assert some.components[0] == pytest.approx(np.corrcoef(scores[:10, 0], frequency[:10])[0, 1])
    assert maps.FrequencyLinks((float("nan"),) * 3, 0.0).best == 0


def test_how_many_of_the_nearest_are_of_the_same_class():
    classes = np.array([0, 0, 0, 1, 1, 1, 1, 2])
    met = np.arange(7)
    found = maps.alike(classes, 0, np.array([1, 3, 2]), met)
    assert (found.same, found.of) == (2, 3) and found.expected == pytest.approx(3 * 2 / 6)
    assert maps.alike(classes, 7, np.array([1, 3, 2]), met).expected == 0  # no other of its class was met


def line(length: int = 20) -> np.ndarray:
    """Positions on a quarter of a circle, and a third dimension that hardly varies."""
    angle = np.linspace(0, np.pi / 2, length)
    return np.stack((np.cos(angle), np.sin(angle), 0.01 * cloud(length, 1)[:, 0]), axis=1).astype(np.float32)


def test_a_path_keeps_what_lies_in_its_plane():
    table = line()
    found = of_table(table)
    values = np.linalg.svd((table - table.mean(0)).astype(np.float64), compute_uv=False) ** 2
    assert found.variance_shares == pytest.approx(values[:2] / values.sum(), abs=1e-6)
    assert found.shown_variance == pytest.approx(values[:2].sum() / values.sum(), abs=1e-6)
    assert found.shown_variance > 0.99
    apart = np.linalg.norm(found.path[:, None] - found.path[None], axis=-1)
    assert apart == pytest.approx(np.linalg.norm(table[:, None] - table[None], axis=-1), abs=0.05)
    table[0] *= 3
    found = of_table(table)
    pairs = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in itertools.pairwise(table)]
    assert found.alike.by_distance[1] == pytest.approx(np.mean(pairs), abs=1e-5)
    assert found.first_to_median == pytest.approx(3, abs=1e-3)
    noise = of_table(cloud(60, 32, 1))
    assert of_table(line()).knows_near and of_table(sinusoidal(64, 32)).knows_near
    assert not noise.knows_near and not of_table(np.ones((5, 3), np.float32)).knows_near
    assert of_table(line()).alike.correlation > NEAR > abs(noise.alike.correlation)


@given(st.integers(0, 10_000), st.integers(8, 30), st.integers(2, 4))
def test_separation_is_the_mean_over_pairs(seed, rows, kinds):
    classes = np.random.default_rng(seed).permutation(np.arange(rows) % kinds)  # two tokens or more in each
    matrix = cloud(rows, 5, seed)
    found = separation.separation(matrix, list("abcd"), classes, shuffles=3)
    table, pairs = measured.cosines(matrix), np.tri(rows, k=-1, dtype=bool)
    same = classes == classes[:, None]
    within, across = table[pairs & same].mean(), table[pairs & ~same].mean()
    assert (found.within, found.across) == pytest.approx((within, across), abs=1e-5)
    weights = np.bincount(classes) * (np.bincount(classes) - 1)
    by_class = [found.by_class["abcd"[i]][1] for i in range(kinds)]
    assert np.average(by_class, weights=weights) == pytest.approx(within, abs=1e-5)


def test_matched_shuffles_stay_within_their_stratum_and_keep_the_class_sizes():
    labels, order = np.arange(50), np.random.default_rng(1).permutation(50)
    place = np.argsort(order)
    for seed in range(20):
        found = separation._dealt(labels, order, np.random.default_rng(seed))
        assert sorted(found) == labels.tolist()
        assert (np.abs(place[found] - place[labels]) < separation.STRATUM).all()


def test_tokens_that_never_occur_are_left_out():
    matrix, classes = cloud(30, 6), np.arange(30) % 3
    found = separation.separation(matrix, list("abc"), classes, counts=np.where(np.arange(30) < 20, 5, 0))
    assert sum(size for size, _, _ in found.by_class.values()) == 20
    few = separation.separation(matrix[:20], list("abc"), classes[:20])
    assert found.difference == pytest.approx(few.difference, abs=1e-6)
    for classes in (np.zeros(6, np.int64), np.arange(6)):
        assert np.isnan(separation.separation(cloud(6, 4), list("abcdef"), classes, shuffles=2).difference)


def test_a_letter_and_its_capital_are_told_from_other_capitals():
    pairs = token_classes.case_pairs([c.encode() for c in "abAB."])
    assert pairs.tolist() == [[0, 2], [1, 3]]
    matrix = np.array([[1, 0], [0, 1], [1, 0], [0, 1], [-2, -2]], np.float32)
    own, other = separation.case_cosines(matrix, pairs)
    assert own == pytest.approx(1) and other < own
    for few in (pairs[:1], pairs[:0]):  # a vocabulary of small letters alone has none
        assert np.isnan(separation.case_cosines(matrix, few)).all()


def test_the_shipped_model_has_found_its_classes(shakespeare):
    found = checkpoints.load(Path(__file__).parents[2] / "checkpoints" / "shakespeare-classic")
    names, classes = token_classes.token_classes(token_bytes(found.tokenizer))
    counts = token_classes.token_counts(shakespeare.text, found.tokenizer, found.config.vocab_size)
    trained = separation.separation(measured.embedding_of(found.model), names, classes, counts=counts)
    fresh = separation.separation(measured.embedding_of(build(found.config)), names, classes, counts=counts)
    assert trained.matched is not None and trained.difference > trained.matched.max() > trained.chance.max()
    assert fresh.difference < fresh.chance.max()
    ids, _ = measured.neighbours(measured.embedding_of(found.model), found.tokenizer.encode("e")[0], 3)
    assert set(found.tokenizer.decode(ids.tolist())) == {"a", "i", "o"}


def scored(difference: float, chance: list[float], matched: list[float] | None = None) -> Any:
    sizes = {"a": (9, 0.5, 0.1), "b": (2, 0.9, 0.0), "c": (3, float("nan"), 0.2)}
    by_class = {name: separation.ClassCosines(*size) for name, size in sizes.items()}
    frequent = None if matched is None else np.array(matched)
    return separation.Separation(difference + 0.25, 0.25, np.array(chance), frequent, by_class)


def test_chance_and_the_class_of_one_kind():
    chance = np.arange(-20, 20) / 100  # 40 shuffles, from -0.20 to 0.19
    found = scored(0.18, chance.tolist(), [0.1, 0.3])
    by_chance = found.by_chance
    assert (by_chance.reached, by_chance.count, by_chance.highest) == (2, 40, 0.19)
    assert by_chance.mean == pytest.approx(-0.005)
    assert (by_chance.low, by_chance.high) == pytest.approx(np.quantile(chance, (0.025, 0.975)))
    assert found.by_frequency is not None and found.by_frequency.reached == 1
    assert found.by_frequency.mean == pytest.approx(0.2) and scored(0.1, [0.0]).by_frequency is None
    for others, like in (([0.6] + [0.0] * 19, False), ([0.6] * 2 + [0.0] * 18, True), ([0.0] * 20, False)):
        assert scored(0.5, others).by_chance.like_chance is like
    assert found.most == ("a", pytest.approx(0.4))
    assert replace(found, by_class={"b": found.by_class["b"]}).most is None


def risen(values: list[float], tops: list[float], matched: list[float] | None = None) -> int | None:
    bands = [None if one is None else np.array([(-9.0, top) for top in one]) for one in (tops, matched)]
    return separation.SeparationCurve((0, 10, 20, 30), np.array(values), *bands).risen  # type: ignore[arg-type]


def test_a_course_in_order_of_its_steps_and_where_it_rose():
    assert risen([0.5, 0.1, 0.4, 0.5], [0.2] * 4) == 20  # what falls back does not count
    assert risen([0.5, 0.5, 0.5, 0.1], [0.2] * 4) is None
    assert risen([0.3] * 4, [0.2] * 4) == 0
    assert risen([0.3] * 4, [0.3] * 4) is None  # on the band is not above it
    assert risen([0.3] * 4, [0.2] * 4, [0.4, 0.4, 0.4, 0.2]) == 30
    points = {20: scored(0.2, [0.1] * 40, [0.3] * 40), 0: scored(0.1, [0.0] * 40, [0.05] * 40)}
    found = separation.separation_curve(points)
    assert found.steps == (0, 20) and np.allclose(found.differences, [0.1, 0.2])
    assert np.allclose(found.chance, [[0, 0], [0.1, 0.1]])
    assert found.matched is not None and np.allclose(found.matched, [[0.05, 0.05], [0.3, 0.3]])
    assert separation.separation_curve({0: scored(0.1, [0.0]), 1: scored(0.1, [0.0], [0.2])}).matched is None


def test_characters_have_the_classes_of_a_primer():
    names, found = token_classes.token_classes([c.encode() for c in "aeiouybzAZé0٣,$ \n中"], vocab_size=20)
    told = [(name, len([*group])) for name, group in itertools.groupby(names[i] for i in found)]
    assert told == [
        ("vowels", 5), ("consonants", 3), ("capitals", 2), ("vowels", 1), ("digits", 2), ("punctuation", 2),
        ("whitespace", 2), ("other", 3),  # the last two are beyond the tokenizer: a mask has no text
    ]  # fmt: skip


def test_pieces_of_a_bpe_are_told_by_their_beginning():
    tokens = [b" the", b"ing", b" The", b"42", b" 7", b"...", b" \n", b"\xe2\x80", b"'ll", b"e"]
    names, found = token_classes.token_classes(tokens)
    assert [names[i] for i in found] == [
        "begins a word", "inside a word", "capitalised", "digits", "digits", "punctuation", "whitespace",
        "part of a character", "inside a word", "inside a word",
    ]  # fmt: skip


def test_every_token_of_a_real_tokenizer_gets_its_bytes_and_counts():
    text = "the cat and the hat, the bat"
    for tokenizer in (CharTokenizer.train(text), bpe.train(text, 270)):
        tokens, ids = token_bytes(tokenizer), tokenizer.encode(text)
        assert len(tokens) == tokenizer.vocab_size
        assert b"".join(tokens[i] for i in ids) == text.encode()
        counts = token_classes.token_counts(text, tokenizer, tokenizer.vocab_size + 1)
        assert counts.tolist() == np.bincount(ids, minlength=tokenizer.vocab_size + 1).tolist()
    counts = token_classes.token_counts("cat?", CharTokenizer("act"), 3)
    assert counts.tolist() == [1, 1, 1]  # what it lacks is left out


def known_of(counts: list[int] | None) -> token_classes.Vocabulary:
    met = None if counts is None else np.array(counts)
    return token_classes.Vocabulary(("one", "two"), np.arange(6) % 2, met, np.array([(0, 1), (1, 3)]))


def test_tokens_that_were_never_met_are_neither_drawn_nor_members():
    known = known_of([0, 5, 0, 9, 1, 7])
    assert known.met.tolist() == [1, 3, 4, 5] and known.never_met == 2 and known.size == 6
    assert known.drawn(2).tolist() == [3, 5] and known.drawn(4).tolist() == [1, 3, 4, 5]
    assert known.members("one").tolist() == [4] and known.members("two").tolist() == [3, 5, 1]
    assert known.paired().tolist() == [[0, 1]]  # 1 and 3, counted among those that were met
    assert known.frequency is not None and np.allclose(10**known.frequency - 1, [0, 5, 0, 9, 1, 7])
    unknown = known_of(None)
    for every in (unknown, known_of([0, 0, 1, 1, 0, 0]), known_of([1, 2, 3, 4, 5, 6])):
        assert every.met.tolist() == [0, 1, 2, 3, 4, 5] and every.never_met == 0
    assert unknown.drawn(2).tolist() == [0, 1] and unknown.frequency is None
    assert unknown.members("two").tolist() == [1, 3, 5]


def test_the_vocabulary_of_a_model_has_a_class_for_each_of_its_rows():
    known = token_classes.vocabulary(CharTokenizer("aAb "), 5, "ab ba")
    assert known.letters and known.names == token_classes.CHARACTERS and known.size == 5
    assert [known.names[i] for i in known.classes] == [
        "vowels", "capitals", "consonants", "whitespace", "other",
    ]  # fmt: skip
    assert known.counts is not None and known.counts.tolist() == [2, 0, 2, 1, 0]
    assert known.cases.tolist() == [[0, 1]] and known.paired().size == 0  # A was never met
    pieces = token_classes.vocabulary(bpe.train("the the the", 258), 258)
    assert not pieces.letters and pieces.counts is None
