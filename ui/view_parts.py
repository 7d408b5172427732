"""Views that show one of several parts, each with a figure, a question and words of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ui import widgets
from ui.model_needs import Need
from ui.page_frame import Ask, Code, View, Words


@dataclass(frozen=True)
class Part:
    """A part of a view. `draw` gets what the view gets; before that, where the buttons that choose a part
    have a label, the container of their line, for controls of its own. A `question` may depend on that, too;
    `listed` is then the question in lists.
    """

    title: str
    draw: Callable[..., object]
    words: Words
    code: Code
    question: str | Callable[..., str]
    listed: str = ""


def view_of_parts(
    id: str,
    title: str,
    key: str,
    parts: Mapping[str, Part],
    *,
    takes: tuple[Need, ...] = (),
    best: tuple[str, ...] = (),
    label: str = "",
    hint: str | None = None,
    line: Sequence[float] = (),
) -> View:
    """Returns a view that draws the part that `key` holds, below the buttons that choose one. Where it
    `takes` a model, its parts get the subject of the bar. With a `label`, a part's own controls stand beside
    the buttons, in columns where `line` gives the widths of both.
    """
    titles = {name: part.title for name, part in parts.items()}

    def now(*_: Any) -> Part:
        return parts[widgets.settled(titles, key)]

    def question_now(*about: Any) -> str:
        question = now().question
        return question if isinstance(question, str) else question(*about)

    def draw(*about: Any) -> None:
        if not label:
            parts[widgets.select("What is drawn", titles, key, hidden=True, wrap=True)].draw(*about)
            return
        style: Any = {"gap": "small", "vertical_alignment": "bottom"}
        buttons, beside = st.columns(line, **style) if line else [st.container(horizontal=True, **style)] * 2
        parts[widgets.select(label, titles, key, container=buttons, hint=hint)].draw(beside, *about)

    return View(
        id,
        title,
        draw,
        lambda *_: now().words,
        lambda *_: now().code,
        bool(takes),
        question=question_now,
        takes=takes,
        best=best,
        asks=tuple(
            Ask(part.listed or str(part.question), part.words, ((key, name),)) for name, part in parts.items()
        ),
    )
