"""One position's logits on their way to a token: each stage is a function of the logits, and leaves a record.

A removed token has the logit -inf, so a stage never brings one back. The stages agree with Hugging Face's
logits processors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.config import SampleConfig
from engine.errors import ShapeError

REMOVED = -math.inf


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage's logits, their softmax and what it `removed`, all (vocab,)."""

    name: str
    logits: np.ndarray = field(repr=False)
    probabilities: np.ndarray = field(repr=False)
    removed: np.ndarray = field(repr=False)
    mass: float  # share of the probability before this stage that belongs to the tokens it kept
    remaining: int  # tokens left

    @property
    def entropy(self) -> float:
        """The entropy of the probabilities in nats, -sum p ln p."""
        p = self.probabilities[self.probabilities > 0].astype(np.float64)
        return max(0.0, float(-(p * np.log(p)).sum()))

    @property
    def choices(self) -> float:
        """e^entropy, the effective number of choices: as many equally likely tokens."""
        return math.exp(self.entropy)


def temperature(logits: Tensor, config: SampleConfig, previous: Tensor) -> Tensor:
    """Divides logits by the temperature: below 1 the likely become likelier, above 1 all become more alike.
    At 0 the likeliest alone stays.
    """
    if config.temperature == 0:
        greedy = torch.full_like(logits, REMOVED)
        best = likeliest(logits)
        greedy[best] = logits[best]
        return greedy
    if config.temperature < 1e-3:  # float32 would overflow; a larger one does the same to such differences
        return logits / max(config.temperature, float(logits.nan_to_num(neginf=0.0).abs().max()) / 1e30)
    return logits / config.temperature


def top_k(logits: Tensor, config: SampleConfig, previous: Tensor) -> Tensor:
    """Keeps the k largest (Fan et al. 2018), and whatever equals the smallest of them. 0 keeps all."""
    smallest = logits.topk(min(config.top_k, len(logits))).values[-1]
    return logits.masked_fill(logits < smallest, REMOVED)


def top_p(logits: Tensor, config: SampleConfig, previous: Tensor) -> Tensor:
    """Keeps the nucleus: the fewest tokens whose probabilities together reach p, at least one (Holtzman et
    al. 2020); of equal ones the smaller id. 1 keeps all.
    """
    probabilities = logits.softmax(dim=-1)
    # All tokens below this have less than half of 1 - p together, so the nucleus lies among the others: few,
    # and quickly sorted.
    there = (probabilities >= (1 - config.top_p) / (2 * len(logits))).nonzero()[:, 0]
    if not len(there):  # the logits are no numbers
        return logits
    ordered, at = probabilities[there].sort(descending=True, stable=True)
    needed = ordered.cumsum(dim=-1) - ordered < config.top_p  # else what stands before it is enough
    needed[0] = True
    kept = there[at[needed]]
    return torch.full_like(logits, REMOVED).index_copy(0, kept, logits[kept])


def min_p(logits: Tensor, config: SampleConfig, previous: Tensor) -> Tensor:
    """Keeps tokens at least min_p times as probable as the likeliest (Nguyen et al. 2024). 0 keeps all."""
    probabilities = logits.softmax(dim=-1)
    return logits.masked_fill(probabilities < config.min_p * probabilities.max(), REMOVED)


def repetition_penalty(logits: Tensor, config: SampleConfig, previous: Tensor) -> Tensor:
    """Makes tokens that have occurred less likely: a positive logit is divided by the penalty, a negative one
    multiplied (Keskar et al. 2019).
    """
    seen = previous.unique()
    theirs = logits[seen]
    return logits.index_copy(
        0,
        seen,
        torch.where(theirs > 0, theirs / config.repetition_penalty, theirs * config.repetition_penalty),
    )


_Function = Callable[[Tensor, SampleConfig, Tensor], Tensor]
FUNCTIONS: dict[str, _Function] = {
    each.__name__: each for each in (repetition_penalty, temperature, top_k, top_p, min_p)
}
NAMES = tuple(FUNCTIONS)
NEUTRAL = dict(zip(NAMES, (1.0, 1.0, 0, 1.0, 0.0), strict=True))  # values that change nothing


def order(config: SampleConfig) -> tuple[str, ...]:
    """Returns the stages as they are applied, the penalty first, as in Hugging Face's `generate`, or last.
    The order matters to the cuts, to which a penalised token may fall, and not to the temperature.
    """
    return (*NAMES[1:], NAMES[0]) if config.penalty_last else NAMES


def active(name: str, config: SampleConfig) -> bool:
    """True if a stage changes anything at these settings."""
    return bool(getattr(config, name) != NEUTRAL[name])


def warp(logits: Tensor, config: SampleConfig, previous: Tensor | None = None) -> Tensor:
    """Returns logits (vocab,) after every active stage; `previous` (n,) are the ids so far."""
    previous = torch.empty(0, dtype=torch.int64) if previous is None else previous
    for name in order(config):
        if active(name, config):
            logits = FUNCTIONS[name](logits, config, previous)
    return logits


def stages(
    logits: Tensor | np.ndarray, config: SampleConfig, previous: Sequence[int] = ()
) -> tuple[Stage, ...]:
    """Returns a record for the logits (vocab,) themselves and one after each stage, in `order`; the last
    one's probabilities are drawn from. `previous` are the ids so far. Raises ConfigError for settings out of
    range, ShapeError for logits of another rank, of none, or with no finite one.
    """
    config.validate()
    logits = torch.from_numpy(logits.copy()) if isinstance(logits, np.ndarray) else logits
    if logits.dim() != 1 or not len(logits):
        raise ShapeError(
            f"logits must be of shape (vocab,) with at least one token, not {tuple(logits.shape)}"
        )
    if not torch.isfinite(logits).any():
        raise ShapeError("no logit is a finite number: there is nothing to draw")
    seen = torch.tensor([i for i in previous if 0 <= i < len(logits)], dtype=torch.int64)
    now = _clean(logits)
    records = [_record("logits", now, None)]
    for name in order(config):
        before, now = now, FUNCTIONS[name](now, config, seen) if active(name, config) else now
        records.append(_record(name, now, before))
    return tuple(records)


def likeliest(logits: Tensor) -> int:
    """Returns the id of the largest logit; of equal ones the smallest id. A NaN never wins."""
    return int(torch.nan_to_num(logits, nan=REMOVED, posinf=math.inf, neginf=REMOVED).argmax())


def draw(probabilities: np.ndarray, u: float) -> int:
    """Returns the id whose stretch of the cumulative probability holds u in [0, 1): inverse transform
    sampling.

    probabilities (vocab,), of any positive sum. An id of probability 0 is never drawn.

    >>> [draw(np.array([0.5, 0.0, 0.5]), u) for u in (0.0, 0.49, 0.5, 0.99)]
    [0, 0, 2, 2]
    """
    ends = probabilities.cumsum(dtype=np.float64)  # token i has the stretch from ends[i - 1] to ends[i]
    token = int(ends.searchsorted(u * ends[-1], side="right"))
    return token if token < len(ends) else _last_possible(probabilities)


def draws(probabilities: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Returns the ids that `draw` gives for numbers (draw,), each in [0, 1): (draw,)."""
    ends = probabilities.cumsum(dtype=np.float64)
    tokens = ends.searchsorted(numbers * ends[-1], side="right")
    return np.where(tokens < len(ends), tokens, _last_possible(probabilities))


def _last_possible(probabilities: np.ndarray) -> int:
    """Returns the last id of a probability above 0: for a number so near to 1 that its product with the sum
    was rounded up. 0 where there is none.
    """
    possible = np.flatnonzero(probabilities)
    return int(possible[-1]) if len(possible) else 0


def uniform(seed: int, count: int) -> Tensor:
    """Returns the first `count` numbers of a seed's draws, (count,) float64 in [0, 1)."""
    return torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _clean(logits: Tensor) -> Tensor:
    return torch.nan_to_num(
        logits.detach().float().cpu(), nan=REMOVED, posinf=torch.finfo(torch.float32).max, neginf=REMOVED
    )


def _record(name: str, now: Tensor, before: Tensor | None) -> Stage:
    out = torch.isneginf(now)
    if before is None:
        newly, mass = torch.zeros_like(out), 1.0
    else:
        newly = out & ~torch.isneginf(before)
        mass = 1.0 - float(before.double().softmax(-1)[newly].sum()) if newly.any() else 1.0
    return Stage(name, now.numpy(), now.softmax(-1).numpy(), newly.numpy(), mass, int((~out).sum()))
