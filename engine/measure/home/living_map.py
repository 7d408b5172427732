"""What the living map draws of one text: the last tokens as lanes through the model, small enough to be sent
to a browser whole, so that block, head, temperature and depth can be changed there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch

from engine.measure.home.map_places import (
    Norms,
    Placed,
    norms,
    placed,
    size,
    strips,
)
from engine.measure.home.map_predictions import (
    Outlook,
    Said,
    outlook,
    said,
)
from engine.measure.recording import Recording, record
from engine.measure.residual.writes import outputs
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.probe import axes_of

LANES = 16  # tokens that are drawn, the last ones
NEURONS = 6  # of each block and lane, the most active
NEEDED = {
    "tokens",
    "embed",
    "pos_embed",
    "norm_embed",
    "pattern",
    "resid_pre",
    "norm1",
    "resid_mid",
    "norm2",
    "resid_post",
    "attn_out",
    "ffn_post",
    "ffn_out",
    "norm_final",
    "logits",
}


@dataclass(frozen=True, eq=False)
class Lanes:
    """The last tokens of a text on their way, `earlier` tokens stand before them. Depth 0 is the stream
    before the first block, depth i + 1 that after block i.

    A cell is the mean of a vector's neighbouring numbers, `pooled` of them (the fewest, the most); a size is
    the root mean square of a vector's numbers. What a model lacks is None.
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
    placed: Placed = field(repr=False)


@dataclass(frozen=True, eq=False)
class Reading:
    """A text as a model read it. `streams` are those of the lanes, whole, for the lens; `asked` is the lane
    whose guess is looked at: the last one, or the last gap of a text that has one among its lanes; `logits`
    and the outlook at the `end` are of that, `said` after each lane; None without an output head. `shapes`
    are of what was recorded, as axes and sizes. `kept` are the keys and values of all tokens, where a longer
    text may use them.
    """

    ids: tuple[int, ...]
    lanes: Lanes = field(repr=False)
    streams: np.ndarray = field(repr=False)  # (depth, lane, d_model)
    logits: np.ndarray | None = field(repr=False)  # (vocab,)
    said: Said | None = field(repr=False)  # (1, lane, guess)
    end: Outlook | None = field(repr=False)  # (1, kept)
    shapes: Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]] = field(repr=False)
    kept: KVCache | None = field(default=None, repr=False)
    asked: int = 0


def read(
    model: Transformer,
    ids: Sequence[int],
    before: Reading | None = None,
    keep: bool = False,
    gap: int | None = None,
) -> Reading:
    """One forward pass; with the place of a `gap`, what could stand there is looked at. Raises ShapeError as
    `record` does.

    Of the text that the same model read `before` everything holds that lies before the first other token, if
    that was `keep`-ing: then only what follows is computed. The sums are added up in another order there, so
    numbers may differ by rounding.
    """
    keep = keep and model.can_cache
    begun = _begun(before, ids) if keep else 0
    kept = _continued(model, before, begun, len(ids)) if keep else None
    recording = record(model, ids[begun:], only=NEEDED, cache=kept)
    found = lanes(model, recording, len(ids))
    shown = found.stream.shape[1]
    streams = np.stack(outputs(recording))[:, -shown:]
    logits = recording.get("logits") if model.output.present else None
    rows = None if logits is None else torch.from_numpy(logits[-shown:].copy())
    last = None if rows is None else said(rows[None])
    first, drawn = max(0, len(ids) - LANES), min(len(ids), LANES)
    asked = drawn - 1 if gap is None or gap < first else gap - first
    if begun and before is not None:
        had = before.streams.shape[1] - (len(before.ids) - begun)  # of its lanes, those that still hold
        old = slice(first - before.lanes.earlier, had)  # of them, those that are drawn
        found = _joined(before.lanes, found, old, min(len(ids), LANES))
        streams = np.concatenate([before.streams[:, old], streams], axis=1)
        if last is not None and before.said is not None:
            last = last.after(before.said, old)
    return Reading(
        tuple(ids),
        found,
        streams.copy(),
        None if rows is None else rows[asked - drawn].numpy(),
        last,
        None if rows is None else outlook(rows[asked - drawn :][:1]),
        _shapes(recording, len(ids)),
        kept,
        asked,
    )


def _begun(before: Reading | None, ids: Sequence[int]) -> int:
    """How many tokens need no second look: at least one does, for its logits."""
    if before is None or before.kept is None:
        return 0
    alike = next((i for i, (a, b) in enumerate(zip(before.ids, ids, strict=False)) if a != b), None)
    begun = min(len(before.ids), len(ids)) if alike is None else alike
    begun = min(begun, len(ids) - 1)
    return begun if max(0, len(ids) - LANES) >= before.lanes.earlier else 0  # else lanes would be missing


def _continued(model: Transformer, before: Reading | None, begun: int, length: int) -> KVCache:
    """Keys and values of the first `begun` tokens, with room for all of them."""
    made = KVCache(model.config, length, model.embedding)
    if begun and before is not None and before.kept is not None:
        made.held[..., :begun, :] = before.kept.held[..., :begun, :]
        made.length = begun
    return made


def _shapes(recording: Recording, length: int) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
    """Of a block's activations and of those around the blocks, by their short names, for the whole text."""
    found = {}
    for name in recording.names():
        if name.count(".") == 0 or name.startswith("blocks.0."):
            axes = recording.axes(name)
            sizes = zip(axes, recording[name].shape, strict=True)
            whole = tuple(length if axis == "query" else n for axis, n in sizes)
            found[name.rpartition(".")[2]] = (axes, whole)
    if "pattern" in found:  # what the map names, and does not draw
        c = recording.config
        found["scores"] = found["pattern"]
        found["q_rot"] = (tuple(axes_of("q_rot")[1:]), (c.n_heads, length, c.d_head))
    return found


def lanes(model: Transformer, recording: Recording, length: int | None = None) -> Lanes:
    """What is drawn of the last LANES tokens, of those that were recorded, at the end of a text of `length`
    tokens (all that were recorded, by default).
    """
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
    """How large the largest number of a lane typically is: (row, lane, n) -> (row,), the median over lanes.
    The first token's stream may be a hundred times as long as the others' (Sun et al. 2024).
    """
    found: np.ndarray = np.median(np.abs(values).max(-1), axis=1)
    return found


def _stacked(recording: Recording, name: str, shown: int) -> np.ndarray | None:
    return recording.stacked(name)[:, -shown:] if f"blocks.0.{name}" in recording else None


def _strips(recording: Recording, name: str, shown: int) -> np.ndarray | None:
    found = _stacked(recording, name, shown)
    return None if found is None else strips(found)[0]


def _patterns(recording: Recording, shown: int, drawn: int) -> np.ndarray | None:
    if "blocks.0.pattern" not in recording:
        return None
    rows = recording.stacked("pattern")[:, :, -shown:]  # (layer, head, lane, key)
    before = rows[..., : rows.shape[-1] - drawn].sum(-1, keepdims=True)
    return np.concatenate([before, rows[..., rows.shape[-1] - drawn :]], axis=-1)


def _neurons(recording: Recording, shown: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(which, how active): (layer, lane, NEURONS) each, by the size of ffn_post; of equals the first."""
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
    """The lanes `old` of a text's beginning and the new ones behind them, `drawn` in all."""
    return replace(
        _behind(before, new, old),
        patterns=_wider(before, new, old, drawn),
        norms=_behind(before.norms, new.norms, old),
        placed=_behind(before.placed, new.placed, old),
    )


def _behind(before: Any, new: Any, old: slice) -> Any:
    """`new` with the lanes `old` of `before` in front, in each of its arrays that has lanes; patterns are
    left as they are: they have them twice.
    """
    found = {}
    for one in fields(new):
        axis, there = one.metadata.get("lane"), getattr(new, one.name)
        if axis is None or there is None or one.name == "patterns":
            continue
        had = np.moveaxis(getattr(before, one.name), axis, 0)[old]
        found[one.name] = np.concatenate([np.moveaxis(had, 0, axis), there], axis=axis)
    return replace(new, **found)


def _wider(before: Lanes, new: Lanes, old: slice, drawn: int) -> np.ndarray | None:
    """Rows of the older lanes give nothing to the later ones; lanes that are not drawn any more are among the
    earlier tokens.
    """
    if before.patterns is None or new.patterns is None:
        return new.patterns
    rows = before.patterns[:, :, old]
    wide = np.zeros((*rows.shape[:3], 1 + drawn), dtype=rows.dtype)
    wide[..., 0] = rows[..., : 1 + old.start].sum(-1)
    kept = rows[..., 1 + old.start : 1 + old.stop]
    wide[..., 1 : 1 + kept.shape[-1]] = kept
    return np.concatenate([wide, new.patterns], axis=2)
