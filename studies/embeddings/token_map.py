"""Tokens as dots: the embedding on three principal axes, and how far such a picture can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from studies.embeddings.table import (
    Principal,
    aligned,
    correlation,
    neighbours,
    preserved_neighbours,
    principal,
    project,
    scores,
)

JOINED = 6  # neighbours of a token that a picture is asked for
OVERLAP_UP_TO = 600  # tokens: above, how well a picture keeps neighbours is told of a chosen token only
MARGIN = 0.08  # of the range of the dots, left free on either side


@dataclass(frozen=True, eq=False)
class Frame:
    """The principal axes of one step of a training, and how far its tokens reach on them."""

    principal: Principal
    low: np.ndarray  # (component,)
    high: np.ndarray  # (component,)
    reach: float  # of the outermost token from the mean


def frame(matrix: np.ndarray, met: np.ndarray) -> Frame:
    """Returns the frame of the rows `met` of E (vocab, d_model)."""
    seen = _rows(matrix, met)
    own = principal(seen)
    at = scores(seen, own.axes)
    return Frame(own, at.min(0), at.max(0), _reach(at))


@dataclass(frozen=True, eq=False)
class TokenMap:
    """The `scores` (vocab, 3) of tokens on axes that hold `variance_shares`, by the tokens met."""

    scores: np.ndarray = field(repr=False)
    variance_shares: np.ndarray
    principal: Principal
    ranges: tuple[tuple[float, float], ...]  # of each axis, with a margin
    reach: float  # of the outermost token from the mean, on three axes
    # mean number of the JOINED nearest tokens that a picture keeps near, in 2-D and in 3-D; None of many
    overlap: tuple[float, float] | None

    def share(self, components: int) -> float:
        """Returns the share of the variance in a picture of so many components."""
        return float(self.variance_shares[:components].sum())

    def holding(self, token: int) -> tuple[list[tuple[float, float]], float]:
        """Returns (ranges, reach) with room for one token, which may lie outside."""
        mine = self.scores[token].astype(float)
        ranges = [(min(low, at), max(high, at)) for (low, high), at in zip(self.ranges, mine, strict=True)]
        return ranges, max(self.reach, float(np.linalg.norm(mine)))

    def hits(self, token: int, near: np.ndarray, met: np.ndarray, components: int) -> int:
        """Returns how many of the tokens `near` are among as many nearest dots; dots are the tokens `met`."""
        flat = self.scores[:, :components].astype(np.float64)
        far = ((flat - flat[token]) ** 2).sum(1)
        drawn = np.zeros(len(far), dtype=bool)
        drawn[met] = True
        far[~drawn] = far[token] = np.inf
        return int(np.isin(near, np.argsort(far, kind="stable")[: len(near)]).sum())


def token_map(
    matrix: np.ndarray, met: np.ndarray, newest: Frame | None = None, step_axes: bool = True
) -> TokenMap:
    """Puts E (vocab, d_model) on its principal axes, which the rows `met` decide. With the frame of a
    training's `newest` step the scale holds still while steps change; the axes are that step's, or with
    `step_axes` this step's, turned to the same side.
    """
    seen = _rows(matrix, met)
    own = principal(seen)
    if newest is not None:
        own = aligned(own, newest.principal)
    axes = own.axes if step_axes or newest is None else newest.principal.axes
    at, kept = project(seen, axes)
    low, high, reach = at.min(0), at.max(0), _reach(at)
    if newest is not None:
        low, high = np.minimum(low, newest.low), np.maximum(high, newest.high)
        reach = max(reach, newest.reach)
    pad = MARGIN * np.maximum(high - low, 1e-6)
    overlap = None
    if len(seen) <= OVERLAP_UP_TO:
        flat, solid = (preserved_neighbours(seen, at[:, :count], JOINED).mean() for count in (2, 3))
        overlap = float(flat), float(solid)
    # A token that was never met has its place too, if it is chosen.
    mean = seen.mean(0, dtype=np.float64)
    every = at if seen is matrix else scores(matrix, axes, mean).astype(np.float32)
    ranges = tuple((float(a), float(b)) for a, b in zip(low - pad, high + pad, strict=True))
    return TokenMap(every, kept, own, ranges, reach or 1.0, overlap)


def nearest(matrix: np.ndarray, token: int, met: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns (ids, cosines) of the tokens nearest to `token`, best first, among those that were met."""
    rows = np.union1d(met, token)
    near, cosine = neighbours(_rows(matrix, rows), int(np.searchsorted(rows, token)), count)
    return rows[near], cosine


@dataclass(frozen=True)
class FrequencyLinks:
    """Pearson's r with token frequency, of each component and of the rows' lengths; or NaN."""

    components: tuple[float, ...]
    lengths: float

    @property
    def best(self) -> int:
        """The component that correlates most with frequency; 0 where none does."""
        sizes = np.abs(self.components)
        return int(np.nanargmax(sizes)) if np.isfinite(sizes).any() else 0


def frequency_links(
    matrix: np.ndarray, scores: np.ndarray, frequency: np.ndarray, met: np.ndarray
) -> FrequencyLinks:
    """Correlates the rows `met` of E (vocab, d_model) and their scores (vocab, component) with frequency."""
    rows = frequency[met]
    parts = tuple(correlation(column, rows) for column in scores[met].T)
    seen = _rows(matrix, met)
    return FrequencyLinks(parts, correlation(np.sqrt(np.einsum("rd,rd->r", seen, seen)), rows))


def _rows(matrix: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Returns some rows, ids ascending; the matrix itself where that is all of them."""
    return matrix if len(ids) == len(matrix) else matrix[ids]


def _reach(scores: np.ndarray) -> float:
    """Returns the distance of the outermost dot from the mean."""
    return float(np.linalg.norm(scores, axis=1).max())


@dataclass(frozen=True)
class Alike:
    """The number `same` of a token's `of` nearest that are of its class, and that expected by chance."""

    same: int
    of: int
    expected: float


def alike(classes: np.ndarray, token: int, near: np.ndarray, met: np.ndarray) -> Alike:
    """Counts the tokens `near` (ids) of the same class (vocab,), and how many `met` ones would be."""
    others = met[met != token]
    own = classes[token]
    share = float((classes[others] == own).mean()) if len(others) else 0.0
    return Alike(int((classes[near] == own).sum()), len(near), share * len(near))
