"""What each head does, in numbers: how widely it looks, how far, and whether it follows one of the known
habits.

All take patterns (..., query, key) whose rows sum to 1 and average over the queries of a text.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.measure.recording import Recording
from engine.model import Transformer
from engine.parts.heads import HeadMixer, by_heads


@dataclass(frozen=True, eq=False)
class HeadNumbers:
    """One number for each head, all (layer, head) float64.

    `entropy` is in nats, `relative_entropy` its share of ln(visible keys), `distance` in tokens; the others
    are shares of the weight. `even_first` and `even_previous` are what a head that spread its weight evenly
    would give to those places. `induction` and `duplicate` come from
    `engine.measure.attention.repeated_tokens`, `name_mover` from `engine.measure.attention.copying_heads`,
    `places`, `even_places` and `own_by_distance` from `engine.measure.attention.attention_targets`; None, or
    absent, where they were not, or cannot be, measured.
    """

    entropy: np.ndarray
    relative_entropy: np.ndarray
    distance: np.ndarray
    previous: np.ndarray
    first: np.ndarray
    induction: np.ndarray | None
    even_first: float
    even_previous: float
    duplicate: np.ndarray | None = None
    name_mover: np.ndarray | None = None
    places: Mapping[str, np.ndarray] = field(default_factory=dict)
    even_places: Mapping[str, float] = field(default_factory=dict)
    own_by_distance: np.ndarray | None = None


def head_numbers(
    patterns: np.ndarray,
    seen: np.ndarray,
    induction: np.ndarray | None = None,
    duplicate: np.ndarray | None = None,
    name_mover: np.ndarray | None = None,
) -> HeadNumbers:
    """patterns (layer, head, query, key) -> the numbers of every head; `seen` (query, key) is what may be
    looked at (`Recording.seen`). The others (layer, head) were measured elsewhere: see `HeadNumbers`.
    """
    even = even_pattern(seen)
    one = len(seen) == 1
    return HeadNumbers(
        entropy(patterns).mean(-1),
        relative_entropy(patterns, seen),
        mean_distance(patterns),
        previous_score(patterns),
        first_score(patterns),
        induction,
        1.0 if one else float(first_score(even)),
        1.0 if one else float(previous_score(even)),
        duplicate,
        name_mover,
    )


def even_pattern(seen: np.ndarray) -> np.ndarray:
    """What a head gives that spreads its weight evenly over the keys that it sees: (query, key) bool ->
    float64.
    """
    found: np.ndarray = seen / seen.sum(-1, keepdims=True)
    return found


def entropy(patterns: np.ndarray) -> np.ndarray:
    """-sum p ln p of each row, nats: (..., query, key) -> (..., query). 0: one token only; ln n: n tokens
    alike.
    """
    p = patterns.astype(np.float64)
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)


def relative_entropy(patterns: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Entropy over its maximum ln(visible keys), mean over the queries that have a choice: (..., query, key)
    -> (...); `seen` (query, key) bool. NaN for one token.
    """
    visible = seen.sum(-1)
    some = visible > 1
    if not some.any():
        return np.full(patterns.shape[:-2], np.nan)
    return (entropy(patterns)[..., some] / np.log(visible[some])).mean(-1)


def mean_distance(patterns: np.ndarray) -> np.ndarray:
    """sum p |query - key|, tokens, mean over queries: (..., query, key) -> (...)."""
    place = np.arange(patterns.shape[-1])
    return (patterns * np.abs(place[:, None] - place[None, :])).sum(-1, dtype=np.float64).mean(-1)


def previous_score(patterns: np.ndarray) -> np.ndarray:
    """Weight on the token just before, mean over the queries that have one: (..., query, key) -> (...). NaN
    for one token.
    """
    return over_queries(np.diagonal(patterns, -1, -2, -1))


def first_score(patterns: np.ndarray) -> np.ndarray:
    """Weight on position 0 (the "sink", Xiao et al. 2023), mean over all later queries: (..., query, key) ->
    (...). NaN for one token.
    """
    return over_queries(patterns[..., 1:, 0])


@dataclass(frozen=True, eq=False)
class Sink:
    """What the first token offers to those who look at it. Norms are Euclidean lengths of value vectors,
    (layer, kv_head).

    `share` (layer, head) is the weight on it, `written` (layer, head) the share of it in sum_key p |v|, the
    size of what was gathered.
    """

    share: np.ndarray
    written: np.ndarray
    first_norm: np.ndarray
    other_norm: np.ndarray


def sink(recording: Recording) -> Sink:
    """Weight on position 0 against the length of what it says there (Xiao et al. 2023; Gu et al. 2024). Needs
    two tokens and a mixer.
    """
    patterns = recording.stacked("pattern")
    norms = np.linalg.norm(recording.stacked("v").astype(np.float64), axis=-1)  # (layer, kv_head, key)
    repeated = np.repeat(norms, patterns.shape[1] // norms.shape[1], axis=1)  # (layer, head, key)
    gathered = patterns[..., 1:, :] * repeated[:, :, None, :]
    total = gathered.sum(-1)
    written = np.divide(gathered[..., 0], total, out=np.zeros_like(total), where=total > 0).mean(-1)
    return Sink(first_score(patterns), written, norms[..., 0], norms[..., 1:].mean(-1))


def resting_place(patterns: np.ndarray, at_least: int = 8) -> tuple[int, int, int, float] | None:
    """(layer, head, key, share): the one key after the first that one head's later queries give most of their
    weight to, on average.

    patterns (layer, head, query, key). Keys with fewer than `at_least` later queries are left out; None when
    that leaves none.
    """
    length = patterns.shape[-1]
    keys = length - at_least  # key j has length - 1 - j later queries
    if keys <= 1:
        return None
    later = np.tri(length, k=-1, dtype=bool)
    share = np.where(later, patterns, 0).sum(-2, dtype=np.float64)[..., 1:keys] / (
        length - 1 - np.arange(1, keys)
    )
    if not np.isfinite(share).any():
        return None
    layer, head, key = (int(i) for i in np.unravel_index(np.nanargmax(share), share.shape))
    return layer, head, key + 1, float(share[layer, head, key])


def over_queries(values: np.ndarray) -> np.ndarray:
    """The mean over the last axis, in float64; NaN where that is empty."""
    return values.mean(-1, dtype=np.float64) if values.shape[-1] else np.full(values.shape[:-1], np.nan)


@dataclass(frozen=True, eq=False)
class Stages:
    """One head, stage by stage, each computed here from the recorded q_rot, k_rot and v: to be held against
    what was recorded.

    q, k, v and z are (position, d_head), `written` (query, d_model), without the bias b_O, which no head
    owns; all others (query, key). `bias` is None where the positions add none, `raw` is None for a mixer that
    compares nothing. `divisor` turns raw into scaled: None where that is no division by one number.
    `exponentials` are e^(score - the row's largest): None where the weights are not shares of them.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    raw: np.ndarray | None
    divisor: float | None
    scaled: np.ndarray
    bias: np.ndarray | None
    masked: np.ndarray
    exponentials: np.ndarray | None
    pattern: np.ndarray
    z: np.ndarray
    written: np.ndarray


@torch.inference_mode()
def stages(model: Transformer, recording: Recording, layer: int, head: int) -> Stages:
    """softmax(q k^T / sqrt(d_head) + bias + mask) v W_O of one head, in float64 (Vaswani et al. 2017, 3.2),
    or what the model's own mixer has in the place of these. Raises KeyError without a mixer, ConfigError for
    one that has no heads.
    """
    names = ("q_rot", "k_rot", "v")
    q, k, v = (torch.from_numpy(recording[f"blocks.{layer}.{name}"].copy()).double()[None] for name in names)
    mixer = in_double(by_heads(model.blocks[layer].mixer))
    length, kv_head = q.shape[2], head // (mixer.n_heads // mixer.n_kv_heads)
    raw, scaled = mixer.compared(q, k), mixer.scores(q, k)
    biased = model.hooks(length, q).bias(scaled)
    mask = model.mask(length, q)
    masked = mixer.masked(biased, mask)
    pattern = mixer.weights(masked, mask)
    z = mixer.weighted_sum(pattern, v)
    mine, weights = masked[0, head].numpy(), pattern[0, head].numpy()
    return Stages(
        q[0, head].numpy(),
        k[0, kv_head].numpy(),
        v[0, kv_head].numpy(),
        None if raw is None else raw[0, head].numpy(),
        None if raw is None else _divisor(raw[0, head].numpy(), scaled[0, head].numpy()),
        scaled[0, head].numpy(),
        None if biased is scaled else (biased - scaled)[0, head].numpy(),
        mine,
        _exponentials(mine, weights),
        weights,
        z[0, head].numpy(),
        mixer.writes(z[0])[head].numpy(),
    )


def _divisor(raw: np.ndarray, scaled: np.ndarray) -> float | None:
    """What the products (query, key) were divided by, read off the scores that a mixer made of them."""
    products = float((raw * scaled).sum())
    found = float((raw * raw).sum()) / products if products else 0.0
    return found if found and np.allclose(scaled * found, raw, atol=1e-9) else None


def _exponentials(masked: np.ndarray, pattern: np.ndarray) -> np.ndarray | None:
    """e^(score - the row's largest), (query, key), where their shares are the pattern; None where a mixer
    makes its weights in another way.
    """
    found: np.ndarray = np.exp(masked - masked.max(-1, keepdims=True))  # minus the largest: no overflow
    return found if np.allclose(found / found.sum(-1, keepdims=True), pattern, atol=1e-9) else None


def in_double(mixer: HeadMixer) -> HeadMixer:
    """A copy of a mixer that computes in float64, on the CPU."""
    return copy.deepcopy(mixer).double().cpu().eval()


def position_bias(model: Transformer, length: int) -> np.ndarray | None:
    """What the positions add to the scores, (head, query, key) float64; None for schemes that add nothing
    there.
    """
    scores = next(model.parameters()).new_zeros(1, model.config.n_heads, length, length)
    with torch.inference_mode():
        biased = model.hooks(length, scores).bias(scores)
    return None if biased is scores else biased[0].double().cpu().numpy()
