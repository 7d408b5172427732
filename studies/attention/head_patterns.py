"""The habits that heads follow, and the extremes: read off `studies.attention.heads`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from studies.attention.heads import HeadNumbers, HeadValue

Habit = Literal[
    "previous", "word_start", "breaks", "same", "itself", "induction", "duplicate", "name_mover", "own_word",
    "broad", "near", "first",
]  # fmt: skip
HABITS: tuple[Habit, ...] = get_args(Habit)
WIDE: tuple[Habit, ...] = ("own_word", "broad", "near", "first")  # said of a head that does nothing narrower
PLAIN: tuple[Habit, ...] = ("previous", "word_start", "breaks", "same")  # at first sight
STRONG = 0.4  # of a head's weight: from here on it follows a habit
TWICE = 2  # times what an even spread would give: short texts give much to every place
LEAKS = 0.6  # times what distance alone would put outside the own word: no more, and a head minds its word
BROAD = 0.75  # of the largest possible entropy: from here on a head looks everywhere
MORE = 1.5  # times the even share: from here on more than even


def bar(numbers: HeadNumbers, habit: Habit) -> np.ndarray:
    """Returns the share from which on each head follows a habit, (layer, head): STRONG, but no less than
    TWICE an even spread. Above 1, where no head can.

    For `broad`, BROAD of the largest possible entropy. A head that looks at what is near looks at its own
    word anyway: for `own_word` it puts outside at most LEAKS of what distance alone would.
    """
    if habit == "broad":
        return np.full(numbers.entropy.shape, BROAD)
    own = {"previous": numbers.even_previous, "first": numbers.even_first}
    least = max(STRONG, TWICE * own.get(habit, numbers.even_by_target.get(habit, 0.0)))
    if habit == "own_word" and numbers.word_by_distance is not None:
        return np.maximum(least, 1 - LEAKS * (1 - numbers.word_by_distance))
    return np.full(numbers.entropy.shape, least)


def least_bar(numbers: HeadNumbers, habit: Habit | None) -> float:
    """Returns the lowest `bar` of any head, at most 1; that is what it takes without a habit."""
    return 1.0 if habit is None else min(1.0, float(bar(numbers, habit).min()))


@dataclass(frozen=True)
class Followers:
    """The heads that give a habit at least its `bar`, most first, and the head that gives most."""

    habit: Habit
    heads: tuple[HeadValue, ...]
    most: HeadValue


def followers(numbers: HeadNumbers) -> tuple[Followers, ...]:
    """Returns one for each measured habit, in the order of HABITS."""
    result = []
    for habit, values in measured_habits(numbers).items():
        least = bar(numbers, habit)
        strong = [(float(values[at]), at) for at in np.ndindex(values.shape) if values[at] >= least[at]]
        heads = tuple(HeadValue(at[0], at[1], value) for value, at in sorted(strong, reverse=True))
        result.append(Followers(habit, heads, largest(values)))
    return tuple(result)


def score_of(numbers: HeadNumbers, habit: Habit) -> np.ndarray | None:
    """Returns a habit's score in [0, 1], (layer, head); None where it was not measured."""
    if habit == "broad":
        return numbers.relative_entropy
    if habit in numbers.by_target:
        return numbers.by_target[habit]
    return getattr(numbers, habit, None)


def measured_habits(numbers: HeadNumbers) -> dict[Habit, np.ndarray]:
    """Returns the measured habits in the order of HABITS: (layer, head) each."""
    result = {habit: score_of(numbers, habit) for habit in HABITS}
    return {habit: v for habit, v in result.items() if v is not None and np.isfinite(v).any()}


def habit_of_each(numbers: HeadNumbers) -> list[tuple[Habit, float] | None]:
    """Returns each head's strongest habit that reaches its `bar`, layer by layer; None where none does. A
    narrow habit comes before the WIDE ones, and resting on the first token last.
    """
    values = measured_habits(numbers)
    bars = {habit: bar(numbers, habit) for habit in values}
    result: list[tuple[Habit, float] | None] = []
    for at in np.ndindex(numbers.entropy.shape):
        strong = {habit: float(v[at]) for habit, v in values.items() if v[at] >= bars[habit][at]}
        narrow = [habit for habit in strong if habit not in WIDE]
        order = sorted(narrow, key=lambda habit: -strong[habit]) + [h for h in WIDE if h in strong]
        result.append((order[0], strong[order[0]]) if order else None)
    return result


@dataclass(frozen=True)
class Counts:
    """The number of heads by habit (`habit_of_each`), each counted once. `named` do more than rest, `resting`
    only rest, `several` do several things and none of them clearly.
    """

    heads: int
    named: int
    resting: int
    several: int
    by_habit: dict[Habit, int]


def counts(numbers: HeadNumbers) -> Counts:
    habits = [habit[0] for habit in habit_of_each(numbers) if habit is not None]
    by_habit = {habit: habits.count(habit) for habit in HABITS}
    heads, resting = numbers.entropy.size, by_habit["first"]
    return Counts(heads, len(habits) - resting, resting, heads - len(habits), by_habit)


def ranked(numbers: HeadNumbers, by: Habit | None, strong: bool = False) -> list[int]:
    """Returns heads as layer * heads + head: in order, or most of a habit first; of equal ones the lower.
    With `strong`, only those that reach the `bar` of a habit (that one, or any but resting).
    """
    values = measured_habits(numbers)
    count = numbers.entropy.size
    if by is None:
        marked = habit_of_each(numbers)
        return [i for i in range(count) if not strong or (marked[i] or ("first",))[0] != "first"]
    if by not in values:
        return [] if strong else list(range(count))
    score, least = values[by].reshape(-1), bar(numbers, by).reshape(-1)
    order = np.argsort(-score, kind="stable")
    return [int(i) for i in order if not strong or score[i] >= least[i]]


def grouped(numbers: HeadNumbers, most: int, strong: bool = False) -> list[int]:
    """Returns heads as layer * heads + head: by habit in the order of HABITS, the clearest first, then those
    with none; of each kind at most `most`. With `strong`, only those with a habit narrower than WIDE.
    """
    own = habit_of_each(numbers)
    result: list[int] = []
    for habit in (*HABITS, None):
        if not strong or habit not in (None, *WIDE):
            kind = [i for i, kinds in enumerate(own) if (kinds and kinds[0]) == habit]
            result += sorted(kind, key=lambda i: -_value(own[i]))[:most]
    return result


def clearest(numbers: HeadNumbers) -> int:
    """Returns the head, layer * heads + head, that follows a PLAIN habit most clearly; else any."""
    own = habit_of_each(numbers)
    plain = [i for i, one in enumerate(own) if one and one[0] in PLAIN]
    return max(plain or range(len(own)), key=lambda i: _value(own[i]))


def _value(own: tuple[Habit, float] | None) -> float:
    return own[1] if own else 0.0


@dataclass(frozen=True)
class Extremes:
    """The heads that spread most evenly and most decidedly (shares of the largest entropy; `nats` is the
    latter's entropy), and the one that looks farthest (tokens).
    """

    even: HeadValue
    decided: HeadValue
    nats: float
    farthest: HeadValue


def extremes(numbers: HeadNumbers) -> Extremes | None:
    """Returns None for a text of one token, where no head has a choice."""
    relative = numbers.relative_entropy
    if not np.isfinite(relative).any():
        return None
    least = largest(-relative)
    decided = HeadValue(least.layer, least.head, -least.value)
    nats = float(numbers.entropy[least.layer, least.head])
    return Extremes(largest(relative), decided, nats, largest(numbers.distance))


def mean_head(values: np.ndarray) -> float:
    """Returns the mean over heads, of (layer, head); NaN does not count."""
    return float(np.nanmean(values))


def largest(values: np.ndarray) -> HeadValue:
    """Returns the head with the most, of (layer, head); NaN does not count."""
    layer, head = np.unravel_index(np.nanargmax(values), values.shape)
    return HeadValue(int(layer), int(head), float(values[layer, head]))


HANGS_TOGETHER = 0.3  # of the correlation, either way: less is hardly any


@dataclass(frozen=True)
class TwoNumbers:
    """Two numbers of the `heads` that have both: Pearson's `correlation`, NaN where one never varies, and
    the head that has most of each.
    """

    heads: int
    correlation: float
    most_x: HeadValue
    most_y: HeadValue

    @property
    def direction(self) -> Literal["up", "down", "hardly", "undefined"]:
        if not np.isfinite(self.correlation):
            return "undefined"
        if abs(self.correlation) < HANGS_TOGETHER:
            return "hardly"
        return "up" if self.correlation > 0 else "down"


def two_numbers(x: np.ndarray, y: np.ndarray) -> TwoNumbers | None:
    """Compares two numbers of each head, (layer, head); None where no head has both.

    >>> two_numbers(np.array([[0.0, 1.0], [2.0, np.nan]]), np.array([[3.0, 2.0], [1.0, 9.0]])).correlation
    -1.0
    """
    both = np.isfinite(x) & np.isfinite(y)
    if not both.any():
        return None
    a, b = (values[both] - values[both].mean() for values in (x, y))
    spread = float(np.sqrt((a @ a) * (b @ b)))
    flat = np.ptp(x[both]) == 0 or np.ptp(y[both]) == 0
    correlation = float("nan") if flat else float(np.clip(a @ b / spread, -1, 1))
    most_x, most_y = (largest(np.where(both, values, np.nan)) for values in (x, y))
    return TwoNumbers(int(both.sum()), correlation, most_x, most_y)
