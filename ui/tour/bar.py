"""The bar at the bottom of every page while a course runs: where one is, what is said, on and back.

All that it knows stands in the address (`course`, `scene`, counted from 1), so that a reload or a second
device is at the same place; the session only carries it over to a page that was chosen in the menu.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from studies.weights.pretrained import sources
from ui import (
    explain,
    model_text,
    returns,
    session,
    site,
    widgets,
)
from ui.model_text import LastText
from ui.players.component import mounted
from ui.tour.courses import Course, Scene, shelf

KEY, COURSE, SCENE = "tour", "course", "scene"
END = "courses"  # the address of the page to which the end of a course leads
_HELD = "tour_held"  # (course, scene) of the last run
_PRETRAINED = "pretrained-"
_WRITTEN = "tour_text"  # what the reader wrote for the model to read, while a scene shows another
_TEXT = (model_text.TEXT, LastText.KEY, model_text.LENGTH)  # what the bar of a model remembers of it
# What the bar of a model and the folds of a view remember besides their own names in the address.
_REMEMBERED = ("subject_model", "kept_model", "subject_model_insisted", *_TEXT, explain.VIEW_DRAWN)


def draw_tour() -> None:
    """Draws the bar where a course runs. Scenes are addresses, and the browser goes there by itself."""
    now = _now()
    if now is not None:
        mounted("tour", styles=("tour",))(key=KEY, data=_told(*now))


def start(course: Course, at: int = 0) -> None:
    """Goes to its first scene, or to another, counted from 0."""
    st.switch_page(course.scenes[at].path, query_params=_query(course, at))


def missing(course: Course) -> list[str]:
    """Returns the models that scenes of it show and this server has not."""
    here = session.published()
    names = [name.removeprefix(_PRETRAINED) for name in course.models if name.startswith(_PRETRAINED)]
    return [
        sources.KNOWN[name].title if name in sources.KNOWN else name for name in names if name not in here
    ]


def _now() -> tuple[Course, int] | None:
    """The course and the index of its scene, from the address; where the menu led to another page, from
    before.
    """
    courses, back = shelf().courses, widgets.went_back()
    if widgets.just_arrived() and not back and COURSE not in st.query_params and _HELD in st.session_state:
        name, at = st.session_state[_HELD]
        st.query_params.update({COURSE: name, SCENE: str(at + 1)})
    if COURSE not in st.query_params:
        _forget()  # the course was ended, or somebody went back to before it
        return None
    course = courses.get(session.from_url(COURSE, courses) or "")
    if course is None:
        _forget()
        st.toast("There is no such course here. The Courses page lists those available.")
        return None
    number = widgets.number_of(st.query_params.get(SCENE))
    at = widgets.clamped(number, 1, len(course.scenes), 1) - 1
    if back or st.session_state.get(_HELD) != (course.id, at):
        _clear_page(course)
    st.session_state[_HELD] = (course.id, at)
    return course, at


def _told(course: Course, at: int) -> dict[str, Any]:
    """Returns the course and the scene as the browser needs them."""
    scene = course.scenes[at]
    entry = site.entry_of(scene.page)
    away = widgets.page_drawn() != scene.page
    asks = course.question(at)
    return {
        "course": course.title,
        "scene": f"{course.id}/{at}",
        "at": at,
        "count": len(course.scenes),
        # from the root of the app, wherever a host has put that: pages lie one level below it
        "addresses": [f"./{address_of(course, i)}" for i in range(len(course.scenes))],
        "asks": [i for i, one in enumerate(course.scenes) if one.question],
        "end": f"./{END}",
        "title": scene.title,
        "text": _said(scene),
        "point": "" if away else scene.point,
        "away": entry.title if away and entry else "",
        "notes": scene.notes,
        "again": None if at else returns.catalogue(),  # questions from last time, before the first scene
        "question": asks
        and {"asked": asks.text, "answers": list(asks.answers), "right": asks.right, "why": asks.why},
    }


def _said(scene: Scene) -> str:
    """Returns the scene's text; where its model is not here, a sentence about that."""
    name = scene.model.removeprefix(_PRETRAINED)
    if not scene.model.startswith(_PRETRAINED) or name in session.published():
        return scene.text
    title = sources.KNOWN[name].title if name in sources.KNOWN else name
    return f"{title} is not installed here, so this scene uses another model. {scene.text}"


def address_of(course: Course, at: int) -> str:
    """Returns the address of a scene, counted from 0, below the app's root."""
    return f"{course.scenes[at].page}?{urlencode(_query(course, at))}"


def _query(course: Course, at: int) -> dict[str, str]:
    """Returns what stands in the address of a scene."""
    return dict(course.scenes[at].query) | {COURSE: course.id, SCENE: str(at + 1)}


def _clear_page(course: Course) -> None:
    """Has the page show what its address says, whatever was chosen there before; where that says nothing of
    a text, what the reader wrote stays.
    """
    query, kept = dict(st.query_params), LastText.get() or LastText("")
    if written := _written(course):
        st.session_state[_WRITTEN] = written
    for name in _forgotten(course, query, [str(name) for name in st.session_state]):
        st.session_state.pop(name, None)
    if "text" not in query and _WRITTEN in st.session_state:
        st.session_state[LastText.KEY] = replace(kept, text=st.session_state[_WRITTEN])


def _forgotten(course: Course, query: dict[str, str], held: list[str]) -> list[str]:
    """Returns those of the names `held` by the session that would contradict a scene's link: all that the
    course's links name, what else belongs to a control of the same page, and the folds.

    A text that somebody wrote into a box of the page's own stays, unless a link names it.
    """
    topics = {f"{name.partition('_')[0]}_" for name in query if "_" in name}
    ours = {*course.names, *_REMEMBERED, *explain.FOLDS}
    ours |= {f"{name}{widgets.IN_URL}" for name in ours}
    return [
        name
        for name in held
        if name in ours or (name.startswith(tuple(topics)) and not session.TEXTS.search(name))
    ]


def _written(course: Course) -> str:
    """Returns the text that the reader wrote for the model: no text of a scene, no example, no page's first
    one. Empty where there is none.
    """
    kept = LastText.get() or LastText("")
    text = st.session_state.get(model_text.TEXT, kept.text) or ""
    supplied = {dict(scene.query).get("text") for scene in course.scenes} | kept.untyped
    return text if text.strip() and text not in supplied else ""


def _forget() -> None:
    for name in (_HELD, _WRITTEN):
        st.session_state.pop(name, None)
    for name in (COURSE, SCENE):
        if name in st.query_params:
            del st.query_params[name]
