"""The map of patching: a pure function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import DIVERGING, base_layout


def both(clean: Sequence[str], corrupted: Sequence[str]) -> list[str]:
    """Tokens of two prompts; where they differ, one above the other."""
    return [
        plain(short(a, MOST_LETTERS))
        if a == b
        else f"<b>{plain(short(a, MOST_LETTERS))}</b><br>{plain(short(b, MOST_LETTERS))}"
        for a, b in zip(clean, corrupted, strict=True)
    ]


def patch_map(
    restored: np.ndarray, ticks: Sequence[str], names: Sequence[str], *, upright: bool, title: str, hover: str
) -> go.Figure:
    """restored (layer, place): orange brings the answer back, blue pushes it further off. The scale ends at
    1, the whole answer; what lies beyond is in the hover. `names` are said there, `ticks` stand below.
    """
    layers, places = restored.shape
    heat = go.Heatmap(
        z=restored.astype(np.float32),
        zmin=-1,
        zmax=1,
        colorscale=DIVERGING,
        xgap=1,
        ygap=1,
        customdata=np.broadcast_to(np.asarray([plain(n) for n in names]), restored.shape).tolist(),
        hovertemplate=f"block %{{y}}, {hover}: %{{z:+.3f}} restored<extra></extra>",
        colorbar={
            "title": {"text": "restored", "side": "top"},
            "thickness": 12,
            "tickvals": [-1, -0.5, 0, 0.5, 1],
        },
    )
    tall = LETTER * min(MOST_LETTERS, max(map(len, names), default=1)) if upright else 16
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 36 + tall},
        showlegend=False,
        xaxis={
            "title": {"text": title},
            "tickvals": np.arange(places),
            "ticktext": list(ticks),
            "tickangle": -90 if upright else 0,
            "tickfont": MONO,
            "showgrid": False,
            "zeroline": False,
            "range": [-0.5, places - 0.5],
        },
        yaxis=rows_axis([str(i) for i in range(layers)], title={"text": "block"}),
        uirevision=f"patching-{layers}-{places}",
    )
    return go.Figure({"data": [heat], "layout": layout})


def stands(labels: Sequence[str], width: int) -> bool:
    """Whether tokens have to be written upright to fit."""
    return crowded(labels, width) > 0
