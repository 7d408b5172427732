"""A view drawn past Streamlit at another step of the training is the page's at that step, byte for byte."""

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from studies.exercises.sheet import block
from tests.pages.helpers import opened, ran
from ui import background_jobs, frames, identity, live, page_frame, session
from ui.operate import patches
from ui.page_frame import Listed
from ui.text.markdown import plain
from ui.training_step import NEWEST, Shown
from ui.views import views

FIGURES_ONLY = [listed for listed in views() if listed.view.figures_only]
ALWAYS = ("attention/heads", "residual/lens", "shapes/backward")
MODEL = "timelapse"
FAILED = page_frame.failed  # which a fixture of all tests replaces


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "holds", lambda name: True)
    monkeypatch.setattr(session, "address", lambda: "")  # which Streamlit asks a server for


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that are drawn past Streamlit."""
    drawn = frames.Frame._drawn
    steps: list[int] = []

    def counted(self: frames.Frame, step: int, state: Any) -> Any:
        steps.append(step)
        return drawn(self, step, state)

    monkeypatch.setattr(frames.Frame, "_drawn", counted)
    return steps


def page_at(listed: Listed) -> AppTest:
    place = listed.entry.path.removeprefix("pages/").removesuffix("/page.py")
    return opened(place, model=MODEL, **{listed.page.key: listed.view.id})


def sent(page: AppTest) -> list[Any]:
    """What each component of the page got, as the route would say it."""
    protos = [element.proto for element in page.get("bidi_component")]
    return [
        proto.bytes.decode() if proto.WhichOneof("data") == "bytes" else json.loads(proto.json)
        for proto in protos
    ]


def held(page: AppTest) -> dict[str, str]:
    return {key: repr(value) for key, value in page.session_state.items()}


def frame_of(page: AppTest) -> frames.Frame:
    frame: frames.Frame = page.session_state["frame"]
    return frame


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(listed, id=listed.id, marks=[] if listed.id in ALWAYS else pytest.mark.exhaustive)
        for listed in FIGURES_ONLY
    ],
)
def test_its_components_get_what_the_page_sends_them(listed: Listed, draws: list[int]) -> None:
    page = page_at(listed)
    steps = next(data["steps"] for data in sent(page) if isinstance(data, dict) and "frames" in data)
    for turn, step in enumerate((steps[0], steps[len(steps) // 2], NEWEST)):
        frame, before = frame_of(page), held(page)
        draws.clear()
        drawn = frame.at(step)
        assert held(page) == before, "the session is the tab's"
        # Where the page has followed to a step that was drawn here, that drawing is taken over. Not after the first
        # round, in whose run Streamlit still tells widgets their values, if there are any.
        assert draws in ([[step, NEWEST]], [[step], [step, steps[0]]], [[step]])[turn]
        page.session_state["step_shown"] = Shown(MODEL, step, moved=True)
        there = sent(ran(page))
        assert drawn["whole"] and drawn["parts"]
        assert drawn["answer"] in [block(plain(markdown.value)) for markdown in page.markdown]
        for key, part in drawn["parts"].items():
            assert json.loads(json.dumps(part)) in there, f"{key} at step {step}"


def test_a_training_that_was_scrubbed_once_is_not_measured_again(
    measured_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of this view takes two measurements."""
    page = page_at(next(listed for listed in FIGURES_ONLY if listed.id == "generation/beam"))
    frame, begun, of = frame_of(page), [], background_jobs.Jobs.of

    def counted(self: background_jobs.Jobs, key: background_jobs.Key, *how: Any) -> background_jobs.Job:
        begun.append(key)
        return of(self, key, *how)

    monkeypatch.setattr(background_jobs.Jobs, "of", counted)
    steps = next(data["steps"] for data in sent(page) if isinstance(data, dict) and "frames" in data)
    for step in steps:
        frame.at(step)
    assert len(steps) > 30 and len(begun) >= 2 * len(steps) - 2
    begun.clear()
    for step in steps:
        frame.at(step)
    assert not begun


def test_a_run_that_begins_while_it_is_drawn_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """It puts away what the page has set, which the first drawing would tell the browser and the next not."""
    page = page_at(next(listed for listed in FIGURES_ONLY if listed.id == "shapes/backward"))
    frame, drawn = frame_of(page), frames.Frame._drawn
    state: Any = frame._context.session_state._state
    control = state._key_id_mapper.get_id_from_key("shapes_back")

    def begun(self: frames.Frame, *how: Any) -> Any:
        try:
            return drawn(self, *how)
        finally:
            state._compact_state()
            state._new_widget_state.set_from_value(control, "pass")  # as the browser says

    monkeypatch.setattr(frames.Frame, "_drawn", begun)
    assert frame.at(100)["whole"]


def test_the_living_map_at_another_step_is_the_page_s_there() -> None:
    page = opened("app.py", model=MODEL)
    (course,) = [data["course"] for data in sent(page) if isinstance(data, dict) and "course" in data]
    frame, before = frame_of(page), held(page)
    assert course["frames"] == frame.token
    for step in (course["steps"][0], course["steps"][12]):
        drawn = frame.at(step)
        assert held(page) == before, "the session is the tab's"
        page.session_state["step_shown"] = Shown(MODEL, step, moved=True)
        (there,) = [data for data in sent(ran(page)) if isinstance(data, dict) and "course" in data]
        assert drawn["whole"] and drawn["parts"].keys() == {"living_map"}
        part = json.loads(json.dumps(drawn["parts"]["living_map"]))
        assert {**part, "course": {**part["course"], "frames": frame.token}} == there
        page.session_state["step_shown"] = Shown(MODEL, NEWEST, moved=True)
        frame, before = frame_of(ran(page)), held(page)
    with pytest.raises(frames.PageNeededError):
        frame.at(7)  # no snapshot


def made_up() -> None:
    """A view whose figure is always another, and whose caption is from step 5 on."""
    import streamlit as st

    from ui import explain, frames
    from ui.page_frame import boundary
    from ui.players.component import mounted

    def draw(step: int) -> None:
        with boundary():
            if step == 7:
                raise ZeroDivisionError
        if step == 9:
            raise ZeroDivisionError
        if step == 8:
            frames.page_needed()
        st.session_state["drawn"] = step
        st.query_params["drawn"] = str(step)
        mounted("tokens")(key="figure", data={"step": step, "slid": st.slider("slide", 0, 9, 4, key="slid")})
        explain.answer(f"It is **{step}** <b>.")
        st.caption("late" if step >= 5 else "early")

    draw(1)
    st.session_state["token"] = frames.offer(draw, 1)
    assert not frames.drawing()


def asked(page: AppTest, step: str, **cookies: str) -> Any:
    client = TestClient(Starlette(routes=live.routes()), cookies=cookies)
    return client.get(f"/live/frame/{page.session_state['token']}", params={"step": step})


def test_the_route_answers_with_the_figure_and_says_whether_the_rest_is_the_same() -> None:
    page = opened(made_up)
    assert asked(page, "2").json() == {
        "whole": True,
        "parts": {"figure": {"step": 2, "slid": 4}},
        "answer": "<p>It is <strong>2</strong> &lt;b&gt;.</p>\n",
    }
    late = asked(page, "6").json()
    assert not late["whole"] and late["parts"] == {"figure": {"step": 6, "slid": 4}}
    assert page.session_state["drawn"] == 1 and page.query_params["drawn"] == "1"
    page.slider(key="slid").set_value(7).run()
    assert asked(page, "2").json()["parts"] == {"figure": {"step": 2, "slid": 7}}


def test_what_was_drawn_with_other_controls_says_nothing_of_the_page(draws: list[int]) -> None:
    page = opened(made_up)
    for slid, drawn in ((4, [2]), (7, [2, 1]), (7, [2])):
        assert asked(page, "1").json()["whole"]
        page.slider(key="slid").set_value(slid).run()  # the page is at step 1
        draws.clear()
        assert asked(page, "2").json()["whole"] and draws == drawn


def test_where_the_page_has_to_be_drawn_the_route_says_so_and_strangers_get_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_frame, "failed", FAILED)
    page = opened(made_up)
    assert asked(page, "7").status_code == 204, "the page says what is wrong"
    assert asked(page, "8").status_code == 204
    assert asked(page, "9").status_code == 204
    with frame_of(page)._lock:  # one is on its way
        assert asked(page, "2").status_code == 204
    assert not frames.drawing()
    for step in ("", "x", "1.5", "--1", "9" * 13):
        assert asked(page, step).status_code == 404
    frame_of(page).by_cookie = True
    assert asked(page, "2").status_code == 403
    assert asked(page, "2", **{identity.COOKIE: identity.new_cookie()}).status_code == 403
    page.session_state["token"] = "another"
    assert asked(page, "2").status_code == 404


def test_on_another_streamlit_nothing_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "holds", lambda name: False)
    assert opened(made_up).session_state["token"] == ""
