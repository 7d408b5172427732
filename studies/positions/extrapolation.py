"""Length extrapolation: the loss at every position of texts longer than any that a model was trained on.

A window begins every `context` characters of a stretch of text. So a character is read at position p of one
window and at p + context of the one before it: what changes from p to p + context is how far back the model
reads, not how hard the text is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig, Position
from engine.errors import CorpusError, ShapeError
from engine.model import Transformer, build
from engine.parts.positions import T5Bias, t5_bucket
from studies.positions.stretched_rope import STRETCHES, Stretching, stretched
from studies.positions.t5_buckets import t5_weights

TIMES = 4  # how many contexts are read
STRETCH = 32  # windows side by side; stretches are spread over the text
TAIL = 8  # the last positions of a context: what a window that slides by 8 sees, 57 to 64 characters of 64
BLOCK = 32  # neighbouring windows whose errors go together: 2,048 characters are much of a scene
BATCH = 4  # windows; more are slower on one core, since their patterns do not fit into its cache

Stopgap = Literal["repeat", "hold", "interpolate", "ntk", "yarn", "far"]
STOPGAP_FOR: dict[Stopgap, Position] = {
    **dict.fromkeys(STRETCHES, "rope"),
    "repeat": "learned",
    "hold": "learned",
    "far": "t5",
}


def window_starts(
    tokens: int, context: int, count: int, times: int = TIMES, stretch: int = STRETCH
) -> np.ndarray:
    """Returns where about `count` windows of times * context + 1 tokens begin, ascending: stretches of
    windows `context` apart, spread evenly.

    count = 0 takes every window. Raises CorpusError when the text is shorter than one window.

    >>> window_starts(1000, 10, 4, times=2, stretch=2).tolist()
    [0, 10, 960, 970]
    """
    most = (tokens - times * context - 1) // context + 1  # windows that fit
    if tokens < times * context + 1:
        raise CorpusError(
            f"the text has {tokens} tokens; {times * context + 1} are needed to read {times} contexts of"
            f" {context}"
        )
    if count <= 0 or count >= most:
        return np.arange(most) * context
    size = min(stretch, count)
    pieces = max(1, count // size)
    firsts = np.linspace(0, most - size, pieces).astype(np.int64) if pieces > 1 else np.zeros(1, np.int64)
    return np.unique(firsts[:, None] + np.arange(size)) * context


def position_losses(
    model: Transformer, tokens: Tensor, starts: np.ndarray, length: int, batch: int = BATCH
) -> Iterator[np.ndarray]:
    """Yields the loss in nats of every position of the windows tokens[start : start + length + 1], a few
    windows at a time: (window, length), float32. A learned table is read only as far as it goes; the rest is
    NaN. Raises ShapeError when length is below 1.
    """
    if length < 1:
        raise ShapeError(f"length is {length}; at least one position is needed")
    reach = min(length, model.positions.reach(model.config) or length)
    for some in torch.from_numpy(starts).split(batch):
        windows = tokens[some[:, None] + torch.arange(reach + 1)]  # (window, position + 1)
        with torch.inference_mode():
            logits = model(windows[:, :-1])  # (window, position, vocab)
            losses = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="none").view(
                len(some), reach
            )
        yield F.pad(losses, (0, length - reach), value=torch.nan).numpy()


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean loss by position, in bins of `width` positions: `mean` and its standard error, (bin,), nats.

    Windows near each other are hard or easy together, so errors are over blocks of BLOCK windows; NaN for a
    single block. `tail` is the mean over the last TAIL positions of the context, with its error: what a
    sliding window reaches everywhere. `excess` is what the last TAIL positions of 2, 3 ... contexts cost
    more, in nats, than the same characters at the end of the first context of another window, with its error.
    """

    width: int
    mean: np.ndarray
    error: np.ndarray
    windows: int
    tail: tuple[float, float]
    excess: dict[int, tuple[float, float]]

    @property
    def first(self) -> np.ndarray:
        """The first position of each bin, (bin,)."""
        return np.arange(len(self.mean)) * self.width

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, ready for JSON, to four decimals; `from_dict` is its inverse."""
        return {
            "width": self.width,
            "windows": self.windows,
            "mean": _plain(self.mean),
            "error": _plain(self.error),
            "tail": _plain(self.tail),
            "excess": {str(times): _plain(pair) for times, pair in self.excess.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Curve:
        excess = {int(times): _pair(pair) for times, pair in values["excess"].items()}
        return cls(
            int(values["width"]),
            _array(values["mean"]),
            _array(values["error"]),
            int(values["windows"]),
            _pair(values["tail"]),
            excess,
        )


def curve(losses: np.ndarray, starts: np.ndarray, context: int, width: int = TAIL) -> Curve:
    """Summarises losses (window, position) of the windows at `starts`."""
    positions = losses.shape[1] // width * width
    bins = losses[:, :positions].astype(np.float64).reshape(len(losses), -1, width).mean(2)  # (window, bin)
    times = range(1, losses.shape[1] // context + 1)
    ends = {t: losses[:, t * context - TAIL : t * context].astype(np.float64).mean(1) for t in times}
    excess, block = {}, blocks(starts, context)
    for t in times[1:]:
        long, short = _same_text(starts, (t - 1) * context)
        excess[t] = _single(ends[t][long] - ends[1][short], block[long])
    return Curve(width, *_mean(bins, block), len(losses), _single(ends[1], block), excess)


def blocks(starts: np.ndarray, context: int, size: int = BLOCK) -> np.ndarray:
    """Returns the block of each window, from 0: at most `size` windows that follow each other in the text.

    >>> blocks(np.array([0, 10, 20, 30, 70, 80]), 10, size=3).tolist()
    [0, 0, 0, 1, 2, 2]
    """
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    index = np.arange(len(starts))
    begins = np.diff(starts, prepend=starts[0] - 2 * context) != context  # a stretch begins here
    inside = index - np.maximum.accumulate(np.where(begins, index, 0))  # place within its stretch
    return np.cumsum(inside % size == 0) - 1


def _same_text(starts: np.ndarray, later: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns pairs of windows, the second of which begins `later` tokens after the first.

    >>> [indices.tolist() for indices in _same_text(np.array([0, 10, 20, 50, 60]), 10)]
    [[0, 1, 3], [1, 2, 4]]
    """
    _, first, second = np.intersect1d(starts + later, starts, return_indices=True)
    return first, second


def _mean(values: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean over the first axis and its standard error over blocks, or NaN. With G blocks: sqrt(G
    / (G - 1) * sum over blocks of (sum of deviations)^2) / n (Cochran 1977, 9.1: cluster sampling).
    """
    nothing = np.full(values.shape[1:], np.nan)
    if not len(values):
        return nothing, nothing
    mean = values.mean(0)
    firsts = np.flatnonzero(np.diff(block, prepend=-1))
    if len(firsts) < 2:
        return mean, nothing
    sums = np.add.reduceat(values - mean, firsts)  # (block, ...)
    scale = len(firsts) / (len(firsts) - 1)
    return mean, np.sqrt(scale * (sums**2).sum(0)) / len(values)


def _single(values: np.ndarray, block: np.ndarray) -> tuple[float, float]:
    mean, error = _mean(values, block)
    return float(mean), float(error)


def _plain(values: Iterable[float]) -> list[float | None]:
    """Rounds to four decimals; JSON has no NaN."""
    return [round(float(v), 4) if np.isfinite(v) else None for v in values]


def _array(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def _pair(values: Sequence[float | None]) -> tuple[float, float]:
    mean, error = _array(values)
    return float(mean), float(error)


def stopgap(model: Transformer, kind: Stopgap, times: int = TIMES) -> Transformer:
    """Returns the trained model, changed to go on beyond its context untrained, sharing weights.

    `repeat`: the learned table begins again after its last row. `hold`: its last row stands for all later
    positions. `interpolate`, `ntk`, `yarn`: RoPE with slower frequencies (`stretched_rope`). `far`: T5's
    buckets beyond the context, untrained, take the bias of the farthest trained one. Raises ShapeError.
    """
    c = model.config
    if c.position != STOPGAP_FOR[kind]:
        raise ShapeError(
            f"the stopgap {kind!r} is for {STOPGAP_FOR[kind]} positions; this model's are {c.position}"
        )
    weights, name = dict(model.named_parameters()), "positions.weight"
    if kind in STRETCHES:
        return stretched(model, Stretching(kind, times))
    if kind == "far":
        config, buckets = c, weights[name].detach().clone()  # (bucket, head)
        last = farthest_bucket(c)
        buckets[last + 1 :] = buckets[last]
        weights[name] = torch.nn.Parameter(buckets, requires_grad=False)
    else:
        config, table = replace(c, context=times * c.context), weights[name].detach()  # (position, d_model)
        rest = (
            table.repeat(times - 1, 1) if kind == "repeat" else table[-1:].expand((times - 1) * c.context, -1)
        )
        weights[name] = torch.nn.Parameter(torch.cat((table, rest)), requires_grad=False)
    longer = build(config, device="meta")
    longer.load_state_dict(weights, assign=True)
    return longer.requires_grad_(False).eval()


def farthest_bucket(config: ModelConfig) -> int:
    """Returns T5's bucket of the largest distance within the context: higher ones stay untrained.

    >>> farthest_bucket(ModelConfig(context=64, position="t5"))
    26
    """
    return int(
        t5_bucket(torch.tensor(1 - config.context), not config.causal, T5Bias.buckets, T5Bias.max_distance)
    )


Unit = Literal["nats", "bits"]
UNITS: dict[Unit, float] = {"nats": 1.0, "bits": 1 / math.log(2)}  # of each in a nat
HELD = 0.05  # nats: an increase up to this is called holding
NEAR = 0.1  # nats above the trained loss: up to this a stretched model keeps it
K = TypeVar("K", bound=Hashable)


def in_unit(curve: Curve, unit: Unit) -> Curve:
    """Returns the same curve with means and errors in `unit` instead of nats."""
    scale = UNITS[unit]
    return replace(
        curve,
        mean=curve.mean * scale,
        error=curve.error * scale,
        tail=(curve.tail[0] * scale, curve.tail[1] * scale),
        excess={times: (mean * scale, error * scale) for times, (mean, error) in curve.excess.items()},
    )


def above_tail(curve: Curve) -> np.ndarray:
    """Returns the loss less that of the model's own sliding window: (bin,)."""
    return curve.mean - curve.tail[0]


def above_trained(changed: Curve, trained: Curve) -> dict[int, float]:
    """Returns what the last TAIL positions of 1, 2 ... contexts cost a changed model more, in nats, than the
    same characters cost the trained one at the end of its context.
    """
    more = changed.tail[0] - trained.tail[0]
    return {1: more} | {times: more + excess for times, (excess, _) in changed.excess.items()}


def contexts_within(costs: Sequence[Mapping[int, float]], most: float = NEAR) -> int:
    """Returns up to how many contexts no seed's cost (contexts -> nats) is above `most`; 0 where one is at
    once.

    >>> contexts_within([{1: 0.0, 2: 0.05, 3: 0.5}, {1: 0.0, 2: 0.08, 3: 0.05}])
    2
    """
    times = sorted(costs[0])
    broken = (n for n in times if max(each[n] for each in costs) > most)
    return next(broken, times[-1] + 1) - 1


@dataclass(frozen=True)
class Costs:
    """A row of the table, in one unit. `against_none` is the validation loss less that of the model without
    positions. `tail` and `more` are (mean, standard error); `more` by how many contexts are read, or None.
    """

    validation: float
    against_none: float | None
    tail: tuple[float, float]
    more: Mapping[int, tuple[float, float] | None]


def costs(curve: Curve, validation: float, none: float | None, unit: Unit = "nats") -> Costs:
    """Returns a curve's row, with validation losses of its model and the one without positions."""
    scale, shown = UNITS[unit], in_unit(curve, unit)
    more = {
        times: shown.excess[times] if np.isfinite(shown.excess[times][0]) else None for times in (2, TIMES)
    }
    against = None if none is None else (validation - none) * scale
    return Costs(validation * scale, against, shown.tail, more)


@dataclass(frozen=True)
class Reach(Generic[K]):
    """The names of curves that hold over TIMES contexts and of those that do not, with their extra cost in
    nats, least first. A curve without an answer is in neither. With several seeds the cost is the median,
    and all of them have to hold.
    """

    held: Mapping[K, float]
    lost: Mapping[K, float]


def reach_of(curves: Mapping[K, Sequence[Curve]]) -> Reach[K]:
    """Sorts names by their curves in nats, one for each seed."""
    costs = {name: [c.excess[TIMES][0] for c in seeds] for name, seeds in curves.items()}
    far = {name: statistics.median(each) for name, each in costs.items() if np.isfinite(each).all()}
    order = sorted(far, key=lambda name: far[name])
    return Reach(
        {name: far[name] for name in order if max(costs[name]) <= HELD},
        {name: far[name] for name in order if max(costs[name]) > HELD},
    )


def least(losses: Mapping[K, float]) -> K:
    """Returns the name of the smallest loss.

    >>> least({"a": 2.0, "b": 1.5})
    'b'
    """
    return min(losses, key=lambda name: losses[name])


@dataclass(frozen=True)
class FarBuckets:
    """T5's buckets: those up to `last` are met in training, those from there up to `end` never. `met` is the
    bias of bucket `last`, mean over heads; `unmet` the largest |bias| of those never met. `factor`: how many
    times as much weight farther distances get, where the bias is near 0.
    """

    last: int
    end: int
    met: float
    unmet: float

    @property
    def factor(self) -> float:
        return math.exp(-self.met)


def far_buckets(model: Transformer) -> FarBuckets | None:
    """Returns None where the context reaches into every bucket, and for a model without T5's bias."""
    weights, last = t5_weights(model), farthest_bucket(model.config)  # (bucket, head)
    if weights is None or last + 1 >= len(weights):
        return None
    far = float(np.abs(weights[last + 1 :]).max())
    return FarBuckets(last, len(weights) - 1, float(weights[last].mean()), far)
