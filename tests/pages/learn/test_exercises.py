"""The page of exercises: what is said of an answer, what a link makes, what comes next, what a sheet lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.exercises.catalogue import SETS, TASKS, make
from engine.exercises.forms import Choice, Pick
from tests.pages import helpers
from tests.pages.views import views
from ui import site

pytestmark = pytest.mark.usefixtures("manager")


def opened(**query: str) -> AppTest:
    return helpers.opened("learn/exercises", **query)


def said(page: AppTest) -> list[str]:
    return [str(one.value) for one in page.markdown]


def answered(page: AppTest, given: str) -> AppTest:
    page.text_input[0].set_value(given)
    next(one for one in page.button if one.label == "Check").click()
    page.run()
    assert not page.exception
    return page


def test_a_link_opens_the_exercise_with_its_numbers() -> None:
    page = opened(set="parameters", exercise="block", set_seed="12")
    exercise = make("block", 12)
    assert exercise.statement in said(page)
    assert "Exercise **1** of 6 in this set, with the numbers of seed 12." in said(page)
    assert page.text_input[0].label == "Your answer: one number"


def test_an_answer_is_judged_with_the_hint_of_its_mistake() -> None:
    exercise = make("score", 1)
    bare = sum(a * b for a, b in zip(exercise.given["q"], exercise.given["k"], strict=True))
    page = answered(opened(), str(bare))
    hint = "You forgot to divide by $\\sqrt{d_k}$: that is the bare dot product."
    assert f"**Not yet**: {hint}" in said(page)
    page = answered(page, f"{bare / len(exercise.given['q']) ** 0.5:.2f}")
    assert "**Right**: that is it." in said(page)
    page = answered(page, "a horse")
    assert any("is not a number" in one for one in said(page))


def test_show_me_shows_each_step_of_the_way() -> None:
    page = opened(set="cache", exercise="size", set_seed="3")
    steps = make("size", 3).steps
    assert not any(steps[0] in one for one in said(page))
    page.toggle(key="exercise_shown").set_value(True).run()
    assert "\n".join(f"{place}. {step}" for place, step in enumerate(steps, 1)) in said(page)


def test_new_numbers_and_the_next_exercise() -> None:
    page = opened(set="masks", exercise="cross", set_seed="7")
    assert page.button(key="exercise_again").label == "New numbers"
    page.button(key="exercise_again").click().run()
    assert make("cross", 8).statement in said(page)
    page.button(key="exercise_next").click().run()
    assert make("queries", 8).statement in said(page)  # the first of the next set
    page = opened(set="proofs", exercise="highway", set_seed="9999")
    assert page.button(key="exercise_again").label == "New order"
    page.button(key="exercise_again").click().run()
    assert make("highway", 1).statement in said(page)


@pytest.mark.parametrize("task", TASKS)
def test_every_exercise_is_drawn_and_leads_to_a_page(task: str) -> None:
    name = next(name for name, one in SETS.items() if task in one.tasks)
    page = opened(set=name, exercise=task, set_seed="2")
    exercise = make(task, 2)
    assert exercise.statement in said(page)
    assert len(page.radio) == isinstance(exercise.form, Choice)
    assert len(page.checkbox) == (len(exercise.form.options) if isinstance(exercise.form, Pick) else 0)
    assert site.entry_of(exercise.see.page) is not None
    for key, view in exercise.see.query.items():
        known, ids = views(exercise.see.page)
        assert key == known and view in ids


def test_the_sheet_lists_what_it_holds() -> None:
    page = opened(exercises_view="sheet", sheet_seed="3", sheet_count="5")
    assert "**5** exercises from 4 sets, with the numbers of seed 3; the answers are at the end." in said(
        page
    )
    table = page.dataframe[0].value
    assert len(table) == 5
    titles = {one.title: one for one in SETS.values()}
    names = {title: task for _, one in SETS.items() for task, (title, _) in one.tasks.items()}
    for _, row in table.iterrows():
        task = names[row["Exercise"]]
        assert task in titles[row["Set"]].tasks
        exercise = make(task, 3)
        assert row["Answer"] == exercise.form.said(exercise.answer).strip("`*")


@pytest.mark.parametrize(
    ("name", "functions", "checks"), [("block", 2, 2), ("sampling", 3, 3), ("cache", 2, 2), ("tying", 2, 3)]
)
def test_a_notebook_is_offered_with_what_it_asks_for(name: str, functions: int, checks: int) -> None:
    page = opened(exercises_view="code", notebook=name)
    assert any(
        f"**{functions}** pieces of code to write, {checks} cells that check them." in one
        for one in said(page)
    )
    source = (Path(__file__).parents[3] / "exercises" / "sources" / f"{name}.md").read_text("utf-8")
    assert "raise NotImplementedError" in page.code[0].value and page.code[0].value.split("\n")[0] in source
    assert "solution" not in page.code[0].value
