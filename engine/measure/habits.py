"""Which heads follow one of the known habits, which are the extremes, and whether heads rest on the first
token: read off the numbers of `engine.measure.heads`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.measure.heads import HeadNumbers, Sink

Habit = Literal["previous", "first", "induction", "duplicate", "name_mover"]
HABITS: tuple[Habit, ...] = ("previous", "first", "induction", "duplicate", "name_mover")
STRONG = 0.4  # of a head's weight: from here on it follows a habit
MORE = 1.5  # times the even share: from here on more than even
SHORT = 0.7  # times the length of the others: below it a value vector is short


@dataclass(frozen=True)
class Named:
    """A head, counted from 0, and its number."""

    layer: int
    head: int
    value: float


@dataclass(frozen=True)
class Followers:
    """The heads that give at least STRONG of their weight to a habit, most first, and the head that gives
    most, whether or not that is enough.
    """

    habit: Habit
    heads: tuple[Named, ...]
    most: Named


def followers(numbers: HeadNumbers) -> tuple[Followers, ...]:
    """One for each habit that could be measured, in the order of HABITS."""
    found = []
    for habit, values in measured_habits(numbers).items():
        strong = [(float(values[at]), at) for at in np.ndindex(values.shape) if values[at] >= STRONG]
        heads = tuple(Named(at[0], at[1], value) for value, at in sorted(strong, reverse=True))
        found.append(Followers(habit, heads, _largest(values)))
    return tuple(found)


def measured_habits(numbers: HeadNumbers) -> dict[Habit, np.ndarray]:
    """The habits that could be measured, in the order of HABITS: (layer, head) each."""
    found = {habit: getattr(numbers, habit) for habit in HABITS}
    return {habit: v for habit, v in found.items() if v is not None and np.isfinite(v).any()}


def habit_of_each(numbers: HeadNumbers) -> list[tuple[Habit, float] | None]:
    """What each head does, layer by layer: the habit to which it gives most, if that is at least STRONG.

    Resting on the first token counts where a head does nothing else: it is what heads do meanwhile.
    """
    values = measured_habits(numbers)
    found: list[tuple[Habit, float] | None] = []
    for at in np.ndindex(numbers.entropy.shape):
        strong = [(float(v[at]), habit) for habit, v in values.items() if v[at] >= STRONG]
        best = max((one for one in strong if one[1] != "first"), default=max(strong, default=None))
        found.append(None if best is None else (best[1], best[0]))
    return found


@dataclass(frozen=True)
class Counts:
    """How many of `heads` have each habit as theirs (`habit_of_each`), how many `named` ones there are in all
    that do more than rest, and how many only rest.
    """

    heads: int
    named: int
    resting: int
    by_habit: dict[Habit, int]


def counts(numbers: HeadNumbers) -> Counts:
    """Each head is counted once."""
    own = [one[0] for one in habit_of_each(numbers) if one is not None]
    by_habit = {habit: own.count(habit) for habit in HABITS}
    return Counts(numbers.entropy.size, len(own) - by_habit["first"], by_habit["first"], by_habit)


def ranked(numbers: HeadNumbers, by: Habit | None, strong: bool = False) -> list[int]:
    """Heads by their place, layer * heads + head: as they stand, or most of a habit first; of equal ones the
    lower. With `strong`, only those that give a habit (that one, or any but resting) at least STRONG.
    """
    values = measured_habits(numbers)
    count = numbers.entropy.size
    if by is None:
        marked = habit_of_each(numbers)
        return [i for i in range(count) if not strong or (marked[i] or ("first",))[0] != "first"]
    if by not in values:
        return [] if strong else list(range(count))
    score = values[by].reshape(-1)
    order = np.argsort(-score, kind="stable")
    return [int(i) for i in order if not strong or score[i] >= STRONG]


@dataclass(frozen=True)
class Extremes:
    """The head that spreads most evenly and the one that is most decided (shares of the largest possible
    entropy; `nats` is the latter's entropy), and the one that looks farthest (tokens).
    """

    even: Named
    decided: Named
    nats: float
    farthest: Named


def extremes(numbers: HeadNumbers) -> Extremes | None:
    """None for a text of one token, where no head has a choice."""
    relative = numbers.relative_entropy
    if not np.isfinite(relative).any():
        return None
    least = _largest(-relative)
    decided = Named(least.layer, least.head, -least.value)
    nats = float(numbers.entropy[least.layer, least.head])
    return Extremes(_largest(relative), decided, nats, _largest(numbers.distance))


def _largest(values: np.ndarray) -> Named:
    layer, head = np.unravel_index(np.nanargmax(values), values.shape)
    return Named(int(layer), int(head), float(values[layer, head]))


@dataclass(frozen=True)
class Resting:
    """Whether heads rest on the first token, and what they take from there.

    `share`: mean weight on it over all heads; `even`: what evenly spread heads would give it; `resting` of
    `heads` give it at least STRONG. Of those: `ratio`, the mean length of its value vector over the mean of
    the others, and `written`, the share of what they gather that comes from there (None where none rests).
    `shortest` and `longest` are that ratio's ends over all key-value heads (None where it has none).
    """

    share: float
    even: float
    resting: int
    heads: int
    ratio: float | None
    written: float | None
    shortest: float | None
    longest: float | None

    @property
    def is_short(self) -> bool:
        """Whether those who rest there take little, as the theory of sinks says."""
        return self.ratio is not None and self.ratio < SHORT

    @property
    def is_more_than_even(self) -> bool:
        return self.share > MORE * self.even


def resting(found: Sink, even: float) -> Resting:
    """The verdict on a model's sink; `even` comes from `HeadNumbers.even_first`."""
    where = found.other_norm > 0
    shape = found.first_norm.shape  # (layer, kv_head)
    ratio = np.divide(found.first_norm, found.other_norm, out=np.full(shape, np.nan), where=where)
    rests = found.share >= STRONG  # (layer, head)
    layer, head = np.nonzero(rests)
    mine = ratio[layer, head * shape[1] // rests.shape[1]]
    known = bool(np.isfinite(ratio).any())
    return Resting(
        share=float(np.nanmean(found.share)),
        even=even,
        resting=int(rests.sum()),
        heads=int(rests.size),
        ratio=float(np.nanmean(mine)) if np.isfinite(mine).any() else None,
        written=float(np.nanmean(found.written[rests])) if rests.any() else None,
        shortest=float(np.nanmin(ratio)) if known else None,
        longest=float(np.nanmax(ratio)) if known else None,
    )
