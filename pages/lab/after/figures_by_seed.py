"""Columns by step of runs that differ by seed. A pure function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from engine.measure.slices import median_curve
from ui.figures import specs as go


def seed_lines(
    stored: Sequence[pd.DataFrame],
    live: pd.DataFrame | None,
    column: str,
    line: dict[str, Any],
    width: float,
    trace: Callable[..., go.Trace],
    **rest: Any,
) -> list[go.Trace]:
    """Returns a `trace` of a column by step for each stored run, thin, and a thick one: of the live run, or
    the median of the stored. `rest` goes to the thick one.
    """
    thin = [
        trace(run["step"], run[column], line=line | {"width": 1}, opacity=0.4, showlegend=False)
        for run in stored
    ]
    if live is None and not stored:
        return []
    steps, values = (
        (live["step"], live[column])
        if live is not None
        else (stored[0]["step"], median_curve([run[column] for run in stored]))
    )
    return [*thin, trace(steps, values, line=line | {"width": width}, **rest)]
