"""You are here: the parts that a page is about are lit, and a click leads to one of them on Home's map."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from engine.presets import PRESETS
from pages.start.home.map_text import describe
from ui import site, terms
from ui.figures.theme import PART_COLOURS
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


@pytest.mark.parametrize("entry", DRAWN, ids=lambda entry: entry.url)
def test_the_parts_of_a_page_are_lit(entry: site.Entry) -> None:
    drawn = _Boxes(strip(entry))
    assert drawn.states == ["lit" if part in entry.shown else "dim" for part in BOXES]
    place = drawn.link["data-part"]
    assert place in entry.shown and place in PARTS and drawn.link["href"] == f"./?part={place}"
    assert str(drawn.link["aria-label"]).startswith("You are here on the map: ")


def test_every_page_but_home_is_on_the_map() -> None:
    assert {entry.url for entry in site.ENTRIES} - {entry.url for entry in DRAWN} == {"", "courses"}


def test_attention_is_attention_and_the_stream_is_the_road() -> None:
    attention, residual = (site.entry_of(url) for url in ("attention", "residual"))
    assert attention is not None and residual is not None
    drawn = _Boxes(strip(attention))
    assert drawn.link["data-part"] == "attention" and drawn.states.count("lit") == 1
    assert "residual stream" in strip(residual) and "road-lit" in strip(residual)
    assert "road-lit" not in strip(attention)


def test_no_box_leaves_the_strip_or_lies_on_another() -> None:
    edges = [(left, left + width) for (left, _, width, _), _, _ in BOXES.values()]
    assert edges == sorted(edges) and edges[-1][1] <= WIDTH
    assert all(end <= start for (_, end), (start, _) in pairwise(edges))


def test_colours_are_the_themes() -> None:
    colours = re.findall(r"light-dark\((#\w{6}), (#\w{6})\)", strip(DRAWN[0]))
    assert set(colours) <= set(PART_COLOURS.values())


def test_a_click_leads_to_the_part_on_home(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked:
        opened, part = None, "attention"

    gone: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(terms, "mounted", lambda *_, **__: lambda **___: Asked)
    monkeypatch.setattr(terms.st, "switch_page", lambda path, query_params: gone.append((path, query_params)))
    terms.draw_terms()
    assert gone == [("pages/start/home/page.py", {"part": "attention"})]
