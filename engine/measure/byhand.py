"""Attention on numbers small enough for pencil and paper, and shape mistakes run for real. float64
throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from engine.config import ModelConfig
from engine.errors import ConfigError, ShapeError
from engine.model import build


@dataclass(frozen=True, eq=False)
class HandExample:
    """Every stage of multi-head attention, without W_Q, W_K, W_V and W_O: q, k and v are given."""

    q: np.ndarray  # (head, query, d_head)
    k: np.ndarray  # (head, key, d_head)
    v: np.ndarray  # (head, key, d_head)
    raw: np.ndarray  # (head, query, key): q k^T
    scaled: np.ndarray  # raw / sqrt(d_head)
    masked: np.ndarray  # -inf where a key is hidden
    pattern: np.ndarray  # softmax of it; rows sum to 1
    z: np.ndarray  # (head, query, d_head): pattern v
    out: np.ndarray  # (query, d): the heads side by side

    @property
    def d_head(self) -> int:
        return int(self.q.shape[-1])


def multi_head(
    q: Sequence[Sequence[float]],
    k: Sequence[Sequence[float]],
    v: Sequence[Sequence[float]],
    heads: int,
    hidden: Sequence[int] = (),
) -> HandExample:
    """q (query, d), k and v (key, d) as rows of numbers; `hidden` keys are masked (Vaswani et al. 2017, 3.2).

    Raises ShapeError when the rows do not fit each other, when `heads` does not divide d, or when no key is
    left to look at.
    """
    rows = [*q, *k, *v]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or 0 in widths:
        raise ShapeError(
            "every row must have the same number of numbers; here there are rows of"
            f" {', '.join(str(n) for n in sorted(widths))}"
        )
    width = widths.pop()
    if len(k) != len(v):
        raise ShapeError(
            f"there are {len(k)} keys but {len(v)} values: every key needs the value that it leads to"
        )
    if heads < 1 or width % heads:
        raise ShapeError(f"{heads} heads cannot share {width} numbers evenly")
    qs, ks, vs = (_split(np.asarray(x, dtype=np.float64), heads) for x in (q, k, v))
    raw = qs @ ks.swapaxes(1, 2)
    scaled = raw / math.sqrt(width // heads)
    masked = _hide(scaled, hidden)
    pattern = softmax(masked)
    z = pattern @ vs
    return HandExample(qs, ks, vs, raw, scaled, masked, pattern, z, z.swapaxes(0, 1).reshape(len(q), width))


@dataclass(frozen=True, eq=False)
class MaskExample:
    """One row of scores, masked at the right place and at the wrong one. All (key,)."""

    scores: np.ndarray
    masked: np.ndarray  # -inf where hidden
    weights: np.ndarray  # softmax of `masked`: sums to 1
    unmasked: np.ndarray  # softmax of the scores: sums to 1, and sees what it must not
    late: np.ndarray  # that, with the hidden weights set to 0: sums to less than 1

    @property
    def shift(self) -> float:
        """What is taken off every score before the exponential: 0, or the largest where e to that power would
        be no number. No weight changes.
        """
        largest = float(self.masked.max())
        return largest if abs(largest) > 50 else 0.0

    @property
    def exponentials(self) -> np.ndarray:
        """e^(masked - shift); 0 where hidden."""
        return np.exp(self.masked - self.shift)


def masking(scores: Sequence[float], hidden: Sequence[int]) -> MaskExample:
    """The same mask before the softmax and after it. Raises ShapeError when there are no scores, or none left
    to look at.
    """
    row = np.asarray(scores, dtype=np.float64)
    if row.ndim != 1 or not row.size:
        raise ShapeError("give at least one score")
    masked = _hide(row, hidden)
    unmasked = softmax(row)
    late = unmasked.copy()
    late[list(hidden)] = 0.0
    return MaskExample(row, masked, softmax(masked), unmasked, late)


def softmax(x: np.ndarray) -> np.ndarray:
    """e^x / sum e^x over the last axis, from which the largest was taken first so that nothing overflows."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _split(x: np.ndarray, heads: int) -> np.ndarray:
    """(rows, d) -> (head, rows, d_head)"""
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def _hide(scores: np.ndarray, hidden: Sequence[int]) -> np.ndarray:
    keys = scores.shape[-1]
    if any(not 0 <= i < keys for i in hidden):
        raise ShapeError(f"a hidden key must be one of 0 to {keys - 1}")
    if len(set(hidden)) == keys:
        raise ShapeError("every key is hidden: a softmax over nothing has no value, so leave at least one")
    masked = scores.copy()
    masked[..., list(hidden)] = -np.inf
    return masked


# Mistakes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """What happened when a mistake was run. `shapes` went in; then either `made` came out, or `errors` (who,
    words) were raised.
    """

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    made: tuple[int, ...] | None
    errors: tuple[tuple[str, str], ...]
    harm: float | None = None  # largest difference from the right result, where the mistake went unnoticed


def split_heads(d_model: int, n_heads: int) -> Attempt:
    """Split d_model into heads: what the configuration says of it, and what torch does."""
    errors = []
    x = torch.zeros(1, 6, d_model)
    made: tuple[int, ...] | None = None
    try:
        ModelConfig(d_model=d_model, n_heads=n_heads).validate()
    except ConfigError as error:
        errors.append(("ConfigError", str(error)))
    try:
        made = tuple(x.unflatten(-1, (n_heads, d_model // n_heads)).shape)
    except RuntimeError as error:
        errors.append(("RuntimeError", _first_line(error)))
    return Attempt((("x", tuple(x.shape)),), made, tuple(errors))


def transposed_unembedding(d_model: int, vocab_size: int) -> Attempt:
    """x W_U^T where W_U should stand. When vocab_size = d_model it goes through, and `harm` is how far the
    logits are off.
    """
    model = build(ModelConfig(vocab_size=vocab_size, context=6, d_model=d_model, n_layers=1, n_heads=1))
    x = torch.empty(1, 6, d_model).normal_(generator=torch.Generator().manual_seed(0))
    wrong = model.output_matrix.detach().T
    shapes = (("x", tuple(x.shape)), ("W", tuple(wrong.shape)))
    try:
        logits = F.linear(x, wrong)
    except RuntimeError as error:
        return Attempt(shapes, None, (("RuntimeError", _first_line(error)),))
    return Attempt(shapes, tuple(logits.shape), (), float((logits - F.linear(x, wrong.T)).abs().max()))


def wrong_mask(length: int, mask_size: int, n_heads: int = 4) -> Attempt:
    """A causal mask made for another length, added to scores. A mask of one row fits everything; `harm` is
    then the weight on the future.
    """
    from engine.parts.attention import causal_mask

    scores = torch.zeros(1, n_heads, length, length)
    mask = causal_mask(mask_size, scores)
    shapes = (("scores", tuple(scores.shape)), ("mask", tuple(mask.shape)))
    try:
        pattern = (scores + mask).softmax(dim=-1)
    except RuntimeError as error:
        return Attempt(shapes, None, (("RuntimeError", _first_line(error)),))
    return Attempt(shapes, tuple(pattern.shape), (), float(pattern.triu(1).sum(dim=-1).max()))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
