"""The tokens on which the weight of a head lies: the word it is in, its beginning, blanks and punctuation,
the same token earlier (Clark et al. 2019, "What does BERT look at?").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from studies.attention.heads import even_pattern

Target = Literal["word_start", "own_word", "breaks", "same", "itself", "near"]
NEAREST = 3  # tokens away, at most, is near
FEWEST = 4  # queries that have such a place: of fewer nothing is said


@dataclass(frozen=True, eq=False)
class TargetShares:
    """The mean weight of each head on each target, (layer, head) float64, and on average if spread evenly.
    Targets that fewer than FEWEST queries have are absent. `word_by_distance` (layer, head): the weight on
    the own word if the head knew only distances (`by_distance`); None without `own_word`.
    """

    weight: Mapping[str, np.ndarray] = field(default_factory=dict)
    even: Mapping[str, float] = field(default_factory=dict)
    word_by_distance: np.ndarray | None = None


def words_of(texts: Sequence[str]) -> np.ndarray:
    """Returns the word that each token belongs to, from 0; -1 for blanks and punctuation: (position,).

    A word goes on until a token that begins with a blank, or holds no letter or digit.

    >>> words_of(["a", "b", " ", "c", "!"]).tolist(), words_of(["The", " lib", "rary"]).tolist()
    ([0, 0, -1, 1, -1], [0, 1, 1])
    """
    result, word, inside = [], -1, False
    for text in texts:
        if not any(c.isalnum() or c == "\N{REPLACEMENT CHARACTER}" for c in text):
            result.append(-1)
            inside = False
            continue
        word += not inside or text[:1].isspace()
        result.append(word)
        inside = True
    return np.array(result, dtype=np.int64)


def target_keys(ids: Sequence[int], texts: Sequence[str]) -> dict[Target, np.ndarray]:
    """Returns the keys that are a query's target, (query, key) bool each. `texts` are the tokens as written.

    `word_start`: the first token of the query's word and the blank before it, for queries beyond the second
    token. `own_word`: the tokens of that word, for queries beyond the first. `breaks`: blanks and
    punctuation, but no sign without a text. `same`: the same token, elsewhere. `itself`: the query's own
    position. `near`: at most NEAREST tokens away, for queries that have more before them.
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


def shares(patterns: np.ndarray, seen: np.ndarray, ids: Sequence[int], texts: Sequence[str]) -> TargetShares:
    """Averages patterns (layer, head, query, key) over `target_keys` that queries see, (query, key)."""
    even = even_pattern(seen)
    own = None
    weight: dict[str, np.ndarray] = {}
    evenly: dict[str, float] = {}
    for place, where in target_keys(ids, texts).items():
        where = where & seen
        asked = where.any(-1)
        if asked.sum() >= FEWEST:
            weight[place] = np.where(where, patterns, 0).sum(-1, dtype=np.float64)[..., asked].mean(-1)
            evenly[place] = float((even * where).sum(-1)[asked].mean())
            if place == "own_word":
                layers = [np.where(where, by_distance(layer, seen), 0).sum(-1) for layer in patterns]
                own = np.stack(layers)[..., asked].mean(-1)
    return TargetShares(weight, evenly, own)


def by_distance(patterns: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Returns patterns of heads that know distances alone: (head, query, key), means by distance."""
    size = len(seen)
    away = np.arange(size)[:, None] - np.arange(size)  # (query, key)
    usual = [np.diagonal(patterns, -d, -2, -1).mean(-1, dtype=np.float64) for d in range(1 - size, size)]
    weights = np.where(seen, np.stack(usual, -1)[:, away + size - 1], 0.0)  # (head, query, key)
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
