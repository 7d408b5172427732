"""RoPE in numbers: how pairs turn, what a score keeps when both positions move, how it falls with the
distance, and the two layouts of the pairs.

Everything turns by `engine.parts.positions`: `Rope`, or its `rotate_half_pairs` in another precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.errors import ShapeError
from engine.model import Transformer
from engine.parts.attention import by_heads
from engine.parts.positions import Rope, rotate_half_pairs
from engine.recording import Edits, Recording, next_token_losses, record, softmax
from studies.costs.cards.table import card_of


def frequencies(d_rotary: int, base: float) -> np.ndarray:
    """Returns theta_i = base^(-2i/d_rotary), radians per position: (pair,) float64. Su et al. 2021, 3.2.2.

    `d_rotary` are the dimensions that turn, all or the first ones. Raises ShapeError when it is odd.

    >>> frequencies(4, 10_000.0).round(6)
    array([1.  , 0.01])
    """
    if d_rotary < 2 or d_rotary % 2:
        raise ShapeError(f"{d_rotary} dimensions cannot be split into pairs: give an even number, 2 or more")
    return float(base) ** (-np.arange(0, d_rotary, 2) / d_rotary)


def turns(d_rotary: int, base: float, context: int) -> np.ndarray:
    """Returns the full turns of each pair within `context` positions, context * theta_i / 2 pi: (pair,).

    >>> turns(4, 100.0, 628).round(2)
    array([99.95,  9.99])
    """
    return context * frequencies(d_rotary, base) / (2 * math.pi)


def tables(positions: Sequence[int] | np.ndarray, d_rotary: int, base: float) -> tuple[Tensor, Tensor]:
    """Returns (cos, signed sin) for `rotate_half_pairs`, each (position, d_rotary), float64."""
    angles = torch.outer(
        torch.as_tensor(np.asarray(positions), dtype=torch.float64),
        torch.from_numpy(frequencies(d_rotary, base)),
    )
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def rotated(
    x: np.ndarray, positions: Sequence[int] | np.ndarray, base: float, d_rotary: int | None = None
) -> np.ndarray:
    """Turns each row of x (..., position, d_head) by its position in float64, d_rotary or all of it."""
    width = x.shape[-1] if d_rotary is None else d_rotary
    turn = _half_split(tables(positions, width, base))
    return turn(torch.from_numpy(np.array(x, dtype=np.float64))).numpy()


def pair_terms(
    q: np.ndarray, k: np.ndarray, query: int, key: int, base: float, d_rotary: int | None = None
) -> np.ndarray:
    """Returns each pair's part of q.k at `query` and `key`, (pair,); `unturned` is the rest."""
    width = len(q) if d_rotary is None else d_rotary
    products = rotated(q[None, :width], [query], base)[0] * rotated(k[None, :width], [key], base)[0]
    return products.reshape(2, -1).sum(0)


def unturned(q: np.ndarray, k: np.ndarray, d_rotary: int) -> float:
    """Returns what the dimensions from d_rotary on add to q.k, the same at every distance.

    >>> unturned(np.array([1.0, 2.0, 3.0]), np.array([9.0, 9.0, 5.0]), 2)
    15.0
    """
    return float(q[d_rotary:].astype(np.float64) @ k[d_rotary:].astype(np.float64))


def score_curve(
    q: np.ndarray, k: np.ndarray, base: float, distances: np.ndarray, d_rotary: int | None = None
) -> np.ndarray:
    """Returns q.k against the distance query - key: (distance,). For q = k = ones, all turned, it is 2 *
    sum_i cos(distance * theta_i). Linear in q and in k: with the mean q and the mean k of a text it is the
    mean over all pairs of its tokens.
    """
    turned = rotated(np.broadcast_to(q, (len(distances), len(q))), distances, base, d_rotary)
    return turned @ np.asarray(k, dtype=np.float64)


@dataclass(frozen=True)
class Shifted:
    """One precision: q.k before and after a common move, summed in float64: only turning rounds."""

    precision: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        return abs(self.after - self.before)


def shift_check(
    q: np.ndarray, k: np.ndarray, query: int, key: int, shift: int, base: float, d_rotary: int | None = None
) -> list[Shifted]:
    """Scores (query, key) and (query + shift, key + shift): by the engine's Rope in bfloat16 and float32, and
    with float64 tables. Only the first d_rotary dimensions turn (None: all).
    """
    result = []
    share = 1.0 if d_rotary is None else d_rotary / len(q)
    config = ModelConfig(
        d_model=len(q), n_heads=1, d_head=len(q), position="rope", rope_theta=float(base), rope_fraction=share
    )
    rope = Rope(config.resolved())
    for name, dtype in (("bfloat16", torch.bfloat16), ("float32", torch.float32)):
        vectors = [
            torch.from_numpy(np.array(x, dtype=np.float32)).to(dtype).reshape(1, 1, 1, -1) for x in (q, k)
        ]
        scores = []
        for s in (0, shift):
            turned_q = rope.prepare(1, vectors[0], query + s).rotate(*vectors)[0]
            turned_k = rope.prepare(1, vectors[1], key + s).rotate(*vectors)[1]
            scores.append(float((turned_q.double() * turned_k.double()).sum()))
        result.append(Shifted(name, *scores))
    exact = [
        float(
            rotated(q[None], [query + s], base, d_rotary)[0] @ rotated(k[None], [key + s], base, d_rotary)[0]
        )
        for s in (0, shift)
    ]
    return [*result, Shifted("float64", *exact)]


@dataclass(frozen=True)
class Rotation:
    """The rotation of a model: the first `rotary` dimensions of a head turn, by frequencies of `base`."""

    base: float
    rotary: int


def turned_by(model: Transformer) -> Rotation | None:
    """Returns the model's rotation, checked on vectors; None where it turns nothing, or otherwise."""
    c, scheme = model.config, model.positions
    if "rotate" not in scheme.enters:
        return None
    base = float(getattr(scheme, "theta", c.rope_theta))
    rotary = int(getattr(scheme, "d_rotary", c.d_rotary))
    x = torch.ones(1, 1, 8, c.d_head)
    q, k = scheme.prepare(8, x).rotate(x, x)
    ours = torch.from_numpy(rotated(x.numpy(), range(8), base, rotary)).float()
    fits = torch.allclose(q, ours, atol=1e-4) and torch.allclose(k, ours, atol=1e-4)
    return Rotation(base, rotary) if fits else None


@torch.no_grad()
def before_rotation(
    model: Transformer, recording: Recording, layer: int, head: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns q and k of a head as they meet the rotation, after QK-norm, each (position, d_head); None where
    the model compares none. With fewer key heads than query heads, k is that of the head's group.
    """
    c = recording.config
    if not card_of(recording.parts.mixer(c)).scored:
        return None
    q, k = (
        recording[f"blocks.{layer}.q"][head],
        recording[f"blocks.{layer}.k"][head // (c.n_heads // c.n_kv_heads)],
    )
    mixer = by_heads(model.blocks[layer].mixer)
    q, k = (
        mixer.normed(torch.from_numpy(x.copy()), gain).numpy()
        for x, gain in ((q, mixer.q_gain), (k, mixer.k_gain))
    )
    return q, k


# The two layouts --------------------------------------------------------------------------------


def half_split_order(d_head: int) -> np.ndarray:
    """Returns the interleaved dimensions in half-split order: x_half = x_interleaved[order].

    >>> half_split_order(8)
    array([0, 2, 4, 6, 1, 3, 5, 7])
    """
    return np.arange(d_head).reshape(-1, 2).T.reshape(-1)


def rotate_interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turns the pairs (x[2i], x[2i + 1]) of x (..., position, d_rotary), as the paper and GPT-J."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


Turn = Callable[[Tensor], Tensor]  # (..., position, d_head) in and out


def _half_split(tables: tuple[Tensor, Tensor]) -> Turn:
    """Turns the first dimensions, as many as the tables (cos, signed sin) have, in the engine's layout."""
    width = tables[0].shape[-1]
    return lambda x: torch.cat((rotate_half_pairs(x[..., :width], *tables), x[..., width:]), -1)


def _interleaved(tables: tuple[Tensor, Tensor]) -> Turn:
    """Turns the same dimensions by the same angles, but neighbours together."""
    width = tables[0].shape[-1]
    cos, sin = tables[0][:, : width // 2], tables[1][:, width // 2 :]
    return lambda x: torch.cat((rotate_interleaved(x[..., :width], cos, sin), x[..., width:]), -1)


@dataclass(frozen=True, eq=False)
class Layouts:
    """Scores (query, key), scaled by 1/sqrt(d_head), of the same q and k turned in different layouts. `moved`
    is the largest change of each when all positions move by SHIFT.
    """

    half: np.ndarray  # half-split, as the engine does it
    permuted: np.ndarray  # dimensions reordered, then interleaved: the same thing
    wrong: np.ndarray  # interleaved without reordering, both q and k
    crossed: np.ndarray  # q half-split, k interleaved: two pieces of code that do not agree
    moved: dict[str, float]

    def difference(self, name: str) -> float:
        """Returns the largest difference from the half-split scores."""
        return float(np.abs(getattr(self, name) - self.half).max())


SHIFT = 10


def layouts(q: np.ndarray, k: np.ndarray, base: float, d_rotary: int | None = None) -> Layouts:
    """Scores q, k (position, d_head) in every layout, in float64; the first d_rotary dimensions turn."""
    width = q.shape[1] if d_rotary is None else d_rotary
    result = {}
    for start in (0, SHIFT):
        result[start] = _layout_scores(q, k, tables(np.arange(start, start + len(q)), width, base))
    moved = {name: float(np.abs(result[SHIFT][name] - result[0][name]).max()) for name in result[0]}
    return Layouts(**result[0], moved=moved)


def _layout_scores(q: np.ndarray, k: np.ndarray, turning: tuple[Tensor, Tensor]) -> dict[str, np.ndarray]:
    half, interleaved, width = _half_split(turning), _interleaved(turning), turning[0].shape[-1]
    back = np.argsort(half_split_order(width))  # half-split -> interleaved
    back = np.concatenate((back, np.arange(width, q.shape[1])))  # what does not turn stays where it is
    a, b = (torch.from_numpy(x.astype(np.float64)) for x in (q, k))
    pairs = {
        "half": (half(a), half(b)),
        "permuted": (interleaved(a[:, back]), interleaved(b[:, back])),
        "wrong": (interleaved(a), interleaved(b)),
        "crossed": (half(a), interleaved(b)),
    }
    return {name: ((x @ y.T) / math.sqrt(q.shape[1])).numpy() for name, (x, y) in pairs.items()}


@dataclass(frozen=True)
class LayoutLoss:
    """The mean loss of a text, nats per token, as trained and with neighbours paired in every head."""

    right: float
    wrong: float


def wrong_layout_loss(model: Transformer, ids: Sequence[int]) -> LayoutLoss | None:
    """Measures what the mix-up costs. None without RoPE, scores, a causal mask or two tokens."""
    c = model.config
    turning, scored = turned_by(model), card_of(model.parts.mixer(c)).scored
    if turning is None or not scored or not c.causal or len(ids) < 2:
        return None
    cos, signed = (table.float() for table in tables(np.arange(len(ids)), turning.rotary, turning.base))
    back, forth = _half_split((cos, -signed)), _interleaved((cos, signed))

    def mix_up(turned: Tensor) -> Tensor:
        """Turns back in the right layout, then forth in the wrong one."""
        return forth(back(turned))

    edits: Edits = {
        f"blocks.{layer}.{name}": mix_up for layer in range(c.n_layers) for name in ("q_rot", "k_rot")
    }
    right, wrong = (
        next_token_losses(record(model, ids, edits=e, only={"logits"})).mean() for e in (None, edits)
    )
    return LayoutLoss(float(right), float(wrong))


@dataclass(frozen=True)
class Score:
    """The score q.k of two turned vectors, unscaled, and its largest pair; `near`: arrows agree."""

    total: float
    pair: int
    term: float

    @property
    def near(self) -> bool:
        return self.term > 0


def score_at(
    q: np.ndarray, k: np.ndarray, query: int, key: int, base: float, d_rotary: int | None = None
) -> Score:
    """Scores q (d_head,) at `query` and k (d_head,) at `key`; the first d_rotary dimensions turn."""
    terms = pair_terms(q, k, query, key, base, d_rotary)
    pair = int(np.abs(terms).argmax())
    rest = unturned(q, k, 2 * len(terms))
    return Score(float(terms.sum()) + rest, pair, float(terms[pair]))


# Score against distance -------------------------------------------------------------------------


def mean_score(
    q: np.ndarray, k: np.ndarray, base: float, distances: np.ndarray, d_rotary: int | None = None
) -> np.ndarray:
    """Returns q.k / sqrt(d_head) by distance, (distance,) float64: the mean over every pair of a row of q and
    a row of k (position, d_head) before rotation. Only the first d_rotary dimensions turn (None: all).
    """
    curve = score_curve(q.mean(0), k.mean(0), base, distances, d_rotary)
    return curve / math.sqrt(q.shape[1])


def some_distances(reach: int, most: int = 1_000) -> np.ndarray:
    """Returns the distances 0 to `most`, and as many more up to `reach`, evenly: (distance,), ascending.

    >>> some_distances(16, 4).tolist()
    [0, 1, 2, 3, 4, 7, 10, 13, 16]
    """
    far = np.linspace(most, max(reach, most), most + 1).round().astype(np.int64)
    result = np.unique(np.concatenate((np.arange(most + 1), far)))
    return result[result <= reach]


@dataclass(frozen=True)
class Decay:
    """A score over some of the distances 0 to `reach`. `lowest` and `highest` are (score, distance). `falls`:
    it begins above 0 and is nowhere higher. Only then `below_half` is the first distance at which it is less
    than half of its start, None where it never is; `stays`: from there on it remains so.
    """

    start: float
    last: float
    reach: int
    lowest: tuple[float, int]
    highest: tuple[float, int]
    falls: bool
    below_half: int | None
    stays: bool


def decay(distances: np.ndarray, scores: np.ndarray) -> Decay:
    """Summarises distances (n,), ascending from 0, and the scores (n,) at them."""
    low, high = int(scores.argmin()), int(scores.argmax())
    start = float(scores[0])
    falls = start > 0 and high == 0
    below = np.flatnonzero(scores < start / 2) if falls else np.zeros(0, np.int64)
    return Decay(
        start,
        float(scores[-1]),
        int(distances[-1]),
        (float(scores[low]), int(distances[low])),
        (float(scores[high]), int(distances[high])),
        falls,
        int(distances[below[0]]) if below.size else None,
        bool(below.size and (scores[below[0] :] <= start / 2).all()),
    )


# Turns within a context -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Turns:
    """Full turns of each pair within a context, (pair,), fastest first; `theta` in radians a position."""

    count: np.ndarray = field(repr=False)
    theta: np.ndarray = field(repr=False)

    @property
    def positions(self) -> np.ndarray:
        """The positions that one turn takes: (pair,)."""
        return 2 * math.pi / self.theta

    @property
    def incomplete(self) -> np.ndarray:
        """The pairs that never complete a turn: (pair,) bool."""
        return self.count < 1

    @property
    def never(self) -> int:
        """The number of pairs that never complete a turn."""
        return int(self.incomplete.sum())


def turns_within(d_rotary: int, base: float, context: int) -> Turns:
    """Returns the turns of the pairs of `d_rotary` dimensions. Raises ShapeError when that is odd.

    >>> turns_within(128, 10_000.0, 4_096).never
    18
    """
    return Turns(turns(d_rotary, base, context), frequencies(d_rotary, base))


# Layouts ----------------------------------------------------------------------------------------


def layout_pattern(layouts: Layouts, name: str, seen: np.ndarray) -> np.ndarray:
    """Returns the pattern (query, key) of a layout, a field of `Layouts`, over the keys `seen`."""
    scores: np.ndarray = getattr(layouts, name)
    return softmax(np.where(seen, scores, -np.inf))
