"""Asking the run manager for something, and saying so where it refuses; and which run is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from engine.errors import GlassformerError
from engine.service.state import RunSpec, RunView
from pages.start.train import beside
from ui import session, widgets
from ui.text.markdown import safe

REFUSAL_SECONDS = 10.0  # that a refusal stays: the panel is drawn again several times a second


def start(spec: RunSpec) -> None:
    """Starts a run and makes it the one that is shown. A refusal becomes a sentence on the page."""
    act(session.manager().start, spec, session.owner())


def start_comparison(first: RunSpec, second: RunSpec) -> None:
    """Starts two runs that train together; the first is the one that is shown, with the second beside it."""
    st.session_state.pop("refused", None)
    try:
        one, _ = session.manager().start_comparison(first, second, session.owner())
    except GlassformerError as error:
        _refuse(error)
    else:
        select(one)


def start_beside(first: RunView, second: RunSpec) -> None:
    """Trains a second recipe beside a run that has ended; that one is shown, with the second beside it."""
    st.session_state.pop("refused", None)
    try:
        session.manager().start_beside(first.id, second, session.owner())
    except GlassformerError as error:
        _refuse(error)
    else:
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
    named, kept = widgets.read_url("run") or None, st.session_state.get("run_id")
    if named is None and kept and session.manager().view(kept) is not None:
        named = kept
        widgets.write_url("run", kept)
    st.session_state["run_id"] = named
    return named


def refusal() -> None:
    """Shows why the last click was refused, for long enough to be read."""
    sentence, since = st.session_state.get("refused", ("", 0.0))
    if sentence and time.monotonic() - since < REFUSAL_SECONDS:
        st.error(safe(sentence))


def _refuse(error: GlassformerError) -> None:
    st.session_state["refused"] = (str(error), time.monotonic())


def act(what: Callable[..., Any], *arguments: Any) -> None:
    """Carries out a button. A refusal becomes a sentence; a new run that comes of it is the one shown."""
    st.session_state.pop("refused", None)
    try:
        result = what(*arguments)
    except GlassformerError as error:
        _refuse(error)
        return
    if isinstance(result, str) and result:
        select(result)


def act_on_all(what: Callable[..., Any], runs: Sequence[str], *arguments: Any) -> None:
    """Carries out a button for each of a pair."""
    for run in runs:
        act(what, run, *arguments)
