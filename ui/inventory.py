"""The test of misconceptions in the browser: both forms for a seed, and what a browser is sent of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from runs.quizzes import Choice, Quiz
from studies.inventory.measures import Key
from studies.inventory.questions import FORMS, Question, form, measure
from ui import memo, site
from ui.players.component import mounted

QUERY = "quiz"  # names a room in addresses
Forms = tuple[tuple[Question, ...], tuple[Question, ...]]


@memo.measured("Working out the right answers …")
def _key(name: str, case: int) -> Key:
    return measure(name, case)


def forms(seed: int) -> Forms:
    """Returns both forms of the test for a seed. The right answer in each case is worked out once."""
    first, second = (form(which, seed, _key) for which in FORMS)
    return first, second


def sizes(both: Forms) -> list[list[int]]:
    """Returns the number of options of each question, of both forms."""
    return [[len(question.options) for question in each] for each in both]


def draw_test(
    key: str,
    who: str,
    both: Forms,
    words: Mapping[str, str],
    *,
    quiz: Quiz | None = None,
    held: Sequence[Choice] = (),
    on_answered: Callable[[], None] = lambda: None,
) -> None:
    """Draws the test: alone, or as the room of a `quiz` has it, where `held` are this browser's answers to
    the open form. `who` names what its answers are kept under; `words` are its longer sentences, by screen.
    """
    mounted("inventory", styles=("inventory",))(
        key=key, data=payload(who, both, words, quiz, held), on_answered_change=on_answered
    )


def payload(
    who: str, both: Forms, words: Mapping[str, str], quiz: Quiz | None, held: Sequence[Choice]
) -> dict[str, Any]:
    """Returns what the browser gets: in a room the questions of the open form alone and no right answer,
    until the second form is closed.
    """
    told = quiz is None or quiz.finished
    seen = [told or (quiz is not None and quiz.open and quiz.form == at) for at in range(len(FORMS))]
    return {
        "who": who,
        "forms": [
            [_told(question, told) for question in each] if there else []
            for each, there in zip(both, seen, strict=True)
        ],
        "sizes": sizes(both),
        "room": None if quiz is None else {"form": quiz.form, "open": quiz.open, "held": list(held)},
        "words": dict(words),
    }


def _told(question: Question, key: bool) -> dict[str, Any]:
    """A question as a browser gets it, with its `key` or without."""
    shown: dict[str, Any] = {"id": question.id, "title": question.title, "text": question.text}
    if not key:
        return shown | {"options": [{"text": option.text} for option in question.options]}
    options = [{"text": option.text, "belief": option.misconception} for option in question.options]
    entry = site.entry_of(question.page)
    return shown | {
        "options": options,
        "right": question.right,
        "reason": question.reason,
        "address": f"{question.page}?{urlencode(question.query)}",
        "page": entry.title if entry else "",
    }
