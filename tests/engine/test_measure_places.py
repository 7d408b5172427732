"""Where on a text a head's weight lies, counted here by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.measure.heads import even_pattern
from engine.measure.places import by_distance, places, shares, words_of

TEXT = list("ab cde, ab")
IDS = [ord(c) for c in TEXT]
SEEN = np.tri(len(TEXT), dtype=bool)


def test_words_begin_after_blanks_and_with_tokens_that_bring_their_own():
    assert words_of(TEXT).tolist() == [0, 0, -1, 1, 1, 1, -1, -1, 2, 2]
    assert words_of(["The", " lib", "rary", ".", " It"]).tolist() == [0, 1, 1, -1, 2]
    where = {name: [np.flatnonzero(row).tolist() for row in mask] for name, mask in places(IDS, TEXT).items()}
    assert where["word_start"][5] == [2, 3] and where["word_start"][4] == [], "beyond the second letter"
    assert where["own_word"][5] == [3, 4, 5] and where["own_word"][3] == [] and where["own_word"][6] == []
    assert where["breaks"][9] == [2, 6, 7] and where["breaks"][6] == [2, 7]
    assert where["same"][8] == [0] and where["same"][7] == [2] and where["same"][3] == []
    assert where["itself"][0] == [] and where["itself"][4] == [4]
    assert where["near"][3] == [] and where["near"][5] == [2, 3, 4, 5, 6, 7, 8]


def test_a_share_is_the_mean_over_the_queries_that_have_such_a_place():
    even = even_pattern(SEEN)
    breaks = np.zeros_like(even)
    breaks[:, 0] = 1
    for query in range(3, 10):
        breaks[query] = 0
        breaks[query, 2] = 1
    found = shares(np.stack([even, breaks])[None], SEEN, IDS, TEXT)
    wanted = np.mean([1 / 4, 1 / 5, 1 / 6, 1 / 7, 2 / 8, 3 / 9, 3 / 10])  # queries 3 to 9
    assert found.even["breaks"] == pytest.approx(wanted)
    np.testing.assert_allclose(found.weight["breaks"], [[wanted, 1.0]])
    assert found.even["itself"] == pytest.approx(np.mean([1 / (i + 1) for i in range(1, 10)]))
    assert "word_start" not in found.weight, "one letter alone has such a place"


def test_what_distance_alone_gives_is_the_mean_of_each_distance():
    rng = np.random.default_rng(3)
    pattern = np.tril(rng.random((1, 4, 4)))
    pattern /= pattern.sum(-1, keepdims=True)
    p = pattern[0]
    usual = [np.mean([p[i, i - d] for i in range(d, 4)]) for d in range(4)]
    found = by_distance(pattern, np.tri(4, dtype=bool))[0]
    for query in range(4):
        row = np.array([usual[query - key] for key in range(query + 1)])
        np.testing.assert_allclose(found[query, : query + 1], row / row.sum())
    assert not np.triu(found, 1).any()


def test_a_head_that_stops_at_the_blank_minds_its_word_and_one_that_only_looks_back_does_not():
    ids, texts = [ord(c) for c in "abcd efgh ijkl"], list("abcd efgh ijkl")
    seen = np.tri(14, dtype=bool)
    back = np.tril(0.8 ** np.abs(np.subtract.outer(np.arange(14), np.arange(14))))
    words = words_of(texts)
    word = back * (words == words[:, None])
    both = np.stack([back, word]) / np.stack([back, word]).sum(-1, keepdims=True)
    found = shares(both[None], seen, ids, texts)
    own, distance = found.weight["own_word"][0], found.own_by_distance[0]
    assert own[0] < distance[0] + 0.01, "its distances explain what it does"
    assert own[1] == 1 and distance[1] < 0.95, "its distances alone would lead out of the word"
