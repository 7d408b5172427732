"""Whether classes find each other."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import checkpoints
from engine.measure import embeddings as measured
from engine.measure.separation import (
    STRATUM,
    Course,
    OneClass,
    Separation,
    _dealt,
    case_cosines,
    course,
    separation,
)
from engine.measure.token_classes import (
    CHARACTERS,
    Vocabulary,
    case_pairs,
    token_classes,
    token_counts,
    vocabulary,
)
from engine.model import build
from engine.tokenizers import bpe, token_bytes
from engine.tokenizers.char import CharTokenizer


def cloud(rows: int = 40, width: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


@given(st.integers(0, 10_000), st.integers(8, 30), st.integers(2, 4))
def test_separation_is_the_mean_over_pairs(seed, rows, kinds):
    classes = np.random.default_rng(seed).permutation(np.arange(rows) % kinds)  # two tokens or more in each
    matrix = cloud(rows, 5, seed)
    found = separation(matrix, list("abcd"), classes, shuffles=3)
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
        found = _dealt(labels, order, np.random.default_rng(seed))
        assert sorted(found) == labels.tolist()
        assert (np.abs(place[found] - place[labels]) < STRATUM).all()


def test_tokens_that_never_occur_are_left_out():
    matrix, classes = cloud(30, 6), np.arange(30) % 3
    found = separation(matrix, list("abc"), classes, counts=np.where(np.arange(30) < 20, 5, 0))
    assert sum(size for size, _, _ in found.by_class.values()) == 20
    few = separation(matrix[:20], list("abc"), classes[:20])
    assert found.difference == pytest.approx(few.difference, abs=1e-6)
    for classes in (np.zeros(6, np.int64), np.arange(6)):
        assert np.isnan(separation(cloud(6, 4), list("abcdef"), classes, shuffles=2).difference)


def test_a_letter_and_its_capital_are_told_from_other_capitals():
    pairs = case_pairs([c.encode() for c in "abAB."])
    assert pairs.tolist() == [[0, 2], [1, 3]]
    matrix = np.array([[1, 0], [0, 1], [1, 0], [0, 1], [-2, -2]], np.float32)
    own, other = case_cosines(matrix, pairs)
    assert own == pytest.approx(1) and other < own
    for few in (pairs[:1], pairs[:0]):  # a vocabulary of small letters alone has none
        assert np.isnan(case_cosines(matrix, few)).all()


def test_the_shipped_model_has_found_its_classes(shakespeare):
    found = checkpoints.load(Path(__file__).parents[2] / "checkpoints" / "shakespeare-classic")
    names, classes = token_classes(token_bytes(found.tokenizer))
    counts = token_counts(shakespeare.text, found.tokenizer, found.config.vocab_size)
    trained = separation(measured.embedding_of(found.model), names, classes, counts=counts)
    fresh = separation(measured.embedding_of(build(found.config)), names, classes, counts=counts)
    assert trained.matched is not None and trained.difference > trained.matched.max() > trained.chance.max()
    assert fresh.difference < fresh.chance.max()
    ids, _ = measured.neighbours(measured.embedding_of(found.model), found.tokenizer.encode("e")[0], 3)
    assert set(found.tokenizer.decode(ids.tolist())) == {"a", "i", "o"}


def scored(difference: float, chance: list[float], matched: list[float] | None = None) -> Separation:
    by_class = {"a": OneClass(9, 0.5, 0.1), "b": OneClass(2, 0.9, 0.0), "c": OneClass(3, float("nan"), 0.2)}
    frequent = None if matched is None else np.array(matched)
    return Separation(difference + 0.25, 0.25, np.array(chance), frequent, by_class)


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
    assert Separation(0.1, 0.0, np.zeros(3), None, {"b": OneClass(2, 0.9, 0.0)}).most is None


def risen(values: list[float], tops: list[float], matched: list[float] | None = None) -> int | None:
    bands = [None if one is None else np.array([(-9.0, top) for top in one]) for one in (tops, matched)]
    return Course((0, 10, 20, 30), np.array(values), *bands).risen  # type: ignore[arg-type]


def test_a_course_in_order_of_its_steps_and_where_it_rose():
    assert risen([0.5, 0.1, 0.4, 0.5], [0.2] * 4) == 20  # what falls back does not count
    assert risen([0.5, 0.5, 0.5, 0.1], [0.2] * 4) is None
    assert risen([0.3] * 4, [0.2] * 4) == 0
    assert risen([0.3] * 4, [0.3] * 4) is None  # on the band is not above it
    assert risen([0.3] * 4, [0.2] * 4, [0.4, 0.4, 0.4, 0.2]) == 30
    points = {20: scored(0.2, [0.1] * 40, [0.3] * 40), 0: scored(0.1, [0.0] * 40, [0.05] * 40)}
    found = course(points)
    assert found.steps == (0, 20) and np.allclose(found.differences, [0.1, 0.2])
    assert np.allclose(found.chance, [[0, 0], [0.1, 0.1]])
    assert found.matched is not None and np.allclose(found.matched, [[0.05, 0.05], [0.3, 0.3]])
    assert course({0: scored(0.1, [0.0]), 1: scored(0.1, [0.0], [0.2])}).matched is None


def test_many_rows_are_measured_as_few_are(monkeypatch):
    matrix, classes, pairs = cloud(60, 8) + 2, np.arange(60) % 3, np.array([[1, 2], [30, 40], [50, 3]])

    def everything():
        found = separation(matrix, list("abc"), classes, shuffles=5)
        by_class = [number for one in found.by_class.values() for number in one]
        return [found.within, found.across, *found.chance, *by_class, *case_cosines(matrix, pairs)]

    few = everything()
    monkeypatch.setattr(measured, "BLOCK", 16)
    assert everything() == pytest.approx(few, abs=1e-6)


def test_characters_have_the_classes_of_a_primer():
    names, found = token_classes([c.encode() for c in "aeiouybzAZé0٣,$ \n中"], vocab_size=20)
    told = [(name, len([*group])) for name, group in itertools.groupby(names[i] for i in found)]
    assert told == [
        ("vowels", 5), ("consonants", 3), ("capitals", 2), ("vowels", 1), ("digits", 2), ("punctuation", 2),
        ("whitespace", 2), ("other", 3),  # the last two are beyond the tokenizer: a mask has no text
    ]  # fmt: skip


def test_pieces_of_a_bpe_are_told_by_their_beginning():
    tokens = [b" the", b"ing", b" The", b"42", b" 7", b"...", b" \n", b"\xe2\x80", b"'ll", b"e"]
    names, found = token_classes(tokens)
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
        counts = token_counts(text, tokenizer, tokenizer.vocab_size + 1)
        assert counts.tolist() == np.bincount(ids, minlength=tokenizer.vocab_size + 1).tolist()
    assert token_counts("cat?", CharTokenizer("act"), 3).tolist() == [1, 1, 1]  # what it lacks is left out


def known_of(counts: list[int] | None) -> Vocabulary:
    met = None if counts is None else np.array(counts)
    return Vocabulary(("one", "two"), np.arange(6) % 2, met, np.array([(0, 1), (1, 3)]))


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
    known = vocabulary(CharTokenizer("aAb "), 5, "ab ba")
    assert known.letters and known.names == CHARACTERS and known.size == 5
    assert [known.names[i] for i in known.classes] == [
        "vowels", "capitals", "consonants", "whitespace", "other",
    ]  # fmt: skip
    assert known.counts is not None and known.counts.tolist() == [2, 0, 2, 1, 0]
    assert known.cases.tolist() == [[0, 1]] and known.paired().size == 0  # A was never met
    pieces = vocabulary(bpe.train("the the the", 258), 258)
    assert not pieces.letters and pieces.counts is None
