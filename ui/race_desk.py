"""The desk of a race: which one is in hand, its buttons, how far it is, and each of its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from engine.errors import GlassformerError
from runs.manager import clean_name
from runs.state import RunSpec, RunView
from studies.experiments.stored_races import Stored
from ui import (
    race_words,
    session,
    site,
    widgets,
)
from ui.requests import carry_out, refusal
from ui.status import RACE, remember_page

GO_WIDTH = 118  # of Pause, Resume and Go on, which share a place


def in_hand(key: str, title: str) -> str | None:
    """Returns the id of the race that this part of the page shows: the link's, where it is one of this title,
    else the one started here before. The link then says so; another part's race stands in it no longer.
    """
    manager, state_key = session.manager(), f"race_{key}"
    named = session.from_url(RACE)
    linked = manager.race(named) if named else ()
    if linked and linked[0].race_title == clean_name(title):
        st.session_state[state_key] = named
    remembered: str | None = st.session_state.get(state_key)
    if remembered is not None and not manager.race(remembered):
        remembered = st.session_state[state_key] = None
    if remembered is not None and named != remembered:
        widgets.write_url(RACE, remembered)
    elif remembered is None and linked:
        widgets.write_url(RACE, None)
    return remembered


def buttons(key: str, title: str, specs: Sequence[RunSpec], live: Sequence[RunView]) -> None:
    """Draws the buttons. Every one stays in its place and is greyed out where it has no sense, so that
    nothing jumps.
    """
    manager, active = session.manager(), [view.id for view in live if view.active]
    mine = bool(live) and manager.may_control(live[0].id, session.owner())
    st.button(
        "Race",
        type="primary",
        icon=":material/flag:",
        key=f"race_start_{key}",
        disabled=bool(active) and mine,
        on_click=start,
        args=(key, title, tuple(specs)),
    )
    _go(key, live, active, mine)
    st.button(
        "Cancel",
        icon=":material/stop:",
        key=f"race_stop_{key}",
        disabled=not (mine and active),
        on_click=each,
        args=(manager.stop, active),
        help=race_words.CANCEL,
    )
    with st.popover("Each run", icon=":material/format_list_bulleted:", disabled=not live):
        for view in live:
            _one(view, mine)


def _go(key: str, live: Sequence[RunView], active: Sequence[str], mine: bool) -> None:
    """Pause, resume; go on where the process was lost."""
    manager = session.manager()
    lost = next((view.race for view in live if view.lost), None)
    what: Callable[..., None]
    about: tuple[object, ...]
    paused = bool(active) and all(view.status == "paused" for view in live if view.active)
    if lost is not None and not active:
        label, icon, what, about = "Continue", "play_arrow", _revive, (lost,)
    elif paused:
        label, icon, what, about = "Resume", "play_arrow", each, (manager.resume, active)
    else:
        label, icon, what, about = "Pause", "pause", each, (manager.pause, active)
    st.button(
        label,
        icon=f":material/{icon}:",
        key=f"race_go_{key}",
        disabled=not (mine and (active or lost)),
        on_click=what,
        args=about,
        width=GO_WIDTH,
    )


def _one(view: RunView, mine: bool) -> None:
    """A run of the race: how far it is, its own pause and end, and the ways into it."""
    manager = session.manager()
    paused = view.status == "paused"
    st.progress(view.share, text=race_words.run_progress(view))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Resume" if paused else "Pause",
            key=f"race_go_{view.id}",
            disabled=not (mine and view.active),
            on_click=each,
            args=(manager.resume if paused else manager.pause, [view.id]),
        )
        st.button(
            "Cancel",
            key=f"race_stop_{view.id}",
            disabled=not (mine and view.active),
            on_click=each,
            args=(manager.stop, [view.id]),
        )
        _link("train", "Open this run", ":material/show_chart:", {"run": view.id})
        if view.snapshots:
            _link("attention", "Look inside", ":material/search:", {"model": f"run-{view.id}"})


def _link(url: str, label: str, icon: str, about: dict[str, str]) -> None:
    entry = site.entry_of(url)
    if entry is not None:
        with suppress(StreamlitPageNotFoundError):  # this page is run alone, without app.py
            st.page_link(entry.path, label=label, icon=icon, query_params=about)


def progress(views: Sequence[RunView], specs: Sequence[RunSpec], stored: Stored | None) -> None:
    """Says what is shown where nothing runs."""
    live = [view for view in views if view.race]
    if views and len(views) < len(specs):
        st.caption(race_words.missing(len(views), len(specs)), width="stretch")
    elif stored is not None and views and not any(view.id for view in views):
        st.caption(
            race_words.stored([view.spec.model for view in views]),
            help=race_words.made(stored.made),
            width="stretch",
        )
    elif live and not any(view.spec.same_recipe(spec) for view in live for spec in specs):
        st.caption(race_words.OTHER, width="stretch")


def troubles(live: Sequence[RunView]) -> None:
    """Shows failures, refusals, and whose race it is."""
    refusal()
    for view in live:
        if view.message and view.status in ("failed", "paused"):
            (st.error if view.status == "failed" else st.info)(race_words.trouble(view))
        for warning in view.warnings:
            st.warning(race_words.warned(view, warning))
    if live and not session.manager().may_control(live[0].id, session.owner()):
        st.caption(race_words.STRANGER)


def start(key: str, title: str, specs: Sequence[RunSpec]) -> None:
    """Starts a race, and makes it the one in hand. A refusal becomes a sentence on the page."""
    runs = carry_out(session.manager().start_race, specs, session.owner(), title)
    view = session.manager().view(runs[0]) if isinstance(runs, tuple) else None
    if view is not None and view.race is not None:
        st.session_state[f"race_{key}"] = view.race
        widgets.write_url(RACE, view.race)
        remember_page(view.race, widgets.page_drawn())


def _revive(race: str) -> None:
    carry_out(session.manager().revive, race, session.owner())


def each(what: Callable[[str, str], object], runs: Sequence[str]) -> None:
    """Carries out a button for some runs of a race; one that has just ended needs it no more."""
    for run in runs:
        with suppress(GlassformerError):
            what(run, session.owner())
