"""Courses: how a file is read, and the bar that leads through them."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages import helpers
from tests.pages.stage import StageManager
from ui import returns, session, site
from ui.model_text import LastText
from ui.tour import bar, courses, names
from ui.tour.courses import FOLDER, CourseError, parse, shelf
from ui.views import views

GOOD = """
title: A course
for: people
minutes: 5
scenes:
  - title: One
    text: Look
      here.
    at: attention?attention_view=heads&model=shakespeare-classic
    point: attention_grid
    notes: Wait.
  - title: Two
    text: Guess.
    at: /
    point: living_map
    question:
      asked: Which?
      answers: [this, that]
      right: 2
      why: So it is.
"""


def test_a_course_is_read_as_it_is_written():
    course = parse("3-my-course.yaml", GOOD)
    told = course.id, course.title, course.audience, course.minutes
    assert told == ("my-course", "A course", "people", 5)
    one, two = course.scenes
    assert (one.title, one.text, one.page) == ("One", "Look here.", "attention")
    assert (one.point, one.notes) == ("attention_grid", "Wait.")
    assert one.query == (("attention_view", "heads"), ("model", "shakespeare-classic"))
    assert one.path == "pages/inside/attention/page.py" and one.question is None
    assert two.page == "" and two.path == "pages/start/home/page.py" and two.notes == ""
    assert (two.question.text, two.question.answers, two.question.right) == ("Which?", ("this", "that"), 1)
    assert course.models == ("shakespeare-classic",) and course.names == {"attention_view", "model"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("for: people\n", "", "`for` is missing"),
        ("    notes: Wait.", "    note: Wait.", "scene 1: `note` is unknown; the allowed names are `at`,"),
        ("at: attention?", "at: attenton?", "scene 1: there is no page “attenton”. The pages are Home,"),
        ("point: attention_grid", "point: a b{}", "`point` must be the key of a control or figure"),
        (
            "point: attention_grid",
            "point: attention_gird",
            "is called “attention_gird”; the nearest is attention_grid.",
        ),
        (
            "attention_view=heads",
            "attention_view=hedas",
            "Attention has no view “hedas”. Its views are heads, steps,",
        ),
        ("attention_view=heads", "attentoin_view=heads", "the one of Attention is `attention_view`."),
        ("attention_view=heads", "attention_wiew=heads", "`attention_wiew`; the nearest is attention_view."),
        ("attention_view=heads", "attention_view=heads&attention_layr=1", "is called `attention_layr`"),
        ("=heads", "=heads&attention_view=mask", "`attention_view` is given twice"),
        ("text: Guess.", "text: " + "x" * 251, "`text` has 251 characters; at most 250 fit"),
        ("right: 2", "right: 3", "scene 2, question: `right` must be a whole number from 1 to 2"),
        ("[this, that]", "[this, this]", "two of the `answers` are the same"),
        ("at: /", "at: /?course=x", "`course` in a link is reserved for the bar"),
        ("title: A course", "title: A course: or not", "my-course.yaml, line 2 is not valid YAML"),
        ("title: A course", "title: !!int x", "line 2: the tag `!!int` means nothing here"),
        ("title: A course", "title: !!python/name:os.system x", "the tag `!!python/name:os.system`"),
        ("title: A course", "title: !mine x", "the tag `!mine` means nothing here"),
        ("title: A course", "title: " + "[" * 3000, "line 2 is not valid YAML: brackets are nested too"),
        ("title: A course", "title: " + "[" * 3000 + "]" * 3000, "brackets are nested too deeply"),
        ("title: A course", 'title: "\\UFFFFFFFF"', "line 2 is not valid YAML: an escape names no character"),
        ("title: A course", 'title: "\\ud800"', "`title` contains a character that cannot be shown"),
        ("title: A course", 'title: "a\\0b"', "`title` contains a character that cannot be shown"),
        ("title: A course", "title: a\x07b", "line 2 is not valid YAML: a control character"),
        ("title: A course", "title: *x", "line 2 is not valid YAML: found undefined alias"),
        ("title: A course", "title: &a [*a]", "line 2 is not valid YAML: found unconstructable recursive"),
        ("title: A course", "title:", "`title` must be text"),
        ("title: A course", "title: {a: b}", "`title` must be text"),
        ("minutes: 5", "minutes: five", "`minutes` must be a whole number from 1 to 180"),
        ("minutes: 5", "minutes: 1:30", "`minutes` must be a whole number"),
        ("minutes: 5", "minutes: 5.0", "`minutes` must be a whole number"),
        ("minutes: 5", "minutes: 5\nminutes: 6", "line 5: `minutes` is given twice"),
        ("right: 2", "right: 2\n      right: 1", "`right` is given twice"),
        ("minutes: 5", "? [a]\n: b", "the name of a value must be text"),
        ("minutes: 5", "<<: {a: b}\nminutes: 5", "`<<` is unknown"),
        ("minutes: 5", "minutes: 5\n---", "expected a single document"),
        ("at: /", "at: /?=x", "line 12, scene 2: a value in the link has no name"),
        ("at: /", "at: /?$$ID-1=x", "a value in the link has no name"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(old, new, said):
    assert old in GOOD
    with pytest.raises(CourseError, match=r"my-course\.yaml") as raised:
        parse("my-course.yaml", GOOD.replace(old, new, 1))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "written", ["2026-02-30", "2026-11-28", "Yes", "no", "null", "~", "1:30", "12", "1e3"]
)
def test_what_a_person_writes_is_what_it_looks_like(written):
    assert parse("a.yaml", GOOD.replace("A course", written, 1)).title == written
    read = parse("a.yaml", GOOD.replace("[this, that]", f"[{written}, Maybe]", 1)).scenes[1].question
    assert read is not None and read.answers == (written, "Maybe")


def test_a_number_in_quotation_marks_is_one():
    assert parse("a.yaml", GOOD.replace("minutes: 5", "minutes: '7'", 1)).minutes == 7


def test_a_file_of_any_size_is_answered_soon(tmp_path, monkeypatch):
    (tmp_path / "1-good.yaml").write_text("\ufeff" + GOOD)
    (tmp_path / "2-long.yaml").write_text(GOOD + "#" * courses.MOST_BYTES)
    head = GOOD.partition("scenes:")[0]
    scenes = "  - {title: t, text: x, at: /, point: p}\n" * (courses.MOST_SCENES + 1)
    (tmp_path / "3-many.yaml").write_text(f"{head}scenes:\n{scenes}")
    (tmp_path / "4-folder.yaml").mkdir()
    os.mkfifo(tmp_path / "5-pipe.yaml")
    laughs = "a: &a [x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n" for before, name in pairwise("abcdefghij")
    )
    (tmp_path / "6-laughs.yaml").write_text(laughs)
    began = time.process_time()
    found = shelf(tmp_path)
    assert time.process_time() - began < 5
    assert list(found.courses) == ["good"]
    assert [problem.partition(" ")[0].strip(":,") for problem in found.problems] == [
        "2-long.yaml", "3-many.yaml", "4-folder.yaml", "5-pipe.yaml", "6-laughs.yaml"
    ]  # fmt: skip
    assert not any(str(tmp_path) in problem for problem in found.problems)


def test_a_file_that_cannot_be_read_is_left_out_and_said(tmp_path):
    (tmp_path / "1-good.yaml").write_text(GOOD)
    (tmp_path / "2-bad.yaml").write_text("title: x")
    (tmp_path / "3-good.yaml").write_text(GOOD)
    (tmp_path / "4-latin.yaml").write_bytes(b"title: \xff")
    found = shelf(tmp_path)
    assert list(found.courses) == ["good"]
    bad, twice, latin = found.problems
    assert "line 1: this is not UTF-8" in latin
    assert "2-bad.yaml: `for`, `minutes`, `scenes` is missing" in bad
    assert "3-good.yaml: another course is called “good” already" in twice and "4-latin.yaml" in latin


def test_all_that_ship_can_be_read():
    assert shelf().problems == ()
    assert len(shelf().courses) == len(list(FOLDER.glob("*.yaml"))) > 0


def test_what_is_no_key_is_no_point_and_the_example_of_a_refusal_is_one() -> None:
    attention = site.entry_of("attention")
    assert attention is not None
    for other in ("None", "gpt2", "Heads", "Cache-Control", "attention_", "margin"):
        assert not names.has(attention, other), other
    with pytest.raises(CourseError) as refused:
        parse("1-good.yaml", GOOD.replace("point: attention_grid", "point: a b{}"))
    example = str(refused.value).rpartition("such as ")[2].rstrip(".")
    assert names.has(attention, example)


def test_the_views_that_a_file_may_name_are_those_of_the_pages() -> None:
    listed: dict = {}
    for one in views():
        listed.setdefault(one.entry, []).append((one.page.key, one.view.id))
    for entry, each in listed.items():
        ids, key = names.views_of(entry)
        assert sorted(ids) == sorted(view for _, view in each), entry.url
        assert {key} == {page for page, _ in each}, entry.url


QUESTIONS = {
    name: [(one, course.question(at)) for at, one in enumerate(course.scenes) if one.question]
    for name, course in shelf().courses.items()
}


def test_no_letter_is_right_more_often_than_chance_has_it() -> None:
    found = Counter(asked.right for asks in QUESTIONS.values() for _, asked in asks)
    count = found.total()
    assert count > 20 and max(found.values()) < count / 2 and min(found[at] for at in range(3)) > count / 6
    for name, asks in QUESTIONS.items():
        assert len(asks) < 3 or len({asked.right for _, asked in asks}) > 1, name


def test_the_order_of_answers_keeps_them_all_and_is_the_same_for_everybody() -> None:
    for name, asks in QUESTIONS.items():
        for scene, asked in asks:
            written = scene.question
            assert sorted(asked.answers) == sorted(written.answers)
            assert asked.answers[asked.right] == written.answers[written.right]
            assert written.shuffled(name) == asked
    command = "from ui.tour.courses import shelf; print(shelf().courses['built-live'].question(5).answers)"
    other = subprocess.run([sys.executable, "-c", command], check=True, capture_output=True, text=True).stdout
    assert other.strip() == str(shelf().courses["built-live"].question(5).answers)


TEN = shelf().courses["ten-minutes"]


@pytest.fixture(autouse=True)
def staged(monkeypatch):
    made = StageManager()
    monkeypatch.setattr(session, "manager", lambda: made)


def opened(**query: str) -> AppTest:
    return helpers.opened("app.py", **({"home_view": "published"} | query))


def told(app: AppTest) -> dict | None:
    found = [e for e in app.get("bidi_component") if e.proto.component_name.endswith("glassformer_tour")]
    return json.loads(found[0].proto.json) if found else None


def test_the_address_says_course_and_scene():
    scene = TEN.scenes[3]
    found = told(opened(course="ten-minutes", scene="4"))
    assert (found["at"], found["count"], found["title"], found["text"]) == (
        3,
        len(TEN.scenes),
        scene.title,
        scene.text,
    )
    assert found["question"]["asked"] == scene.question.text and found["asks"] == [3, 7]
    asked = TEN.question(3)
    assert (found["question"]["answers"], found["question"]["right"]) == (list(asked.answers), asked.right)
    # it is about Positions, and this is Home: the bar offers the way, and points at nothing
    assert found["away"] == "Positions" and found["point"] == ""
    here = told(opened(course="ten-minutes", scene="1"))
    assert here["away"] == "" and here["point"] == "living_map" and here["question"] is None


@pytest.mark.parametrize(
    ("written", "at"), [("99", len(TEN.scenes) - 1), ("-1", 0), ("x", 0), ("9" * 400, 0)]
)
def test_a_scene_that_is_none_is_the_nearest(written, at):
    assert told(opened(course="ten-minutes", scene=written))["at"] == at


def test_the_menu_takes_the_course_along():
    app = opened(course="ten-minutes", scene="2")
    assert told(opened()) is None
    app.session_state["page_drawn"] = "tokens"  # as if another page had been drawn last
    del app.query_params["course"]
    del app.query_params["scene"]
    app.run()
    assert told(app)["at"] == 1
    assert (app.query_params["course"], app.query_params["scene"]) == ("ten-minutes", "2")
    del app.query_params["course"]
    assert told(helpers.ran(app)) is None, "somebody has gone back to before it"


def test_what_speaks_against_a_link_is_forgotten_and_what_was_written_stays():
    stays = ["owner", "attention_text", "sampling_seed", "run_id"]
    goes = ["text", "kept_text", "subject_model", "attention_layer", "attention_view__in_url", "measure"]
    goes += ["view_drawn", "positions_view", "why_scheme__in_url"]
    assert set(bar._forgotten(TEN, {"attention_view": "heads"}, [*stays, *goes])) == set(goes)


def test_a_model_that_is_not_here_is_said(monkeypatch):
    scene = replace(TEN.scenes[0], query=(("model", "pretrained-smollm2-135m"),))
    course = replace(TEN, scenes=(scene,))
    monkeypatch.setattr(bar.sources, "available", list)
    assert bar.missing(course) == ["SmolLM2 135M, pretrained"]
    assert bar._said(scene).startswith("SmolLM2 135M, pretrained is not installed here")
    monkeypatch.setattr(bar.sources, "available", lambda: ["smollm2-135m"])
    assert bar.missing(course) == [] and bar._said(scene) == scene.text


@pytest.mark.parametrize(
    ("held", "own"),
    [
        ({"text": "my own words"}, "my own words"),
        ({"kept_text": LastText("my own words")}, "my own words"),  # from a page without the box
        ({"text": "ROMEO:\nO, she d"}, ""),  # the first scene's
        ({"text": "To be", "kept_text": LastText("To be", first="To be")}, ""),
        ({"text": " \n"}, ""),
        ({"text": "", "kept_text": LastText("my own words")}, ""),  # the box was emptied
        ({}, ""),
    ],
)
def test_only_what_the_reader_wrote_is_the_readers(monkeypatch, held, own):
    monkeypatch.setattr(bar.st, "session_state", held)
    assert bar._written(TEN) == own


def test_a_text_of_ones_own_stays_and_comes_back_after_a_scene_with_another(monkeypatch):
    held = {"text": "my own words", "kept_text": LastText("my own words")}
    monkeypatch.setattr(bar.st, "session_state", held)

    def shown(at: int) -> None:
        monkeypatch.setattr(bar.st, "query_params", bar._query(TEN, at))
        bar._clear_page(TEN)

    shown(2)
    assert "text" not in held and held["kept_text"].text == "my own words"
    shown(0)  # which has one itself
    assert "kept_text" not in held
    held["text"] = dict(TEN.scenes[0].query)["text"]
    shown(2)
    assert held["kept_text"].text == "my own words"
    bar._forget()
    assert bar._WRITTEN not in held


def test_back_to_before_the_course_ends_it_and_back_to_a_scene_shows_what_its_address_says(monkeypatch):
    app = opened(course="ten-minutes", scene="2")
    app.session_state["page_drawn"] = "tokens"
    app.session_state["embed_view"] = "map"
    monkeypatch.setattr(bar.widgets, "went_back", lambda: True)
    helpers.ran(app)
    assert told(app)["at"] == 1 and "embed_view" not in app.session_state
    app.session_state["page_drawn"] = "tokens"
    del app.query_params["course"]
    assert told(helpers.ran(app)) is None and "course" not in app.query_params


def test_questions_from_last_time_stand_before_the_first_scene_alone():
    assert told(opened(course="ten-minutes", scene="1"))["again"] == returns.catalogue()
    assert told(opened(course="ten-minutes", scene="2"))["again"] is None


def test_the_browser_knows_the_address_of_every_scene():
    found = told(opened(course="ten-minutes", scene="4"))
    assert found["addresses"][1] == "./tokens?tokens_view=compare&compare_part=ids&course=ten-minutes&scene=2"
    assert found["addresses"][0].startswith("./?home_view=living&") and len(found["addresses"]) == len(
        TEN.scenes
    )
    assert found["end"] == "./courses"
