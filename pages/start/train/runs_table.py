"""Earlier runs of this browser: what they changed, what they reached, and what can be done with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from pages.start.train.curve_points import curve_table
from pages.start.train.loss_chart import slug
from pages.start.train.shown_runs import act, select
from runs.state import Change, RunSpec, RunView
from studies.experiments.race_table import name_of
from ui import content, live, session, widgets
from ui.fields import changes, label_of, show
from ui.status import duration_exact

TEXT = content.beside(__file__)
MEASURES = ("best", "bits", "quick")  # columns of numbers
TABLE_SECONDS = 2.0  # between looks at the runs in the table, while one of them is active


def runs_table() -> None:
    """Draws the table of this browser's runs and its controls, folded."""
    views = session.manager().runs(session.owner())
    if not views:
        return
    with st.expander(TEXT["all runs"], icon=":material/table_rows:"):
        _drawer(views)


def _drawer(views: list[RunView]) -> None:
    st.fragment(_overview)()
    # Streamlit's own: who is in hand is of no use to whoever gets the link.
    ids, names = [view.id for view in views], {view.id: view.name for view in views}
    _forget_removed(names)
    _follow_shown(names)
    chosen = st.selectbox(
        TEXT["choose"],
        ids,
        format_func=lambda run: names.get(run, run),
        key="run_in_hand",
        help=TEXT["choose hint"],
    )
    view = next((view for view in views if view.id == chosen), None)
    if view is not None:
        _actions(view)


def _overview() -> None:
    """The table, kept up to date while something runs."""
    manager, owner = session.manager(), session.owner()
    views = manager.runs(owner)
    if any(view.active for view in views):
        live.follow(
            "runs",
            lambda: live.Sight(_rows(manager.runs(owner))),
            drawn=_rows(views),
            every=TABLE_SECONDS,
        )
    st.dataframe(
        table(views),
        hide_index=True,
        width="stretch",
        key="runs_overview",
        column_config={
            TEXT[f"column {name}"]: st.column_config.NumberColumn(help=TEXT[f"hint {name}"], format="%.3f")
            for name in MEASURES
        },
    )


def _rows(views: list[RunView]) -> list[tuple[object, ...]]:
    """Returns the state that makes another table: steps alone do not."""
    return [(view.id, view.name, view.status, len(view.history.evaluations)) for view in views]


def _forget_removed(names: dict[str, str]) -> None:
    """A removed run is no longer an option, so the widget may not hold it."""
    if st.session_state.get("run_in_hand") not in names:
        st.session_state.pop("run_in_hand", None)


def _follow_shown(names: dict[str, str]) -> None:
    """Another run is shown than before, by a link or a reload: the buttons are then about that one, not about
    the first of the list.
    """
    shown = st.session_state.get("run_id")
    if shown in names and (
        shown != st.session_state.get("run_followed") or "run_in_hand" not in st.session_state
    ):
        st.session_state["run_in_hand"] = shown
    st.session_state["run_followed"] = shown


def table(views: list[RunView]) -> pd.DataFrame:
    """Returns one row a run, oldest first."""
    rows = []
    for before, view in zip([None, *views[:-1]], views, strict=True):
        best, quick = view.best, view.best_quick
        rows.append(
            {
                TEXT["run"]: view.name,
                TEXT["changed"]: with_hand(
                    difference(before.spec if before else None, view.spec), view.changes
                ),
                TEXT["column best"]: best.validation_loss if best else None,
                TEXT["column bits"]: best.validation_bits if best else None,
                TEXT["column quick"]: quick.validation_loss if quick else None,
                TEXT["steps"]: TEXT("some steps", done=view.step, all=view.total_steps),
                TEXT["time"]: duration_exact(view.seconds),
                TEXT["state"]: view.status,
            }
        )
    return pd.DataFrame(rows)


def difference(before: RunSpec | None, after: RunSpec) -> str:
    """Returns the settings in which two runs differ, in words."""
    if before is None:
        return TEXT["first"]
    differences = changes(_flat(before), _flat(after))
    return (
        ", ".join(
            f"{label_of(name).lower()} {show(old)} → {show(new)}" for name, (old, new) in differences.items()
        )
        or TEXT["same"]
    )


def with_hand(settings: str, changes: Sequence[Change]) -> str:
    """Returns the differences with what was done by hand, which no setting tells.

    >>> with_hand("steps 200 → 300", [Change(40, 0.9, "learning_rate", 0.003)])
    'steps 200 → 300; by hand: learning rate 0.003 from step 40'
    """
    by_hand = ", ".join(change.words for change in changes)
    return TEXT("by hand", settings=settings, changes=by_hand) if changes else settings


def _flat(spec: RunSpec) -> dict[str, Any]:
    text = TEXT("your text", count=len(spec.text or "")) if spec.corpus == "text" else spec.corpus
    values = {"text": text, **spec.model.resolved().to_dict(), **spec.train.to_dict()}
    del values["vocab_size"]  # follows from the text and its tokenizer
    return values


def _actions(view: RunView) -> None:
    manager, run, file = session.manager(), view.id, slug(view.name)
    with st.container(horizontal=True):
        st.button(TEXT["show"], icon=":material/visibility:", on_click=select, args=(run,), key="show_run")
        with st.popover(TEXT["rename"], icon=":material/edit:"):
            st.text_input(
                TEXT["new name"],
                value=name_of(view),
                key=f"name-{run}",
                max_chars=80,
                on_change=_rename,
                args=(run,),
            )
        st.button(
            TEXT["remove"],
            icon=":material/delete:",
            on_click=_remove,
            args=(run,),
            key="remove_run",
            help=TEXT["remove hint"],
        )
        st.download_button(
            TEXT["curve"],
            lambda: curve_table(view.history).to_csv(index=False),
            f"{file}.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            key="curve_csv",
            help=TEXT["curve hint"],
        )
        st.download_button(
            TEXT["model"],
            lambda: manager.checkpoint(run),
            f"{file}.zip",
            "application/zip",
            icon=":material/download:",
            on_click="ignore",
            key="model_zip",
            disabled=not view.snapshots,
            help=TEXT["model hint"],
        )


def _remove(run: str) -> None:
    """Removes a run, and its id from the address when it was the one shown."""
    act(session.manager().remove, run, session.owner())
    if session.manager().view(run) is None and widgets.read_url("run") == run:
        widgets.write_url("run", None)
        st.session_state.pop("run_id", None)


def _rename(run: str) -> None:
    name = str(st.session_state[f"name-{run}"] or "").strip()
    if name:
        act(session.manager().rename, run, session.owner(), name)
        # Widgets know their choice by its words, which are other ones now: without this they would fall back
        # to the first run.
        st.session_state["run_in_hand"] = run
        st.session_state["overlaid"] = list(st.session_state.get("overlaid", []))
