"""Arrays -> probability each speaker is, and how each word of the text moves that. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import crowded, plain
from ui.figures.patterns import named_cells, placed, token_axis
from ui.figures.theme import DIVERGING, colour

WIDE = 420  # pixels that the words have between them
BARS = 0.3  # of the width: the shares
MOST = 32  # upright words that have room beside each other


def speaks_figure(
    shares: np.ndarray, moves: np.ndarray, words: Sequence[str], labels: Sequence[str]
) -> go.Figure:
    """Draws shares (label,) in [0, 1] as bars; moves (word, label) as cells of percentage points, a row for
    each label and a column for each word. The first label is at the top.
    """
    points = 100 * moves.T.astype(np.float32)  # (label, word)
    reach = max(float(np.abs(points).max(initial=0)), 0.1)
    heat = {
        "type": "heatmap",
        "z": points,
        "zmin": -reach,
        "zmax": reach,
        "zmid": 0,
        "colorscale": DIVERGING,
        **named_cells(list(labels), placed(words), ", with "),
        "hovertemplate": "%{hovertext}<br>%{z:+.1f} points<extra></extra>",
        "xaxis": "x2",
        "colorbar": {
            **{"orientation": "h", "x": 1, "xanchor": "right", "y": 0, "yanchor": "top", "len": 0.66},
            **{"thickness": 8, "nticks": 5, "tickfont": {"size": 12}},
            "title": {"text": "percentage points", "side": "bottom", "font": {"size": 13}},
        },
    }
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": 100 * shares,
        "y": list(range(len(labels))),
        "marker": {"color": colour("output")},
        "text": [f"{share:.0%}" for share in shares],
        "textposition": "outside",
        "cliponaxis": False,
        "customdata": list(labels),
        "hovertemplate": "%{customdata}: %{x:.1f}%<extra></extra>",
    }
    upright = crowded(words, WIDE)
    names: dict[str, Any] = go.ticks(
        list(range(len(labels))), [plain(label) for label in labels], autorange="reversed"
    )
    most = max(100 * float(shares.max()), 1.0)
    return go.figure(
        [bars, heat],
        margin={"l": 128, "r": 4, "t": 92 if upright else 54, "b": 62},
        showlegend=False,
        bargap=0.35,
        yaxis=names,
        xaxis={
            **{"domain": [0, BARS], "range": [0, 1.5 * most], "side": "bottom", "showgrid": False},
            **{"showticklabels": False, "ticks": "", "title": {"text": "probability"}},
        },
        xaxis2=token_axis(
            words,
            "each word's effect",
            12,
            most=MOST if upright else 64,
            side="top",
            tickangle=-90 if upright else 0,
            domain=[BARS + 0.03, 1],
            anchor="y",
        ),
    )
