"""What a page shows after a walk to it is what its address shows, and what one left is what one finds on coming back.

Nothing is compared by eye: all that a page sends to the browser is compared, element by element, with what a fresh session
gets at the same address, and with what stood there when the page was left. `tests/browser/test_walks.py` has the same in a
real browser. The fast tier walks a few steps, others every day; `--exhaustive` walks all of them.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pytest

from tests.day import DAY
from tests.pages.browser_tab import Tab
from tests.pages.rooms import parts, views
from tests.pages.stage import StageManager
from tests.pages.test_controls_act import WIDGETS, others
from tests.pages.test_controls_act import offered as offered  # a fixture
from ui import map_strip, site
from ui.search.entries import addresses
from ui.text.glossary import terms
from ui.tour.bar import address_of
from ui.tour.courses import shelf

pytestmark = pytest.mark.usefixtures("manager")
SEEDS, STEPS, FEW = 10, 30, 8
CLASSIC = "shakespeare-classic"
COURSES = list(shelf().courses)
MODELS = (CLASSIC, "shakespeare-modern", "timelapse")
TEXTS = ("To be, or not", "ROMEO:\nO, she d", "hot and cold, hot and")
# What is no part of a view: a model from a file, what is begun (a run of its own follows), a box that only opens.
# A solution that is shown is no part of a link: whoever opens it has the exercise before him.
LEFT_ALONE = ("model_path", "text_example", "upload", "model_upload", "exercise_shown")


def differences(walked: dict[str, str], other: dict[str, str]) -> list[str]:
    names = [name for name in dict.fromkeys([*walked, *other]) if walked.get(name) != other.get(name)]
    return [
        f"  {name}: {walked.get(name, '-')[:300]!r}, not {other.get(name, '-')[:300]!r}" for name in names[:4]
    ]


def still(tab: Tab, tries: int = 400) -> Tab:
    """The tab, once nothing is measured any more."""
    for _ in range(tries):
        if not any(
            (one.key and one.key.startswith("live_job")) or unfinished(one) for one in tab.components()
        ):
            return tab
        time.sleep(0.5)
        tab.again()
    raise AssertionError(f"{tab.address} measures for ever")


def unfinished(one: Any) -> bool:
    """True for a map of which not all is known yet."""
    return one.proto.component_name.endswith("_livemap") and '"whole": false' in one.proto.json


class Walk:
    """A tab, what its steps were, and where they led to another screen than the address alone, or than was left."""

    def __init__(self, address: str = "courses") -> None:
        self.tab, self.steps, self.wrong = Tab(address), [f"open /{address}"], list[str]()
        self.left: dict[str, dict[str, str]] = {}  # page -> what it showed when it was left by the menu
        self.fresh: dict[str, dict[str, str]] = {}

    def step(self, name: str, go: Callable[[], object]) -> None:
        self.steps.append(name)
        go()
        still(self.tab)
        assert self.tab.app.title, f"{' > '.join(self.steps[-5:])}: an empty page"
        address = self.tab.address
        if address not in self.fresh:
            self.fresh[address] = still(Tab(address)).screen()
            if self.tab.screen() != self.fresh[address]:  # what has been measured by then is there at once
                self.fresh[address] = still(Tab(address)).screen()
        self._hold("reloaded", self.fresh[address])

    def menu(self, page: str) -> None:
        """Goes to a page by the menu; what it shows is held against what it showed when it was left."""
        self.left[self.tab.page] = self.tab.screen()
        self.step(f"menu {page}", lambda: self.tab.menu(page))
        if before := self.left.get(page):
            self._hold("left", before | {"address": self.tab.screen()["address"]})

    def _hold(self, what: str, other: dict[str, str]) -> None:
        if wrong := differences(self.tab.screen(), other):
            self.wrong.append(
                "\n".join([f"{' > '.join(self.steps[-5:])} ({self.tab.address}), {what}", *wrong])
            )

    def check(self) -> None:
        assert not self.wrong, f"day {DAY}, {len(self.wrong)} differ\n" + "\n".join(self.wrong)


# What one left ---------------------------------------------------------------------------------


def every_view() -> Iterator[str]:
    yield ""
    for entry in site.built():
        key, names = views(entry.url) if entry.url not in ("", "train", "courses") else ("", ())
        if entry.url and entry.url != "courses":
            yield from (f"{entry.url}?{key}={name}" for name in names) if names else (entry.url,)
            yield from parts(entry.url) if names else ()


def moves(
    tab: Tab, chance: random.Random, offered: dict[str, list[Any]]
) -> list[tuple[str, Callable[[], None]]]:
    """What a hand can do to the controls and figures of the page, each with a name."""
    found: list[tuple[str, Callable[[], None]]] = []
    for widget in (one for kind in (*WIDGETS, "text_input", "text_area") for one in tab.app.main.get(kind)):
        key = widget.key
        if not key or widget.disabled or key in LEFT_ALONE:
            continue
        if key == "subject_model":
            values: list[Any] = [model for model in MODELS if [model] != tab.query.get("model")]
        elif widget.type in ("text_input", "text_area"):
            values = [text for text in TEXTS if text != widget.value]
        elif widget.type == "selectbox" and key in offered:
            values = [value for value in offered[key] if value != widget.value]
        else:
            values = others(widget, offered)
        if values:
            value = chance.choice(values)
            found.append((f"{key} = {value!r}", lambda key=key, value=value: tab.set(key, value)))
    for one in tab.components():
        for name, value in told_by(one, chance):
            said = f"{one.key}.{name} = {value!r}"
            found.append((said, lambda key=one.key, name=name, value=value: tab.send(key, name, value)))
    return found


def told_by(one: Any, chance: random.Random) -> list[tuple[str, Any]]:
    """What a component of the page may tell: a token, sliders, a head, a step of a training or a player."""
    kind = one.proto.component_name.removeprefix("glassformer_")
    if kind not in (
        "tokens",
        "sampler",
        "headgrid",
        "scrubber",
        "cloud",
        "rope",
        "bpe",
        "threeways",
        "shapes",
    ):
        return []
    data = json.loads(one.proto.json or one.proto.bytes)
    match kind:
        case "tokens":
            return [("index", chance.randrange(len(data["tokens"])))]
        case "sampler":
            return [("settings", data["settings"] | {"temperature": chance.choice((0.25, 1.5)), "top_k": 7})]
        case "headgrid":
            return [("chosen", f"{chance.randrange(data['layers'])},{chance.randrange(data['heads'])}")]
        case "scrubber":
            return [("step", chance.choice(data["steps"]))]
        case "cloud":
            return [("turn", f"{chance.randrange(360)},{chance.randrange(90)}")]
        case "rope":
            return [("at", f"{data['home']}|{chance.randrange(data['most'])}-3-1")]
        case "bpe":
            return [("at", f"{chance.randrange(1, 9)},-1")]
        case "threeways":
            return [("clicked", {"text": data["text"], "places": [2, 5]})]
    return [("step", chance.randrange(9))]


def coming_back(place: str, offered: dict[str, list[Any]], most: int) -> list[str]:
    """Moves the controls of a view one at a time, `most` of them at the most, leaves, and comes back."""
    chance = random.Random(f"{DAY} {place}")
    wrong: list[str] = []
    query = "" if "model" in place or not place else ("&" if "?" in place else "?") + f"model={CLASSIC}"
    names = [name for name, _ in moves(still(Tab(place + query)), random.Random(place), offered)]
    for at in chance.sample(range(len(names)), min(most, len(names))):
        walk = Walk(place + query)
        name, move = moves(still(walk.tab), random.Random(place), offered)[at]
        page = walk.tab.page
        walk.step(name, move)
        walk.menu("tokens" if page != "tokens" else "positions")
        walk.menu(page)
        wrong += walk.wrong
    return wrong


VIEWS = list(every_view())
TODAY = random.Random(DAY).sample(VIEWS, 3)


@pytest.mark.parametrize("turn", range(len(TODAY)))
def test_what_a_view_showed_when_it_was_left_is_there_on_coming_back(
    turn: int, offered: dict[str, list[Any]]
) -> None:
    wrong = coming_back(TODAY[turn], offered, 1)
    assert not wrong, f"day {DAY}\n" + "\n".join(wrong)


def test_a_view_that_a_link_opened_with_another_model_than_its_best_keeps_it(
    offered: dict[str, list[Any]],
) -> None:
    assert not coming_back("positions?positions_view=rope", offered, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", VIEWS)
def test_so_is_every_control_of_every_view(place: str, offered: dict[str, list[Any]]) -> None:
    wrong = coming_back(place, offered, 100)
    assert not wrong, "\n".join(wrong)


# Courses ---------------------------------------------------------------------------------------


def through(course: str, first: int, last: int, offered: dict[str, list[Any]] | None = None) -> Walk:
    """Walks from one scene of a course to another and back. With `offered`, a control is moved at each."""
    whole, chance = shelf().courses[course], random.Random(f"{DAY} {course}")
    walk = Walk(address_of(whole, first))
    for at in (*range(first + 1, last + 1), *range(last - 1, first - 1, -1)):
        if offered is not None and (found := moves(walk.tab, chance, offered)):
            walk.step(*chance.choice(found))
        walk.step(f"scene {at + 1}", lambda at=at: walk.tab.visit(address_of(whole, at)))
    return walk


def test_some_scenes_of_a_course_show_what_their_addresses_do(offered: dict[str, list[Any]]) -> None:
    chance = random.Random(DAY)
    course = chance.choice([name for name in COURSES if "real" not in name])
    first = chance.randrange(len(shelf().courses[course].scenes) - 3)
    through(course, first, first + 3, offered).check()


@pytest.mark.exhaustive
@pytest.mark.parametrize("course", COURSES)
def test_every_scene_of_every_course_shows_what_its_address_does_forth_and_back(course: str) -> None:
    through(course, 0, len(shelf().courses[course].scenes) - 1).check()


@pytest.mark.exhaustive
@pytest.mark.parametrize("course", COURSES)
def test_so_it_does_where_a_control_was_moved_before(course: str, offered: dict[str, list[Any]]) -> None:
    through(course, 0, len(shelf().courses[course].scenes) - 1, offered).check()


def test_look_inside_leads_to_pages_that_show_the_run_and_back(manager: StageManager) -> None:
    walk = Walk("train")
    walk.tab.click("train")
    manager.change("run-0", status="finished")
    walk.tab.again()
    train = walk.tab.address
    inside = [link for link in walk.tab.links() if link[1].get("model") == "run-run-0"]
    pages = {page for page, _ in inside}
    assert "attention" in pages and "crossattention" not in pages, "a single stack has none"
    for page, query in random.Random(DAY).sample(inside, 2):
        walk.step(f"look inside {page}", partial(walk.tab.menu, page, **query))
        assert walk.tab.query["model"] == ["run-run-0"]
        walk.step("back", walk.tab.back)
        assert walk.tab.address == train
    walk.menu("crossattention")
    assert any("has no cross-attention" in one.value for one in walk.tab.app.caption)
    walk.check()


# Steps by chance -------------------------------------------------------------------------------


@cache
def found_by_search() -> list[str]:
    return sorted(address for address in addresses() if "course" not in address and "preset" not in address)


class Wanderer:
    """A visitor who does whatever a page offers."""

    def __init__(self, seed: int, offered: dict[str, list[Any]]) -> None:
        self.walk, self.offered = Walk(f"?model={CLASSIC}"), offered
        self.chance, self.course = random.Random(f"walk {seed}"), ("", 0)

    def steps(self, many: int) -> Walk:
        for _ in range(many):
            kinds: list[Callable[[], bool]] = [self.menu, self.menu, self.view, self.control, self.control]
            kinds += [self.link, self.search, self.term, self.strip, self.scene, self.back]
            while not self.chance.choice(kinds)():
                pass
        return self.walk

    def menu(self) -> bool:
        here = self.walk.tab.page
        self.walk.menu(self.chance.choice([entry.url for entry in site.built() if entry.url != here]))
        return True

    def view(self) -> bool:
        key, names = (
            views(self.walk.tab.page) if self.walk.tab.page not in ("", "train", "courses") else ("", ())
        )
        if not names:
            return False
        name = self.chance.choice(names)
        self.walk.step(f"view {name}", lambda: self.walk.tab.set(key, name))
        return True

    def control(self) -> bool:
        found = moves(self.walk.tab, self.chance, self.offered)
        if not found:
            return False
        name, move = self.chance.choice(found)
        self._goes(name, move)
        return True

    def link(self) -> bool:
        links = self.walk.tab.links()
        if not links:
            return False
        page, query = self.chance.choice(links)
        self._goes(f"link {page} {query}", lambda: self.walk.tab.menu(page, **query))
        return True

    def search(self) -> bool:
        address = self.chance.choice(found_by_search())
        self._goes(f"search {address}", lambda: self.walk.tab.send("search", "opened", address))
        return True

    def term(self) -> bool:
        term = self.chance.choice(sorted(terms()))
        self._goes(f"term {term}", lambda: self.walk.tab.send("terms", "opened", term))
        return True

    def strip(self) -> bool:
        part = self.chance.choice(list(map_strip.BOXES))
        self._goes(f"strip {part}", lambda: self.walk.tab.send("terms", "part", part))
        return True

    def scene(self) -> bool:
        name, at = self.course
        if not name or self.chance.random() < 0.3:
            name, at = (
                self.chance.choice([name for name in COURSES if "real" not in name and "after" not in name]),
                -1,
            )
        course = shelf().courses[name]
        at = min(max(at + self.chance.choice((1, 1, 1, -1)), 0), len(course.scenes) - 1)
        self.course = name, at
        self._goes(f"scene {name} {at + 1}", lambda: self.walk.tab.visit(address_of(course, at)))
        return True

    def back(self) -> bool:
        if len(self.walk.tab.history) < 2:
            return False
        self._goes("back", self.walk.tab.back)
        return True

    def _goes(self, name: str, go: Callable[[], object]) -> None:
        """A step after which pages may rightly show another model, text, or view than they did."""
        self.walk.step(name, go)
        self.walk.left.clear()


def test_a_few_steps_of_today_show_what_their_addresses_do(offered: dict[str, list[Any]]) -> None:
    Wanderer(DAY, offered).steps(FEW).check()


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(SEEDS))
def test_thirty_steps_by_chance_show_what_their_addresses_do(
    seed: int, offered: dict[str, list[Any]]
) -> None:
    Wanderer(seed, offered).steps(STEPS).check()
