"""The page of exercises, and the rows of docs/teaching.md that lead to it."""

import re
from typing import Any
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from studies.exercises.catalogue import SETS, TASKS, make
from studies.exercises.forms import Choice, Pick
from studies.exercises.notebooks import NAMES
from tests.pages import helpers
from tests.pages.rooms import views
from ui import site
from ui.site import ROOT

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
    assert "Exercise **1** of 8 in this set, with numbers from seed 12." in said(page)
    assert page.text_input[0].label == "Your answer: one number"


def test_an_answer_is_judged_with_the_hint_of_its_mistake() -> None:
    exercise = make("score", 1)
    bare = sum(a * b for a, b in zip(exercise.given["q"], exercise.given["k"], strict=True))
    page = answered(opened(), str(bare))
    hint = "You forgot to divide by $\\sqrt{d_k}$: that is the bare dot product."
    assert f"**Not yet**: {hint}" in said(page)
    page = answered(page, f"{bare / len(exercise.given['q']) ** 0.5:.2f}")
    assert "**Right**: that is correct." in said(page)
    page = answered(page, "a horse")
    assert any("is not a number" in one for one in said(page))


def noted(page: AppTest) -> dict[str, Any] | None:
    answer: dict[str, Any] | None = helpers.sent(page, "_solved")["answer"]
    return answer


def test_the_browser_is_sent_each_answer_once_to_note_it() -> None:
    page = opened(set="masks", exercise="causal", set_seed="5")
    assert noted(page) is None
    first = noted(answered(page, "7"))
    assert first is not None
    assert {**first, "token": ""} == {"id": "causal", "seed": 5, "right": False, "helped": False, "token": ""}
    assert noted(helpers.ran(page)) == first, "the same answer again"
    assert noted(answered(page, "a horse")) is None, "what cannot be read is no wrong answer"
    page.toggle(key="exercise_shown").set_value(True).run()
    right = noted(answered(page, f"{make('causal', 5).answer[0]:.0f}"))
    assert right is not None and right["right"] and right["helped"] and right["token"] != first["token"]
    page.button(key="exercise_again").click().run()
    assert noted(page) is None and page.toggle(key="exercise_shown").value is False


def test_an_answer_is_helped_once_its_solution_has_been_open() -> None:
    page = opened(set="masks", exercise="causal", set_seed="5")

    def helped(seed: int) -> bool:
        answer = noted(answered(page, f"{make('causal', seed).answer[0]:.0f}"))
        assert answer is not None and answer["right"] and answer["seed"] == seed
        return bool(answer["helped"])

    assert not helped(5)
    for shown in (True, False):
        page.toggle(key="exercise_shown").set_value(shown).run()
    assert helped(5)
    page.number_input(key="set_seed").set_value(6).run()
    assert not helped(6)
    page.number_input(key="set_seed").set_value(5).run()
    assert helped(5), "the solution to these numbers has been seen"


def test_what_returns_as_an_exercise_is_sent_with_it() -> None:
    assert helpers.sent(opened(set="attention", exercise="spread"), "_solved")["kin"] == ["width"]
    sent = helpers.sent(opened(), "_progress")
    assert sent["returns"] and sent["count"] == len(TASKS) == len(sent["catalogue"]["exercises"])


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
    key, ids = views(exercise.see.page)
    assert not exercise.see.query or exercise.see.query[key] in ids


def test_the_sheet_lists_what_it_holds() -> None:
    page = opened(exercises_on="paper", set_seed="3", sheet_count="5")
    assert "**5** exercises from 4 sets, with numbers from seed 3; the answers are at the end." in said(page)
    table = page.dataframe[0].value
    assert len(table) == 5
    titles = {one.title: one for one in SETS.values()}
    names = {title: task for _, one in SETS.items() for task, (title, _) in one.tasks.items()}
    for _, row in table.iterrows():
        task = names[row["Exercise"]]
        assert task in titles[row["Set"]].tasks
        exercise = make(task, 3)
        assert row["Answer"] == exercise.form.text(exercise.answer).strip("`*")


def test_the_title_of_a_sheet_is_what_the_link_says_and_stays_for_the_session() -> None:
    page = opened(exercises_on="paper", sheet_title="Week 3")
    assert page.text_input(key="sheet_title").value == "Week 3"
    page.query_params.clear()
    page.segmented_control(key="exercises_on").set_value("screen").run()
    page.segmented_control(key="exercises_on").set_value("paper").run()
    assert page.text_input(key="sheet_title").value == "Week 3"


@pytest.mark.parametrize(
    ("name", "functions", "checks"), [("block", 2, 2), ("sampling", 6, 5), ("cache", 3, 3), ("tying", 2, 3)]
)
def test_a_notebook_is_offered_with_what_it_asks_for(name: str, functions: int, checks: int) -> None:
    page = opened(exercises_view="code", notebook=name)
    assert any(
        f"**{functions}** pieces of code to write, checked by {checks} cells." in one for one in said(page)
    )
    source = (ROOT / "exercises" / "sources" / f"{name}.md").read_text("utf-8")
    assert "raise NotImplementedError" in page.code[0].value and page.code[0].value.split("\n")[0] in source
    assert "solution" not in page.code[0].value


DOCS = ROOT / "docs" / "teaching.md"
ROW = re.compile(
    r"^\| ((?:Lab |Outcome |Question )?\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE
)  # number, what, where
ROWS = [
    (number, re.findall(r"`([^`]+)`", where)) for number, _, where in ROW.findall(DOCS.read_text("utf-8"))
]
LINKS = [(number, link) for number, links in ROWS for link in links]


def asked(link: str) -> dict[str, str]:
    return dict(parse_qsl(link.partition("?")[2], keep_blank_values=True))


def test_no_exercise_of_the_texts_is_missing() -> None:
    wanted = [str(number) for number in range(1, 21)] + [f"Lab {number}" for number in (1, 2, 3)]
    wanted += [f"Outcome {number}" for number in range(1, 7)] + [
        f"Question {number}" for number in range(1, 5)
    ]
    assert [number for number, _ in ROWS] == wanted
    assert all(links for _, links in ROWS)


@pytest.mark.parametrize(("number", "link"), LINKS, ids=[f"{number}: {link}" for number, link in LINKS])
def test_each_address_is_one_of_the_app(number: str, link: str) -> None:
    page, query = link.partition("?")[0], asked(link)
    key, ids = views(page)
    if page != "exercises":
        assert query[key] in ids
        return
    if "notebook" in query:
        assert query == {key: "code", "notebook": query["notebook"]} and query["notebook"] in NAMES
        return
    assert query["exercise"] in SETS[query["set"]].tasks and query.keys() <= {"set", "exercise", "set_seed"}


# published: the textbook's own numbers; a block has two norms of 1,024 numbers beside its matrices
@pytest.mark.parametrize(
    ("number", "exercise", "answer"),
    [
        ("3", "share", pytest.approx(200 / 3)),
        ("3", "block", 1_048_576 + 2_097_152 + 2 * 1024),
        ("5", "gpt2", 124_439_808),
        ("6", "tying", 38_597_376),
        ("Lab 2", "batch", 32 * 64),
    ],
)
def test_the_seed_draws_the_numbers_of_the_text(number: str, exercise: str, answer: float) -> None:
    query = next(
        asked(link) for one, link in LINKS if one == number and asked(link).get("exercise") == exercise
    )
    assert make(exercise, int(query["set_seed"])).answer == (answer,)
