"""Tokens as dots: the embedding on three principal axes, and how far such a picture can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.measure.embeddings.table import (
    Principal,
    aligned,
    correlation,
    kept_neighbours,
    neighbours,
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

    found: Principal
    low: np.ndarray  # (component,)
    high: np.ndarray  # (component,)
    reach: float  # of the outermost token from the mean


def frame(matrix: np.ndarray, met: np.ndarray) -> Frame:
    """Of the rows `met` of E (vocab, d_model)."""
    seen = _rows(matrix, met)
    found = principal(seen)
    at = scores(seen, found.axes)
    return Frame(found, at.min(0), at.max(0), _reach(at))


@dataclass(frozen=True, eq=False)
class TokenMap:
    """`scores` (vocab, 3) on axes that keep `kept` (3,) of this step's variance; `own` are this step's own
    axes. All but the scores are of the tokens that were met.
    """

    scores: np.ndarray = field(repr=False)
    kept: np.ndarray
    own: Principal
    ranges: tuple[tuple[float, float], ...]  # of each axis, with a margin
    reach: float  # of the outermost token from the mean, on three axes
    # mean number of the JOINED nearest tokens that a picture keeps near, in 2-D and in 3-D; None of many
    overlap: tuple[float, float] | None

    def share(self, components: int) -> float:
        """Of the variance that a picture of so many components keeps."""
        return float(self.kept[:components].sum())

    def holding(self, token: int) -> tuple[list[tuple[float, float]], float]:
        """(ranges, reach) with room for one token: it may lie outside, where nothing has taught it."""
        mine = self.scores[token].astype(float)
        ranges = [(min(low, at), max(high, at)) for (low, high), at in zip(self.ranges, mine, strict=True)]
        return ranges, max(self.reach, float(np.linalg.norm(mine)))

    def hits(self, token: int, near: np.ndarray, met: np.ndarray, components: int) -> int:
        """How many of the tokens `near` are among as many nearest dots; dots are the tokens `met`."""
        flat = self.scores[:, :components].astype(np.float64)
        far = ((flat - flat[token]) ** 2).sum(1)
        drawn = np.zeros(len(far), dtype=bool)
        drawn[met] = True
        far[~drawn] = far[token] = np.inf
        return int(np.isin(near, np.argsort(far, kind="stable")[: len(near)]).sum())


def token_map(
    matrix: np.ndarray, met: np.ndarray, newest: Frame | None = None, own_axes: bool = True
) -> TokenMap:
    """E (vocab, d_model) on its principal axes, which the rows `met` decide.

    With the frame of a training's `newest` step the scale holds still while steps change, so that growing is
    seen as growing; the axes are that step's, or with `own_axes` this step's own, turned to the same side.
    """
    seen = _rows(matrix, met)
    own = principal(seen)
    if newest is not None:
        own = aligned(own, newest.found)
    axes = own.axes if own_axes or newest is None else newest.found.axes
    at, kept = project(seen, axes)
    low, high, reach = at.min(0), at.max(0), _reach(at)
    if newest is not None:
        low, high = np.minimum(low, newest.low), np.maximum(high, newest.high)
        reach = max(reach, newest.reach)
    pad = MARGIN * np.maximum(high - low, 1e-6)
    overlap = None
    if len(seen) <= OVERLAP_UP_TO:
        flat, solid = (kept_neighbours(seen, at[:, :count], JOINED).mean() for count in (2, 3))
        overlap = float(flat), float(solid)
    # A token that was never met has its place too, if it is chosen.
    mean = seen.mean(0, dtype=np.float64)
    every = at if seen is matrix else scores(matrix, axes, mean).astype(np.float32)
    ranges = tuple((float(a), float(b)) for a, b in zip(low - pad, high + pad, strict=True))
    return TokenMap(every, kept, own, ranges, reach or 1.0, overlap)


def nearest(matrix: np.ndarray, token: int, met: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(ids, cosines) of the tokens nearest to one, best first, among those that were met."""
    rows = np.union1d(met, token)
    near, cosine = neighbours(_rows(matrix, rows), int(np.searchsorted(rows, token)), count)
    return rows[near], cosine


@dataclass(frozen=True)
class FrequencyLinks:
    """Pearson's r with the frequency of tokens, of each component and of the rows' lengths; NaN where nothing
    varies.
    """

    components: tuple[float, ...]
    lengths: float

    @property
    def best(self) -> int:
        """The component that goes most with frequency, one way or the other; 0 where none does."""
        sizes = np.abs(self.components)
        return int(np.nanargmax(sizes)) if np.isfinite(sizes).any() else 0


def frequency_links(
    matrix: np.ndarray, scores: np.ndarray, frequency: np.ndarray, met: np.ndarray
) -> FrequencyLinks:
    """Of the rows `met` of E (vocab, d_model): their scores (vocab, component), frequency (vocab,)."""
    rows = frequency[met]
    parts = tuple(correlation(column, rows) for column in scores[met].T)
    seen = _rows(matrix, met)
    return FrequencyLinks(parts, correlation(np.sqrt(np.einsum("rd,rd->r", seen, seen)), rows))


def _rows(matrix: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Those rows, ids ascending; the matrix itself where that is all of them: a real one is large."""
    return matrix if len(ids) == len(matrix) else matrix[ids]


def _reach(scores: np.ndarray) -> float:
    """Distance of the outermost dot from the mean."""
    return float(np.linalg.norm(scores, axis=1).max())


@dataclass(frozen=True)
class Alike:
    """How many of a token's nearest are of its class, and how many would be if any `of` tokens were."""

    same: int
    of: int
    expected: float


def alike(classes: np.ndarray, token: int, near: np.ndarray, met: np.ndarray) -> Alike:
    """Of the tokens `near` (ids) of one token; classes (vocab,). By chance its class has the share among its
    neighbours that it has among all other tokens `met`.
    """
    others = met[met != token]
    own = classes[token]
    share = float((classes[others] == own).mean()) if len(others) else 0.0
    return Alike(int((classes[near] == own).sum()), len(near), share * len(near))
