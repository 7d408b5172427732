"""Three squares side by side. A pure function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.measure.tasks.ladder import SelfTerm
from pages.inside.attention.words_scores import self_title
from ui.figures import specs as go
from ui.figures.axes import symmetric
from ui.figures.labels import plain
from ui.figures.theme import DIVERGING, SEQUENTIAL

GAP = 0.05


def three(
    arrays: Sequence[np.ndarray], terms: Sequence[SelfTerm], labels: Sequence[str], signed: bool
) -> go.Figure:
    """Draws arrays (query, key): weights in [0, 1], or scores, whose scale is one for all."""
    width = (1 - GAP * (len(arrays) - 1)) / len(arrays)
    end = max(symmetric(each) for each in arrays) if signed else 1.0
    ticks = {"tickvals": list(range(len(labels))), "ticktext": [plain(label) for label in labels]}
    axes, traces, headings = {}, [], []
    for n, (array, each) in enumerate(zip(arrays, terms, strict=True)):
        axis = "" if n == 0 else str(n + 1)
        left = n * (width + GAP)
        axes[f"xaxis{axis}"] = dict(domain=[left, left + width], anchor=f"y{axis}", showgrid=False) | ticks
        axes[f"yaxis{axis}"] = {
            "anchor": f"x{axis}",
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
            "showticklabels": n == 0,
        } | ticks
        traces.append(
            go.Heatmap(
                z=np.asarray(array, np.float32),
                xaxis=f"x{axis}",
                yaxis=f"y{axis}",
                colorscale=DIVERGING if signed else SEQUENTIAL,
                zmin=-end if signed else 0,
                zmax=end,
                showscale=False,
                hovertemplate="%{z:.2f}<extra></extra>",
            )
        )
        headings.append(go.heading(f"<b>{self_title(each)}</b>", left + width / 2, xanchor="center"))
    margin = {"l": 40, "r": 8, "t": 34, "b": 36}
    return go.figure(traces, margin=margin, showlegend=False, annotations=headings, **axes)
