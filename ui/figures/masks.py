"""Masks beside each other: which query attends to which key, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.theme import base_layout, colour

HIDDEN_SHADE = colour("quiet", 12)  # of a key that is never attended to


@dataclass(frozen=True, eq=False)
class Mask:
    """A mask: `cells` (query, key) are indices of shades."""

    title: str
    cells: np.ndarray
    queries: Sequence[str]
    keys: Sequence[str]


def masks_figure(masks: Sequence[Mask], shades: Sequence[str]) -> go.Figure:
    """Draws masks in a row, each with its title below; queries go down, keys to the right."""
    count, top = len(masks), len(shades)
    steps = [[edge / top, shade] for i, shade in enumerate(shades) for edge in (i, i + 1)]
    lines = max(mask.title.count("<br>") for mask in masks)
    layout = base_layout(margin={"l": 4, "r": 4, "t": 62, "b": 26 + 16 * lines}, showlegend=False)
    traces, notes = [], []
    for i, mask in enumerate(masks):
        tail = "" if i == 0 else str(i + 1)
        traces.append(
            go.Heatmap(
                z=mask.cells.astype(np.float32),
                zmin=-0.5,
                zmax=top - 0.5,
                colorscale=steps,
                showscale=False,
                xgap=2,
                ygap=2,
                xaxis=f"x{tail}",
                yaxis=f"y{tail}",
                hoverinfo="skip",
            )
        )
        start, end = i / count + (0.24 if count == 1 else 0.09), (i + 1) / count - 0.01
        above = {"domain": [start, end], "side": "top", "tickangle": -90, "anchor": f"y{tail}"}
        layout[f"xaxis{tail}"] = _axis(mask.keys) | above
        layout[f"yaxis{tail}"] = _axis(mask.queries) | {"autorange": "reversed", "anchor": f"x{tail}"}
        below = {
            "xref": "paper",
            "yref": "paper",
            "xanchor": "center",
            "yanchor": "top",
            "font": {"size": 12},
        }
        notes.append(go.note(f"<b>{mask.title}</b>", (start + end) / 2, -0.02, **below))
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
