"""The living map of one text: the last tokens as lanes, small enough for a browser."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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


def _vectors(recording: Recording) -> dict[str, np.ndarray]:
    """Returns the vectors that are drawn with their sizes, (row, query, d_model) each: see `Lanes`."""
    config, parts = recording.config, recording.parts
    normed, ends = parts.norm(config).present, parts.wiring(config).ends_normed
    activations = {"middle": "resid_mid"}
    if normed and parts.mixer(config).present:
        activations["feedforward_norm" if ends else "attention_norm"] = "norm1"
    if normed and parts.feedforward(config).present and not ends:
        activations["feedforward_norm"] = "norm2"
    result = {"stream": np.stack(outputs(recording))}
    for name, activation in activations.items():
        if f"blocks.0.{activation}" in recording:
            result[name] = recording.stacked(activation)
    if normed and not ends and "norm_final" in recording:
        result["final_norm"] = recording["norm_final"][None]
    if "pos_embed" in recording:
        result["entering"] = np.stack([recording["embed"], recording["pos_embed"]])
    return result


@torch.no_grad()
def _positions(model: Transformer, length: int) -> dict[str, np.ndarray]:
    """Returns what turns or biases attention at each of `length` positions: see `Lanes`."""
    enters = model.parts.position(model.config).enters
    if not card_of(model.parts.mixer(model.config)).scored:
        return {}
    if "rotate" in enters:
        return {"turned": _turned(model, length)}
    if "bias" not in enters:
        return {}
    hooks = model.hooks(length, model.embedding)
    zeros = model.embedding.new_zeros(1, model.config.n_heads, length, length)
    bias = hooks.bias(zeros)[0].float().cpu().numpy()  # (head, query, key)
    position = np.arange(length)
    before = bias[:, position, np.maximum(position - 1, 0)]
    return {"added": np.stack([before, bias[:, :, 0]], axis=-1)}


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
    """The last tokens of a text on their way; `earlier` tokens stand before them. A cell is the mean of
    `pooled` neighbouring numbers of a vector (the fewest, the most); a size is the root mean square of its
    numbers.

    Axis 1 of all `arrays` is the lane; those of absent parts are absent. Depth 0 is the stream before the
    first block, i + 1 that after block i.

    stream                (depth, lane, cell)
    middle                (layer, lane, cell): resid_mid
    attention_norm        (layer, lane, cell): what attention reads; absent in post-norm blocks
    feedforward_norm      (layer, lane, cell): what the network reads; in a post-norm block the norm that ends
                          attention's sum, and the one after the network is the stream itself
    final_norm            (1, lane, cell)
    entering              (2, lane, cell): the embedding alone, and what is added to it for the position
    stream_sizes ...      (depth, lane) and so on: of each of these
    attention             (layer, lane, cell): attn_out
    feedforward           (layer, lane, cell): ffn_out
    neurons, active       (layer, lane, NEURONS): which, most active first, and ffn_post of them
    turned                (2, lane): degrees, 0 to 360, by which the fastest and the slowest pair of q and k
                          are turned
    added                 (head, lane, 2): to the scores of the token before and of the first one

    `patterns` (layer, head, lane, 1 + lane) are weights; the first column is all that goes to the earlier
    tokens.
    """

    earlier: int
    pooled: tuple[int, int]
    arrays: Mapping[str, np.ndarray] = field(repr=False)
    patterns: np.ndarray | None = field(repr=False)


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
    streams = np.stack([each[-LANES:] for each in outputs(recording)])
    logits = recording.get("logits") if model.output.present else None
    rows = None if logits is None else torch.from_numpy(logits[-LANES:].copy())
    last = None if rows is None else likeliest_tokens(rows[None])
    first, drawn = max(0, len(ids) - LANES), min(len(ids), LANES)
    asked = drawn - 1 if gap is None or gap < first else gap - first
    if begun and before is not None:
        had = before.streams.shape[1] - (len(before.ids) - begun)  # of its lanes, those that still hold
        old = slice(first - before.lanes.earlier, had)  # of them, those that are drawn
        result = _joined(before.lanes, result, old, drawn)
        streams = np.concatenate([before.streams[:, old], streams], axis=1)
        if last is not None and before.predictions is not None:
            last = last.after(before.predictions, old)
    return Reading(
        tuple(ids),
        result,
        streams,
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


def lanes(model: Transformer, recording: Recording, length: int) -> Lanes:
    """Returns the last LANES recorded tokens of a text of `length`."""
    drawn, shown = min(length, LANES), min(len(recording.ids), LANES)
    arrays = {name: rows[:, -shown:] for name, rows in _positions(model, length).items()}
    for name, rows in _vectors(recording).items():
        arrays[name], pooled = strips(rows[:, -shown:])
        arrays[f"{name}_sizes"] = size(rows[:, -shown:])
    for name, activation in (("attention", "attn_out"), ("feedforward", "ffn_out")):
        if f"blocks.0.{activation}" in recording:
            arrays[name] = strips(recording.stacked(activation)[:, -shown:])[0]
    if "blocks.0.ffn_post" in recording:
        arrays["neurons"], arrays["active"] = _neurons(recording.stacked("ffn_post")[:, -shown:])
    patterns = None
    if "blocks.0.pattern" in recording:
        patterns = _patterns(recording.stacked("pattern")[:, :, -shown:], drawn)
    return Lanes(length - drawn, pooled, arrays, patterns)


def typical(values: np.ndarray) -> np.ndarray:
    """Returns the median over lanes of the largest number: (row, lane, n) -> (row,)."""
    return np.median(np.abs(values).max(-1), axis=1)


def _patterns(rows: np.ndarray, drawn: int) -> np.ndarray:
    """Adds up what goes to tokens before the `drawn` ones: (layer, head, lane, key) -> (layer, head, lane,
    1 + lane).
    """
    first = rows.shape[-1] - drawn
    return np.concatenate([rows[..., :first].sum(-1, keepdims=True), rows[..., first:]], axis=-1)


def _neurons(post: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the NEURONS with the largest ffn_post (layer, lane, d_ff), and their values: (layer, lane,
    NEURONS) each.
    """
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
    arrays = {
        name: np.concatenate([before.arrays[name][:, old], array], axis=1)
        for name, array in new.arrays.items()
    }
    return replace(new, arrays=arrays, patterns=_wider(before.patterns, new.patterns, old, drawn))


def _wider(before: np.ndarray | None, new: np.ndarray | None, old: slice, drawn: int) -> np.ndarray | None:
    """Widens the patterns of older lanes: nothing to later ones, undrawn lanes among the earlier."""
    if before is None or new is None:
        return new
    rows = before[:, :, old]
    wide = np.zeros((*rows.shape[:3], 1 + drawn), dtype=rows.dtype)
    wide[..., 0] = rows[..., : 1 + old.start].sum(-1)
    kept = rows[..., 1 + old.start : 1 + old.stop]
    wide[..., 1 : 1 + kept.shape[-1]] = kept
    return np.concatenate([wide, new], axis=2)
