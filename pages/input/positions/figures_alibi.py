"""Arrays -> figures of ALiBi: what a distance costs, how far a head reaches, how far it looks. Pure
functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.measure.positions.alibi import Slopes, factors
from pages.input.positions.bias_map import head_line
from ui.figures import specs as go
from ui.figures.theme import colour


def decay_curves(slope: np.ndarray, length: int, distance: int) -> go.Figure:
    """Draws the factor on a score's weight at each distance before the softmax is normalised, e^(-slope *
    distance), a line for each head.
    """
    distances = np.unique(np.linspace(0, length - 1, min(length, 400)).round())
    traces = [
        go.Scatter(
            mode="lines",
            name=f"head {head}",
            x=distances.astype(np.float32),
            y=row.astype(np.float32),
            line=head_line(head),
            hovertemplate="distance %{x}<br>× %{y:.4f}<extra>" + f"head {head}, slope {s:.4g}" + "</extra>",
        )
        for head, (s, row) in enumerate(zip(slope, factors(slope, distances), strict=True))
    ]
    marks = [
        go.rule(y=y, line={"color": colour("quiet"), "dash": "dot", "width": 1}) for y in (np.exp(-1), 0.01)
    ]
    marks.append(go.rule(x=distance, line={"color": colour("output"), "width": 1.5}))
    look = {
        "showarrow": False,
        "xanchor": "right",
        "yanchor": "bottom",
        "font": {"color": colour("quiet"), "size": 12},
    }
    notes = [
        {"xref": "paper", "x": 1, "y": y, "text": text} | look
        for y, text in ((np.exp(-1), "1/e"), (0.01, "1 percent"))
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        showlegend=len(slope) <= 8,
        shapes=marks,
        annotations=notes,
        xaxis=go.axis("tokens back", zeroline=False),
        yaxis={"title": {"text": "remaining share of a weight"}, "range": [0, 1.03]},
    )


def reach_bars(slopes: Slopes, length: int) -> go.Figure:
    """Draws how far each head reaches, two bars for each on a logarithmic axis; the dotted line is the length
    of the text.
    """
    heads = np.arange(len(slopes.slope))
    traces = [
        go.Bar(
            name=name,
            x=heads,
            y=values,
            marker={"color": colour(shade)},
            hovertemplate="head %{x}<br>" + name + ": distance %{y:,.4g}<extra></extra>",
        )
        for name, values, shade in (
            ("falls to 1/e", slopes.to_a_third, "position"),
            ("falls to 1 percent", slopes.to_a_percent, "quiet"),
        )
    ]
    line = go.rule(y=length, line={"color": colour("output"), "width": 1.5, "dash": "dot"})
    low, high = np.log10(min(slopes.to_a_third.min(), 1.0)), np.log10(max(slopes.to_a_percent.max(), length))
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        barmode="group",
        bargap=0.2,
        shapes=[line],
        annotations=[
            go.note(
                f"length of the text: {length:,}",
                0,
                float(np.log10(length)),
                xref="paper",
                xanchor="left",
                yanchor="bottom",
            )
        ],
        xaxis=go.axis("head", dtick=1 if len(heads) <= 16 else 4, zeroline=False),
        yaxis=go.axis(
            "distance (tokens)", showgrid=True, type="log", range=[low - 0.05, high + 0.1], dtick=1
        ),
    )


def distance_bars(before: Sequence[float] | np.ndarray, after: Sequence[float] | np.ndarray) -> go.Figure:
    """Draws how far each head of a layer looks without and with the bias: (head,), tokens."""
    traces = [
        go.Bar(
            name=name,
            x=np.arange(len(values)),
            y=np.asarray(values, dtype=np.float32),
            marker={"color": colour(shade)},
            hovertemplate="head %{x}<br>" + name + ": %{y:.2f} tokens back<extra></extra>",
        )
        for name, values, shade in (("without the bias", before, "quiet"), ("with it", after, "position"))
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        barmode="group",
        bargap=0.25,
        xaxis=go.axis("head", dtick=1),
        yaxis={"title": {"text": "mean distance (tokens)"}, "rangemode": "tozero"},
    )
