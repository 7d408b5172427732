"""Analogies: a is to b as c is to what? Arithmetic with rows of an embedding (Mikolov et al. 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.errors import ShapeError
from studies.embeddings.table import centred, mean_row


@dataclass(frozen=True, eq=False)
class Directions:
    """The rows of an embedding, less their mean, of length 1: not made, but multiplied as they stand."""

    matrix: np.ndarray = field(repr=False)  # (vocab, d_model), as it stands
    mean: np.ndarray = field(repr=False)  # (d_model,)
    length: np.ndarray = field(repr=False)  # (vocab,) of what is left; endless where it is nothing

    def row(self, token: int) -> np.ndarray:
        """Returns a row of length 1, (d_model,); zeros where it has no length."""
        return (self.matrix[token] - self.mean) / self.length[token]

    def near(self, towards: np.ndarray) -> np.ndarray:
        """Returns the product of every row with a vector (d_model,), its cosine at length 1: (vocab,)."""
        return (self.matrix @ towards - self.mean @ towards) / self.length


def directions_of(matrix: np.ndarray) -> Directions:
    """Prepares a model's embedding (vocab, d_model)."""
    mean = mean_row(matrix)
    length = np.concatenate([np.linalg.norm(block, axis=1) for block in centred(matrix, mean)])
    kind = matrix.dtype
    return Directions(matrix, mean.astype(kind), np.where(length > 1e-12, length, np.inf).astype(kind))


@dataclass(frozen=True, eq=False)
class Analogy:
    """The direction of b - a + c, by cosine.

    `ids` are the nearest tokens, best first, the three terms among them; `cosine` goes with them. The ranks,
    from 1, are those of the expected token: without the three terms, as the famous results were counted, and
    among the neighbours of c alone (Linzen 2016): then no arithmetic is needed.
    """

    terms: tuple[int, int, int]
    expected: int
    ids: np.ndarray = field(repr=False)  # (count,)
    cosine: np.ndarray = field(repr=False)  # (count,)
    rank: int
    rank_near_c: int

    @property
    def nearest(self) -> int:
        """The nearest token, the three terms included."""
        return int(self.ids[0])

    @property
    def answer(self) -> int:
        """The nearest token without the three terms."""
        return next(int(i) for i in self.ids if int(i) not in self.terms)

    @property
    def needs_arithmetic(self) -> bool:
        """True if the sum brings it nearer than c's neighbourhood alone."""
        return self.rank < self.rank_near_c


def analogy(known: Directions, terms: Sequence[int], expected: int, count: int = 10) -> Analogy:
    """Finds the tokens nearest to b - a + c, over rows of length 1 (3CosAdd). Raises ShapeError."""
    a, b, c = _checked(known, terms, expected)
    target = known.row(b) - known.row(a) + known.row(c)
    length = float(np.linalg.norm(target))
    near = known.near(target / length if length > 0 else target)
    order = np.argsort(-near, kind="stable")[: max(count, 4)]
    return Analogy(
        (a, b, c),
        expected,
        order,
        near[order],
        rank=_rank(near, expected, (a, b, c)),
        rank_near_c=_rank(known.near(known.row(c)), expected, (a, b, c)),
    )


def _checked(known: Directions, terms: Sequence[int], expected: int) -> tuple[int, int, int]:
    if len(terms) != 3 or not all(0 <= i < len(known.matrix) for i in (*terms, expected)):
        raise ShapeError("an analogy has three tokens of the vocabulary, and a fourth that is expected")
    if expected in terms:
        raise ShapeError("the expected token is one of the three that are put in")
    return terms[0], terms[1], terms[2]


def _rank(near: np.ndarray, token: int, without: Sequence[int]) -> int:
    """Returns the rank of a token, from 1, among all but `without`."""
    above = near > near[token]
    return 1 + int(above.sum()) - int(above[sorted(set(without))].sum())
