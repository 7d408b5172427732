"""Links that nobody would write, by their values and by their names, the same every time: no view answers with a
trace, or a fault of ours.

And links that somebody did write: each name in one of a course or of docs/teaching.md is read by the view it
leads to.
"""

import random
from collections import defaultdict
from functools import cache
from typing import NamedTuple

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.addresses import links, listening
from tests.pages.rooms import views
from ui.models import FIRST_MODEL
from ui.site import ROOT, built

pytestmark = pytest.mark.usefixtures("learns_shortly")
LINKS = 1  # to each view: more of them with other seeds is how faults are looked for by hand
ODD = (
    "", "-1", "0", "1e400", "nan", "9" * 400, "99999999", "-5", "0.5", "1e-300", "true", "None", "null", "[]",
    "../../etc/passwd", "<script>alert(1)</script>", "'; drop table runs", "%00", "\u202e\u0000", "💥" * 50,
    "ä" * 3000, "classic", "fast", "run:abc", "pretrained:../../x", "task:copy", "9,9", "1.1", "a_b_c",
)  # fmt: skip
ODD_NAMES = (
    "", " ", "$$ID", "$$ID-abc-None", "$$ID-abc-text", "$$WIDGET_ID-1", "$$STREAMLIT_INTERNAL_KEY_x", "__class__",
    "\0", "\u202e", "💥" * 50, "x" * 5000, "a b&c=d", "[]", "../..", "embed", "embed_options", "Text",
)  # fmt: skip
ALWAYS = ("model", "text", "run", "step", "race")
# what these measure of a model takes seconds with the real one, and is read from the same names
MEASURED = ("patching", "sinks", "steering", "quantisation", "finetune")
HIDE = 0.25  # the chance of each of ALWAYS: a view of no model, or of no text, has nothing else to fail with


class Place(NamedTuple):
    """A view of a page, or a page without any; `key` names the view in its address."""

    file: str
    key: str = ""
    view: str = ""


def places(url: str, file: str) -> list[Place]:
    key, ids = views(url)
    return [Place(file, key, view) for view in ids] or [Place(file)]


PAGES = {entry.url: places(entry.url, entry.path) for entry in built()}
# around every page, Home where none is chosen; what a scene is called is read beside a course alone
ROUTER = Place("app.py", "course", "built-live")
ROOM = Place("pages/stage/room/page.py")
PLACES = [ROUTER, Place("app.py"), ROOM, *(place for page in PAGES.values() for place in page)]


def shown(place: Place, **asked: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / place.file), default_timeout=120)
    page.query_params.update(asked | ({place.key: place.view} if place.view else {}))
    return page.run()


@cache
def names(place: Place) -> frozenset[str]:
    with listening() as heard:
        page = shown(place, **small(place))
    assert not page.exception, page.exception[0].message
    kept = page.query_params if place.file == ROUTER.file else page.session_state
    assert not place.view or place.view in kept[place.key], "another view is shown"
    return frozenset(heard)


def small(place: Place) -> dict[str, str]:
    return {"model": FIRST_MODEL} if place.view in MEASURED else {}


def link(place: Place, n: int) -> dict[str, str]:
    chance = random.Random(f"{place} {n}")
    odd = sorted(names(place) - {place.key, *ALWAYS})
    odd += [name for name in ALWAYS if chance.random() < HIDE]
    return small(place) | {name: chance.choice(ODD) for name in odd}


def name_of(place: Place) -> str:
    return f"{place.file} {place.view}".strip()


def foul(page: AppTest) -> list[str]:
    """What no link may lead to."""
    told = [str(one.value) for one in (*page.error, *page.warning, *page.info, *page.markdown)]
    wrong = ("the fault is ours", str(ROOT), "Traceback")
    return [str(one.message) for one in page.exception] + [
        said for said in told if any(each in said for each in wrong)
    ]


@pytest.mark.parametrize("place", PLACES, ids=name_of)
def test_no_link_leads_to_a_trace(place: Place) -> None:
    for n in range(LINKS):
        asked = link(place, n)
        assert foul(shown(place, **asked)) == [], asked


@pytest.mark.parametrize("value", ["x", "inf", ["inf", "1"], ["1", "nan"]], ids=str)
def test_no_name_leads_to_a_trace(value: str | list[str]) -> None:
    wrong = {name: foul(shown(ROUTER, **{ROUTER.key: "", name: value})) for name in ODD_NAMES}
    assert {name: said for name, said in wrong.items() if said} == {}


@pytest.mark.parametrize("place", [ROOM, *(page[0] for page in PAGES.values())], ids=name_of)
def test_no_name_that_the_app_keeps_for_itself_leads_to_a_trace(place: Place) -> None:
    """Each is twice in the link: beside the odd ones, all that the session of this page holds."""
    chance = random.Random(f"{place} names")
    own = {str(name) for name in shown(place).session_state._state.filtered_state} - {place.key, "model"}
    asked = {name: chance.choices(ODD, k=2) for name in sorted({*ODD_NAMES, *own})}
    assert foul(shown(place, **asked)) == [], asked


PARTS: dict[Place, set[str]] = defaultdict(set)  # what parts of a view read that links have named


def place_of(page: str, query: dict[str, str]) -> Place:
    """The view that a link leads to."""
    key = PAGES[page][0].key
    return next(place for place in PAGES[page] if query.get(key, place.view) == place.view)


def unread(place: Place, query: dict[str, str]) -> set[str]:
    """What a link names and its view does not read, neither as it opens nor in the part that the link names."""
    left = query.keys() - names(place) - names(ROUTER)
    if left and not left <= PARTS[place]:
        with listening() as heard:
            shown(place, **query)
        PARTS[place] |= heard
    return left - PARTS[place]


@pytest.mark.parametrize("part", range(3))
def test_every_link_that_we_give_names_what_is_read(part: int) -> None:
    places = {(page, query): place_of(page, dict(query)) for page, query in links()}
    assert {"exercises", "bugs", "", "train"} <= {page for page, _ in places}, "links are not found"
    assert any("course" in dict(query) for _, query in places), "those of docs/teaching.md are not found"
    near = PLACES[part::3]
    found = {link: unread(place, dict(link[1])) for link, place in places.items() if place in near}
    assert {link: names for link, names in found.items() if names} == {}
