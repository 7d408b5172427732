"""The texts' exercises, the lab and the lecture: each has its row in docs/teaching.md, and each row leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from engine.exercises.catalogue import SETS, make
from engine.exercises.notebooks import NAMES
from tests.pages.views import views
from ui.tour.courses import shelf

DOCS = Path(__file__).parents[3] / "docs" / "teaching.md"
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


def test_pen_and_paper_is_on_paper_and_code_in_a_notebook() -> None:
    shown = {number: [asked(link) for link in links] for number, links in ROWS}
    assert all("set" in shown[str(number)][0] for number in range(1, 11))
    notebooks = [shown[str(number)][0]["notebook"] for number in range(11, 21)]
    assert len(set(notebooks)) == 10


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


def test_the_lecture_asks_its_four_questions() -> None:
    questions = {number: asked(links[0]) for number, links in ROWS if number.startswith("Question")}
    scenes = {}
    for number, query in questions.items():
        scene = shelf().courses[query["course"]].scenes[int(query["scene"]) - 1]
        scenes[number] = scene
        assert scene.question is not None
        key, _ = views(scene.page)
        assert dict(scene.query)[key] == query[key]
    words = ("8 heads", "four times as wide", "causal mask", "without residual")
    assert all(word in scene.question.asked for word, scene in zip(words, scenes.values(), strict=True))
    course = shelf().courses["built-live"]
    assert [scene for scene in course.scenes if scene.question] == list(scenes.values())
