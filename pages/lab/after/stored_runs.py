"""Trainings of which some are stored, by seed, until one is trained here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.progress import Steps
from engine.errors import CheckpointError
from engine.slices import median_curve
from ui import content, widgets
from ui.background_jobs import Key, begun, measured
from ui.figures import specs as go
from ui.text.markdown import safe

T = TypeVar("T")
TEXT = content.beside(__file__)
MOST_SEED = 100


def stored_runs(shipped: Callable[[], Iterable[T]]) -> tuple[T, ...]:
    """Returns the runs that are stored; none, and a sentence, where their file is not whole."""
    try:
        return tuple(shipped())
    except CheckpointError as error:
        st.info(safe(str(error)))
        return ()


def choose_seed(container: DeltaGenerator, prefix: str, hint: str) -> int:
    return widgets.whole(TEXT["seed"], 0, MOST_SEED, 0, f"{prefix}_seed", container=container, hint=hint)


def train_button(container: DeltaGenerator, prefix: str, label: str) -> bool:
    """Draws the button that trains; True if it was pressed."""
    # Streamlit's own: it begins something and has no value.
    return container.button(label, icon=":material/play_arrow:", type="primary", key=f"{prefix}_train")


def trained(
    key: Key, pressed: bool, start: Callable[[], Steps[Any]], doing: str, draw: Callable[[Any], None]
) -> tuple[Any, ...] | None:
    """Returns the looks of a run that is trained here: none before the button was `pressed`; None while it
    goes on, with the looks so far drawn.
    """
    if not (pressed or begun(key)):
        return ()
    result = measured(key, start, doing, lambda looks: draw(looks or ()), pausable=True)
    return None if result is None else result.looks


def tables_of(
    table: Callable[[Any], pd.DataFrame], stored: Sequence[Any], live: Any
) -> tuple[list[pd.DataFrame], pd.DataFrame | None]:
    """Returns the `table` of each stored run, and that of the live one, if there is one."""
    return [table(looks) for looks in stored], table(live) if live else None


def joined(stored: Sequence[pd.DataFrame], live: pd.DataFrame | None) -> pd.DataFrame:
    """Returns the tables of all runs as one, with a column that names the run."""
    tables = [table.assign(run=TEXT("stored run", seed=i)) for i, table in enumerate(stored)]
    return pd.concat([*tables, *([live.assign(run=TEXT["live run"])] if live is not None else [])])


def draw_ends(table: Callable[[Any], pd.DataFrame], stored: Sequence[Any], live: Any, caption: str) -> None:
    """Draws the last row of the `table` of each run."""
    last = joined(*tables_of(table, stored, live)).groupby("run", sort=False).tail(1)
    st.dataframe(last.set_index("run").reset_index(), hide_index=True)
    st.caption(caption)


def seed_lines(
    stored: Sequence[pd.DataFrame],
    live: pd.DataFrame | None,
    column: str,
    width: float,
    **look: Any,
) -> list[go.Trace]:
    """Returns a line of a column by step (`look`: of go.line) for each stored run, thin, and a thick one: of
    the live run, or the median of the stored.
    """
    thin = [
        _line(run["step"], run[column], **look | {"width": 1, "opacity": 0.4, "showlegend": False})
        for run in stored
    ]
    if live is None and not stored:
        return []
    steps, values = (
        (live["step"], live[column])
        if live is not None
        else (stored[0]["step"], median_curve([run[column] for run in stored]))
    )
    return [*thin, _line(steps, values, width=width, **look)]


def _line(x: Any, y: Any, **look: Any) -> go.Trace:
    return go.line(np.asarray(x), np.asarray(y), **look)
