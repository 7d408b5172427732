"""Earlier runs that are laid over the chart of the one shown: chips above it, and ids in the link."""

from __future__ import annotations

import re

import streamlit as st

from engine.service.state import RunSpec, RunView
from ui import session, widgets

OVER = "over"  # in the link
NONE = "none"
MOST = 5
IDS = re.compile(r"[A-Za-z0-9_-]{1,64}")


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
        "Overlaid runs",
        list(offered),
        format_func=lambda run: _said(offered[run]) if run in offered else run,
        key="overlaid",
        persist_state="session",
        label_visibility="collapsed",
        placeholder="Overlay an earlier run on the chart",
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
