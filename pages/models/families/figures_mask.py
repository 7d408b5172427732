"""Arrays -> figures of masks: who looks at whom, and when. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.measure.families.visibility import (
    DONE,
    HIDDEN,
    LATER,
    NOW,
    Flow,
)
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour

SHADES = {  # cell -> its colour
    HIDDEN: colour("quiet", 12),
    LATER: colour("attention", 14),
    DONE: colour("attention", 48),
    NOW: colour("attention"),
}
STEPS = [
    [edge, shade] for cell, shade in SHADES.items() for edge in (cell / len(SHADES), (cell + 1) / len(SHADES))
]
Axes = tuple[Sequence[str], Sequence[str]]  # tokens of the queries, and of the keys


def masks_figure(
    flows: Sequence[Flow], axes: Mapping[str, Axes], titles: Mapping[str, str], height: int
) -> go.Figure:
    """Draws the matrices of one family in a row; queries go down, keys to the right."""
    traces: list[dict[str, Any]] = []
    layout = base_layout(margin={"l": 4, "r": 4, "t": 46, "b": 4}, showlegend=False)
    notes = []
    for i, flow in enumerate(flows):
        tail = "" if i == 0 else str(i + 1)
        queries, keys = axes[flow.name]
        traces.append(
            {
                "type": "heatmap",
                "z": flow.cells.astype(np.float32),
                "zmin": -0.5,
                "zmax": 3.5,
                "colorscale": STEPS,
                "showscale": False,
                "xgap": 2,
                "ygap": 2,
                "xaxis": f"x{tail}",
                "yaxis": f"y{tail}",
                "hoverinfo": "skip",
            }
        )
        start = i / len(flows) + (0.24 if len(flows) == 1 else 0.09)
        end = (i + 1) / len(flows) - 0.01
        layout[f"xaxis{tail}"] = _axis(keys) | {
            "domain": [start, end],
            "side": "top",
            "tickangle": -90,
            "anchor": f"y{tail}",
        }
        layout[f"yaxis{tail}"] = _axis(queries) | {"autorange": "reversed", "anchor": f"x{tail}"}
        notes.append(
            {
                **{"xref": "paper", "yref": "paper", "x": (start + end) / 2, "y": -0.02},
                **{"text": f"<b>{titles[flow.name]}</b>", "showarrow": False},
                **{"xanchor": "center", "yanchor": "top"},
                "font": {"size": 12},
            }
        )
    layout["margin"] |= {"b": 26, "t": 62}
    return go.Figure({"data": traces, "layout": layout | {"annotations": notes}})


def _axis(tokens: Sequence[str]) -> dict[str, Any]:
    return go.ticks(
        list(range(len(tokens))),
        list(tokens),
        tickfont={"size": 10},
        ticks="",
        ticklabeloverflow="allow",
        fixedrange=True,
    )
