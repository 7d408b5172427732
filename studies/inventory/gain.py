"""Gain of a class: counts of a test's answers before and after, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from runs.quizzes import Counts
from studies.inventory.questions import FORMS, Option, Question

FEWEST = 5  # people in each form, below whom no difference is called clear
STANDARD_ERRORS = 2  # by which two shares must differ to be told from chance


@dataclass(frozen=True)
class Chosen:
    """An option of a question, as both stood in the second form, and the share of people who chose it before
    and after; NaN where nobody took that form.
    """

    question: Question
    option: Option
    before: float
    after: float

    @property
    def held(self) -> float:
        """The share that can have chosen it twice at most; where there is only the second form, its share."""
        return self.after if math.isnan(self.before) else min(self.before, self.after)


@dataclass(frozen=True, eq=False)
class Gain:
    """The gain of a class. `before` and `after` are the shares that were right, (question,); NaN where nobody
    took that form.
    """

    questions: tuple[Question, ...]  # as they stood in the second form
    people: tuple[int, int]
    before: np.ndarray = field(repr=False)
    after: np.ndarray = field(repr=False)
    chosen: tuple[Chosen, ...] = field(repr=False)  # every option, question by question

    @property
    def titles(self) -> list[str]:
        return [question.title for question in self.questions]

    @property
    def points(self) -> tuple[float, float]:
        """The mean numbers of right answers, before and after."""
        return float(self.before.sum()), float(self.after.sum())

    @property
    def normalised(self) -> float:
        """Hake's g (1998): (after - before) / (1 - before) of the mean shares, the part of what could be
        gained that was. NaN where there was nothing to gain.
        """
        return normalised(float(self.before.mean()), float(self.after.mean()))

    @property
    def stayed(self) -> list[Chosen]:
        """The wrong options that were chosen in both forms, or in the second where the first was not taken;
        first those that most people can have chosen twice.
        """
        rows = [row for row in self.chosen if row.option.misconception and row.held > 0]
        return sorted(rows, key=lambda row: (-row.held, -row.after))

    @property
    def change(self) -> np.ndarray:
        """The differences of the shares, (question,)."""
        difference: np.ndarray = self.after - self.before
        return difference

    @property
    def order(self) -> list[int]:
        """The questions by their gain, the largest first; as they stand where one form was not taken."""
        result: list[int] = np.argsort(-self.change, kind="stable").tolist()
        return result

    @property
    def clear(self) -> np.ndarray:
        """True for a difference of over STANDARD_ERRORS standard errors of two shares, (question,); never
        with fewer people than FEWEST in one of the forms.
        """
        if min(self.people) < FEWEST:
            return np.zeros(len(self.questions), dtype=bool)
        first, second = (people or math.nan for people in self.people)
        spread = self.before * (1 - self.before) / first + self.after * (1 - self.after) / second
        beyond: np.ndarray = np.abs(self.change) > STANDARD_ERRORS * np.sqrt(spread)
        return beyond


def normalised(before: float, after: float) -> float:
    """
    >>> round(normalised(0.4, 0.7), 6), normalised(1.0, 1.0)
    (0.5, nan)
    """
    return (after - before) / (1 - before) if before < 1 else math.nan


def gain(before: Sequence[Question], after: Sequence[Question], answers: tuple[Counts, Counts]) -> Gain:
    """Compares the answers to two parallel forms."""
    first, second = (_shares(form, each) for form, each in zip((before, after), answers, strict=True))
    chosen = tuple(
        Chosen(question, option, earlier[option.name], later[option.name])
        for question, earlier, later in zip(after, first, second, strict=True)
        for option in question.options
    )
    right = [question.options[question.right].name for question in after]
    shares = [np.array([row[n] for row, n in zip(form, right, strict=True)]) for form in (first, second)]
    people = answers[0].people, answers[1].people
    return Gain(tuple(after), people, shares[0], shares[1], chosen)


def _shares(questions: Sequence[Question], answers: Counts) -> list[dict[str, float]]:
    """The share of people who chose each option of each question, by its name."""
    return [
        {
            option.name: chosen / answers.people if answers.people else math.nan
            for option, chosen in zip(question.options, row, strict=True)
        }
        for question, row in zip(questions, answers.counts, strict=True)
    ]


def table(
    forms: tuple[Sequence[Question], Sequence[Question]], answers: tuple[Counts, Counts]
) -> dict[str, list[object]]:
    """Returns all counts as columns, a row for each option in each form, and of each question one with the
    option '' for those who left it out: no row is about a person.
    """
    names = ("form", "question", "text", "option", "right", "misconception", "chosen", "people")
    rows: list[tuple[object, ...]] = []
    for which, questions, given in zip(FORMS, forms, answers, strict=True):
        for question, counts in zip(questions, given.counts, strict=True):
            about, people = (which, question.id, question.text), given.people
            for i, (option, chosen) in enumerate(zip(question.options, counts, strict=True)):
                right = i == question.right
                rows.append((*about, option.text, right, option.misconception, chosen, people))
            rows.append((*about, "", False, "", people - sum(counts), people))
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}
