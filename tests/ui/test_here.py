"""You are here: the parts that a page is about are lit, and a click leads to one of them on Home's map."""

from html.parser import HTMLParser
from itertools import pairwise
from types import SimpleNamespace

import pytest

from engine.presets import PRESETS
from pages.start.home.map_text import describe
from ui import site, terms
from ui.here import BOXES, WIDTH, strip

PARTS = set(describe(PRESETS["classic"].model.validate().resolved()))
DRAWN = [entry for entry in site.ENTRIES if entry.shown]


class _Boxes(HTMLParser):
    """What a strip says of itself: how many boxes of each class, and its link."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.states: list[str] = []
        self.link: dict[str, str | None] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "a":
            self.link = found
        if tag == "span" and found["class"] in ("lit", "dim"):
            self.states.append(str(found["class"]))


def test_the_parts_of_a_page_are_lit() -> None:
    assert {entry.url for entry in site.ENTRIES} - {entry.url for entry in DRAWN} == {"", "courses"}
    for entry in DRAWN:
        drawn = _Boxes(strip(entry))
        assert drawn.states == ["lit" if part in entry.shown else "dim" for part in BOXES], entry.url
        place = drawn.link["data-part"]
        assert place in entry.shown and place in PARTS and drawn.link["href"] == f"./?part={place}"
        assert str(drawn.link["aria-label"]).startswith("You are here on the map: ")
        assert ("road-lit" in strip(entry)) == any(part.startswith("sum_") for part in entry.shown), entry.url


def test_no_box_leaves_the_strip_or_lies_on_another() -> None:
    edges = [(left, left + width) for (left, _, width, _), _, _ in BOXES.values()]
    assert edges == sorted(edges) and edges[-1][1] <= WIDTH
    assert all(end <= start for (_, end), (start, _) in pairwise(edges))


@pytest.mark.parametrize(
    ("opened", "part", "path", "query"),
    [
        ("rope", None, "pages/input/positions/page.py", {"positions_view": "rope"}),
        (None, "attention", "pages/start/home/page.py", {"part": "attention"}),
        ("no such term", None, None, None),
    ],
)
def test_a_click_on_a_term_or_a_part_leads_to_its_page(
    monkeypatch: pytest.MonkeyPatch,
    opened: str | None,
    part: str | None,
    path: str | None,
    query: dict | None,
) -> None:
    gone: list[tuple[str, dict[str, str]]] = []
    asked = SimpleNamespace(opened=opened, part=part)
    monkeypatch.setattr(terms, "mounted", lambda *_, **__: lambda **___: asked)
    monkeypatch.setattr(terms.st, "switch_page", lambda path, query_params: gone.append((path, query_params)))
    terms.draw_terms()
    assert gone == ([(path, query)] if path else [])
