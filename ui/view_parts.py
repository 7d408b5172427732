"""Views that show one of several parts, each with a figure, a question and words of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ui import content, widgets
from ui.model_needs import Need
from ui.page_frame import Ask, Code, View, Words


@dataclass(frozen=True)
class Part:
    """A part of a view. `text` is all that it says, or its title, as long as `words` and `question` stand
    elsewhere. `draw` gets what the view gets; before that, where the buttons that choose a part have a label,
    the container of their line, for controls of its own. A `question` may depend on that, too; `listed` is
    then the question in lists.
    """

    text: content.Texts | str
    draw: Callable[..., object]
    words: Words | None = None
    code: Code = ()
    question: str | Callable[..., str] = ""
    listed: str = ""

    @property
    def title(self) -> str:
        """Returns what stands on the part's button."""
        return self.as_view().title

    def as_view(self, id: str = "") -> View:
        """Returns the part as a view of its own."""
        return View(id, self.text, self.draw, self.words, self.code, question=self.question)


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
    views = {name: part.as_view(name) for name, part in parts.items()}
    titles = {name: view.title for name, view in views.items()}

    def now() -> View:
        return views[widgets.settled(titles, key)]

    def question_now(*about: Any) -> str:
        return now().question_for(*about)

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
        lambda *_: now().words_for(),
        lambda *_: parts[now().id].code,
        bool(takes),
        question=question_now,
        takes=takes,
        best=best,
        asks=tuple(
            Ask(part.listed or views[name].question_for(), views[name].words_for(), ((key, name),))
            for name, part in parts.items()
        ),
    )
