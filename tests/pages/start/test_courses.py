"""Every course that ships is played against the real pages, and what a scene says in numbers is so."""

import json
import re
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.recording import record
from pages.start.courses import courses
from runs.rooms import Rooms
from studies.costs.model_choices import OFFERED
from studies.residual.lens import logit_lens
from studies.tasks.rungs import LADDER
from studies.weights.pretrained import sources
from studies.weights.pretrained.library import load as load_real
from tests.pages.real_model import carried
from tests.pages.start.scene_claims import marks, missing
from tests.pages.start.scene_screen import read
from ui.players import sampler
from ui.site import ROOT
from ui.tour import bar
from ui.tour.courses import FOLDER, Scene, shelf

pytestmark = pytest.mark.usefixtures("manager")
COURSES = shelf().courses
MARKS = {path.stem.partition("-")[2]: marks(path) for path in FOLDER.glob("*.yaml")}
SCENES: dict[str, list[tuple[str, Scene, tuple[str, ...]]]] = {}  # by their links: each is opened once
for name, course in COURSES.items():
    for number, (each, phrases) in enumerate(zip(course.scenes, MARKS[name], strict=True), 1):
        link = f"{each.page}?{'&'.join('='.join(pair) for pair in each.query)}"
        SCENES.setdefault(link, []).append((f"{name} {number}", each, phrases))


def all_sent(node) -> str:
    """All that was sent to the browser."""
    said = str(getattr(node, "proto", "") or "")
    return said + "".join(all_sent(child) for child in getattr(node, "children", {}).values())


def sent(name: str, page: AppTest) -> str:
    """A number that a component got under this name. Raises KeyError where none did."""
    found = re.search(rf"(?<![a-z_]){name}\W+([0-9.]+)", all_sent(page._tree))
    if found is None:
        raise KeyError(name)
    return found[1]


# What no control of its name holds: where it is seen once the page has taken it, and why.
ELSEWHERE: dict[str, Callable[[AppTest], object]] = {
    # the control is `subject_model`, one for all pages
    "model": lambda page: page.session_state["kept_model"],
    # the walk moves in the browser, not by a control
    "shapes_step": lambda page: page.session_state["shapes_traced"][1],
    # of the sampler, which has no key for each: what was sent to it
    **{f"sampling_{name}": partial(sent, name) for name in sampler.NAMES},
}


def held(name: str, page: AppTest) -> str | None:
    """What the page took from its link for this name; None where it has no such thing. That the link says it is
    no sign: the test wrote it there.
    """
    try:
        found = ELSEWHERE[name](page) if name in ELSEWHERE else page.session_state[name]
        return str(found).lower() if isinstance(found, bool) else str(found)
    except KeyError:
        return None


@pytest.mark.parametrize("name", COURSES)
def test_the_room_may_be_asked_every_question_of_a_course(name: str) -> None:
    for scene in COURSES[name].scenes:
        if asks := scene.question:
            assert Rooms().ask("me", asks.text, list(asks.answers)).answers == tuple(asks.answers)


def there(point: str, page: AppTest) -> bool:
    return bool(re.search(rf"(?<![a-z0-9_]){re.escape(point)}(?![a-z0-9_])", all_sent(page._tree)))


def opened(scene: Scene, points: Collection[str], tries: int = 40) -> AppTest:
    """The page of a scene, as soon as what it points at is there."""
    name = scene.model.removeprefix("pretrained-")
    if name != scene.model and name not in sources.available():
        pytest.skip(f"{name} is not installed")
    page = AppTest.from_file(str(ROOT / scene.path), default_timeout=90)
    page.session_state["owner"] = "this-browser"
    for name, value in scene.query:
        page.query_params[name] = value
    page.run()
    for _ in range(tries):  # what takes long is measured in a thread, and the page asks for it again
        if all(there(point, page) for point in points):
            break
        time.sleep(0.5)
        page.run()
    return page


def wrong(scene: Scene, page: AppTest) -> list[str]:
    """What the real page does not know of a scene."""
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


MEASURED = {  # for half a minute of a slow processor, the first by SmolLM2
    "after?after_view=context&context_learner=words",
    "after?after_view=aloud&aloud_mode=attempts",
}


def links() -> Iterator[Any]:
    for link in SCENES:
        yield pytest.param(link, marks=[pytest.mark.exhaustive, carried] if link in MEASURED else [])


@pytest.mark.parametrize("link", list(links()))
def test_a_scene_shows_what_its_link_its_outline_and_its_words_name(link, drawn):
    """Numbers, quotations and names: tests/pages/start/scene_claims.py has the rules."""
    scenes = SCENES[link]
    page = opened(scenes[0][1], {scene.point for _, scene, _ in scenes})
    screen = read(page, drawn)
    faults = {where: wrong(scene, page) + missing(scene, phrases, screen) for where, scene, phrases in scenes}
    assert {where: said for where, said in faults.items() if said} == {}


def test_the_page_lists_every_course_and_starts_one(monkeypatch):
    page = AppTest.from_file(str(ROOT / "pages/start/courses/page.py"), default_timeout=60).run()
    assert not page.exception
    assert [one.value for one in page.subheader] == [course.title for course in COURSES.values()]
    ten = COURSES["ten-minutes"]
    assert any(f"{ten.minutes} minutes · {len(ten.scenes)} scenes" in one.value for one in page.markdown)
    minutes = [course.minutes for course in COURSES.values()]
    assert courses.answer([10, 40, 30]).startswith("**3 courses, 10 to 40 minutes.**")
    assert courses.answer([10]).startswith("**One course, 10 minutes.**")
    assert courses.answer([1]).startswith("**One course, 1 minute.**")
    assert (
        courses.TEXT("facts", minutes=1, scenes=1, audience="my class") == "1 minute · 1 scene · for my class"
    )
    assert any(
        f"{len(COURSES)} courses, {min(minutes)} to {max(minutes)} minutes" in one.value
        for one in page.markdown
    )
    started = []
    monkeypatch.setattr(bar, "start", started.append)
    page.button(key="start_ten-minutes").click().run()
    assert started == [ten]


@pytest.mark.parametrize(
    ("sent", "gone"),
    [(4, 4), (0, 0), (9, 9), (10, None), (-1, None), ("4", None), (True, None), (4.0, None), (None, None)],
)
def test_a_course_goes_on_at_a_scene_that_it_has(sent, gone, monkeypatch):
    started = []
    monkeypatch.setattr(bar, "start", lambda course, at=0: started.append((course.id, at)))
    monkeypatch.setattr(courses, "mounted", lambda *_, **__: lambda **_: SimpleNamespace(scene=sent))
    courses._mark(COURSES["ten-minutes"])
    assert started == ([] if gone is None else [("ten-minutes", gone)])


KEPT = ROOT / "checkpoints"


def scene(course: str, title: str) -> Scene:
    (found,) = [one for one in shelf().courses[course].scenes if one.title == title]
    return found


def says(course: str, title: str, *words: str) -> None:
    text = scene(course, title).text.lower()
    assert [word for word in words if word not in text] == []


def test_what_there_is_is_counted() -> None:
    config = json.loads((KEPT / "shakespeare-classic" / "config.json").read_text())
    config = config.get("model", config)
    says("ten-minutes", "Each number becomes a vector", f"that row, {config['d_model']} numbers")
    assert config["n_layers"] == 4
    says("ten-minutes", "Four blocks, one better guess", "a stack of four blocks")
    assert len(LADDER) == 20
    says("attention-from-nothing", "A bigram model", "twenty models")
    moments = len(list((KEPT / "timelapse").glob("step-*.safetensors")))
    for course in ("built-live", "the-chapter"):
        assert [
            each for each in shelf().courses[course].scenes if f"One run, {moments} snapshots" in each.title
        ]
    assert len(OFFERED) == 8
    says("built-live", "What has changed since 2017", "eight choices")
    says("the-chapter", "13.10 Real models", "eight choices")
    says("the-chapter", "13.7 Weight tying", f"{50_257 * 768 / 1e6:.1f} million")


def right(course: str, title: str) -> str:
    asked = scene(course, title).question
    assert asked is not None
    return asked.answers[asked.right].lower()


def test_the_answers_that_count_as_right_are_what_was_measured() -> None:
    loss = {
        run["name"]: run["looks"][-1]["validation_loss"]
        for name in ("bugs/no_mask", "races/ladder")
        for run in json.loads((KEPT / f"{name}.json").read_text())["runs"]
    }
    assert loss["with the bug"] < loss["healthy"] / 10
    assert right("built-live", "The mask") == "it falls far below the healthy model's loss"
    kept = json.loads((KEPT / "residuals.json").read_text())
    (pair,) = [one for one in kept["pairs"] if (one["depth"], one["norm"]) == (8, "layernorm")]
    without, after = pair["replaced"]["losses"][-1], kept["train"]["steps"]
    assert 0 < pair["counting"] - without < 0.1 < 0.5 < without - pair["added"]["losses"][-1] and after == 300
    asked = scene("built-live", "The residual highway").question
    assert asked is not None and asked.text.startswith("Eight blocks") and f"{after} steps" in asked.text
    assert right("built-live", "The residual highway") == "little more than how often each character occurs"
    assert loss["Average"] > loss["Bigram"]
    says("attention-from-nothing", "An average is worse", "worse than the table's")
    race = json.loads((KEPT / "races" / "norms-12.json").read_text())
    stalled = {
        run["name"] for run in (*race["runs"], *race["repeats"]) if run["looks"][-1]["validation_loss"] > 3.2
    }
    assert stalled == {"post-norm"} and len(race["repeats"]) == 4 * 4
    asked = next(each.question for each in COURSES["the-chapter"].scenes if "Pre-norm" in each.title)
    assert asked is not None and "stalls near the unigram loss" in asked.answers[asked.right]


def test_a_fact_rises_at_the_very_end_of_the_real_model() -> None:
    if "smollm2-135m" not in sources.available():
        pytest.skip("SmolLM2 is not installed")
    found = load_real("smollm2-135m", 200_000_000)
    ids = found.tokenizer.encode("The capital of France is")
    guess = logit_lens(found.model, record(found.model, ids)).guess[:, -1]
    (paris,) = found.tokenizer.encode(" Paris")
    assert len(guess) == 31 and guess[-1] == paris and paris not in guess[:-1]
    assert right("inside-a-real-model", "Recalling a fact") == "at the very end"
