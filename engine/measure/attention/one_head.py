"""One head, read closely: its vectors, one of its weights written out, and how much it writes beside the
others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.measure.attention.heads import Stages
from engine.measure.recording import Recording


def key_value_head(recording: Recording, layer: int, head: int) -> int:
    """The key-value head that a query head reads: `n_heads / n_kv_heads` neighbours share one."""
    return head * recording[f"blocks.{layer}.k"].shape[0] // recording.config.n_heads


def vectors(recording: Recording, layer: int, head: int) -> dict[str, np.ndarray]:
    """What a head compares and gathers, by the vocabulary's names, as recorded: (position, d_head) each.

    `q_rot` and `k_rot` are what is compared, `q` and `k` the same before QK-norm and RoPE. Raises KeyError
    without a mixer.
    """
    own, shared = head, key_value_head(recording, layer, head)
    places = {"q": own, "q_rot": own, "k": shared, "k_rot": shared, "v": shared}
    return {name: recording[f"blocks.{layer}.{name}"][place] for name, place in places.items()}


def biased(found: Stages) -> np.ndarray:
    """The scores before the mask, with what the positions add: (query, key)."""
    return found.scaled if found.bias is None else found.scaled + found.bias


def scaled_by(divisor: float | None, d_head: int) -> Literal["root", "none", "number", "own"]:
    """What scores are: products divided by sqrt(d_head), products as they are, products divided by another
    number, or something of the mixer's own.
    """
    if divisor is None:
        return "own"
    if math.isclose(divisor, math.sqrt(d_head), rel_tol=1e-6):
        return "root"
    return "none" if math.isclose(divisor, 1.0, rel_tol=1e-6) else "number"


def gap(found: Stages, recording: Recording, layer: int, head: int) -> float:
    """The largest difference between the pattern that was computed again and the one that the model used."""
    return float(np.abs(found.pattern - recording[f"blocks.{layer}.pattern"][head]).max())


def strongest_key(found: Stages, query: int) -> int:
    """The key that gets most of a query's weight; the first of several."""
    return int(found.pattern[query].argmax())


def telling_query(pattern: np.ndarray) -> int:
    """The query of the later half that looks most decidedly at another token, though not at the first, where
    heads rest; of equal ones the earlier. pattern (query, key); of a text with two tokens or fewer, the last.
    """
    size = len(pattern)
    others = np.where(np.eye(size, dtype=bool), 0.0, pattern)
    others[:, 0] = 0.0
    half = size // 2
    return half + int(others[half:].max(-1).argmax()) if size > 2 else size - 1


def keys_seen(found: Stages, query: int) -> list[int]:
    """The keys that no mask hides from a query."""
    return [int(key) for key in np.flatnonzero(np.isfinite(found.masked[query]))]


@dataclass(frozen=True)
class WrittenOut:
    """How one weight of one head comes about: p = e^(masked - largest) / total.

    `pairs` are the numbers (q_i, k_i) whose products sum to `raw`, (d_head,); `raw` is None for the mean
    mixer, which compares nothing, `bias` where the positions add none. `scaled` is raw / `divisor`, or what
    the mixer made of it where that is None; `masked` what the softmax gets, `largest` the largest of the
    query's row, `total` the sum over the `seen` keys that it sees. `exponential` and `total` are None for a
    mixer that makes its weights in another way.
    """

    pairs: tuple[tuple[float, float], ...]
    raw: float | None
    divisor: float | None
    scaled: float
    bias: float | None
    masked: float
    largest: float
    exponential: float | None
    total: float | None
    seen: int
    weight: float


def written_out(found: Stages, query: int, key: int) -> WrittenOut:
    """The arithmetic of the weight that `query` gives to `key`."""
    row, powers = found.masked[query], None if found.exponentials is None else found.exponentials[query]
    return WrittenOut(
        pairs=tuple((float(a), float(b)) for a, b in zip(found.q[query], found.k[key], strict=True)),
        raw=None if found.raw is None else float(found.raw[query, key]),
        divisor=found.divisor,
        scaled=float(found.scaled[query, key]),
        bias=None if found.bias is None else float(found.bias[query, key]),
        masked=float(row[key]),
        largest=float(row.max()),
        exponential=None if powers is None else float(powers[key]),
        total=None if powers is None else float(powers.sum()),
        seen=len(keys_seen(found, query)),
        weight=float(found.pattern[query, key]),
    )


@dataclass(frozen=True)
class Lengths:
    """Euclidean lengths at one token: the stream before the layer, what all its heads write together (with
    the output's bias), and what one head writes.
    """

    before: float
    together: float
    own: float


def lengths(recording: Recording, found: Stages, layer: int, query: int) -> Lengths:
    """How much a head writes at `query`, beside its layer and the stream."""
    stream, written = (recording[f"blocks.{layer}.{name}"][query] for name in ("resid_pre", "attn_out"))
    return Lengths(*(float(np.linalg.norm(x)) for x in (stream, written, found.written[query])))
