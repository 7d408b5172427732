"""The places of the living map that are neither the stream nor what is added to it: the norms, and where
positions enter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from engine.measure.recording import Recording
from engine.model import Transformer

CELLS = 16  # of a strip: each is the mean of neighbouring numbers of a vector


@dataclass(frozen=True, eq=False)
class Norms:
    """The norms, as strips and sizes, beside what they were given: `attention` is the one that attention
    reads, `feedforward` the one that the network reads. In a post-norm block it is the same that ends the sum
    with attention's, and the one after the network is the stream itself. None where there is none.
    """

    attention: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (layer, lane, cell)
    attention_sizes: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (layer, lane)
    feedforward: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    feedforward_sizes: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    final: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (1, lane, cell)
    final_sizes: np.ndarray | None = field(repr=False, metadata={"lane": 1})  # (1, lane)


@dataclass(frozen=True, eq=False)
class Placed:
    """What enters the stream before the first block, where that is more than the embedding, and what tells
    attention the places.
    """

    # (2, lane, cell), (2, lane): the embedding alone and what is added to it for the place
    entering: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    entering_sizes: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    # (2, lane): degrees, 0 to 360, by which the fastest and the slowest pair of q and k are turned
    turned: np.ndarray | None = field(repr=False, metadata={"lane": 1})
    # (head, lane, 2): what is added to the scores of the token before and of the first one
    added: np.ndarray | None = field(repr=False, metadata={"lane": 1})


def edges(width: int) -> np.ndarray:
    """Where the cells of a vector of `width` numbers begin and end: (cell + 1,), as even as can be.

    >>> edges(64).tolist()[:3], edges(10).tolist() == list(range(11))
    ([0, 4, 8], True)
    """
    cells = min(CELLS, width)
    return (np.arange(cells + 1) * width) // cells


def strips(vectors: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """(..., d_model) -> (..., cell): means of neighbouring numbers; and how many they are of, the fewest and
    the most.
    """
    at = edges(vectors.shape[-1])
    counts = np.diff(at)
    found: np.ndarray = np.add.reduceat(vectors, at[:-1], axis=-1) / counts
    return found, (int(counts.min()), int(counts.max()))


def size(vectors: np.ndarray) -> np.ndarray:
    """(..., n) -> (...,): the root mean square of the numbers."""
    found: np.ndarray = np.sqrt(np.square(vectors, dtype=np.float64).mean(-1)).astype(np.float32)
    return found


def norms(model: Transformer, recording: Recording, shown: int) -> Norms:
    """Of the last `shown` tokens that were recorded."""
    config, parts = model.config, model.parts
    there = parts.norm(config).card.present
    ends = parts.wiring(config).ends_normed

    def found(name: str, present: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
        if not (there and present and f"blocks.0.{name}" in recording):
            return None, None
        rows = recording.stacked(name)[:, -shown:]
        return strips(rows)[0], size(rows)

    mixes, feeds = parts.mixer(config).present, parts.feedforward(config).present
    attention = found("norm1", mixes and not ends)
    feedforward = found("norm1", mixes) if ends else found("norm2", feeds)
    final: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    if there and not ends and "norm_final" in recording:
        last = recording["norm_final"][None, -shown:]
        final = strips(last)[0], size(last)
    return Norms(*attention, *feedforward, *final)


@torch.no_grad()
def placed(model: Transformer, recording: Recording, shown: int, length: int) -> Placed:
    """Of the last `shown` tokens of a text of `length`. What is turned and what is added is asked of the
    scheme itself: of the pair (1, 0), and of scores that are all 0.
    """
    entering = sizes = turned = added = None
    scheme = model.parts.position(model.config)
    mixes = model.parts.mixer(model.config).scored
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
    return Placed(entering, sizes, turned, added)


def _turned(model: Transformer, length: int) -> np.ndarray:
    """(2, length), degrees of the fastest and the slowest pair; dimension i pairs with i + d_rotary / 2."""
    half = model.config.d_rotary // 2
    one = model.embedding.new_zeros(2, 1, length, model.config.d_head)
    one[0, ..., 0] = one[1, ..., half - 1] = 1
    seen = model.hooks(length, model.embedding).turn(one)[:, 0].float().cpu().numpy()
    pairs = [(0, half), (half - 1, 2 * half - 1)]
    angles = np.stack([np.arctan2(turn[:, b], turn[:, a]) for turn, (a, b) in zip(seen, pairs, strict=True)])
    found: np.ndarray = (np.degrees(angles) % 360).astype(np.float32)
    return found
