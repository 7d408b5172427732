"""Every course that ships is played against the real pages: links, parameters, and what is pointed at."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.pretrained import sources
from engine.service.rooms import Rooms
from pages.start.courses import words
from ui.players import sampler
from ui.tour import bar
from ui.tour.courses import Scene, shelf

ROOT = Path(__file__).parents[3]
COURSES = shelf().courses
SCENES = {
    f"{scene.page}?{'&'.join('='.join(pair) for pair in scene.query)}#{scene.point}": scene
    for course in COURSES.values()
    for scene in course.scenes
}


def drawn(node) -> str:
    """All that was sent to the browser."""
    said = str(getattr(node, "proto", "") or "")
    return said + "".join(drawn(child) for child in getattr(node, "children", {}).values())


def sent(name: str, page: AppTest) -> str:
    """A number that a component got under this name. Raises KeyError where none did."""
    found = re.search(rf"(?<![a-z_]){name}\W+([0-9.]+)", drawn(page._tree))
    if found is None:
        raise KeyError(name)
    return found[1]


# What no control of its name holds: where it is seen once the page has taken it, and why.
ELSEWHERE: dict[str, Callable[[AppTest], object]] = {
    # the control is `subject_model`, one for all pages
    "model": lambda page: page.session_state["kept_model"],
    # the walk moves in the browser, not by a control
    "shapes_step": lambda page: page.session_state["shapes_traced"][2],
    # of the sampler, which has no key for each: what was sent to it
    **{f"sampling_{name}": partial(sent, name) for name in sampler.NAMES},
}


def held(name: str, page: AppTest) -> str | None:
    """What the page took from its link for this name; None where it has no such thing. That the link says it is
    no sign: the test wrote it there.
    """
    try:
        return str(ELSEWHERE[name](page) if name in ELSEWHERE else page.session_state[name])
    except KeyError:
        return None


pytestmark = pytest.mark.usefixtures("manager")


@pytest.mark.parametrize("name", COURSES)
def test_the_room_may_be_asked_every_question_of_a_course(name: str) -> None:
    for scene in COURSES[name].scenes:
        if asks := scene.question:
            assert Rooms().ask("me", asks.asked, list(asks.answers)).answers == tuple(asks.answers)


def there(point: str, page: AppTest) -> bool:
    return bool(re.search(rf"(?<![a-z0-9_]){re.escape(point)}(?![a-z0-9_])", drawn(page._tree)))


def wrong(scene: Scene, tries: int = 40) -> list[str]:
    """What the real page does not know of a scene."""
    name = scene.model.removeprefix("pretrained-")
    if name != scene.model and name not in sources.available():
        pytest.skip(f"{name} is not installed")
    page = AppTest.from_file(str(ROOT / scene.path), default_timeout=90)
    page.session_state["owner"] = "this-browser"
    for name, value in scene.query:
        page.query_params[name] = value
    page.run()
    for _ in range(tries):  # what takes long is measured in a thread, and the page asks for it again
        if there(scene.point, page):
            break
        time.sleep(0.5)
        page.run()
    said = [f"raises {one.value}" for one in page.exception] + [f"says {one.value}" for one in page.error]
    for name, value in scene.query:
        taken = held(name, page)
        if taken is None:
            said.append(f"the page has no {name}")
        elif taken != value:
            said.append(f"{name} is {taken}, not {value}")
    if not there(scene.point, page):
        said.append(f"nothing there is called {scene.point}")
    return said


@pytest.mark.parametrize("link", SCENES)
def test_a_scene_shows_what_its_link_and_its_outline_name(link):
    assert wrong(SCENES[link]) == []


def test_the_page_lists_every_course_and_starts_one(monkeypatch):
    page = AppTest.from_file(str(ROOT / "pages/start/courses/page.py"), default_timeout=60).run()
    assert not page.exception
    assert [one.value for one in page.subheader] == [course.title for course in COURSES.values()]
    ten = COURSES["ten-minutes"]
    assert any(f"{ten.minutes} minutes · {len(ten.scenes)} scenes" in one.value for one in page.markdown)
    minutes = [course.minutes for course in COURSES.values()]
    assert words.answer([10, 40, 30]).startswith("**3 courses, 10 to 40 minutes.**")
    assert words.answer([10]).startswith("**One course, 10 minutes.**")
    assert any(
        f"{len(COURSES)} courses, {min(minutes)} to {max(minutes)} minutes" in one.value
        for one in page.markdown
    )
    started = []
    monkeypatch.setattr(bar, "start", started.append)
    page.button(key="start_ten-minutes").click().run()
    assert started == [ten]
