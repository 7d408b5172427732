"""The embedding as a table: against independent references, worked cases, and clouds in which there is
nothing to be found.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.config import ModelConfig
from engine.errors import ShapeError
from engine.measure import embeddings as measured
from engine.measure.position_table import alike, learned_table, sinusoidal
from engine.measure.recording import record
from engine.model import build
from engine.tokenizers import bpe
from engine.tokenizers.char import CharTokenizer

SMALL = {"vocab_size": 11, "context": 16, "d_model": 8, "n_layers": 1, "n_heads": 2}


def cloud(rows: int = 40, width: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


@pytest.mark.parametrize("position", ["none", "learned", "sinusoidal", "rope", "alibi", "t5"])
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


def test_characters_have_the_classes_of_a_primer():
    names, found = measured.token_classes([c.encode() for c in "aeiouybzAZé0٣,$ \n中"], vocab_size=20)
    told = [names[i] for i in found]
    assert told == ["vowels"] * 5 + ["consonants"] * 3 + ["capitals"] * 2 + [
        "vowels",
        "digits",
        "digits",
        "punctuation",
        "punctuation",
    ] + [
        "whitespace",
        "whitespace",
        "other",
        "other",
        "other",
    ]  # the last two are beyond the tokenizer: a mask has no text


def test_pieces_of_a_bpe_are_told_by_their_beginning():
    tokens = [b" the", b"ing", b" The", b"42", b" 7", b"...", b" \n", b"\xe2\x80", b"'ll", b"e"]
    names, found = measured.token_classes(tokens)
    assert [names[i] for i in found] == [
        "begins a word",
        "inside a word",
        "capitalised",
        "digits",
        "digits",
        "punctuation",
        "whitespace",
        "part of a character",
        "inside a word",
        "inside a word",
    ]


def test_every_token_of_a_real_tokenizer_gets_its_bytes_and_counts():
    text = "the cat and the hat, the bat"
    for tokenizer in (CharTokenizer.train(text), bpe.train(text, 270)):
        tokens = measured.token_bytes(tokenizer)
        assert (
            len(tokens) == tokenizer.vocab_size
            and b"".join(tokens[i] for i in tokenizer.encode(text)) == text.encode()
        )
        counts = measured.token_counts(text, tokenizer, tokenizer.vocab_size + 1)
        assert (
            counts.sum() == len(tokenizer.encode(text))
            and len(counts) == tokenizer.vocab_size + 1
            and counts[-1] == 0
        )
    assert measured.token_counts("cat?", CharTokenizer("act"), 3).tolist() == [
        1,
        1,
        1,
    ]  # what it lacks is left out


def test_principal_components_are_those_of_a_singular_value_decomposition():
    matrix = cloud(30, 9) @ np.diag(np.linspace(3, 0.3, 9)).astype(np.float32) + 5
    found = measured.principal(matrix)
    _, values, vectors = np.linalg.svd(
        matrix.astype(np.float64) - matrix.mean(0, dtype=np.float64), full_matrices=False
    )
    assert np.allclose(
        found.shares, values**2 / (values**2).sum(), atol=1e-9
    ) and found.shares.sum() == pytest.approx(1)
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
        assert (
            found.axes.shape == (3, shape[1])
            and scores.shape == (shape[0], 3)
            and np.isfinite(scores).all()
            and np.isfinite(kept).all()
        )
    flat = measured.principal(np.ones((4, 3), np.float32))
    assert np.isfinite(flat.shares).all() and not flat.shares.any()
    with pytest.raises(ShapeError):
        measured.principal(np.zeros(3))


def test_axes_of_a_step_lie_on_the_side_of_the_reference():
    matrix = cloud(50, 6) @ np.diag([4, 3, 2, 1, 0.5, 0.2]).astype(np.float32)
    reference = measured.principal(matrix)
    turned = measured.Principal(reference.axes * np.array([[-1.0], [1.0], [-1.0]]), reference.shares)
    assert np.allclose(measured.aligned(turned, reference).axes, reference.axes)
    later = matrix + 0.02 * cloud(50, 6, 1)
    assert ((measured.aligned(measured.principal(later), reference).axes * reference.axes).sum(1) > 0.9).all()


def test_neighbours_are_the_rows_of_largest_cosine_without_the_mean():
    matrix = cloud(25, 6) + 3
    ids, near = measured.neighbours(matrix, 7, 5)
    rows = matrix.astype(np.float64) - matrix.mean(0, dtype=np.float64)
    wanted = [float(rows[7] @ r / np.linalg.norm(rows[7]) / np.linalg.norm(r)) for r in rows]
    best = sorted((i for i in range(25) if i != 7), key=lambda i: -wanted[i])[:5]
    assert ids.tolist() == best and np.allclose(near, [wanted[i] for i in best], atol=1e-6)
    table = measured.cosines(matrix)
    assert np.allclose(table[7], wanted, atol=1e-6) and np.allclose(np.diag(table), 1)
    assert np.allclose(measured.cosines(matrix, [7, 3]), table[[7, 3]][:, [7, 3]], atol=1e-6)


def test_a_row_of_no_length_is_like_nothing():
    matrix = cloud(6, 4)
    matrix[2] = 0
    assert (
        not measured.cosines(matrix, centre=False)[2].any()
        and np.isfinite(measured.cosines(matrix, centre=False)).all()
    )


def test_a_picture_that_has_all_dimensions_keeps_all_neighbours():
    unit = measured.directions(cloud(30, 3)).astype(np.float32)
    assert (
        measured.kept_neighbours(unit - unit.mean(0), measured.directions(unit), 6) == 6
    ).all()  # on a sphere, nearest is most alike
    assert (
        measured.kept_neighbours(cloud(200, 40), cloud(200, 2, 1), 6).mean() < 0.6
    )  # a picture that has nothing to do with it


def slow_difference(matrix: np.ndarray, classes: np.ndarray) -> tuple[float, float]:
    table, within, across = measured.cosines(matrix).astype(np.float64), [], []
    for i, j in itertools.combinations(range(len(matrix)), 2):
        (within if classes[i] == classes[j] else across).append(table[i, j])
    return float(np.mean(within)), float(np.mean(across))


@given(st.integers(0, 10_000), st.integers(4, 30), st.integers(2, 4))
def test_separation_is_the_mean_over_pairs(seed, rows, kinds):
    generator = np.random.default_rng(seed)
    classes = np.arange(rows) % kinds  # every class has two tokens or more, when there are enough
    if rows < 2 * kinds:
        return
    matrix = generator.standard_normal((rows, 5)).astype(np.float32)
    found = measured.separation(matrix, list("abcd"), generator.permutation(classes), shuffles=3)
    classes = generator_again(seed, matrix.shape, classes)
    within, across = slow_difference(matrix, classes)
    assert found.within == pytest.approx(within, abs=1e-5) and found.across == pytest.approx(across, abs=1e-5)
    sizes = np.bincount(classes)
    pairs = sizes * (sizes - 1)
    by_class = [found.by_class["abcd"[i]][1] for i in range(len(sizes))]
    assert (np.array(by_class) * pairs).sum() / pairs.sum() == pytest.approx(within, abs=1e-5)


def generator_again(seed: int, shape: tuple[int, ...], classes: np.ndarray) -> np.ndarray:
    """The permutation that the test above drew."""
    generator = np.random.default_rng(seed)
    generator.standard_normal(shape)
    return generator.permutation(classes)


def test_random_numbers_have_no_classes_and_planted_ones_are_found():
    classes = np.arange(60) % 4
    nothing = [
        measured.separation(cloud(60, 32, seed), list("abcd"), classes, shuffles=100) for seed in range(8)
    ]
    ranks = [(n.chance >= n.difference).mean() for n in nothing]
    assert 0.1 < np.mean(ranks) < 0.9  # the truth lies anywhere among the shuffles
    planted = cloud(60, 32) + 2 * cloud(4, 32, 9)[classes]
    found = measured.separation(planted, list("abcd"), classes, shuffles=100)
    assert (
        found.difference > 0.3
        and (found.chance < 0.2 * found.difference).all()
        and abs(found.chance.mean()) < 0.03
    )


def test_classes_that_are_nothing_but_frequency_do_not_pass_the_matched_shuffle():
    generator = np.random.default_rng(3)
    counts = np.sort(generator.integers(1, 10_000, 96))[::-1]
    height = np.log(counts)[:, None] - np.log(counts).mean()
    matrix = (height * generator.standard_normal((1, 16)) + 0.5 * generator.standard_normal((96, 16))).astype(
        np.float32
    )
    classes = (np.arange(96) >= 48).astype(np.int64)  # the frequent half and the rare half
    found = measured.separation(matrix, ["frequent", "rare"], classes, counts=counts)
    assert found.matched is not None and found.difference > found.chance.max()  # free shuffles are fooled
    assert found.matched.mean() > 0.8 * found.difference  # shuffles among tokens of like frequency are not


def test_matched_shuffles_stay_within_their_stratum_and_keep_the_class_sizes():
    labels, order = np.arange(50), np.random.default_rng(1).permutation(50)
    place = np.argsort(order)
    for seed in range(20):
        found = measured._dealt(labels, order, np.random.default_rng(seed))
        assert sorted(found) == labels.tolist()
        assert (np.abs(place[found] - place[labels]) < measured.STRATUM).all()


def test_tokens_that_never_occur_are_left_out():
    matrix, classes = cloud(30, 6), np.arange(30) % 3
    counts = np.where(np.arange(30) < 20, 5, 0)
    found = measured.separation(matrix, list("abc"), classes, counts=counts)
    assert sum(size for size, _, _ in found.by_class.values()) == 20
    assert found.difference == pytest.approx(
        measured.separation(matrix[:20], list("abc"), classes[:20]).difference, abs=1e-6
    )


def test_one_class_or_all_alone_have_no_pairs_to_compare():
    for classes in (np.zeros(6, np.int64), np.arange(6)):
        found = measured.separation(cloud(6, 4), list("abcdef"), classes, shuffles=2)
        assert np.isnan(found.difference)


def test_a_letter_and_its_capital_are_told_from_other_capitals():
    pairs = measured.case_pairs([c.encode() for c in "abAB."])
    assert pairs.tolist() == [[0, 2], [1, 3]]
    matrix = np.array([[1, 0], [0, 1], [1, 0], [0, 1], [-2, -2]], np.float32)
    own, other = measured.case_cosines(matrix, pairs)
    assert own == pytest.approx(1) and other < own
    assert np.isnan(measured.case_cosines(matrix, pairs[:1])[0])


def test_the_shipped_model_has_found_its_classes(shakespeare):
    from pathlib import Path

    from engine import checkpoints

    found = checkpoints.load(Path(__file__).parents[2] / "checkpoints" / "shakespeare-classic")
    names, classes = measured.token_classes(measured.token_bytes(found.tokenizer))
    counts = measured.token_counts(shakespeare.text, found.tokenizer, found.config.vocab_size)
    trained = measured.separation(measured.embedding_of(found.model), names, classes, counts=counts)
    fresh = measured.separation(measured.embedding_of(build(found.config)), names, classes, counts=counts)
    assert trained.matched is not None and trained.difference > trained.matched.max() > trained.chance.max()
    assert fresh.difference < fresh.chance.max()
    ids, _ = measured.neighbours(measured.embedding_of(found.model), found.tokenizer.encode("e")[0], 3)
    assert set(found.tokenizer.decode(ids.tolist())) == {"a", "i", "o"}


# Tables of positions ----------------------------------------------------------------------------


def test_the_learned_table_is_the_models_own_and_others_have_none():
    model = build(ModelConfig(**SMALL, position="learned"))
    table = learned_table(model)
    assert table is not None and np.array_equal(table, model.positions.weight.detach().numpy())
    for position in ("none", "sinusoidal", "rope", "alibi", "t5"):
        assert learned_table(build(ModelConfig(**SMALL, position=position))) is None


def test_the_sinusoidal_table_is_what_a_model_adds():
    model = build(ModelConfig(**SMALL, position="sinusoidal"))
    added = model.positions.prepare(7, torch.zeros(1)).embed(torch.zeros(1))
    assert np.array_equal(sinusoidal(7, 8), added.numpy())
    assert sinusoidal(3, 5).shape == (3, 5)
    assert np.allclose(sinusoidal(3, 4)[1], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)], atol=1e-6)


def test_in_a_sinusoidal_table_only_the_distance_counts():
    found = alike(sinusoidal(64, 32))
    assert found.spread.max() < 1e-5 and np.allclose(found.norms, 4, atol=1e-5)  # sqrt(d / 2)
    frequencies = 10_000.0 ** (-np.arange(0, 32, 2) / 32)
    assert np.allclose(found.by_distance, [np.cos(frequencies * k).mean() for k in range(64)], atol=1e-4)
    assert 0.5 < found.correlation < 1


def test_noise_knows_nothing_of_distance_and_a_line_knows_all():
    assert abs(alike(cloud(100, 64)).correlation) < 0.05
    angles = np.linspace(0, np.pi / 3, 40)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert alike(ring).correlation > 0.95
    assert np.isnan(alike(np.ones((5, 3))).correlation)
