"""The residual stream of a recording: states, writes, sizes, directions, and a token's sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.config import ModelConfig, ResolvedConfig
from engine.parts.blocks import Block
from engine.parts.registry import Parts
from engine.recording import Recording


@dataclass(frozen=True, eq=False)
class State:
    """The stream at one point. `label` is for axes; `name` is the activation in the recording."""

    name: str
    label: str
    array: np.ndarray = field(repr=False)  # (query, d_model)


@dataclass(frozen=True, eq=False)
class Write:
    """An update of the stream; `part`: embedding, position, attention, feedforward. `layer`: None before."""

    name: str
    label: str
    part: str
    layer: int | None
    array: np.ndarray = field(repr=False)  # (query, d_model)
    # the stream that it is added to (query, d_model); None for the first
    onto: np.ndarray | None = field(repr=False)


def outputs(recording: Recording) -> list[np.ndarray]:
    """Returns the stream before the first block and after each: 1 + n_layers arrays (query, d_model)."""
    wiring = recording.parts.wiring(recording.config)
    last = "norm2" if wiring.ends_normed else "resid_post"
    return [
        recording["blocks.0.resid_pre"],
        *(recording[f"blocks.{i}.{last}"] for i in range(recording.config.n_layers)),
    ]


def states(recording: Recording) -> list[State]:
    """Returns the stream after each write or norm on it, bottom first; one state a parallel block."""
    c = recording.config
    result = [State("embed", "embed", recording["embed"])]
    entering = {"pos_embed": "+ position", "type_embed": "+ type", "norm_embed": "normed"}
    if labels := [label for name, label in entering.items() if name in recording]:
        result.append(State("blocks.0.resid_pre", ", ".join(labels), recording["blocks.0.resid_pre"]))
    for i in range(c.n_layers):
        for name, label in _block_states(c, recording.parts, i):
            result.append(State(f"blocks.{i}.{name}", label, recording[f"blocks.{i}.{name}"]))
    return result


def _block_states(c: ResolvedConfig, parts: Parts, i: int) -> list[tuple[str, str]]:
    wiring, mixer, ffn = parts.wiring(c), parts.mixer(c).present, parts.feedforward(c).present
    plus = "= " if wiring.replaces else "+ "
    if wiring.parallel:
        there = [word for word, present in (("attn", mixer), ("ffn", ffn)) if present]
        return [("resid_post", f"+ {' and '.join(there)} {i}")] if there else []
    attention = [("resid_mid", f"{plus}attn {i}")] if mixer else []
    feedforward = [("resid_post", f"{plus}ffn {i}")] if ffn else []
    if wiring.ends_normed and parts.norm(c).present:
        attention += [("norm1", f"norm1 {i}")] if attention else []
        feedforward += [("norm2", f"norm2 {i}")] if feedforward else []
    return attention + feedforward


def writes(recording: Recording) -> list[Write]:
    """Returns all writes to the stream, bottom first; without a residual stream they *replace* `onto`."""
    c = recording.config
    result = _first_writes(recording)
    wiring = recording.parts.wiring(c)
    second = "resid_pre" if wiring.parallel else "norm1" if wiring.ends_normed else "resid_mid"
    for i in range(c.n_layers):
        block = f"blocks.{i}."
        if f"{block}attn_out" in recording:
            result.append(
                Write(
                    f"{block}attn_out",
                    f"attn {i}",
                    "attention",
                    i,
                    recording[f"{block}attn_out"],
                    recording[f"{block}resid_pre"],
                )
            )
        if f"{block}ffn_out" in recording:
            result.append(
                Write(
                    f"{block}ffn_out",
                    f"ffn {i}",
                    "feedforward",
                    i,
                    recording[f"{block}ffn_out"],
                    recording[block + second],
                )
            )
    return result


def _first_writes(recording: Recording) -> list[Write]:
    """Returns what the first block reads: embedding, position, type of text, or all as one normed."""
    if "norm_embed" in recording:
        return [Write("norm_embed", "embed", "embedding", None, recording["norm_embed"], None)]
    onto = recording["embed"]
    result = [Write("embed", "embed", "embedding", None, onto, None)]
    for name, label, part in (
        ("pos_embed", "position", "position"),
        ("type_embed", "token type", "embedding"),
    ):
        if name in recording:
            result.append(Write(name, label, part, None, recording[name], onto))
            onto = onto + recording[name]
    return result


def norms(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Returns each token's Euclidean length: n arrays (query, d_model) -> (n, query) float32."""
    return np.linalg.norm(np.stack(arrays), axis=-1)


def cosines(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Returns the cosine of two vectors by token: (n, query) in [-1, 1]; 0 where one has no length."""
    a, b = (np.stack([pair[i] for pair in pairs]).astype(np.float64) for i in (0, 1))
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.divide((a * b).sum(-1), lengths, out=np.zeros_like(lengths), where=lengths > 0)


def shares(recording: Recording) -> np.ndarray | None:
    """Returns each write's share of the final stream x, (write, query): w . x / (x . x), in the order of
    `writes`. A token's shares sum to 1. A share is negative where the write points away from x. None where
    the final stream is not a sum (see `Parts.sums`).
    """
    if not recording.parts.sums(recording.config):
        return None
    final = outputs(recording)[-1].astype(np.float64)
    parts = np.stack([write.array.astype(np.float64) for write in writes(recording)])
    length = (final * final).sum(-1)
    return np.divide((parts * final).sum(-1), length, out=np.zeros(parts.shape[:2]), where=length > 0)


@dataclass(frozen=True, eq=False)
class Stream:
    """The states and writes of a stream, with Euclidean norms `lengths` (state, query) and `written` (write,
    query). `shares` (write, query) of the final stream, None where that is no sum; `cosines` are of `added`,
    the writes with something to be written onto: (len(added), query).
    """

    states: Sequence[State]
    writes: Sequence[Write]
    added: Sequence[Write]
    lengths: np.ndarray
    written: np.ndarray
    shares: np.ndarray | None
    cosines: np.ndarray
    wiring: type[Block]


def stream(recording: Recording) -> Stream:
    """Measures the stream of a recording."""
    result, updates = states(recording), writes(recording)
    added = [write for write in updates if write.onto is not None]
    pairs = [(write.array, write.onto) for write in added if write.onto is not None]
    angles = cosines(pairs) if pairs else np.zeros((0, len(recording.ids)))
    wiring = recording.parts.wiring(recording.config)
    lengths, written = (norms([each.array for each in some]) for some in (result, updates))
    return Stream(result, updates, added, lengths, written, shares(recording), angles, wiring)


MASSIVE = 10.0  # times the usual length


def massive(stream: Stream) -> tuple[int, ...]:
    """Returns the tokens whose stream is somewhere more than MASSIVE times as long as the median token's ever
    is (Sun et al. 2024); none where they are more than a quarter of the text.
    """
    longest = stream.lengths.max(0)  # (query,)
    at = np.flatnonzero(longest > MASSIVE * np.median(longest))
    return tuple(at.tolist()) if 4 * len(at) <= len(longest) else ()


def times_longer(stream: Stream, position: int) -> float:
    """Returns how many times as long a token's stream gets as that of the median token."""
    longest = stream.lengths.max(0)
    return float(longest[position] / np.median(longest))


def writer_of(stream: Stream, position: int) -> str:
    """Returns the label of a token's longest write."""
    return stream.writes[int(stream.written[:, position].argmax())].label


def without(stream: Stream, positions: Sequence[int]) -> Stream:
    """Returns the stream of the other tokens, for means. `states` and `writes` keep them all."""
    lengths, written, angles = (
        np.delete(values, list(positions), axis=1)
        for values in (stream.lengths, stream.written, stream.cosines)
    )
    shared = None if stream.shares is None else np.delete(stream.shares, list(positions), axis=1)
    return replace(stream, lengths=lengths, written=written, shares=shared, cosines=angles)


def landings(stream: Stream) -> list[int]:
    """Returns each write's first state that holds it, an index in `states`; a parallel block has one."""
    at = {state.name: i for i, state in enumerate(stream.states)}
    into = {"attn_out": "resid_mid", "ffn_out": "resid_post"}
    result = []
    for write in stream.writes:
        block, _, name = write.name.rpartition(".")
        if not block:
            result.append(0 if write.name == "embed" else at.get("blocks.0.resid_pre", 0))
        else:
            result.append(at.get(f"{block}.{into[name]}", at.get(f"{block}.resid_post", 0)))
    return result


def mean(values: np.ndarray) -> np.ndarray:
    """Returns the mean over tokens: (n, query) -> (n,)."""
    return values.mean(1)


@dataclass(frozen=True)
class Summary:
    """Means over tokens: the stream's norm at the embedding and at the end; the longest write and its norm.
    Where the final stream is a sum: the three largest shares of it by writer, what all shares sum to, and the
    writers whose share is negative.
    """

    first: float
    last: float
    longest: str
    length: float
    largest: tuple[tuple[str, float], ...]
    total: float | None
    negative: tuple[str, ...]


def summary(stream: Stream) -> Summary:
    """Summarises a text's stream."""
    lengths, written = mean(stream.lengths), mean(stream.written)
    longest = int(written.argmax())
    largest: tuple[tuple[str, float], ...] = ()
    negative: tuple[str, ...] = ()
    total: float | None = None
    if stream.shares is not None:
        share = mean(stream.shares)
        order = np.argsort(-share)[:3].tolist()
        largest = tuple((stream.writes[i].label, float(share[i])) for i in order)
        negative = tuple(stream.writes[i].label for i in np.flatnonzero(share < 0).tolist())
        total = float(share.sum())
    ends = float(lengths[0]), float(lengths[-1])
    return Summary(*ends, stream.writes[longest].label, float(written[longest]), largest, total, negative)


# A token's sum, worked out ----------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """A write in a sum: `word` and `block` say which (None before the blocks), `size` is its norm."""

    word: str
    block: int | None
    size: float


@dataclass(frozen=True)
class Sum:
    """One step x_n = x_(n-1) + terms, and its norm; `normed` behind a LayerNorm or RMSNorm, or None."""

    terms: tuple[Term, ...]
    length: float
    normed: float | None = None


SUBLAYERS = (("attn", "attn_out", "resid_mid", "norm1"), ("ffn", "ffn_out", "resid_post", "norm2"))


def sums(stream: Stream, config: ModelConfig, position: int, blocks: int) -> tuple[Sum, ...]:
    """Returns the sum of one token's stream in the first `blocks` blocks. Empty where nothing is added."""
    if stream.wiring.replaces:
        return ()
    size = {write.name: float(stream.written[i, position]) for i, write in enumerate(stream.writes)}
    after = {state.name: float(stream.lengths[i, position]) for i, state in enumerate(stream.states)}
    start = (("embed", "embed"), ("embed", "norm_embed"), ("pos", "pos_embed"), ("type", "type_embed"))
    begun = tuple(Term(word, None, size[name]) for word, name in start if name in size)
    rows = [Sum(begun, after.get("blocks.0.resid_pre", after["embed"]))]
    for i in range(min(config.n_layers, blocks)):
        there = [row for row in SUBLAYERS if f"blocks.{i}.{row[1]}" in size]
        terms = [Term(word, i, size[f"blocks.{i}.{name}"]) for word, name, *_ in there]
        if stream.wiring.parallel:
            if terms:
                rows.append(Sum(tuple(terms), after[f"blocks.{i}.resid_post"]))
            continue
        for term, (*_, total, norm) in zip(terms, there, strict=True):
            normed = after.get(f"blocks.{i}.{norm}") if stream.wiring.ends_normed else None
            rows.append(Sum((term,), after[f"blocks.{i}.{total}"], normed))
    return tuple(rows)
