"""a is to b as c is to what? Arithmetic with rows of an embedding, as it comes out (Mikolov et al. 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.errors import ShapeError
from engine.measure.embeddings.table import centred, mean_row


@dataclass(frozen=True, eq=False)
class Directions:
    """The rows of an embedding, their mean taken off, of length 1. They are not made: of SmolLM2 they would
    be another 113 MB beside its embedding, and each comparison wants one product with them.
    """

    matrix: np.ndarray = field(repr=False)  # (vocab, d_model), as it stands
    mean: np.ndarray = field(repr=False)  # (d_model,)
    length: np.ndarray = field(repr=False)  # (vocab,) of what is left; endless where it is nothing

    def row(self, token: int) -> np.ndarray:
        """(d_model,) of length 1, or nothing."""
        unit: np.ndarray = (self.matrix[token] - self.mean) / self.length[token]
        return unit

    def near(self, towards: np.ndarray) -> np.ndarray:
        """(vocab,): the product of every row with (d_model,), which is its cosine where that has length 1."""
        found: np.ndarray = (self.matrix @ towards - self.mean @ towards) / self.length
        return found


def directions_of(matrix: np.ndarray) -> Directions:
    """Made once for a model: (vocab, d_model)."""
    mean = mean_row(matrix)
    length = np.concatenate([np.linalg.norm(block, axis=1) for block in centred(matrix, mean)])
    kind = matrix.dtype
    return Directions(matrix, mean.astype(kind), np.where(length > 1e-12, length, np.inf).astype(kind))


@dataclass(frozen=True, eq=False)
class Analogy:
    """Where b - a + c points, by cosine.

    `ids` are the nearest tokens, best first, the three that were put in among them; `cosine` goes with them.
    Of the expected token: its place (from 1) with the three left out, as the famous results were counted;
    its place with them in; and its place among the neighbours of c alone, without any arithmetic (Linzen
    2016): a legend that this already explains is none.
    """

    terms: tuple[int, int, int]
    expected: int
    ids: np.ndarray = field(repr=False)  # (count,)
    cosine: np.ndarray = field(repr=False)  # (count,)
    rank: int
    rank_of_all: int
    rank_near_c: int

    @property
    def nearest(self) -> int:
        """The token on top, whatever it is."""
        return int(self.ids[0])

    @property
    def answer(self) -> int:
        """The token on top, the three that were put in left out."""
        return next(int(i) for i in self.ids if int(i) not in self.terms)

    @property
    def holds(self) -> bool:
        """Whether the expected token comes first once the three are left out."""
        return self.rank == 1

    @property
    def needs_arithmetic(self) -> bool:
        """Whether the sum brings it nearer than c's neighbourhood alone."""
        return self.rank < self.rank_near_c


def analogy(known: Directions, terms: Sequence[int], expected: int, count: int = 10) -> Analogy:
    """`terms` (a, b, c): the tokens nearest to b - a + c, over rows of length 1 (3CosAdd).

    Raises ShapeError for other than three terms, ids outside the vocabulary, and an expected token that is
    one of the three.
    """
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
        rank_of_all=_rank(near, expected, ()),
        rank_near_c=_rank(known.near(known.row(c)), expected, (a, b, c)),
    )


def _checked(known: Directions, terms: Sequence[int], expected: int) -> tuple[int, int, int]:
    if len(terms) != 3 or not all(0 <= i < len(known.matrix) for i in (*terms, expected)):
        raise ShapeError("an analogy has three tokens of the vocabulary, and a fourth that is expected")
    if expected in terms:
        raise ShapeError("the expected token is one of the three that are put in")
    return terms[0], terms[1], terms[2]


def _rank(near: np.ndarray, token: int, without: Sequence[int]) -> int:
    """Place of a token, from 1, among all but `without`."""
    above = near > near[token]
    return 1 + int(above.sum()) - int(above[sorted(set(without))].sum())
