"""What the living map draws of one text: the last tokens as lanes through the model, small enough to be sent
to a browser whole, so that block, head, temperature and depth can be changed there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.errors import HeadError
from engine.measure.recording import Recording, record
from engine.measure.residual import outputs
from engine.model import Transformer

LANES = 16  # tokens that are drawn, the last ones
CELLS = 16  # of a strip: each is the mean of neighbouring numbers of a vector
NEURONS = 6  # of each block and lane, the most active
GUESSES = 3  # of each depth and lane
KEPT = 128  # likeliest tokens of the last lane, at each depth: top-k cuts among them
TEMPERATURES = tuple(tenth / 10 for tenth in range(1, 21))  # at which the others are added up
NEEDED = {
    "embed",
    "pattern",
    "resid_pre",
    "resid_mid",
    "resid_post",
    "norm2",
    "attn_out",
    "ffn_post",
    "ffn_out",
    "logits",
}


@dataclass(frozen=True, eq=False)
class Lanes:
    """The last tokens of a text on their way, `earlier` tokens stand before them. Depth 0 is the stream
    before the first block, depth i + 1 that after block i.

    A cell is the mean of a vector's neighbouring numbers, `pooled` of them (the fewest, the most). What
    a model lacks is None.
    """

    earlier: int
    pooled: tuple[int, int]
    stream: np.ndarray = field(repr=False)  # (depth, lane, cell)
    middle: np.ndarray | None = field(repr=False)  # (layer, lane, cell), resid_mid
    attention: np.ndarray | None = field(repr=False)  # (layer, lane, cell), attn_out
    feedforward: np.ndarray | None = field(repr=False)  # (layer, lane, cell), ffn_out
    # (layer, head, lane, 1 + lane): weights; the first column is all that goes to the earlier tokens
    patterns: np.ndarray | None = field(repr=False)
    neurons: np.ndarray | None = field(repr=False)  # (layer, lane, NEURONS) which, most active first
    active: np.ndarray | None = field(repr=False)  # (layer, lane, NEURONS) ffn_post of them


@dataclass(frozen=True, eq=False)
class Said:
    """What the model would say if it stopped at a depth (the logit lens): the likeliest tokens after each
    lane, best first, and their probabilities, (depth, lane, guess).
    """

    tokens: np.ndarray = field(repr=False)
    chances: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Outlook:
    """The next token after a text, at each depth: the KEPT likeliest, best first (of equal ones the smaller
    id), with their logits (depth, kept), and the others together: `rest` (depth, temperature) is
    ln sum exp(logit / T) over them at TEMPERATURES, -inf where there are none.

    With that, the probabilities of the kept at each of these temperatures and each top-k up to KEPT are
    exact: softmax over the kept alone after a cut, and with `rest` in the sum without one.
    """

    tokens: np.ndarray = field(repr=False)
    logits: np.ndarray = field(repr=False)
    rest: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Reading:
    """A text as a model read it. `streams` are those of the lanes, whole, for the lens; `logits` of the last
    token, None without an output head. `shapes` are of what was recorded, as axes and sizes.
    """

    ids: tuple[int, ...]
    lanes: Lanes = field(repr=False)
    streams: np.ndarray = field(repr=False)  # (depth, lane, d_model)
    logits: np.ndarray | None = field(repr=False)  # (vocab,)
    shapes: Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]] = field(repr=False)


def read(model: Transformer, ids: Sequence[int]) -> Reading:
    """One forward pass. Raises ShapeError as `record` does."""
    recording = record(model, ids, only=NEEDED)
    found = lanes(recording)
    streams = np.stack(outputs(recording))[:, found.earlier :]
    logits = recording["logits"][-1].copy() if "logits" in recording else None
    names = [name for name in recording.names() if name.count(".") == 0 or name.startswith("blocks.0.")]
    shapes = {n.rpartition(".")[2]: (recording.axes(n), recording[n].shape) for n in names}
    return Reading(tuple(ids), found, streams.copy(), logits, shapes)


def lanes(recording: Recording) -> Lanes:
    """What is drawn of the last LANES tokens."""
    shown = min(len(recording.ids), LANES)
    streams = np.stack(outputs(recording))[:, -shown:]  # (depth, lane, d_model)
    stream = strips(streams)
    sizes = edges(recording.config.d_model)
    counts = np.diff(sizes)
    which, active = _neurons(recording, shown)
    return Lanes(
        len(recording.ids) - shown,
        (int(counts.min()), int(counts.max())),
        stream,
        _strips(recording, "resid_mid", shown),
        _strips(recording, "attn_out", shown),
        _strips(recording, "ffn_out", shown),
        _patterns(recording, shown),
        which,
        active,
    )


def edges(width: int) -> np.ndarray:
    """Where the cells of a vector of `width` numbers begin and end: (cell + 1,), as even as can be.

    >>> edges(64).tolist()[:3], edges(10).tolist() == list(range(11))
    ([0, 4, 8], True)
    """
    cells = min(CELLS, width)
    return (np.arange(cells + 1) * width) // cells


def strips(vectors: np.ndarray) -> np.ndarray:
    """(..., d_model) -> (..., cell): means of neighbouring numbers."""
    at = edges(vectors.shape[-1])
    found: np.ndarray = np.add.reduceat(vectors, at[:-1], axis=-1) / np.diff(at)
    return found


def typical(values: np.ndarray) -> np.ndarray:
    """How large the largest number of a lane typically is: (row, lane, n) -> (row,), the median over lanes.
    The first token's stream may be a hundred times as long as the others' (Sun et al. 2024).
    """
    found: np.ndarray = np.median(np.abs(values).max(-1), axis=1)
    return found


def _strips(recording: Recording, name: str, shown: int) -> np.ndarray | None:
    if f"blocks.0.{name}" not in recording:
        return None
    return strips(recording.stacked(name)[:, -shown:])


def _patterns(recording: Recording, shown: int) -> np.ndarray | None:
    if "blocks.0.pattern" not in recording:
        return None
    drawn = recording.stacked("pattern")[:, :, -shown:]  # (layer, head, lane, key)
    before = drawn[..., : drawn.shape[-1] - shown].sum(-1, keepdims=True)
    return np.concatenate([before, drawn[..., drawn.shape[-1] - shown :]], axis=-1)


def _neurons(recording: Recording, shown: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(which, how active): (layer, lane, NEURONS) each, by the size of ffn_post."""
    if "blocks.0.ffn_post" not in recording:
        return None, None
    post = recording.stacked("ffn_post")[:, -shown:]  # (layer, lane, d_ff)
    which = np.argsort(-np.abs(post), axis=-1, kind="stable")[..., :NEURONS]
    return which, np.take_along_axis(post, which, axis=-1)


@torch.no_grad()
def depth_logits(model: Transformer, streams: np.ndarray) -> Tensor:
    """The logit lens (nostalgebraist 2020): the final norm and the output head, in the model's arithmetic, on
    streams (depth, lane, d_model) -> (depth, lane, vocab). Raises HeadError for a model without a head.
    """
    if not model.output.present:
        raise HeadError("this model has no output head: it gives vectors, and no logits")
    like = model.embedding
    x = torch.from_numpy(np.ascontiguousarray(streams)).to(device=like.device, dtype=like.dtype)
    return model.logits(x).float().cpu()


@torch.no_grad()
def said(logits: Tensor) -> Said:
    """Of logits (depth, lane, vocab)."""
    best = logits.topk(min(GUESSES, logits.shape[-1]), dim=-1)
    chances = (best.values - logits.logsumexp(-1, keepdim=True)).exp()
    return Said(best.indices.numpy(), chances.numpy())


@torch.no_grad()
def outlook(logits: Tensor) -> Outlook:
    """Of one lane's logits (depth, vocab)."""
    order = logits.topk(min(KEPT, logits.shape[-1]), dim=-1)
    others = logits.scatter(-1, order.indices, -torch.inf)
    rest = np.stack([_added_up(row) for row in others])
    return Outlook(order.indices.numpy(), order.values.numpy(), rest)


def _added_up(logits: Tensor) -> np.ndarray:
    """ln sum exp(logit / T) at TEMPERATURES: (vocab,) -> (temperature,). One row at a time stays in the
    processor's cache: a third of the time of all rows at once.
    """
    most = float(logits.max())
    if most == -math.inf:
        return np.full(len(TEMPERATURES), -np.inf, dtype=np.float32)
    below, scaled = logits - most, torch.empty_like(logits)
    sums = [float(torch.mul(below, 1 / t, out=scaled).exp_().sum()) for t in TEMPERATURES]
    added = [most / t + math.log(s) for t, s in zip(TEMPERATURES, sums, strict=True)]
    return np.array(added, dtype=np.float32)
