"""Arrays -> figures of schemes that add a bias for the distance: ALiBi's slopes, T5's buckets. Pure
functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.measure.distance import Slopes
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.patterns import pattern_heatmap
from ui.figures.theme import DIVERGING, base_layout, colour

HEAD_COLOURS = ("position", "attention", "validation", "run0", "output", "run2", "run3", "residual")
DASHES = ("solid", "dash", "dot", "dashdot")


def _head_line(head: int) -> dict[str, Any]:
    """Eight colours, then again with other dashes."""
    return {"color": colour(HEAD_COLOURS[head % 8]), "width": 2.2, "dash": DASHES[head // 8 % 4]}


def decay_curves(slope: np.ndarray, length: int) -> go.Figure:
    """What a score's weight is multiplied by at each distance before the softmax is normalised, e^(-slope *
    distance), a line for each head.
    """
    distances = np.unique(np.linspace(0, length - 1, min(length, 400)).round())
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"head {head}",
            "x": distances.astype(np.float32),
            "y": np.exp(-s * distances).astype(np.float32),
            "line": _head_line(head),
            "hovertemplate": (
                "distance %{x}<br>× %{y:.4f}<extra>" + f"head {head}, slope {s:.4g}" + "</extra>"
            ),
        }
        for head, s in enumerate(slope)
    ]
    marks = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": y,
            "y1": y,
            "line": {"color": colour("quiet"), "dash": "dot", "width": 1},
        }
        for y in (np.exp(-1), 0.01)
    ]
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
    layout = base_layout(
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        showlegend=len(slope) <= 8,
        shapes=marks,
        annotations=notes,
        xaxis={"title": {"text": "distance"}, "showgrid": False, "zeroline": False},
        yaxis={"title": {"text": "factor e^(−slope · distance)"}, "range": [0, 1.03]},
    )
    return go.Figure({"data": traces, "layout": layout})


def reach_bars(found: Slopes, length: int) -> go.Figure:
    """How far each head reaches, two bars for each on a logarithmic axis; the dotted line is the length of
    the text.
    """
    heads = np.arange(len(found.slope))
    traces = [
        {
            "type": "bar",
            "name": name,
            "x": heads,
            "y": values,
            "marker": {"color": colour(shade)},
            "hovertemplate": "head %{x}<br>" + name + ": distance %{y:,.4g}<extra></extra>",
        }
        for name, values, shade in (
            ("down to 1/e", found.to_a_third, "position"),
            ("down to 1 percent", found.to_a_percent, "quiet"),
        )
    ]
    line = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": length,
        "y1": length,
        "line": {"color": colour("output"), "width": 1.5, "dash": "dot"},
    }
    low, high = np.log10(min(found.to_a_third.min(), 1.0)), np.log10(max(found.to_a_percent.max(), length))
    layout = base_layout(
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        barmode="group",
        bargap=0.2,
        shapes=[line],
        xaxis={
            "title": {"text": "head"},
            "dtick": 1 if len(heads) <= 16 else 4,
            "showgrid": False,
            "zeroline": False,
        },
        yaxis={
            "title": {"text": "distance (tokens)"},
            "type": "log",
            "range": [low - 0.05, high + 0.1],
            "dtick": 1,
        },
    )
    return go.Figure({"data": traces, "layout": layout})


def bias_heatmap(values: np.ndarray, name: str = "bias", reach: float | None = None) -> go.Figure:
    """What is added to the scores, (query, key); -inf is left blank. Signed, around zero; queries go down."""
    shown = np.where(np.isfinite(values), values, np.nan).astype(np.float32)
    most = reach or float(np.nanmax(np.abs(shown))) or 1.0
    heat = {
        "type": "heatmap",
        "z": shown,
        "hoverongaps": False,
        "zmin": -most,
        "zmax": most,
        "zmid": 0,
        "colorscale": DIVERGING,
        "hovertemplate": "query %{y}, key %{x}<br>" + name + " %{z:.4f}<extra></extra>",
        "colorbar": {"title": {"text": name, "side": "right"}},
    }
    bare: dict[str, Any] = {"showgrid": False, "zeroline": False}
    layout = base_layout(
        margin={"l": 52, "r": 8, "t": 44, "b": 8},
        showlegend=False,
        xaxis={"title": {"text": "key position"}, "side": "top"} | bare,
        yaxis={"title": {"text": "query position"}, "autorange": "reversed"} | bare,
    )
    return go.Figure({"data": [heat], "layout": layout})


def half_width_pattern(weights: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """A pattern (query, key) in [0, 1] that stands beside another: fewer labels, so that they do not run into
    each other, and no scale.
    """
    figure = pattern_heatmap(weights, labels)
    step = -(-len(labels) // 24)
    ticks = {
        "tickvals": list(range(0, len(labels), step)),
        "ticktext": [plain(label) for label in labels[::step]],
    }
    shown = {
        "showscale": False,
        "hovertext": None,
        "customdata": _places(labels),
        "hovertemplate": "%{customdata}<br>weight %{z:.4f}<extra></extra>",
    }
    return figure.changed({"xaxis": ticks, "yaxis": ticks}, **shown)


def _places(labels: Sequence[str]) -> list[list[str]]:
    """What the box over a cell says of its two tokens, which the thinned axes no longer name."""
    names = [f"“{plain(label)}” at {i}" for i, label in enumerate(labels)]
    return [[f"query {q}<br>key {k}" for k in names] for q in names]


def bucket_steps(offsets: np.ndarray, buckets: np.ndarray, exact: int, open_from: int) -> go.Figure:
    """Bucket against offset (offset,): one colour where each distance has its own, another where several
    share one, grey for the last, which has no end.
    """
    distance = np.abs(offsets)
    traces = []
    for name, mask, shade in (
        ("own bucket each", distance < exact, "position"),
        ("logarithmic", (distance >= exact) & (distance < open_from), "attention"),
        (f"from {open_from} on: all in one", distance >= open_from, "quiet"),
    ):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": offsets.astype(np.float32),
                "y": np.where(mask, buckets, np.nan).astype(np.float32),
                "line": {"color": colour(shade), "width": 2, "shape": "hvh"},
                "marker": {"size": 4, "color": colour(shade)},
                "connectgaps": False,
                "hovertemplate": "key − query = %{x}<br>bucket %{y}<extra></extra>",
            }
        )
    layout = base_layout(
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        xaxis={"title": {"text": "offset: key − query"}, "showgrid": False, "zeroline": True},
        yaxis={"title": {"text": "bucket"}, "rangemode": "tozero"},
    )
    return go.Figure({"data": traces, "layout": layout})


def _context_mark(context: int, low: float, high: float) -> dict[str, Any]:
    """Dotted lines where the training's context ends, if that is inside the picture; offsets reach to both
    sides.
    """
    line = {"color": colour("output"), "dash": "dot", "width": 1.5}
    ends = [x for x in (-context + 0.5, context - 0.5) if low <= x <= high]
    return {
        "shapes": [
            {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line} for x in ends
        ]
    }


def bias_lines(bias: np.ndarray, offsets: np.ndarray, context: int) -> go.Figure:
    """What each head adds at each offset: bias (head, offset). The dotted line is the end of the context that
    was trained.
    """
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"head {head}",
            "x": offsets.astype(np.float32),
            "y": row.astype(np.float32),
            "line": _head_line(head) | {"shape": "hvh"},
            "hovertemplate": "key − query = %{x}<br>bias %{y:.4f}<extra>" + f"head {head}" + "</extra>",
        }
        for head, row in enumerate(bias)
    ]
    layout = base_layout(
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        showlegend=len(bias) <= 8,
        xaxis={"title": {"text": "offset: key − query"}, "showgrid": False},
        yaxis={"title": {"text": "bias on the score"}, "zeroline": True},
        **_context_mark(context, float(offsets.min()), float(offsets.max())),
    )
    return go.Figure({"data": traces, "layout": layout})


def bias_by_head(bias: np.ndarray, offsets: np.ndarray, context: int) -> go.Figure:
    """The same as a picture: bias (head, offset), a row for each head."""
    most = float(np.abs(bias).max()) or 1.0
    heat = {
        "type": "heatmap",
        "x": offsets,
        "y": np.arange(len(bias)),
        "z": bias.astype(np.float32),
        "zmin": -most,
        "zmax": most,
        "zmid": 0,
        "colorscale": DIVERGING,
        "hovertemplate": "head %{y}, key − query = %{x}<br>bias %{z:.4f}<extra></extra>",
        "colorbar": {"title": {"text": "bias", "side": "right"}},
    }
    layout = base_layout(
        margin={"l": 52, "r": 8, "t": 12, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": "offset: key − query"}, "showgrid": False, "zeroline": False},
        yaxis={
            "title": {"text": "head"},
            "dtick": 1 if len(bias) <= 16 else 4,
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
        },
        **_context_mark(context, float(offsets.min()), float(offsets.max())),
    )
    return go.Figure({"data": [heat], "layout": layout})


def distance_bars(before: Sequence[float] | np.ndarray, after: Sequence[float] | np.ndarray) -> go.Figure:
    """How far each head of a layer looks without and with the bias: (head,), tokens."""
    traces = [
        {
            "type": "bar",
            "name": name,
            "x": np.arange(len(values)),
            "y": np.asarray(values, dtype=np.float32),
            "marker": {"color": colour(shade)},
            "hovertemplate": "head %{x}<br>" + name + ": %{y:.2f} tokens away<extra></extra>",
        }
        for name, values, shade in (("without the bias", before, "quiet"), ("with it", after, "position"))
    ]
    layout = base_layout(
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        barmode="group",
        bargap=0.25,
        xaxis={"title": {"text": "head"}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": "mean distance (tokens)"}, "rangemode": "tozero"},
    )
    return go.Figure({"data": traces, "layout": layout})
