"""Starting and steering runs by a button, and which run is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from engine.service.state import RunSpec, RunView
from pages.start.train import beside
from ui import session, widgets
from ui.requests import carry_out


def start(spec: RunSpec) -> None:
    """Starts a run and makes it the one that is shown."""
    act(session.manager().start, spec, session.owner())


def start_comparison(first: RunSpec, second: RunSpec) -> None:
    """Starts two runs that train together; the first is the one that is shown, with the second beside it."""
    if both := carry_out(session.manager().start_comparison, first, second, session.owner()):
        select(both[0])


def start_beside(first: RunView, second: RunSpec) -> None:
    """Trains a second recipe beside a run that has ended; that one is shown, with the second beside it."""
    if carry_out(session.manager().start_beside, first.id, second, session.owner()):
        select(first.id)


def select(run_id: str) -> None:
    """Makes a run the one that the panel shows, also in the URL, so that a reload finds it again."""
    if run_id != st.session_state.get("run_id"):
        beside.forget()
    st.session_state["run_id"] = st.session_state["run_in_hand"] = run_id
    widgets.write_url("run", run_id)


def selected() -> str | None:
    """Returns the run to show: the URL's, else the one this session looked at last (its id then goes back
    into the URL).

    A run id in a URL may be anything; one that no run has is left for the panel to explain.
    """
    named, remembered = widgets.read_url("run") or None, st.session_state.get("run_id")
    if named is None and remembered and session.manager().view(remembered) is not None:
        named = remembered
        widgets.write_url("run", remembered)
    st.session_state["run_id"] = named
    return named


def act(what: Callable[..., Any], *arguments: Any) -> None:
    """Carries out a button; a new run that comes of it is the one shown."""
    result = carry_out(what, *arguments)
    if isinstance(result, str) and result:
        select(result)


def act_on_all(what: Callable[..., Any], runs: Sequence[str], *arguments: Any) -> None:
    """Carries out a button for each of a pair."""
    for run in runs:
        act(what, run, *arguments)
