"""You are here: a strip of the Transformer's map in which the parts that a page is about are lit."""

from __future__ import annotations

from html import escape

import streamlit as st

from ui.figures.theme import PART_COLOURS
from ui.site import Entry

WIDTH = 152  # pixels
# part of the map -> (left, top, width, height) of its box, the part that gives its colour, its name
BOXES: dict[str, tuple[tuple[int, int, int, int], str, str]] = {
    "tokens": ((2, 8, 12, 12), "embedding", "tokens"),
    "embedding": ((18, 5, 14, 18), "embedding", "embedding"),
    "position": ((36, 8, 12, 12), "position", "position"),
    "attention": ((58, 5, 18, 18), "attention", "attention"),
    "feedforward": ((80, 5, 18, 18), "feedforward", "feed-forward network"),
    "unembedding": ((110, 5, 14, 18), "output", "unembedding"),
    "softmax": ((128, 8, 22, 12), "output", "softmax and sampling"),
}
STREAM = "residual stream"
_FRAME = (53, 1, 50, 26)  # the block
_ROAD = (14, 12, 114, 4)  # the stream


def draw_here(entry: Entry) -> None:
    """Draws the strip where the entry shows a part of the map; a click leads to that part on Home."""
    if entry.shown:
        with st.container(key="here", width=WIDTH):
            st.html(strip(entry))


def strip(entry: Entry) -> str:
    """Returns the strip as HTML: boxes in a link, since Streamlit takes drawings (SVG) out of it. The link
    begins at the app's root, one level above any page, and `ui.glossary_panel` follows it without loading
    the app anew.
    """
    lit = [part for part in BOXES if part in entry.shown]
    on_the_road = [part for part in entry.shown if part.startswith("sum_")]
    names = [BOXES[part][2] for part in lit] + ([STREAM] if on_the_road else [])
    place = (lit if len(lit) == 1 else on_the_road or lit)[0]
    text = f"You are here on the map: {'all of it' if len(lit) == len(BOXES) else ', '.join(names)}"
    road = _span("road-lit" if on_the_road else "road", _ROAD, "residual")
    boxes = "".join(_box(part, part in lit) for part in BOXES)
    return (
        f'<a class="gf-strip" href="./?part={place}" target="_self" data-part="{place}"'
        f' aria-label="{escape(text)}" title="{escape(text)}">'
        f"{road}{_span('frame', _FRAME, 'residual')}{boxes}</a>"
    )


def _box(part: str, lit: bool) -> str:
    place, colour, _ = BOXES[part]
    return _span("lit" if lit else "dim", place, colour)


def _span(kind: str, place: tuple[int, int, int, int], colour: str) -> str:
    """One box, in its part's colour on a light and on a dark page: the browser chooses."""
    light, dark = PART_COLOURS[colour]
    sides = zip(("left", "top", "width", "height"), place, strict=True)
    where = "; ".join(f"{side}: {pixels}px" for side, pixels in sides)
    return f'<span class="{kind}" style="{where}; --part: light-dark({light}, {dark})"></span>'
