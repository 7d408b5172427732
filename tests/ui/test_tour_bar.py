"""The bar of a course: where one is by the address, what the browser is told, and what is forgotten on the way."""

import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages import helpers
from tests.pages.stage import StageManager
from ui import state
from ui.tour import bar
from ui.tour.courses import shelf

TEN = shelf().courses["ten-minutes"]


@pytest.fixture(autouse=True)
def staged(monkeypatch):
    made = StageManager()
    monkeypatch.setattr(state, "manager", lambda: made)


def opened(**query: str) -> AppTest:
    """Home's drawings, which need no model, with that in its address."""
    return helpers.opened("app.py", **({"home_view": "published"} | query))


def told(app: AppTest) -> dict | None:
    found = [e for e in app.get("bidi_component") if e.proto.component_name.endswith("glassformer_tour")]
    return json.loads(found[0].proto.json) if found else None


def test_the_address_says_course_and_scene():
    scene = TEN.scenes[3]
    found = told(opened(course="ten-minutes", scene="4"))
    assert (found["at"], found["count"], found["title"], found["text"]) == (3, 9, scene.title, scene.text)
    assert found["question"]["asked"] == scene.question.asked and found["question"]["right"] == 2
    assert len(found["question"]["answers"]) == 3
    # it is about Positions, and this is Home: the bar offers the way, and points at nothing
    assert found["away"] == "Positions" and found["point"] == ""
    here = told(opened(course="ten-minutes", scene="1"))
    assert here["away"] == "" and here["point"] == "living_map" and here["question"] is None


@pytest.mark.parametrize(("written", "at"), [("99", 8), ("-1", 0), ("x", 0), ("9" * 400, 0)])
def test_a_scene_that_is_none_is_the_nearest(written, at):
    assert told(opened(course="ten-minutes", scene=written))["at"] == at


@pytest.mark.parametrize("course", ["no-such", "<b>"])
def test_a_course_that_is_none_is_said_and_leaves_the_address(course):
    app = opened(course=course, scene="2")
    assert told(app) is None and "no such course" in app.toast[0].value
    assert "course" not in app.query_params and "scene" not in app.query_params


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
    held = [
        "owner",
        "text",
        "kept_text",
        "subject_model",
        "attention_layer",
        "attention_view__in_url",
        "measure",
    ]
    held += [
        "view_drawn",
        "attention_text",
        "sampling_seed",
        "run_id",
        "positions_view",
        "why_scheme__in_url",
    ]
    gone = bar._forgotten(TEN, {"attention_view": "heads"}, held)
    assert set(held) - set(gone) == {"owner", "attention_text", "sampling_seed", "run_id"}


def test_a_model_that_is_not_here_is_said(monkeypatch):
    scene = replace(TEN.scenes[0], query=(("model", "pretrained-smollm2-135m"),))
    course = replace(TEN, scenes=(scene,))
    monkeypatch.setattr(bar.sources, "available", list)
    assert bar.missing(course) == ["SmolLM2, 135 M, a real one"]
    assert bar._said(scene).startswith(
        "This scene shows SmolLM2, 135 M, a real one, which is not installed here"
    )
    monkeypatch.setattr(bar.sources, "available", lambda: ["smollm2-135m"])
    assert bar.missing(course) == [] and bar._said(scene) == scene.text


@pytest.mark.parametrize(
    ("held", "own"),
    [
        ({"text": "my own words"}, "my own words"),
        ({"kept_text": "my own words"}, "my own words"),  # from a page without the box
        ({"text": "ROMEO:\nO, she d"}, ""),  # the first scene's
        ({"text": "To be", "first_text": "To be"}, ""),
        ({"text": " \n"}, ""),
        ({}, ""),
    ],
)
def test_only_what_the_reader_wrote_is_the_readers(monkeypatch, held, own):
    monkeypatch.setattr(bar.st, "session_state", held)
    assert bar._written(TEN) == own


def test_a_text_of_ones_own_stays_and_comes_back_after_a_scene_with_another(monkeypatch):
    held = {"text": "my own words", "kept_text": "my own words"}
    monkeypatch.setattr(bar.st, "session_state", held)
    monkeypatch.setattr(bar.st, "query_params", {})
    monkeypatch.setattr(bar.st, "switch_page", lambda *_, **__: None)
    bar._open(TEN, 2)
    assert "text" not in held and held["kept_text"] == "my own words"
    bar._open(TEN, 0)  # which has one itself
    assert "kept_text" not in held
    held["text"] = dict(TEN.scenes[0].query)["text"]
    bar._open(TEN, 2)
    assert held["kept_text"] == "my own words"
    bar._forget()
    assert bar._WRITTEN not in held
