"""Questions that return: each guess has an exercise of its kind or another setting, and what is named is there."""

import re
from urllib.parse import parse_qsl

import pytest

from studies.exercises.catalogue import TASKS
from tests import source
from tests.pages.rooms import views
from ui import returns

ASKED = {
    name for path in source.files("pages") for name in re.findall(r'\bask\("([\w-]+)"', source.text(path))
}
ADDRESSES = [
    (name, address)
    for name, each in returns.GUESSES.items()
    for address in (*each.settings, each.refuted)
    if address
]


def test_every_guess_of_the_app_returns_and_no_other() -> None:
    assert len(ASKED) > 20 and set(returns.GUESSES) == ASKED


@pytest.mark.parametrize("name", returns.GUESSES)
def test_a_guess_returns_as_an_exercise_that_exists_or_at_other_settings(name: str) -> None:
    guess = returns.GUESSES[name]
    assert bool(guess.task) != bool(guess.settings)
    assert not guess.task or guess.task in TASKS
    assert len(set(guess.settings)) == len(guess.settings)


@pytest.mark.parametrize(("name", "address"), ADDRESSES)
def test_an_address_is_one_of_the_app(name: str, address: str) -> None:
    page, _, query = address.partition("?")
    key, ids = views(page)
    assert dict(parse_qsl(query, strict_parsing=True))[key] in ids


def test_titles_tell_guesses_apart() -> None:
    titles = [each.title for each in returns.GUESSES.values()]
    assert len(set(titles)) == len(titles)


def test_the_browser_learns_of_every_exercise_and_guess() -> None:
    sent = returns.catalogue()
    assert {row["id"] for row in sent["exercises"]} == set(TASKS)
    assert {row["id"]: row["title"] for row in sent["guesses"]} == {
        name: each.title for name, each in returns.GUESSES.items()
    }
    by_id = {row["id"]: row for row in sent["guesses"]}
    assert by_id["width"]["task"] == "spread" and "settings" not in by_id["width"]
    assert by_id["order"]["settings"] == list(returns.GUESSES["order"].settings)


def test_an_exercise_knows_the_guesses_that_return_as_it() -> None:
    assert returns.kin("step-size") == ["overshoots", "step"] and returns.kin("causal") == []


def test_after_a_wrong_guess_the_browser_has_its_own_question_and_the_view_that_refutes_it() -> None:
    found = returns.after_wrong("unmasked")
    assert found["see"] == {"title": "Bug lab", "address": "./bugs?bugs_view=cost&fault=no_mask"}
    assert [row["id"] for row in found["again"]["guesses"]] == ["unmasked"] and not found["again"][
        "exercises"
    ]
    found = returns.after_wrong("width")
    assert "see" not in found and [row["id"] for row in found["again"]["exercises"]] == ["spread"]
