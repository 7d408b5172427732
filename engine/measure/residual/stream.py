"""The residual stream of one text in numbers: how long it is, how long what is written to it, in which
direction, and a token's sum worked out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.config import ModelConfig
from engine.measure.recording import Recording
from engine.measure.residual.writes import (
    State,
    Write,
    cosines,
    norms,
    shares,
    states,
    writes,
)
from engine.parts.protocols import Wiring


@dataclass(frozen=True, eq=False)
class Stream:
    """`lengths` (state, query) and `written` (write, query) are Euclidean norms, in the order of `states` and
    `writes`; `shares` (write, query) of the final stream, None where that is no sum; `cosines` are of
    `added`, the writes that have something to be written onto: (len(added), query).
    """

    states: Sequence[State]
    writes: Sequence[Write]
    added: Sequence[Write]
    lengths: np.ndarray
    written: np.ndarray
    shares: np.ndarray | None
    cosines: np.ndarray
    wiring: type[Wiring]


def stream(recording: Recording) -> Stream:
    """Everything that is measured of the stream."""
    found, updates = states(recording), writes(recording)
    added = [write for write in updates if write.onto is not None]
    pairs = [(write.array, write.onto) for write in added if write.onto is not None]
    angles = cosines(pairs) if pairs else np.zeros((0, len(recording.ids)))
    wiring = recording.parts.wiring(recording.config)
    lengths, written = (norms([one.array for one in some]) for some in (found, updates))
    return Stream(found, updates, added, lengths, written, shares(recording), angles, wiring)


MASSIVE = 10.0  # times the usual length


def massive(found: Stream) -> tuple[int, ...]:
    """The few tokens whose stream grows out of all proportion: somewhere more than MASSIVE times as long as
    the median token ever gets (Sun et al. 2024, "Massive activations in large language models"). None where
    they are more than a quarter of the text.
    """
    longest = found.lengths.max(0)  # (query,)
    at = np.flatnonzero(longest > MASSIVE * np.median(longest))
    return tuple(at.tolist()) if 4 * len(at) <= len(longest) else ()


def times_longer(found: Stream, position: int) -> float:
    """How many times as long a token's stream gets as that of the median token."""
    longest = found.lengths.max(0)
    return float(longest[position] / np.median(longest))


def writer_of(found: Stream, position: int) -> str:
    """Who writes most to a token: the label of its longest write."""
    return found.writes[int(found.written[:, position].argmax())].label


def without(found: Stream, positions: Sequence[int]) -> Stream:
    """The same of a text's other tokens: what means are taken over. `states` and `writes` keep them all."""
    lengths, written, angles = (
        np.delete(values, list(positions), axis=1) for values in (found.lengths, found.written, found.cosines)
    )
    shared = None if found.shares is None else np.delete(found.shares, list(positions), axis=1)
    return replace(found, lengths=lengths, written=written, shares=shared, cosines=angles)


def landings(found: Stream) -> list[int]:
    """For each write, the first state that holds it: its index in `states`. A parallel block's two writes
    land together.
    """
    at = {state.name: i for i, state in enumerate(found.states)}
    into = {"attn_out": "resid_mid", "ffn_out": "resid_post"}
    result = []
    for write in found.writes:
        block, _, name = write.name.rpartition(".")
        if not block:
            result.append(0 if write.name == "embed" else at.get("blocks.0.resid_pre", 0))
        else:
            result.append(at.get(f"{block}.{into[name]}", at.get(f"{block}.resid_post", 0)))
    return result


def mean(values: np.ndarray) -> np.ndarray:
    """Over the tokens: (n, query) -> (n,)"""
    result: np.ndarray = values.mean(1)
    return result


@dataclass(frozen=True)
class Summary:
    """Means over tokens: the stream's norm at the embedding and at the end; the longest write and its norm;
    and, where the final stream is a sum, the three largest shares of it by writer, what all shares sum to,
    and the writers whose share is negative.
    """

    first: float
    last: float
    longest: str
    length: float
    largest: tuple[tuple[str, float], ...]
    total: float | None
    negative: tuple[str, ...]


def summary(found: Stream) -> Summary:
    """What there is to say of a text's stream."""
    lengths, written = mean(found.lengths), mean(found.written)
    longest = int(written.argmax())
    largest: tuple[tuple[str, float], ...] = ()
    negative: tuple[str, ...] = ()
    total: float | None = None
    if found.shares is not None:
        share = mean(found.shares)
        order = np.argsort(-share)[:3].tolist()
        largest = tuple((found.writes[i].label, float(share[i])) for i in order)
        negative = tuple(found.writes[i].label for i in np.flatnonzero(share < 0).tolist())
        total = float(share.sum())
    ends = float(lengths[0]), float(lengths[-1])
    return Summary(*ends, found.writes[longest].label, float(written[longest]), largest, total, negative)


# A token's sum, worked out ----------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """A write in a sum: `word` and `block` say which, `size` is its norm. `block` is None before the
    blocks.
    """

    word: str
    block: int | None
    size: float


@dataclass(frozen=True)
class Sum:
    """x_n = x_(n-1) + terms, and its norm; the first has no x before it. `normed` is the norm after the
    LayerNorm or RMSNorm that then sits on the stream, None where none does.
    """

    terms: tuple[Term, ...]
    length: float
    normed: float | None = None


SUBLAYERS = (("attn", "attn_out", "resid_mid", "norm1"), ("ffn", "ffn_out", "resid_post", "norm2"))


def sums(found: Stream, config: ModelConfig, position: int, blocks: int) -> tuple[Sum, ...]:
    """How one token's stream comes about in the first `blocks` blocks. Nothing where nothing is added."""
    if found.wiring.replaces:
        return ()
    size = {write.name: float(found.written[i, position]) for i, write in enumerate(found.writes)}
    after = {state.name: float(found.lengths[i, position]) for i, state in enumerate(found.states)}
    start = (("embed", "embed"), ("embed", "norm_embed"), ("pos", "pos_embed"), ("type", "type_embed"))
    begun = tuple(Term(word, None, size[name]) for word, name in start if name in size)
    rows = [Sum(begun, after.get("blocks.0.resid_pre", after["embed"]))]
    for i in range(min(config.n_layers, blocks)):
        there = [row for row in SUBLAYERS if f"blocks.{i}.{row[1]}" in size]
        terms = [Term(word, i, size[f"blocks.{i}.{name}"]) for word, name, *_ in there]
        if found.wiring.parallel:
            if terms:
                rows.append(Sum(tuple(terms), after[f"blocks.{i}.resid_post"]))
            continue
        for term, (*_, total, norm) in zip(terms, there, strict=True):
            normed = after.get(f"blocks.{i}.{norm}") if found.wiring.ends_normed else None
            rows.append(Sum((term,), after[f"blocks.{i}.{total}"], normed))
    return tuple(rows)
