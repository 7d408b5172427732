"""Arrays -> the figure of an analogy. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.measure.embeddings.analogies import Analogy
from ui.figures import specs as go
from ui.figures.axes import MONO
from ui.figures.labels import plain
from ui.figures.theme import colour


def nearest_bars(words: Sequence[str], analogy: Analogy) -> go.Figure:
    """Draws cosines of the tokens nearest to the sum, best on top: those that were put in are grey, the
    expected one stands out.
    """
    at = -np.arange(len(words))
    shades = [
        colour("quiet") if i in analogy.terms else colour("output" if i == analogy.expected else "embedding")
        for i in analogy.ids.tolist()
    ]
    notes = [
        "input" if i in analogy.terms else "expected" if i == analogy.expected else ""
        for i in analogy.ids.tolist()
    ]
    bars = go.Bar(
        orientation="h",
        x=analogy.cosine.astype(np.float32),
        y=at,
        marker={"color": shades},
        text=notes,
        textposition="inside",
        insidetextanchor="start",
        hovertext=[plain(word) for word in words],
        hovertemplate="“%{hovertext}”: cosine %{x:.4f}<extra></extra>",
    )
    return go.figure(
        [bars],
        margin={"l": 8, "r": 12, "t": 8, "b": 40},
        showlegend=False,
        bargap=0.2,
        xaxis=go.axis(
            "cosine with the sum", showgrid=True, range=[min(0.0, float(analogy.cosine.min())) * 1.05, 1]
        ),
        yaxis=go.ticks(at, [plain(word) for word in words], tickfont=MONO | {"size": 14}),
    )
