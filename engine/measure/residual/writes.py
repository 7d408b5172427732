"""The residual stream of a recording: its states, what is written to it, how large, in which direction, and
whose the end is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.config import ResolvedConfig
from engine.measure.recording import Recording
from engine.parts.registry import HEALTHY, Parts


@dataclass(frozen=True, eq=False)
class State:
    """The stream at one place. `label` is for axes; `name` is the activation in the recording, or `embed` for
    the embedding alone.
    """

    name: str
    label: str
    array: np.ndarray = field(repr=False)  # (query, d_model)


@dataclass(frozen=True, eq=False)
class Write:
    """One update of the stream. `part` is embedding, position, attention or feedforward; `layer` is None
    before the blocks.
    """

    name: str
    label: str
    part: str
    layer: int | None
    array: np.ndarray = field(repr=False)  # (query, d_model)
    onto: np.ndarray | None = field(
        repr=False
    )  # the stream that it is added to (query, d_model); None for the first


def is_sum(config: ResolvedConfig, parts: Parts = HEALTHY) -> bool:
    """Whether the final stream is the plain sum of all writes: not where a norm sits on the stream, nor where
    nothing is added.
    """
    return parts.sums(config)


def outputs(recording: Recording) -> list[np.ndarray]:
    """The stream before the first block and after each: 1 + n_layers arrays (query, d_model). After a
    post-norm block, its norm2.
    """
    wiring = recording.parts.wiring(recording.config)
    last = "norm2" if wiring.ends_normed else "resid_post"
    return [
        recording["blocks.0.resid_pre"],
        *(recording[f"blocks.{i}.{last}"] for i in range(recording.config.n_layers)),
    ]


def states(recording: Recording) -> list[State]:
    """The stream after each write (and after each norm that sits on it), bottom first.

    A parallel block writes twice at once, so it has one state. Sublayers that are absent leave no state.
    """
    c = recording.config
    found = [State("embed", "embed", recording["embed"])]
    entering = {"pos_embed": "+ position", "type_embed": "+ type", "norm_embed": "normed"}
    if said := [label for name, label in entering.items() if name in recording]:
        found.append(State("blocks.0.resid_pre", ", ".join(said), recording["blocks.0.resid_pre"]))
    for i in range(c.n_layers):
        for name, label in _block_states(c, recording.parts, i):
            found.append(State(f"blocks.{i}.{name}", label, recording[f"blocks.{i}.{name}"]))
    return found


def _block_states(c: ResolvedConfig, parts: Parts, i: int) -> list[tuple[str, str]]:
    wiring, mixer, ffn = parts.wiring(c), parts.mixer(c).present, parts.feedforward(c).present
    plus = "= " if wiring.replaces else "+ "
    if wiring.parallel:
        there = [word for word, present in (("attn", mixer), ("ffn", ffn)) if present]
        return [("resid_post", f"+ {' and '.join(there)} {i}")] if there else []
    attention = [("resid_mid", f"{plus}attn {i}")] if mixer else []
    feedforward = [("resid_post", f"{plus}ffn {i}")] if ffn else []
    if wiring.ends_normed and parts.norm(c).card.present:
        attention += [("norm1", f"norm1 {i}")] if attention else []
        feedforward += [("norm2", f"norm2 {i}")] if feedforward else []
    return attention + feedforward


def writes(recording: Recording) -> list[Write]:
    """Everything that is written to the stream, bottom first. Without a residual stream each output
    *replaces* `onto`.
    """
    c = recording.config
    found = _first_writes(recording)
    wiring = recording.parts.wiring(c)
    second = "resid_pre" if wiring.parallel else "norm1" if wiring.ends_normed else "resid_mid"
    for i in range(c.n_layers):
        block = f"blocks.{i}."
        if f"{block}attn_out" in recording:
            found.append(
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
            found.append(
                Write(
                    f"{block}ffn_out",
                    f"ffn {i}",
                    "feedforward",
                    i,
                    recording[f"{block}ffn_out"],
                    recording[block + second],
                )
            )
    return found


def _first_writes(recording: Recording) -> list[Write]:
    """What the first block reads, as it came about: the embedding, then the position and the type of text.
    Where a norm stands before the first block, what it makes of that sum is the first write.
    """
    if "norm_embed" in recording:
        return [Write("norm_embed", "embed", "embedding", None, recording["norm_embed"], None)]
    onto = recording["embed"]
    found = [Write("embed", "embed", "embedding", None, onto, None)]
    for name, label, part in (
        ("pos_embed", "position", "position"),
        ("type_embed", "token type", "embedding"),
    ):
        if name in recording:
            found.append(Write(name, label, part, None, recording[name], onto))
            onto = onto + recording[name]
    return found


def norms(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Euclidean length of every token's vector: n arrays (query, d_model) -> (n, query) float32."""
    return np.linalg.norm(np.stack(arrays), axis=-1)


def cosines(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Cosine of the angle between two vectors, token by token: (n, query) in [-1, 1]; 0 where one of them has
    no length.
    """
    a, b = (np.stack([pair[i] for pair in pairs]).astype(np.float64) for i in (0, 1))
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.divide((a * b).sum(-1), lengths, out=np.zeros_like(lengths), where=lengths > 0)


def shares(recording: Recording) -> np.ndarray | None:
    """Each write's share of the final stream x, (write, query): w . x / (x . x), in the order of `writes`.

    x is the sum of the writes w, so that a token's shares sum to (x . x) / (x . x) = 1. A share is negative
    where the write points away from what the stream became. None where the final stream is not a sum of
    writes (see `is_sum`).
    """
    if not is_sum(recording.config, recording.parts):
        return None
    final = outputs(recording)[-1].astype(np.float64)
    parts = np.stack([write.array.astype(np.float64) for write in writes(recording)])
    length = (final * final).sum(-1)
    return np.divide((parts * final).sum(-1), length, out=np.zeros(parts.shape[:2]), where=length > 0)
