"""An exercise: its question, its answer, the way to it, and the results of the usual mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from engine.errors import ExerciseError
from studies.exercises.forms import Form, Numbers, Order, Pick, Pieces

RIGHT = "Right."
FINER = "That is right as far as it goes; write {form.ask}."
CLOSE = 0.03  # of the answer: somebody who rounded too early, or too much


@dataclass(frozen=True)
class Mistake:
    """A usual mistake: the value that it leads to, and the hint that names it. `single_option`: it is one
    option too many, and the hint is true of that option whatever else was chosen.
    """

    value: Any
    hint: str
    single_option: bool = False


def mistakes(*rows: tuple[Any, str]) -> tuple[Mistake, ...]:
    """Returns the mistakes of rows (value, hint)."""
    return tuple(Mistake(*row) for row in rows)


def distinct(form: Form, answer: Any, mistakes: Iterable[Mistake]) -> tuple[Mistake, ...]:
    """Returns the mistakes whose values are told from the right answer and from those before them: a hint
    then never names a wrong one.
    """
    result: list[Mistake] = []
    for mistake in mistakes:
        if not any(form.near(mistake.value, other) for other in (answer, *(each.value for each in result))):
            result.append(mistake)
    return tuple(result)


def extra_options(right: frozenset[str], hints: Mapping[str, str]) -> tuple[Mistake, ...]:
    """Returns the mistakes of choosing an option too many, each with its hint."""
    return tuple(Mistake(right | {option}, hint, single_option=True) for option, hint in hints.items())


@dataclass(frozen=True)
class See:
    """The view that shows the subject: a page's address and its query."""

    page: str
    query: Mapping[str, str]


def see(page: str, **query: str) -> See:
    return See(page, query)


class Answerable(Protocol):
    """A question with one right answer: an exercise, or a cell of a worked example."""

    @property
    def form(self) -> Form: ...

    @property
    def answer(self) -> Any: ...

    @property
    def mistakes(self) -> tuple[Mistake, ...]: ...


@dataclass(frozen=True)
class Exercise:
    """An exercise for one seed. `given` are the numbers that were drawn; `statement` and `steps`, the worked
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
        """True if every answer is either right or one mistake: a hint then never names a wrong one."""
        values = [self.answer, *(mistake.value for mistake in self.mistakes)]
        return not any(
            self.form.near(value, other) for place, value in enumerate(values) for other in values[:place]
        )


@dataclass(frozen=True)
class Verdict:
    """The judgement of an answer; `read` is False for what is no answer of the form that was asked for."""

    right: bool
    hint: str
    read: bool = True


def check(question: Answerable, given: object) -> Verdict:
    """Judges an answer as a person gave it: a line of text, or the options that were chosen."""
    form = question.form
    try:
        value = form.read(given)
    except ExerciseError as error:
        reason = str(error)
        return Verdict(False, f"{reason[0].upper()}{reason[1:]}.", read=False)
    if form.same(value, question.answer):
        return Verdict(True, RIGHT)
    for mistake in question.mistakes:
        extra = mistake.single_option and mistake.value - question.answer <= value
        if extra or form.same(value, mistake.value):
            coarse = isinstance(form, Numbers) and form.rounds(given, question.answer)
            return Verdict(False, FINER.format(form=form) if coarse else mistake.hint)
    return Verdict(False, _unknown(form, value, question.answer))


def _unknown(form: Form, value: Any, answer: Any) -> str:
    """Returns a hint for an answer that is no known mistake, without giving the right one away."""
    if isinstance(form, Order | Pieces):
        return form.fault(value)
    if isinstance(form, Pick):
        return _picked(len(value - answer), len(answer - value))
    if isinstance(form, Numbers):
        if len(value) != len(answer):
            return f"The answer has {len(answer)} numbers, not {len(value)}."
        if len(answer) > 1:
            single = Numbers(1, form.decimals)
            right = sum(single.same((a,), (b,)) for a, b in zip(value, answer, strict=True))
            return f"{right} of {len(answer)} numbers are right."
        larger = "larger" if value[0] < answer[0] else "smaller"
        if form.decimals and abs(value[0] - answer[0]) < CLOSE * abs(answer[0]):
            return f"Close: to {form.decimals} decimal places it is {larger}."
        return f"The right number is {larger}."
    raise AssertionError("a choice has a hint for each of its options")


def _picked(extra: int, missing: int) -> str:
    """
    >>> _picked(0, 1), _picked(2, 0)
    ('What you chose is right, but 1 is missing.', '2 of them do not belong.')
    >>> _picked(1, 2)
    '1 of them does not belong, and 2 are missing.'
    """
    lacking = f"{missing} {'is' if missing == 1 else 'are'} missing"
    if not extra:
        return f"What you chose is right, but {lacking}."
    strange = f"{extra} of them {'does' if extra == 1 else 'do'} not belong"
    return f"{strange}, and {lacking}." if missing else f"{strange}."
