"""Memories beside the cache whose size does not grow: one matrix to which every token adds its key times its
value (linear attention: Katharopoulos et al. 2020), or which the delta rule corrects (Schlag et al. 2021).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.data.progress import Progress, Steps
from engine.recording import softmax

Rule = Literal["cache", "adding", "delta"]
RULES: tuple[Rule, ...] = ("cache", "adding", "delta")
WIDTH = 32  # of keys and values
HEADS, D_HEAD = 8, 64  # of the layer that is timed
NUMBER = 4  # bytes, in float32
ROUNDS = 7


@dataclass(frozen=True, eq=False)
class Pairs:
    """Keys and values (pair, width) in the order in which they are written, all of length 1."""

    keys: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)


def draw_pairs(
    count: int, seed: int, likeness: float = 0.0, again: bool = False, width: int = WIDTH
) -> Pairs:
    """Draws pairs whose keys have the cosine `likeness` on average; `again`: see `last_key_again`."""
    rng = np.random.default_rng(seed)
    shared, keys, values = (rng.standard_normal((n, width)) for n in (1, count, count))
    keys = _unit(likeness**0.5 * _unit(shared) + (1 - likeness) ** 0.5 * _unit(keys))
    pairs = Pairs(keys, _unit(values))
    return last_key_again(pairs) if again else pairs


def last_key_again(pairs: Pairs) -> Pairs:
    """Returns the pairs with the first one's key in the last, which has a value of its own."""
    return Pairs(np.concatenate([pairs.keys[:-1], pairs.keys[:1]]), pairs.values)


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def written(pairs: Pairs, rule: Rule) -> np.ndarray:
    """Returns what a memory holds after all pairs: S (width, width), of the cache [K V] (pair, 2 width).

    Adding: S + k v^T. The delta rule first takes back what the key gives: S + k (v - k S)^T.
    """
    if rule == "cache":
        return np.concatenate([pairs.keys, pairs.values], axis=1)
    if rule == "adding":
        return pairs.keys.T @ pairs.values
    state = np.zeros((pairs.keys.shape[1], pairs.values.shape[1]))
    for key, value in zip(pairs.keys, pairs.values, strict=True):
        state += np.outer(key, value - key @ state)
    return state


def given_back(pairs: Pairs, rule: Rule) -> np.ndarray:
    """Returns what each key reads after all pairs have been written, (pair, width): k S, of the cache
    softmax(k K^T sqrt(width)) V.
    """
    held = written(pairs, rule)
    if rule != "cache":
        return pairs.keys @ held
    keys, values = np.split(held, [pairs.keys.shape[1]], axis=1)
    return softmax(pairs.keys @ keys.T * keys.shape[1] ** 0.5) @ values


@dataclass(frozen=True, eq=False)
class Recall:
    """Values read back: their `cosine` with what was written last under each key, and whether that is the
    nearest of all values, both (pair,); `numbers` that the memory holds.
    """

    cosine: np.ndarray
    right: np.ndarray
    numbers: int

    @property
    def count(self) -> int:
        """Returns how many values are right."""
        return int(self.right.sum())


def recall(pairs: Pairs, rule: Rule) -> Recall:
    """Reads a memory with each key that it was written with."""
    read, last = given_back(pairs, rule), _last_under(pairs.keys)
    likeness = _unit(read) @ pairs.values.T  # (key, value)
    nearest = likeness.argmax(axis=1)
    return Recall(likeness[np.arange(len(pairs)), last], nearest == last, written(pairs, rule).size)


def _last_under(keys: np.ndarray) -> np.ndarray:
    """Returns the last pair with the same key, for each pair: (pair,)."""
    same = np.isclose(keys @ keys.T, 1.0, atol=1e-9)
    return len(keys) - 1 - same[:, ::-1].argmax(axis=1)


@dataclass(frozen=True)
class Reading:
    """The cost of one more token by the length of the text before it: bytes held, and seconds to write one
    pair and read once, of a layer with HEADS heads of D_HEAD in float32.
    """

    lengths: tuple[int, ...]
    bytes: dict[Rule, tuple[int, ...]]
    seconds: dict[Rule, tuple[float, ...]]


def held_bytes(rule: Rule, length: int) -> int:
    """Returns the bytes that a layer's memory of a text takes.

    >>> held_bytes("cache", 64), held_bytes("delta", 64), held_bytes("delta", 6400)
    (262144, 131072, 131072)
    """
    return HEADS * D_HEAD * (D_HEAD if rule != "cache" else 2 * length) * NUMBER


def reading(lengths: Sequence[int]) -> Steps[Reading]:
    """Times one more token after texts of each length: the least of ROUNDS, in seconds."""
    rng = np.random.default_rng(0)
    found: dict[Rule, list[float]] = {rule: [] for rule in RULES}
    for done, length in enumerate(lengths):
        k, v = (rng.standard_normal((HEADS, length, D_HEAD), dtype=np.float32) for _ in "kv")
        state = np.einsum("hnd,hne->hde", k, v) / length
        for rule in RULES:
            took = [_seconds(rule, k, v, state.copy()) for _ in range(ROUNDS)]
            found[rule].append(min(took))
        yield Progress(done + 1, len(lengths))
    sizes: dict[Rule, tuple[int, ...]] = {
        rule: tuple(held_bytes(rule, length) for length in lengths) for rule in RULES
    }
    return Reading(tuple(lengths), sizes, {rule: tuple(seconds) for rule, seconds in found.items()})


def _seconds(rule: Rule, k: np.ndarray, v: np.ndarray, state: np.ndarray) -> float:
    """Writes the last pair and reads with its key, once: keys and values (head, pair, d_head)."""
    key, value = k[:, -1:], v[:, -1:]  # (head, 1, d_head)
    begun = time.perf_counter()
    if rule == "cache":
        softmax(key @ k.transpose(0, 2, 1) * D_HEAD**-0.5) @ v
    else:
        state += key.transpose(0, 2, 1) @ (value - key @ state if rule == "delta" else value)
        key @ state
    return time.perf_counter() - begun
