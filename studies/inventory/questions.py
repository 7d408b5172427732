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
LETTERS = 4  # options of a question


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


def question(name: str, case: int, key: Key, draws: Random, at: int) -> Question:
    """Makes question `name` of one of its cases, of which `key` says what is right: that option at index
    `at`, the others in an order that is drawn. Raises ExerciseError where what was measured is none of
    them.
    """
    row = TABLE[name]
    fields = {**row["cases"][case], **key.fields}
    if key.right not in row["options"]:
        raise ExerciseError(f"the question {name!r} has no option for what its case {case} came to")
    options = {
        each: Option(each, text.format(**fields), "" if each == key.right else misconception)
        for each, (text, misconception) in row["options"].items()
    }
    right = options.pop(key.right)
    order = list(options.values())
    draws.shuffle(order)
    order.insert(at, right)
    query = {each: value.format(**fields) for each, value in row["view"].items() if each != "page"}
    text, reason = (row[each].format(**fields) for each in ("question", "why"))
    return Question(name, row["title"], text, tuple(order), at, reason, row["view"]["page"], query)


def cases(name: str, seed: int) -> tuple[int, int]:
    """Returns the cases of a question in the first form and in the second, which differ."""
    first, second = Random(f"{name}/{seed}").sample(range(len(TABLE[name]["cases"])), 2)
    return first, second


def letters(seed: int) -> tuple[list[int], list[int]]:
    """Returns where the right options of both forms stand: each letter as often as the others, at most twice
    in a row, and for no question the same in both.

    >>> first, second = letters(1)
    >>> sorted(first), any(a == b for a, b in zip(first, second))
    ([0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3], False)
    """
    draws = Random(f"letters/{seed}")
    forms: list[list[int]] = []
    while len(forms) < len(FORMS):
        order = draws.sample(range(LETTERS), LETTERS)
        row = [order[i % LETTERS] for i in range(len(TABLE))]
        draws.shuffle(row)
        thrice = any(len(set(row[i : i + 3])) == 1 for i in range(len(row) - 2))
        if not thrice and not any(a == b for other in forms for a, b in zip(other, row, strict=True)):
            forms.append(row)
    return forms[0], forms[1]


def form(which: Form, seed: int = 1, measured: Callable[[str, int], Key] = measure) -> tuple[Question, ...]:
    """Returns all questions of a form, the same for the same seed. Takes about a second, unless `measured`
    knows what is right already.
    """
    number, questions = FORMS.index(which), []
    for name, at in zip(TABLE, letters(seed)[number], strict=True):
        case, draws = cases(name, seed)[number], Random(f"{name}/{seed}/{which}")
        questions.append(question(name, case, measured(name, case), draws, at))
    return tuple(questions)
