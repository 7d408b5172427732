"""Trainings of which some are stored, by seed, until one is trained here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.progress import Steps
from engine.errors import CheckpointError
from ui import widgets
from ui.background_jobs import Key, begun, measured
from ui.text.markdown import safe

T = TypeVar("T")
MOST_SEED = 100


def stored_runs(shipped: Callable[[], Iterable[T]]) -> tuple[T, ...]:
    """Returns the runs that are stored; none, and a sentence, where their file is not whole."""
    try:
        return tuple(shipped())
    except CheckpointError as error:
        st.info(safe(str(error)))
        return ()


def seed_and_button(
    seed_container: DeltaGenerator, button_container: DeltaGenerator, prefix: str, hint: str, label: str
) -> tuple[int, bool]:
    """Draws the seed and the button that trains with it; returns the seed, and whether it was pressed."""
    seed = widgets.whole("Seed", 0, MOST_SEED, 0, f"{prefix}_seed", container=seed_container, hint=hint)
    # Streamlit's own: it begins something and has no value.
    pressed = button_container.button(
        label.format(seed), icon=":material/play_arrow:", type="primary", key=f"{prefix}_train"
    )
    return seed, pressed


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
    tables = [table.assign(run=f"stored, seed {i}") for i, table in enumerate(stored)]
    return pd.concat([*tables, *([live.assign(run="trained here")] if live is not None else [])])


def draw_ends(stored: Sequence[pd.DataFrame], live: pd.DataFrame | None, caption: str) -> None:
    """Draws the last row of each run."""
    ends = joined(stored, live).groupby("run", sort=False).tail(1).set_index("run").reset_index()
    st.dataframe(ends, hide_index=True)
    st.caption(caption)
