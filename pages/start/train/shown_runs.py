"""Runs that are shown: one, the other of its pair, and earlier ones over its chart; and what starts one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from runs.state import RunSpec, RunView
from ui import content, session, widgets
from ui.requests import carry_out

TEXT = content.beside(__file__)
OVER = "over"  # in the link
NONE = "none"
MOST = 5
IDS = re.compile(r"[A-Za-z0-9_-]{1,64}")


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
        forget()
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


def other_of(view: RunView) -> RunView | None:
    """Returns the second of a pair: the run to which this one was started, if it is still here."""
    return session.manager().view(view.beside) if view.beside else None


def compared(view: RunView, other: RunView | None) -> list[RunView]:
    """Returns the runs that are shown: one, or the two of a pair."""
    return [view] if other is None else [view, other]


def in_training(view: RunView, other: RunView | None) -> RunView:
    """Returns the run of a pair whose progress is told: the first, and the second while it alone trains."""
    return other if other is not None and other.active and not view.active else view


def trained_already(spec: RunSpec) -> RunView | None:
    """Returns this browser's last run of exactly this recipe and seed, if it is finished and nobody changed
    it by hand: training it again would give the same numbers.
    """
    runs = session.manager().runs(session.owner())
    same = [run for run in runs if run.status == "finished" and not run.changes]
    return next((run for run in reversed(same) if run.spec.same_recipe(spec)), None)


def laid_over(view: RunView) -> list[RunView]:
    """Draws the chips; returns the runs that are chosen. The one before is laid over until somebody chooses
    otherwise: two runs are the least that an experiment needs.
    """
    mine = [
        run
        for run in session.manager().runs(session.owner())
        if run.id not in (view.id, view.beside) and comparable(run, view)
    ]
    offered = {run.id: run for run in [*mine, *_linked(view)]}
    if not offered:
        return []
    _begin(view, mine, list(offered))
    # Streamlit's own: who knows a run's id may watch it, so ids are written into the link by hand, below.
    chosen = st.multiselect(
        TEXT["overlaid"],
        list(offered),
        format_func=lambda run: _said(offered[run]) if run in offered else run,
        key="overlaid",
        persist_state="session",
        label_visibility="collapsed",
        placeholder=TEXT["overlay"],
        max_selections=MOST,
    )
    written = ",".join(chosen) or NONE
    widgets.write_url(OVER, written)
    return [offered[run] for run in chosen if run in offered]


def comparable(view: RunView, other: RunView) -> bool:
    """True if the losses of two runs mean the same: of texts always, of pairs of one task."""
    kinds = view.spec.kind, other.spec.kind
    return kinds[0] is kinds[1] and (kinds[0].inside or view.spec.corpus == other.spec.corpus)


def forget() -> None:
    """Forgets the runs laid over another: they are chosen anew when another run is shown."""
    widgets.write_url(OVER, None)
    st.session_state.pop("overlaid_for", None)


def _linked(view: RunView) -> list[RunView]:
    """The runs that the link names, whoever started them: who knows a run's id may watch it."""
    names = [name for name in widgets.read_url(OVER).split(",")[:MOST] if IDS.fullmatch(name)]
    views = [session.manager().view(name) for name in names if name not in (view.id, view.beside)]
    return [run for run in views if run is not None]


def _begin(view: RunView, mine: list[RunView], known: list[str]) -> None:
    """Chooses the runs to compare when a run is first shown: the link's, else those chosen by hand, else the
    one before it. A run that is gone is chosen no longer.
    """
    remaining = [run for run in st.session_state.get("overlaid") or [] if run in known]
    if st.session_state.get("overlaid_for") == view.id:
        if remaining != (st.session_state.get("overlaid") or []):
            st.session_state["overlaid"] = remaining
        return
    st.session_state["overlaid_for"] = view.id
    if linked := widgets.read_url(OVER):
        st.session_state["overlaid"] = [run for run in linked.split(",") if run in known][:MOST]
    else:
        # runs are listed oldest first, so this run stands where `mine` has no entry newer than it
        everybody = [known_run.id for known_run in session.manager().runs(session.owner())]
        index = everybody.index(view.id) if view.id in everybody else len(everybody)
        older = [known_run.id for known_run in mine if everybody.index(known_run.id) < index]
        st.session_state["overlaid"] = older[-1:]


def _said(view: RunView) -> str:
    """A run on its chip. The loss is told once it is at its end: Streamlit knows a chip by what is on it."""
    if view.active or not view.history.evaluations:
        return view.name
    return f"{view.name} · {view.history.evaluations[-1].validation_loss:.2f}"
