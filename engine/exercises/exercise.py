"""An exercise: what is asked, what is right, how one gets there, and what comes out of the usual mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import ExerciseError
from engine.exercises.forms import Form, Numbers, Order, Pick

RIGHT = "Right."
CLOSE = 0.03  # of the answer: somebody who rounded too early, or too much


@dataclass(frozen=True)
class Mistake:
    """What came out if one made it, and the hint that names it."""

    id: str
    value: Any
    hint: str


@dataclass(frozen=True)
class See:
    """The view that shows the thing: a page's address and what stands behind it."""

    page: str
    query: Mapping[str, str]


def see(page: str, **query: str) -> See:
    return See(page, query)


@dataclass(frozen=True)
class Exercise:
    """Made for one seed. `given` are the numbers that were drawn; `statement` and `steps`, the worked
    solution, are Markdown with LaTeX in $...$. The catalogue adds the id, the title and the seed.
    """

    statement: str
    form: Form
    answer: Any
    steps: tuple[str, ...]
    mistakes: tuple[Mistake, ...]
    see: See
    given: Mapping[str, Any]
    id: str = ""
    title: str = ""
    seed: int = 0

    @property
    def clear(self) -> bool:
        """Whether every answer is either right or one mistake: a hint then never names a wrong one."""
        values = [self.answer, *(mistake.value for mistake in self.mistakes)]
        return not any(
            self.form.near(one, other) for place, one in enumerate(values) for other in values[:place]
        )


@dataclass(frozen=True)
class Verdict:
    """`mistake` is the id of a known one; nothing for an answer that is right, unknown or cannot be read."""

    right: bool
    hint: str
    mistake: str = ""


def check(exercise: Exercise, given: object) -> Verdict:
    """Looks at an answer as a person gave it: a line of text, or the options that were chosen."""
    form = exercise.form
    try:
        value = form.read(given)
    except ExerciseError as error:
        said = str(error)
        return Verdict(False, f"{said[0].upper()}{said[1:]}.")
    if form.same(value, exercise.answer):
        return Verdict(True, RIGHT)
    for mistake in exercise.mistakes:
        if form.same(value, mistake.value):
            return Verdict(False, mistake.hint, mistake.id)
    return Verdict(False, _unknown(form, value, exercise.answer))


def _unknown(form: Form, value: Any, answer: Any) -> str:
    """Of an answer that is no known mistake: as much as can be said of it without giving it away."""
    if isinstance(form, Order):
        return form.fault(value)
    if isinstance(form, Pick):
        extra, missing = len(value - answer), len(answer - value)
        return f"{extra} too many, {missing} missing."
    if isinstance(form, Numbers):
        if len(value) != len(answer):
            return f"It takes {len(answer)} numbers, and {len(value)} stand there."
        if len(answer) > 1:
            single = Numbers(1, form.decimals)
            right = sum(single.same((a,), (b,)) for a, b in zip(value, answer, strict=True))
            return f"{right} of {len(answer)} numbers are right."
        more = "more" if value[0] < answer[0] else "less"
        if form.decimals and abs(value[0] - answer[0]) < CLOSE * abs(answer[0]):
            return f"Close: to {form.decimals} decimal places it is {more}."
        return f"It should be {more}."
    return "BPE makes other pieces."
