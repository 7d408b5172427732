"""Views that show one of several parts, each with a figure, a question and words of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ui import widgets
from ui.model_needs import Need
from ui.page_frame import Ask, Code, View, Words


@dataclass(frozen=True)
class Part:
    """A part of a view. `draw` gets what the view gets."""

    title: str
    draw: Callable[..., object]
    words: Words
    code: Code
    question: str


def view_of_parts(
    id: str,
    title: str,
    key: str,
    parts: Mapping[str, Part],
    takes: tuple[Need, ...] = (),
    best: tuple[str, ...] = (),
) -> View:
    """Returns a view that draws the part that `key` holds, below the buttons that choose one. Where it
    `takes` a model, its parts get the subject of the bar.
    """
    titles, first = {name: part.title for name, part in parts.items()}, next(iter(parts))

    def now(*_: Any) -> Part:
        return parts[widgets.settled(titles, key)]

    def draw(*about: Any) -> None:
        parts[widgets.select("What is drawn", titles, key, hidden=True, wrap=True)].draw(*about)

    return View(
        id,
        title,
        draw,
        lambda *_: now().words,
        lambda *_: now().code,
        bool(takes),
        question=lambda *_: now().question,
        takes=takes,
        best=best,
        asks=tuple(
            Ask(part.question, part.words, () if name == first else ((key, name),))
            for name, part in parts.items()
        ),
    )
