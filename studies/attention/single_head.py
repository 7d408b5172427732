"""One head, read closely: its stages, its vectors, one of its weights written out, and how much it writes."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from engine.model import Transformer
from engine.parts.attention import HeadMixer, by_heads
from engine.recording import Recording


@dataclass(frozen=True, eq=False)
class Stages:
    """One head, stage by stage, computed again from the recorded q_rot, k_rot and v.

    q, k, v and z are (position, d_head), `written` (query, d_model), without the bias b_O; all others (query,
    key). `bias` is None where the positions add none; `raw` are the scores where a mixer compares nothing.
    `divisor` turns raw into scaled: None where that is no division by one number. `exponentials` are
    e^(score - the row's largest): None where the weights are not shares of them.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    raw: np.ndarray
    divisor: float | None
    scaled: np.ndarray
    bias: np.ndarray | None
    masked: np.ndarray
    exponentials: np.ndarray | None
    pattern: np.ndarray
    z: np.ndarray
    written: np.ndarray


@torch.inference_mode()
def head_stages(model: Transformer, recording: Recording, layer: int, head: int) -> Stages:
    """Computes softmax(q k^T / sqrt(d_head) + bias + mask) v W_O of one head in float64 (Vaswani et al. 2017,
    3.2), or what the model's own mixer has instead. Raises KeyError or ConfigError without heads.
    """
    names = ("q_rot", "k_rot", "v")
    q, k, v = (torch.from_numpy(recording[f"blocks.{layer}.{name}"].copy()).double()[None] for name in names)
    mixer = in_double(by_heads(model.blocks[layer].mixer))
    length, kv_head = q.shape[2], head // (mixer.n_heads // mixer.n_kv_heads)
    scaled = mixer.scores(q, k)
    unscaled = mixer.raw_scores(q, k)
    raw = scaled if unscaled is None else unscaled
    biased = model.hooks(length, q).bias(scaled)
    mask = model.mask(length, q)
    masked = mixer.masked(biased, mask)
    pattern = mixer.weights(masked, mask)
    z = mixer.weighted_sum(pattern, v)
    if (gate := f"blocks.{layer}.z_gate") in recording:
        z = z * torch.from_numpy(recording[gate].copy()).double()
    mine, weights = masked[0, head].numpy(), pattern[0, head].numpy()
    return Stages(
        q[0, head].numpy(),
        k[0, kv_head].numpy(),
        v[0, kv_head].numpy(),
        raw[0, head].numpy(),
        _divisor(raw[0, head].numpy(), scaled[0, head].numpy()),
        scaled[0, head].numpy(),
        None if biased is scaled else (biased - scaled)[0, head].numpy(),
        mine,
        _exponentials(mine, weights),
        weights,
        z[0, head].numpy(),
        mixer.writes(z[0])[head].numpy(),
    )


def _divisor(raw: np.ndarray, scaled: np.ndarray) -> float | None:
    """Returns what the products (query, key) were divided by; None where it is no single number."""
    products = float((raw * scaled).sum())
    result = float((raw * raw).sum()) / products if products else 0.0
    return result if result and np.allclose(scaled * result, raw, atol=1e-9) else None


def _exponentials(masked: np.ndarray, pattern: np.ndarray) -> np.ndarray | None:
    """Returns e^(score - the row's largest), (query, key); None where their shares are not the pattern."""
    result: np.ndarray = np.exp(masked - masked.max(-1, keepdims=True))  # minus the largest: no overflow
    return result if np.allclose(result / result.sum(-1, keepdims=True), pattern, atol=1e-9) else None


def in_double(mixer: HeadMixer) -> HeadMixer:
    """Returns a copy of a mixer that computes in float64, on the CPU."""
    return copy.deepcopy(mixer).double().cpu().eval()


def key_value_head(recording: Recording, layer: int, head: int) -> int:
    """Returns the key-value head that a query head reads: `n_heads / n_kv_heads` neighbours share one."""
    return head * recording[f"blocks.{layer}.k"].shape[0] // recording.config.n_heads


def vectors(recording: Recording, layer: int, head: int) -> dict[str, np.ndarray]:
    """Returns a head's recorded vectors by name, (position, d_head) each. `q_rot` and `k_rot` are compared,
    `q` and `k` are those before QK-norm and RoPE. Raises KeyError without a mixer.
    """
    own, shared = head, key_value_head(recording, layer, head)
    places = {"q": own, "q_rot": own, "k": shared, "k_rot": shared, "v": shared}
    return {name: recording[f"blocks.{layer}.{name}"][place] for name, place in places.items()}


def biased(stages: Stages) -> np.ndarray:
    """Returns the scores before the mask, with what the positions add: (query, key)."""
    return stages.scaled if stages.bias is None else stages.scaled + stages.bias


def scaled_by(divisor: float | None, d_head: int) -> Literal["root", "none", "number", "own"]:
    """Names the division of the scores: by sqrt(d_head), none, by another number, or the mixer's own way."""
    if divisor is None:
        return "own"
    if math.isclose(divisor, math.sqrt(d_head), rel_tol=1e-6):
        return "root"
    return "none" if math.isclose(divisor, 1.0, rel_tol=1e-6) else "number"


def gap(stages: Stages, recording: Recording, layer: int, head: int) -> float:
    """Returns the largest difference between the recomputed pattern and the model's."""
    return float(np.abs(stages.pattern - recording[f"blocks.{layer}.pattern"][head]).max())


def strongest_key(stages: Stages, query: int) -> int:
    """Returns the key that gets most of a query's weight; the first of several."""
    return int(stages.pattern[query].argmax())


def telling_query(pattern: np.ndarray) -> int:
    """Returns the query of the later half that looks most decidedly at another token, though not at the
    first, where heads rest. pattern (query, key); of a text with two tokens or fewer, the last.
    """
    size = len(pattern)
    others = np.where(np.eye(size, dtype=bool), 0.0, pattern)
    others[:, 0] = 0.0
    half = size // 2
    return half + int(others[half:].max(-1).argmax()) if size > 2 else size - 1


def keys_seen(stages: Stages, query: int) -> list[int]:
    """Returns the keys that no mask hides from a query."""
    return [int(key) for key in np.flatnonzero(np.isfinite(stages.masked[query]))]


@dataclass(frozen=True)
class WrittenOut:
    """The arithmetic of one weight of one head: p = e^(masked - largest) / total.

    `pairs` are the numbers (q_i, k_i) whose products sum to `raw`, not for the mean mixer; `bias` is None
    where the positions add none. `scaled` is raw / `divisor`, or the mixer's own where that is None;
    `largest` is the largest of the query's row, `total` the sum over its `seen` keys. `exponential` and
    `total` are None for a mixer that makes its weights in another way.
    """

    pairs: tuple[tuple[float, float], ...]
    raw: float
    divisor: float | None
    scaled: float
    bias: float | None
    masked: float
    largest: float
    exponential: float | None
    total: float | None
    seen: int
    weight: float


def written_out(stages: Stages, query: int, key: int) -> WrittenOut:
    """Returns the arithmetic of the weight that `query` gives to `key`."""
    row, powers = stages.masked[query], None if stages.exponentials is None else stages.exponentials[query]
    return WrittenOut(
        pairs=tuple((float(a), float(b)) for a, b in zip(stages.q[query], stages.k[key], strict=True)),
        raw=float(stages.raw[query, key]),
        divisor=stages.divisor,
        scaled=float(stages.scaled[query, key]),
        bias=None if stages.bias is None else float(stages.bias[query, key]),
        masked=float(row[key]),
        largest=float(row.max()),
        exponential=None if powers is None else float(powers[key]),
        total=None if powers is None else float(powers.sum()),
        seen=len(keys_seen(stages, query)),
        weight=float(stages.pattern[query, key]),
    )


@dataclass(frozen=True)
class Lengths:
    """Euclidean lengths at one token: the stream before the layer, the sum of what its heads write (without
    b_O), and what one of them writes.
    """

    before: float
    together: float
    head: float


def lengths(model: Transformer, recording: Recording, stages: Stages, layer: int, query: int) -> Lengths:
    """Measures how much a head writes at `query`, beside all heads of its layer and the stream."""
    stream, written = (recording[f"blocks.{layer}.{name}"][query] for name in ("resid_pre", "attn_out"))
    bias = dict(model.named_parameters()).get(f"blocks.{layer}.mixer.w_o.bias")
    if bias is not None:
        written = written - bias.detach().float().numpy()
    return Lengths(*(float(np.linalg.norm(x)) for x in (stream, written, stages.written[query])))
