"""Questions about common misconceptions, in two parallel forms that a seed chooses."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

from engine.errors import ExerciseError
from studies.inventory.measures import MEASURES, Key

TABLE: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("questions.toml").read_text("utf-8")
)
Form = Literal["before", "after"]
FORMS: tuple[Form, ...] = get_args(Form)
MINUTES = 8
LARGEST_SEED = 9999


@dataclass(frozen=True)
class Option:
    """An answer to choose; `misconception` is the belief behind a wrong one, '' of the right one."""

    name: str
    text: str
    misconception: str


@dataclass(frozen=True)
class Question:
    """A question with its options in the order shown, and the index of the right one. `reason` says why, with
    the numbers that were measured; `page` and `query` lead to the view that shows it. All is plain text.
    """

    id: str
    title: str
    text: str
    options: tuple[Option, ...]
    right: int
    reason: str
    page: str
    query: Mapping[str, str]


def measure(name: str, case: int) -> Key:
    """Works out which option of a question is right in one of its cases: a model is read and run."""
    return MEASURES[name](**TABLE[name]["cases"][case])


def question(name: str, case: int, draws: Random, key: Key) -> Question:
    """Makes question `name` of one of its cases, of which `key` says what is right, with its options in an
    order that is drawn. Raises ExerciseError where what was measured is none of them.
    """
    row = TABLE[name]
    fields = {**row["cases"][case], **key.fields}
    if key.right not in row["options"]:
        raise ExerciseError(f"the question {name!r} has no option for what its case {case} came to")
    options = [
        Option(each, text.format(**fields), "" if each == key.right else misconception)
        for each, (text, misconception) in row["options"].items()
    ]
    draws.shuffle(options)
    right = next(i for i, option in enumerate(options) if option.name == key.right)
    query = {each: value.format(**fields) for each, value in row["view"].items() if each != "page"}
    text, reason = (row[each].format(**fields) for each in ("question", "why"))
    return Question(name, row["title"], text, tuple(options), right, reason, row["view"]["page"], query)


def cases(name: str, seed: int) -> tuple[int, int]:
    """Returns the cases of a question in the first form and in the second, which differ."""
    first, second = Random(f"{name}/{seed}").sample(range(len(TABLE[name]["cases"])), 2)
    return first, second


def form(which: Form, seed: int = 1, measured: Callable[[str, int], Key] = measure) -> tuple[Question, ...]:
    """Returns all questions of a form, the same for the same seed. Takes about a second, unless `measured`
    knows what is right already.
    """
    questions = []
    for name in TABLE:
        case = cases(name, seed)[FORMS.index(which)]
        questions.append(question(name, case, Random(f"{name}/{seed}/{which}"), measured(name, case)))
    return tuple(questions)
