"""The living map of one text: the last tokens as lanes, small enough for a browser."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.errors import HeadError
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.probe import axes_of
from engine.recording import Recording, record
from studies.costs.cards.table import card_of
from studies.residual.stream import outputs

CELLS = 16  # of a strip: each is the mean of neighbouring numbers of a vector


@dataclass(frozen=True, eq=False)
class Norms:
    """The norms as strips and sizes: `attention` is the one that attention reads, `feedforward` the one that
    the network reads; None where there is none. In a post-norm block attention's ends the sum, and the one
    after the network is the stream itself.
    """

    attention: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (layer, lane, cell)
    attention_sizes: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (layer, lane)
    feedforward: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    feedforward_sizes: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    final: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (1, lane, cell)
    final_sizes: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (1, lane)


@dataclass(frozen=True, eq=False)
class PositionLanes:
    """The position's part: what enters before the first block, and what turns or biases attention."""

    # (2, lane, cell), (2, lane): the embedding alone and what is added to it for the place
    entering: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    entering_sizes: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    # (2, lane): degrees, 0 to 360, by which the fastest and the slowest pair of q and k are turned
    turned: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    # (head, lane, 2): what is added to the scores of the token before and of the first one
    added: np.ndarray | None = field(repr=False, metadata={"lane": 1})


def edges(width: int) -> np.ndarray:
    """Returns the borders of the cells of a vector of `width` numbers, as even as can be: (cell + 1,).

    >>> edges(64).tolist()[:3], edges(10).tolist() == list(range(11))
    ([0, 4, 8], True)
    """
    cells = min(CELLS, width)
    return (np.arange(cells + 1) * width) // cells


def strips(vectors: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """Returns means of neighbouring numbers, (..., d_model) -> (..., cell), and (fewest, most) of them."""
    at = edges(vectors.shape[-1])
    counts = np.diff(at)
    result: np.ndarray = np.add.reduceat(vectors, at[:-1], axis=-1) / counts
    return result, (int(counts.min()), int(counts.max()))


def size(vectors: np.ndarray) -> np.ndarray:
    """Returns the root mean square, (..., n) -> (...)."""
    return np.sqrt(np.square(vectors, dtype=np.float64).mean(-1)).astype(np.float32)


def norms(model: Transformer, recording: Recording, shown: int) -> Norms:
    """Returns the norms of the last `shown` recorded tokens."""
    config, parts = model.config, model.parts
    there = parts.norm(config).present
    ends = parts.wiring(config).ends_normed

    def strips_and_sizes(name: str, present: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
        if not (there and present and f"blocks.0.{name}" in recording):
            return None, None
        rows = recording.stacked(name)[:, -shown:]
        return strips(rows)[0], size(rows)

    mixes, feeds = parts.mixer(config).present, parts.feedforward(config).present
    attention = strips_and_sizes("norm1", mixes and not ends)
    feedforward = strips_and_sizes("norm1", mixes) if ends else strips_and_sizes("norm2", feeds)
    final: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    if there and not ends and "norm_final" in recording:
        last = recording["norm_final"][None, -shown:]
        final = strips(last)[0], size(last)
    return Norms(*attention, *feedforward, *final)


@torch.no_grad()
def placed(model: Transformer, recording: Recording, shown: int, length: int) -> PositionLanes:
    """Returns what positions add to, turn or bias, for the last `shown` of `length` tokens."""
    entering = sizes = turned = added = None
    scheme = model.parts.position(model.config)
    mixes = card_of(model.parts.mixer(model.config)).scored
    if "pos_embed" in recording:
        both = np.stack([recording["embed"][-shown:], recording["pos_embed"][-shown:]])
        entering, sizes = strips(both)[0], size(both)
    if mixes and "rotate" in scheme.enters:
        turned = _turned(model, length)[:, -shown:]
    elif mixes and "bias" in scheme.enters:
        hooks = model.hooks(length, model.embedding)
        zeros = model.embedding.new_zeros(1, model.config.n_heads, length, length)
        bias = hooks.bias(zeros)[0].float().cpu().numpy()  # (head, query, key)
        place = np.arange(length)
        added = np.stack([bias[:, place, np.maximum(place - 1, 0)], bias[:, :, 0]], axis=-1)[:, -shown:]
    return PositionLanes(entering, sizes, turned, added)


def _turned(model: Transformer, length: int) -> np.ndarray:
    """Returns the degrees of the fastest and slowest pair, (2, length); i pairs with i + d_rotary / 2."""
    half = model.config.d_rotary // 2
    units = model.embedding.new_zeros(2, 1, length, model.config.d_head)
    units[0, ..., 0] = units[1, ..., half - 1] = 1
    seen = model.hooks(length, model.embedding).turn(units)[:, 0].float().cpu().numpy()
    pairs = [(0, half), (half - 1, 2 * half - 1)]
    angles = np.stack([np.arctan2(turn[:, b], turn[:, a]) for turn, (a, b) in zip(seen, pairs, strict=True)])
    return (np.degrees(angles) % 360).astype(np.float32)


GUESSES = 3  # of each depth and lane
KEPT = 128  # likeliest tokens of the last lane, at each depth: top-k cuts among them
TEMPERATURES = tuple(tenth / 10 for tenth in range(1, 21))  # at which the others are added up
LEAST = -80.0  # e to the power of less is no ordinary float32: it would add nothing, at ten times the time


@dataclass(frozen=True, eq=False)
class DepthPredictions:
    """The logit lens: the likeliest tokens after each lane and their chances, (depth, lane, guess)."""

    tokens: np.ndarray = field(repr=False)
    chances: np.ndarray = field(repr=False)

    def after(self, other: DepthPredictions, lanes: slice) -> DepthPredictions:
        """Puts those lanes of another one in front."""
        return DepthPredictions(
            np.concatenate([other.tokens[:, lanes], self.tokens], axis=1),
            np.concatenate([other.chances[:, lanes], self.chances], axis=1),
        )


@dataclass(frozen=True, eq=False)
class Outlook:
    """The next token at each depth: the KEPT likeliest, with logits (depth, kept), and the others together.

    `rest` (depth, temperature) is ln sum exp(logit / T) over the others at TEMPERATURES, -inf where there are
    none. With that, probabilities at each of these temperatures and each top-k up to KEPT are exact.
    """

    tokens: np.ndarray = field(repr=False)
    logits: np.ndarray = field(repr=False)
    rest: np.ndarray = field(repr=False)


@torch.no_grad()
def depth_logits(model: Transformer, streams: np.ndarray) -> Tensor:
    """Returns the logit lens: (depth, lane, d_model) -> (depth, lane, vocab). Raises HeadError."""
    if not model.output.present:
        raise HeadError("this model has no output head: it gives vectors, and no logits")
    like = model.embedding
    x = torch.from_numpy(np.ascontiguousarray(streams)).to(device=like.device, dtype=like.dtype)
    return model.logits(x).float().cpu()


@torch.no_grad()
def likeliest_tokens(logits: Tensor) -> DepthPredictions:
    """Returns the GUESSES likeliest tokens of logits (depth, lane, vocab)."""
    best = logits.topk(min(GUESSES, logits.shape[-1]), dim=-1)
    chances = (best.values - logits.logsumexp(-1, keepdim=True)).exp()
    return DepthPredictions(best.indices.numpy(), chances.numpy())


@torch.no_grad()
def outlook(logits: Tensor) -> Outlook:
    """Returns the outlook of one lane's logits (depth, vocab)."""
    order = logits.topk(min(KEPT, logits.shape[-1]), dim=-1)
    others = logits.scatter(-1, order.indices, -torch.inf)
    rest = np.stack([_added_up(row) for row in others])
    return Outlook(order.indices.numpy(), order.values.numpy(), rest)


def _added_up(logits: Tensor) -> np.ndarray:
    """Returns ln sum exp(logit / T) at TEMPERATURES: (vocab,) -> (temperature,). One row at a time stays in
    the processor's cache: a third of the time of all rows at once.
    """
    most = float(logits.max())
    if most == -math.inf:
        return np.full(len(TEMPERATURES), -np.inf, dtype=np.float32)
    below, scaled = logits - most, torch.empty_like(logits)
    sums = [float(torch.mul(below, 1 / t, out=scaled).clamp_(min=LEAST).exp_().sum()) for t in TEMPERATURES]
    added = [most / t + math.log(s) for t, s in zip(TEMPERATURES, sums, strict=True)]
    return np.array(added, dtype=np.float32)


LANES = 16  # tokens that are drawn, the last ones
NEURONS = 6  # of each block and lane, the most active
NEEDED = {
    "tokens", "embed", "pos_embed", "norm_embed", "pattern", "resid_pre", "norm1", "resid_mid", "norm2",
    "resid_post", "attn_out", "ffn_post", "ffn_out", "norm_final", "logits",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Lanes:
    """The last tokens of a text on their way; `earlier` tokens stand before them. Depth 0 is the stream
    before the first block, i + 1 that after block i. A cell is the mean of `pooled` neighbouring numbers of a
    vector (the fewest, the most); a size is the root mean square of its numbers. Absent parts are None.
    """

    earlier: int
    pooled: tuple[int, int]
    stream: np.ndarray = field(repr=False, metadata={"lane": 1})  # (depth, lane, cell)
    sizes: np.ndarray = field(repr=False, metadata={"lane": 1})  # (depth, lane), of the stream
    middle: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (layer, lane, cell), resid_mid
    middle_sizes: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (layer, lane)
    attention: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (layer, lane, cell), attn_out
    feedforward: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (layer, lane, cell), ffn_out
    # (layer, head, lane, 1 + lane): weights; the first column is all that goes to the earlier tokens
    patterns: np.ndarray | None = field(repr=False, metadata={"lane": 2})
    # (layer, lane, NEURONS): which, most active first, and ffn_post of them
    neurons: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    active: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    norms: Norms = field(repr=False)
    placed: PositionLanes = field(repr=False)


@dataclass(frozen=True, eq=False)
class Reading:
    """A text as a model read it. `streams` are those of the lanes, for the lens; `cache` has keys and values
    where a longer text may use them.

    `predicted_lane` is the last one, or the last gap among the lanes: `logits` and the outlook at the `end`
    are of that, `predictions` of each lane; None without an output head. `shapes`: axes and sizes.
    """

    ids: tuple[int, ...]
    lanes: Lanes = field(repr=False)
    streams: np.ndarray = field(repr=False)  # (depth, lane, d_model)
    logits: np.ndarray | None = field(repr=False)  # (vocab,)
    predictions: DepthPredictions | None = field(repr=False)  # (1, lane, guess)
    end: Outlook | None = field(repr=False)  # (1, kept)
    shapes: Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]] = field(repr=False)
    cache: KVCache | None = field(default=None, repr=False)
    predicted_lane: int = 0


def read(
    model: Transformer,
    ids: Sequence[int],
    before: Reading | None = None,
    keep: bool = False,
    gap: int | None = None,
) -> Reading:
    """Runs one forward pass; with the position of a `gap`, what could stand there is predicted. Raises
    ShapeError as `record` does. After a reading `before` by the same model that was to `keep` its cache,
    only what follows the first other token is computed, up to rounding.
    """
    keep = keep and model.can_cache
    begun = _begun(before, ids) if keep else 0
    kept = _continued(model, before, begun, len(ids)) if keep else None
    recording = record(model, ids[begun:], only=NEEDED, cache=kept)
    result = lanes(model, recording, len(ids))
    shown = result.stream.shape[1]
    streams = np.stack(outputs(recording))[:, -shown:]
    logits = recording.get("logits") if model.output.present else None
    rows = None if logits is None else torch.from_numpy(logits[-shown:].copy())
    last = None if rows is None else likeliest_tokens(rows[None])
    first, drawn = max(0, len(ids) - LANES), min(len(ids), LANES)
    asked = drawn - 1 if gap is None or gap < first else gap - first
    if begun and before is not None:
        had = before.streams.shape[1] - (len(before.ids) - begun)  # of its lanes, those that still hold
        old = slice(first - before.lanes.earlier, had)  # of them, those that are drawn
        result = _joined(before.lanes, result, old, min(len(ids), LANES))
        streams = np.concatenate([before.streams[:, old], streams], axis=1)
        if last is not None and before.predictions is not None:
            last = last.after(before.predictions, old)
    return Reading(
        tuple(ids),
        result,
        streams.copy(),
        None if rows is None else rows[asked - drawn].numpy(),
        last,
        None if rows is None else outlook(rows[asked - drawn :][:1]),
        _shapes(recording, len(ids)),
        kept,
        asked,
    )


def _begun(before: Reading | None, ids: Sequence[int]) -> int:
    """Returns how many tokens need no second look: at least one does, for its logits."""
    if before is None or before.cache is None:
        return 0
    alike = next((i for i, (a, b) in enumerate(zip(before.ids, ids, strict=False)) if a != b), None)
    begun = min(len(before.ids), len(ids)) if alike is None else alike
    begun = min(begun, len(ids) - 1)
    return begun if max(0, len(ids) - LANES) >= before.lanes.earlier else 0  # else lanes would be missing


def _continued(model: Transformer, before: Reading | None, begun: int, length: int) -> KVCache:
    """Returns a cache with the first `begun` tokens, and room for all."""
    made = KVCache(model.config, length, model.embedding)
    if begun and before is not None and before.cache is not None:
        made.held[..., :begun, :] = before.cache.held[..., :begun, :]
        made.length = begun
    return made


def _shapes(recording: Recording, length: int) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
    """Returns the shapes of a block's activations, and of those around blocks, for the whole text."""
    result = {}
    for name in recording.names():
        if name.count(".") == 0 or name.startswith("blocks.0."):
            axes = recording.axes(name)
            sizes = zip(axes, recording[name].shape, strict=True)
            whole = tuple(length if axis == "query" else n for axis, n in sizes)
            result[name.rpartition(".")[2]] = (axes, whole)
    if "pattern" in result:  # what the map names, and does not draw
        c = recording.config
        result["scores"] = result["pattern"]
        result["q_rot"] = (tuple(axes_of("q_rot")[1:]), (c.n_heads, length, c.d_head))
    return result


def lanes(model: Transformer, recording: Recording, length: int | None = None) -> Lanes:
    """Returns the last LANES recorded tokens of a text of `length` (default: all recorded)."""
    length = length or len(recording.ids)
    drawn = min(length, LANES)
    shown = min(len(recording.ids), drawn)
    streams = np.stack(outputs(recording))[:, -shown:]  # (depth, lane, d_model)
    stream, pooled = strips(streams)
    middle = _stacked(recording, "resid_mid", shown)
    which, active = _neurons(recording, shown)
    return Lanes(
        length - drawn,
        pooled,
        stream,
        size(streams),
        None if middle is None else strips(middle)[0],
        None if middle is None else size(middle),
        _strips(recording, "attn_out", shown),
        _strips(recording, "ffn_out", shown),
        _patterns(recording, shown, drawn),
        which,
        active,
        norms(model, recording, shown),
        placed(model, recording, shown, length),
    )


def typical(values: np.ndarray) -> np.ndarray:
    """Returns the median over lanes of the largest number: (row, lane, n) -> (row,)."""
    return np.median(np.abs(values).max(-1), axis=1)


def _stacked(recording: Recording, name: str, shown: int) -> np.ndarray | None:
    return recording.stacked(name)[:, -shown:] if f"blocks.0.{name}" in recording else None


def _strips(recording: Recording, name: str, shown: int) -> np.ndarray | None:
    result = _stacked(recording, name, shown)
    return None if result is None else strips(result)[0]


def _patterns(recording: Recording, shown: int, drawn: int) -> np.ndarray | None:
    if "blocks.0.pattern" not in recording:
        return None
    rows = recording.stacked("pattern")[:, :, -shown:]  # (layer, head, lane, key)
    before = rows[..., : rows.shape[-1] - drawn].sum(-1, keepdims=True)
    return np.concatenate([before, rows[..., rows.shape[-1] - drawn :]], axis=-1)


def _neurons(recording: Recording, shown: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Returns the NEURONS with the largest ffn_post and their values, (layer, lane, NEURONS) each."""
    post = _stacked(recording, "ffn_post", shown)  # (layer, lane, d_ff)
    if post is None:
        return None, None
    most = min(NEURONS, post.shape[-1])
    large = np.abs(post)
    least = -np.partition(-large, most - 1, axis=-1)[..., most - 1, None]
    # Few are as large as the last of them: only these are put in order.
    few = int((large >= least).sum(-1).max())
    some = np.sort(np.argpartition(-large, few - 1, axis=-1)[..., :few], axis=-1)
    order = np.argsort(-np.take_along_axis(large, some, axis=-1), axis=-1, kind="stable")[..., :most]
    which = np.take_along_axis(some, order, axis=-1)
    return which, np.take_along_axis(post, which, axis=-1)


# A text that grew ------------------------------------------------------------------------------------------


def _joined(before: Lanes, new: Lanes, old: slice, drawn: int) -> Lanes:
    """Returns the lanes `old` of a text's beginning and the new ones behind them, `drawn` in all."""
    return replace(
        _behind(before, new, old),
        patterns=_wider(before, new, old, drawn),
        norms=_behind(before.norms, new.norms, old),
        placed=_behind(before.placed, new.placed, old),
    )


def _behind(before: Any, new: Any, old: slice) -> Any:
    """Returns `new` with the lanes `old` of `before` in front, in each array but the patterns."""
    result = {}
    for column in fields(new):
        axis, there = column.metadata.get("lane"), getattr(new, column.name)
        if axis is None or there is None or column.name == "patterns":
            continue
        had = np.moveaxis(getattr(before, column.name), axis, 0)[old]
        result[column.name] = np.concatenate([np.moveaxis(had, 0, axis), there], axis=axis)
    return replace(new, **result)


def _wider(before: Lanes, new: Lanes, old: slice, drawn: int) -> np.ndarray | None:
    """Widens the patterns of older lanes: nothing to later ones, undrawn lanes among the earlier."""
    if before.patterns is None or new.patterns is None:
        return new.patterns
    rows = before.patterns[:, :, old]
    wide = np.zeros((*rows.shape[:3], 1 + drawn), dtype=rows.dtype)
    wide[..., 0] = rows[..., : 1 + old.start].sum(-1)
    kept = rows[..., 1 + old.start : 1 + old.stop]
    wide[..., 1 : 1 + kept.shape[-1]] = kept
    return np.concatenate([wide, new.patterns], axis=2)
