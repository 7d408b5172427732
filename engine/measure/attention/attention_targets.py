"""Where on a text the weight of a head lies: on the word it is in, on where that began, on blanks and
punctuation, on the same token earlier. Clark et al. 2019 ("What does BERT look at?") found such heads in
BERT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.measure.attention.heads import even_pattern

Place = Literal["word_start", "own_word", "breaks", "same", "itself", "near"]
NEAREST = 3  # tokens away, at most, is near
FEWEST = 4  # queries that have such a place: of fewer nothing is said


@dataclass(frozen=True, eq=False)
class Shares:
    """The mean weight that each head gives to each place, (layer, head) float64, and what a head would give
    that spread its weight evenly. Places that fewer than FEWEST queries have are absent.

    `own_by_distance` (layer, head): what the head would give to its own word if it knew only how far away
    each token is (`by_distance`); None without `own_word`.
    """

    weight: Mapping[str, np.ndarray] = field(default_factory=dict)
    even: Mapping[str, float] = field(default_factory=dict)
    own_by_distance: np.ndarray | None = None


def words_of(texts: Sequence[str]) -> np.ndarray:
    """The word that each token belongs to, counted from 0; -1 for blanks and punctuation: (position,).

    A word goes on until a token that begins with a blank, or holds no letter or digit.

    >>> words_of(["a", "b", " ", "c", "!"]).tolist(), words_of(["The", " lib", "rary"]).tolist()
    ([0, 0, -1, 1, -1], [0, 1, 1])
    """
    found, word, inside = [], -1, False
    for text in texts:
        if not any(c.isalnum() or c == "\N{REPLACEMENT CHARACTER}" for c in text):
            found.append(-1)
            inside = False
            continue
        word += not inside or text[:1].isspace()
        found.append(word)
        inside = True
    return np.array(found, dtype=np.int64)


def places(ids: Sequence[int], texts: Sequence[str]) -> dict[Place, np.ndarray]:
    """Which keys belong to the place that a query asks about, (query, key) bool each; a query with no such
    key is not asked. `texts` are the tokens as they are written.

    `word_start`: the first token of the word that the query is in, and the blank before it, for queries
    beyond the second token. `own_word`: the tokens of that word, for queries beyond the first. `breaks`:
    blanks and punctuation, but no sign without a text. `same`: the same token, elsewhere. `itself`: the
    query's own place. `near`: at most NEAREST tokens away, for queries that have more before them.
    """
    words, size = words_of(texts), len(texts)
    at, identity = np.arange(size), np.asarray(ids)
    first = np.array([np.flatnonzero(words == w)[0] if w >= 0 else i for i, w in enumerate(words)])
    blank = np.array([not text.strip() for text in texts])
    start = (at == first[:, None]) | ((at == first[:, None] - 1) & blank)
    own = (words == words[:, None]) & (words >= 0)
    apart = ~np.eye(size, dtype=bool)
    away = np.abs(at[:, None] - at)
    return {
        "word_start": start & (at > first + 1)[:, None],
        "own_word": own & (at > first)[:, None],
        "breaks": (words < 0) & apart & np.array([bool(text) for text in texts]),
        "same": (identity == identity[:, None]) & apart,
        "itself": ~apart & (at > 0)[:, None],
        "near": (away <= NEAREST) & (at > NEAREST)[:, None],
    }


def shares(patterns: np.ndarray, seen: np.ndarray, ids: Sequence[int], texts: Sequence[str]) -> Shares:
    """patterns (layer, head, query, key), `seen` (query, key) bool -> the weight on each of `places`, mean
    over the queries that see such a key.
    """
    even = even_pattern(seen)
    own = None
    weight: dict[str, np.ndarray] = {}
    evenly: dict[str, float] = {}
    for place, where in places(ids, texts).items():
        where = where & seen
        asked = where.any(-1)
        if asked.sum() >= FEWEST:
            weight[place] = np.where(where, patterns, 0).sum(-1, dtype=np.float64)[..., asked].mean(-1)
            evenly[place] = float((even * where).sum(-1)[asked].mean())
            if place == "own_word":
                layers = [np.where(where, by_distance(layer, seen), 0).sum(-1) for layer in patterns]
                own = np.stack(layers)[..., asked].mean(-1)
    return Shares(weight, evenly, own)


def by_distance(patterns: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """What heads would do that know distances and nothing else: every weight is the mean of all that lie as
    far apart, and each row is brought back to a sum of 1. (head, query, key) -> the same, float64.
    """
    size = len(seen)
    away = np.arange(size)[:, None] - np.arange(size)  # (query, key)
    usual = [np.diagonal(patterns, -d, -2, -1).mean(-1, dtype=np.float64) for d in range(1 - size, size)]
    found = np.where(seen, np.stack(usual, -1)[:, away + size - 1], 0.0)  # (head, query, key)
    total = found.sum(-1, keepdims=True)
    result: np.ndarray = np.divide(found, total, out=np.zeros_like(found), where=total > 0)
    return result
