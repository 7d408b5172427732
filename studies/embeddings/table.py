"""The token embedding as a table of vectors: the lookup, principal axes, and nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F

from engine.config import ModelConfig
from engine.errors import ShapeError
from engine.model import Transformer, build
from engine.recording import Recording

BLOCK = 4096  # rows that are worked on at a time: more do not stay in the processor's cache
READABLE = 20_000  # sums of a token's and a position's vector that are read back
INSIDE = 0.995  # of the entries that a scale of colours holds: a few outliers would take its middle away


# The lookup -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lookup:
    """The way from ids to what the first block reads. Both differences are the largest by size."""

    ids: tuple[int, ...]
    rows: np.ndarray = field(repr=False)  # (query, d_model): E[ids]
    # (query, d_model): the position vectors, where the scheme adds any here
    added: np.ndarray | None = field(repr=False)
    entered: np.ndarray = field(repr=False)  # (query, d_model): what the first block reads
    onehot_difference: float  # between the rows and one_hot(ids) @ E, times sqrt(d_model) where so scaled
    sum_difference: float  # between `entered` and rows + added (+ type), normed where they are
    vocab_size: int

    @property
    def different(self) -> int:
        """Distinct rows of E that the text takes."""
        return len(set(self.ids))

    def occurrences(self, position: int) -> int:
        """Returns how many positions take the same row as this one, itself among them."""
        return self.ids.count(self.ids[position])

    @property
    def parameters(self) -> int:
        """Numbers in E: V d."""
        return self.vocab_size * self.rows.shape[1]

    @property
    def multiplications(self) -> int:
        """Multiplications of one-hot rows, (query, vocab) @ (vocab, d_model): T V d. Copying needs none."""
        return self.rows.shape[0] * self.parameters

    @property
    def mean_lengths(self) -> tuple[float, float] | None:
        """The mean lengths of a token's vector and of a position's; None where none is added."""
        if self.added is None:
            return None
        return float(_lengths(self.rows).mean()), float(_lengths(self.added).mean())

    def at(self, position: int) -> list[tuple[np.ndarray, float]]:
        """Returns (vector (d_model,), length) at a position: the row, and an added position and their sum."""
        parts = [self.rows] if self.added is None else [self.rows, self.added, self.entered]
        return [(part[position], float(_lengths(part[[position]])[0])) for part in parts]


@torch.inference_mode()
def lookup(model: Transformer, recording: Recording) -> Lookup:
    """Reads off the embedding of a text, checked against one_hot(ids) (query, vocab) @ E."""
    matrix = model.embedding.detach().float()
    one_hot = F.one_hot(torch.tensor(recording.ids), len(matrix)).to(matrix.dtype)  # (query, vocab)
    product = (one_hot @ matrix * (model.embedding_scale or 1.0)).numpy()
    rows, entered = recording["embed"], recording["blocks.0.resid_pre"]
    added = recording.get("pos_embed")
    total = rows if added is None else rows + added
    if (type_row := recording.get("type_embed")) is not None:
        total = total + type_row
    if model.norm_embed is not None:
        total = model.norm_embed(torch.tensor(total)).numpy()
    return Lookup(
        recording.ids,
        rows,
        added,
        entered,
        float(np.abs(product - rows).max()),
        float(np.abs(entered - total).max()),
        len(matrix),
    )


@dataclass(frozen=True)
class Readout:
    """Shares of all sums E[v] + P[t] from which a linear readout recovers the token, and the position;
    `cosine` is the mean absolute cosine of a token's and a position's vector.
    """

    sums: int
    tokens: float
    positions: float
    cosine: float


def readout(matrix: np.ndarray, added: np.ndarray) -> Readout | None:
    """Reads token and position back from their sums: the nearest row of E less the mean position, and the
    nearest row of P less the mean token, both linear in the sum.

    matrix (vocab, d_model), added (query, d_model). None where there are more than READABLE sums.
    """
    tokens, places = matrix.astype(np.float64), added.astype(np.float64)
    if len(tokens) * len(places) > READABLE or len(places) < 2:
        return None
    sums = tokens[:, None] + places  # (vocab, query, d_model)
    near_token = _nearest(sums - places.mean(0), tokens) == np.arange(len(tokens))[:, None]
    near_place = _nearest(sums - tokens.mean(0), places) == np.arange(len(places))
    cosine = np.abs(_unit(tokens) @ _unit(places).T)
    return Readout(near_token.size, float(near_token.mean()), float(near_place.mean()), float(cosine.mean()))


def _nearest(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Returns the index of the row at the smallest distance, for each vector (..., d_model)."""
    return (vectors @ rows.T - 0.5 * (rows * rows).sum(1)).argmax(-1)


def embedding_of(model: Transformer) -> np.ndarray:
    """Returns E, (vocab, d_model) float32."""
    return model.embedding.detach().float().cpu().numpy()


def fresh_embedding(config: ModelConfig) -> np.ndarray:
    """Returns E at the start of training, (vocab, d_model) float32; drawn first, so one block suffices."""
    return embedding_of(build(replace(config, n_layers=1)))


def reach(matrix: np.ndarray, inside: float = INSIDE) -> float:
    """Returns the end of a scale around zero that holds the share `inside` of all entries; 1 for zeros."""
    return float(np.quantile(np.abs(matrix), inside)) or 1.0


def _lengths(rows: np.ndarray) -> np.ndarray:
    """Returns the Euclidean length of each row."""
    return np.linalg.norm(rows, axis=1)


# Principal components ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Principal:
    """The directions in which a matrix's rows differ most (Pearson 1901), and shares of the variance."""

    axes: np.ndarray = field(repr=False)  # (component, d_model), of length 1
    shares: np.ndarray = field(repr=False)  # (min(rows - 1, d_model),), summing to 1


def principal(matrix: np.ndarray, count: int = 3) -> Principal:
    """Returns the first `count` principal axes of the rows of `matrix` (row, d_model), by the eigenvectors of
    their covariance. The sign is chosen so that the scores' third moment is positive: the longer tail points
    to the right or up. Missing axes are zero. Raises ShapeError for what is not a matrix.
    """
    if matrix.ndim != 2 or not matrix.size:
        raise ShapeError(f"principal axes need a matrix (row, d_model), not shape {matrix.shape}")
    blocks = centred(matrix)
    values, vectors = np.linalg.eigh(sum((block.T @ block).astype(np.float64) for block in blocks))
    values, vectors = np.clip(values[::-1], 0, None), vectors[:, ::-1]  # ascending, as they come
    axes = np.zeros((count, matrix.shape[1]))
    axes[: min(count, matrix.shape[1])] = vectors.T[:count]
    axes *= np.where((scores(matrix, axes) ** 3).sum(0) < 0, -1.0, 1.0)[:, None]
    kept = values[: max(1, min(len(matrix) - 1, matrix.shape[1]))]
    total = float(kept.sum())
    return Principal(axes, kept / total if total > 0 else np.zeros_like(kept))


def aligned(principal: Principal, reference: Principal) -> Principal:
    """Returns the same axes, each turned to the reference's side, so that no picture is mirrored."""
    signs = np.where((principal.axes * reference.axes).sum(1) < 0, -1.0, 1.0)
    return Principal(principal.axes * signs[:, None], principal.shares)


def project(matrix: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns scores (row, component) float32 and the share of the rows' variance on each axis (component,).
    The mean row is taken off first. On the axes of another step the shares are smaller than on the rows' own.
    """
    result = scores(matrix, axes)
    total = sum(float(np.vdot(block, block)) for block in centred(matrix))
    kept = (result**2).sum(0) / total if total > 0 else np.zeros(len(axes))
    return result.astype(np.float32), kept


def scores(matrix: np.ndarray, axes: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """Returns the rows' coordinates on axes (component, d_model), less `mean`: (row, component) float64."""
    blocks = [block @ axes.T.astype(block.dtype) for block in centred(matrix, mean)]
    return np.concatenate(blocks).astype(np.float64)


def random_shares(rows: int, width: int) -> np.ndarray:
    """Returns variance shares of normal random numbers (rows, width): chance. For many rows the covariance
    alone is drawn, as the product of a random triangle with itself, which is distributed alike (Bartlett
    1933): a triangle of width 576 instead of 49,152 rows.
    """
    generator = np.random.default_rng(0)
    if rows <= BLOCK:
        return principal(generator.standard_normal((rows, width))).shares
    triangle = np.tril(generator.standard_normal((width, width)), -1)
    freedom = np.arange(rows - 1, rows - 1 - width, -1)  # one is spent on the mean row
    np.fill_diagonal(triangle, np.sqrt(generator.chisquare(freedom)))
    values = np.linalg.eigvalsh(triangle @ triangle.T)[::-1]
    return values / values.sum()


def held_by(shares: np.ndarray, components: int) -> float:
    """Returns the sum of the first shares (component,)."""
    return float(shares[:components].sum())


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Returns Pearson's r of two arrays of one size; NaN where one of them does not vary."""
    a, b = a.astype(np.float64).ravel() - a.mean(), b.astype(np.float64).ravel() - b.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / size) if size > 1e-12 else float("nan")


# Who is near whom -------------------------------------------------------------------------------


def directions(
    matrix: np.ndarray, centre: bool = True, rows: Sequence[int] | np.ndarray | None = None
) -> np.ndarray:
    """Returns (some) rows (row, d_model), less the mean row, of length 1; zeros stay zero."""
    mean = mean_row(matrix) if centre else np.zeros(matrix.shape[1])
    some = matrix if rows is None else matrix[np.asarray(rows, dtype=np.int64)]
    blocks = [_unit(block) for block in centred(some, mean)]
    return np.concatenate(blocks) if blocks else np.zeros((0, matrix.shape[1]))


def cosines(
    matrix: np.ndarray, rows: Sequence[int] | np.ndarray | None = None, centre: bool = True
) -> np.ndarray:
    """Returns the cosines of every two rows after the mean row is subtracted (`centre`): (row, row),
    float32.
    """
    some = directions(matrix, centre, rows)
    return np.clip(some @ some.T, -1, 1).astype(np.float32)


def neighbours(matrix: np.ndarray, token: int, count: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Returns (ids, cosines) of the rows nearest to a token's, best first, itself left out."""
    mean = mean_row(matrix)
    own = directions(matrix, rows=[token])[0]
    near = np.concatenate([_unit(block) @ own.astype(block.dtype) for block in centred(matrix, mean)])
    order = np.argsort(-near, kind="stable")
    order = order[order != token][:count]
    return order, near[order].astype(np.float32)


def preserved_neighbours(matrix: np.ndarray, scores: np.ndarray, count: int = 6) -> np.ndarray:
    """Returns how many of each token's `count` nearest by cosine are also its nearest dots in a picture:
    (vocab,) int64. matrix (vocab, d_model), scores (vocab, component) of the picture. It takes vocab^2
    numbers: for small vocabularies.
    """
    near = cosines(matrix)
    np.fill_diagonal(near, -2)
    flat = scores.astype(np.float64)
    lengths = (flat * flat).sum(1)
    far = lengths[:, None] + lengths[None, :] - 2 * flat @ flat.T
    np.fill_diagonal(far, np.inf)
    count = min(count, len(matrix) - 1)
    true, drawn = (
        np.argsort(-near, axis=1, kind="stable")[:, :count],
        np.argsort(far, axis=1, kind="stable")[:, :count],
    )
    return (true[:, :, None] == drawn[:, None, :]).sum((1, 2))


# The arithmetic ---------------------------------------------------------------------------------


def mean_row(matrix: np.ndarray) -> np.ndarray:
    """Returns the mean row, float64: (d_model,)."""
    return matrix.mean(0, dtype=np.float64)


def centred(matrix: np.ndarray, mean: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """Yields the rows less their mean or `mean`, BLOCK at a time: float64, of more rows float32."""
    kind = np.float64 if len(matrix) <= BLOCK else np.float32
    mean = (mean_row(matrix) if mean is None else mean).astype(kind)
    for at in range(0, max(1, len(matrix)), BLOCK):  # of no rows one block, which holds none
        yield np.subtract(matrix[at : at + BLOCK], mean, dtype=kind)


def _unit(rows: np.ndarray) -> np.ndarray:
    """Makes each row of length 1; those of no length stay zero."""
    lengths = np.sqrt(np.einsum("rd,rd->r", rows, rows))[:, None]
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 1e-12)
