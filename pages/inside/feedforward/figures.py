"""Arrays -> figures of neurons. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.measure.activations import ACTIVATIONS, Curve, Inputs
from ui.figures import specs as go
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import DIVERGING, SEQUENTIAL, base_layout, colour

CODE = 1_000_000  # layer * CODE + neuron is what a click on a cell sends
NO_BAR = {"showscale": False}
ROOM = 400  # pixels across, at least


def decode(clicked: str | None) -> tuple[int, int] | None:
    """(layer, neuron) of a cell that was clicked.

    >>> decode("2000017"), decode("nonsense")
    ((2, 17), None)
    """
    return (
        divmod(int(clicked), CODE)
        if clicked is not None and clicked.isdecimal() and len(clicked) < 12
        else None
    )


def distinct(labels: Sequence[str]) -> list[str]:
    """The labels, made different from each other by characters without width: an axis of categories then has
    a place for each.
    """
    return [
        plain(short(label, MOST_LETTERS)) + "".join("\u200b\u200c"[bit == "1"] for bit in f"{i:b}")
        for i, label in enumerate(labels)
    ]


def _tokens(labels: Sequence[str], **rest: Any) -> dict[str, Any]:
    """An axis of categories that are tokens, turned where they do not fit side by side."""
    return {
        "type": "category",
        "showgrid": False,
        "tickfont": {"size": 12},
        "tickangle": -90 if crowded(labels, ROOM) else 0,
    } | rest


def _shades(values: np.ndarray, signed: bool) -> dict[str, Any]:
    top = max(float(np.abs(values).max(initial=0.0)), 1e-9)
    return (
        {"colorscale": DIVERGING, "zmin": -top, "zmax": top}
        if signed
        else {"colorscale": SEQUENTIAL, "zmin": 0.0, "zmax": top}
    )


def overview(values: np.ndarray, chosen: tuple[int, int], *, signed: bool) -> go.Figure:
    """Every neuron of the model: values (layer, d_ff), its strongest activation on the text. A click on a
    cell names the neuron.
    """
    layers, width = values.shape
    codes = (np.arange(layers, dtype=np.int32)[:, None] * CODE + np.arange(width, dtype=np.int32)).astype(
        np.int32
    )
    cells = {
        "type": "heatmap",
        "z": values.astype(np.float32),
        "customdata": codes,
        "y": [f"layer {i}" for i in range(layers)],
        "hovertemplate": "%{y}, neuron %{x}<br>strongest: %{z:.3f}<extra></extra>",
        "ygap": 2,
        "colorbar": {"thickness": 12, "nticks": 5},
        **_shades(values, signed),
    }
    layout = base_layout(
        margin={"l": 60, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": "neuron"}, "showgrid": False},
        yaxis={"autorange": "reversed", "showgrid": False},
        shapes=[_frame(chosen[1], chosen[0])],
    )
    return go.Figure({"data": [cells], "layout": layout})


def layer_map(
    post: np.ndarray, neurons: np.ndarray, labels: Sequence[str], layer: int, chosen: int, *, signed: bool
) -> go.Figure:
    """Neurons down, tokens across: post (query, d_ff) of one layer, `neurons` which of them, in the order of
    the rows.
    """
    values = np.ascontiguousarray(post[:, neurons].T, dtype=np.float32)
    codes = np.broadcast_to((layer * CODE + neurons.astype(np.int32))[:, None], values.shape).astype(np.int32)
    cells = {
        "type": "heatmap",
        "z": values,
        "x": distinct(labels),
        "y": [f"{n}" for n in neurons],
        "customdata": codes,
        "hovertemplate": "neuron %{y} at “%{x}”: %{z:.3f}<extra></extra>",
        "colorbar": {"thickness": 12, "nticks": 5},
        **_shades(values, signed),
    }
    at = np.flatnonzero(neurons == chosen)
    frames = [{**_frame(0, int(at[0])), "xref": "paper", "x0": 0, "x1": 1}] if len(at) else []
    layout = base_layout(
        margin={"l": 56, "r": 8, "t": 8, "b": 40 + LETTER * crowded(labels, ROOM)},
        showlegend=False,
        shapes=frames,
        xaxis=_tokens(labels, title={"text": "token"}),
        yaxis={
            "type": "category",
            "autorange": "reversed",
            "showgrid": False,
            "tickfont": {"size": 12},
            "title": {"text": "neuron"},
        },
    )
    return go.Figure({"data": [cells], "layout": layout})


def _frame(x: int, y: int) -> dict[str, Any]:
    """A line around one cell."""
    line = {"color": colour("output"), "width": 2}
    return {
        "type": "rect",
        "x0": x - 0.5,
        "x1": x + 0.5,
        "y0": y - 0.5,
        "y1": y + 0.5,
        "line": line,
        "fillcolor": "rgba(0,0,0,0)",
    }


def activation_line(values: np.ndarray, labels: Sequence[str], at: int) -> go.Figure:
    """One neuron along the text: values (query,), `at` the chosen token."""
    names = distinct(labels)
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": names,
        "y": values.astype(np.float32),
        "line": {"color": colour("feedforward"), "width": 2},
        "marker": {"size": 5},
        "hovertemplate": "“%{x}”: %{y:.4f}<extra></extra>",
    }
    mark = {
        "type": "scatter",
        "mode": "markers",
        "x": [names[at]],
        "y": values[at : at + 1].astype(np.float32),
        "hoverinfo": "skip",
        "marker": {"size": 12, "color": colour("output"), "symbol": "circle-open", "line": {"width": 2}},
    }
    layout = base_layout(
        margin={"l": 56, "r": 8, "t": 8, "b": 40 + LETTER * crowded(labels, ROOM)},
        showlegend=False,
        xaxis=_tokens(labels, categoryarray=names, categoryorder="array"),
        yaxis={"title": {"text": "activation"}, "zeroline": True},
    )
    return go.Figure({"data": [line, mark], "layout": layout})


def token_bars(scores: np.ndarray, vocabulary: Sequence[str], count: int = 8) -> go.Figure:
    """The tokens that a write raises most and lowers most: scores (vocab,) in logits, zero-mean."""
    order = np.argsort(-scores, kind="stable")
    count = min(count, len(order) // 2)
    rows = [*order[:count], *order[len(order) - count :]]
    values = scores[rows].astype(np.float32)
    top = max(float(np.abs(values).max(initial=0.0)), 1e-9)
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": distinct([vocabulary[i] for i in rows]),
        "hovertemplate": "“%{y}”: %{x:+.4f}<extra></extra>",
        "marker": {
            "color": values,
            "colorscale": DIVERGING,
            "cmin": -top,
            "cmax": top,
            "line": {"width": 1, "color": colour("quiet")},
            **NO_BAR,
        },
    }
    layout = base_layout(
        margin={"l": 44, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.25,
        xaxis={"title": {"text": "logit per unit"}, "zeroline": True},
        yaxis={"type": "category", "autorange": "reversed", "tickfont": {"size": 14}, "nticks": len(rows)},
    )
    return go.Figure({"data": [bars], "layout": layout})


def share_bars(shares: np.ndarray) -> go.Figure:
    """A share in [0, 1] for each layer: shares (layer,)."""
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": shares.astype(np.float32),
        "y": [f"layer {i}" for i in range(len(shares))],
        "marker": {"color": colour("feedforward")},
        "text": [f"{s:.1%}" for s in shares],
        "textposition": "auto",
        "hovertemplate": "%{y}: %{x:.2%}<extra></extra>",
    }
    layout = base_layout(
        margin={"l": 60, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.3,
        xaxis={"range": [0, 1], "tickformat": ".0%", "title": {"text": "quiet activations"}},
        yaxis={"autorange": "reversed"},
    )
    return go.Figure({"data": [bars], "layout": layout})


# Activation functions ---------------------------------------------------------------------------

SHADES = {"relu": "run1", "relu2": "run2", "gelu": "validation", "gelu_tanh": "run3", "silu": "training"}


def function_curves(
    curves: Sequence[Curve], own: str | None, inputs: Inputs | None, *, slopes: bool
) -> go.Figure:
    """Activation functions, or their slopes; `own` is drawn thicker. Behind them, how the model's own inputs
    are spread.
    """
    behind = []
    if inputs is not None:
        middles = (inputs.edges[:-1] + inputs.edges[1:]) / 2
        behind = [
            {
                "type": "bar",
                "x": middles,
                "y": inputs.density,
                "yaxis": "y2",
                "width": np.diff(inputs.edges),
                "name": "model's inputs",
                "marker": {"color": colour("feedforward", 30)},
                "hovertemplate": "density of inputs at %{x:.2f}: %{y:.3f}<extra></extra>",
            }
        ]
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": c.x.astype(np.float32),
            "y": (c.slope if slopes else c.y).astype(np.float32),
            "name": ACTIVATIONS[c.name][0],
            "line": {
                "color": colour(SHADES[c.name]),
                "width": 4 if c.name == own else 2,
                "dash": "dash" if c.name == "gelu_tanh" else "solid",
            },
            "hovertemplate": "%{fullData.name} at %{x:.2f}: %{y:.4f}<extra></extra>",
        }
        for c in curves
    ]
    high = max([float(np.max(c.slope if slopes else c.y)) for c in curves], default=1.0)
    reach = float(curves[0].x[-1]) if curves else 4.0
    top = min(high, 3.0 if slopes else 1.25 * reach)  # squared ReLU would press the others flat
    low = -0.22 if slopes else -0.45
    tallest = float(inputs.density.max()) if inputs is not None and inputs.density.size else 1.0
    layout = base_layout(
        uirevision=f"functions-{reach}",
        margin={"l": 48, "r": 8, "t": 64, "b": 44},
        bargap=0,
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "xanchor": "left",
            "yanchor": "bottom",
            "entrywidth": 96,
        },
        xaxis={"title": {"text": "input x"}, "range": [-reach, reach]},
        yaxis={
            "title": {"text": "slope" if slopes else "output"},
            "range": [low, top * 1.05],
            "overlaying": "y2",
            "tickmode": "auto",
            "nticks": 6,
        },
        yaxis2={
            "visible": False,
            "range": [low * 2.2 * max(tallest, 1e-9) / (top * 1.05), 2.2 * max(tallest, 1e-9)],
            "fixedrange": True,
        },
    )
    return go.Figure({"data": [*behind, *lines], "layout": layout})


def difference_line(x: np.ndarray, difference: np.ndarray) -> go.Figure:
    """tanh GELU minus exact GELU: both (points,)."""
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": x.astype(np.float32),
        "y": difference.astype(np.float32),
        "line": {"color": colour("feedforward"), "width": 2},
        "hovertemplate": "at %{x:.2f}: %{y:.2e}<extra></extra>",
    }
    axes = {
        "xaxis": {"title": {"text": "input x"}},
        "yaxis": {"title": {"text": "tanh − exact"}, "tickformat": ".0e"},
    }
    return go.Figure(
        {
            "data": [line],
            "layout": base_layout(margin={"l": 76, "r": 8, "t": 8, "b": 44}, showlegend=False, **axes),
        }
    )


def gated_map(
    axis: np.ndarray, surface: np.ndarray, points: tuple[np.ndarray, np.ndarray] | None
) -> go.Figure:
    """What a gated neuron gives: surface (value, gate) over axis (points,), with contours. `points` are
    (gates, values) of a model.
    """
    top = float(np.abs(surface).max())
    shades = {"colorscale": DIVERGING, "zmin": -top, "zmax": top}
    hover = "gate %{x:.2f}, value %{y:.2f}: %{z:.3f}<extra></extra>"
    lines = {
        "coloring": "none",
        "showlabels": True,
        "labelfont": {"size": 12},
        "start": -12,
        "end": 12,
        "size": 2,
    }
    small = axis.astype(np.float32)
    grid = {"x": small, "y": small, "z": surface}
    data: list[dict[str, Any]] = [
        grid
        | {
            "type": "heatmap",
            "hovertemplate": hover,
            "colorbar": {"thickness": 12, "nticks": 7},
            "zsmooth": "fast",
            **shades,
        },
        grid
        | {
            "type": "contour",
            "contours": lines,
            "line": {"color": colour("quiet"), "width": 1},
            "hoverinfo": "skip",
            **NO_BAR,
        },
    ]
    if points is not None:
        x, y = (p.astype(np.float32) for p in points)
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": x,
                "y": y,
                "marker": {"color": colour("feedforward", 70), "size": 4},
                "hoverinfo": "skip",
            }
        )
    reach = [float(axis[0]), float(axis[-1])]
    layout = base_layout(
        margin={"l": 52, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": "gate"}, "range": reach},
        yaxis={"title": {"text": "value"}, "range": reach},
    )
    return go.Figure({"data": data, "layout": layout})


def gated_slices(axis: np.ndarray, surface: np.ndarray) -> go.Figure:
    """The same as lines over the gate, one for each of five values."""
    rows = np.linspace(0, len(axis) - 1, 5).round().astype(int)
    names = ("run0", "run1", "quiet", "run3", "training")
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": axis.astype(np.float32),
            "y": surface[row],
            "name": "value " + f"{axis[row] + 0.0:.1f}".replace("-", "−"),
            "line": {"color": colour(name), "width": 2},
            "hovertemplate": "gate %{x:.2f}: %{y:.3f}",
        }
        for row, name in zip(rows, names, strict=True)
    ]
    axes = {"xaxis": {"title": {"text": "gate"}}, "yaxis": {"title": {"text": "output"}}}
    return go.Figure(
        {"data": lines, "layout": base_layout(margin={"l": 52, "r": 8, "t": 34, "b": 44}, **axes)}
    )


# Parameters -------------------------------------------------------------------------------------

PARTS = {"attention": "attention", "feedforward": "feed-forward", "norm": "norms"}


def block_bars(rows: Sequence[tuple[str, dict[str, int]]]) -> go.Figure:
    """Parameters of one block, part by part, one bar a row: rows of (name, part of PARTS -> count)."""
    names = [name for name, _ in rows]
    bars = []
    for part, label in PARTS.items():
        counts = [counts[part] for _, counts in rows]
        shares = [count / max(sum(row.values()), 1) for count, (_, row) in zip(counts, rows, strict=True)]
        bars.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": np.array(counts, dtype=np.float64),
                "name": label,
                "marker": {"color": colour(part)},
                "text": [f"{share:.1%}" if share > 0.06 else "" for share in shares],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "customdata": shares,
                "hovertemplate": f"{label}: %{{x:,.0f}} (%{{customdata:.2%}})<extra></extra>",
            }
        )
    layout = base_layout(
        barmode="stack",
        margin={"l": 130, "r": 16, "t": 34, "b": 44},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "traceorder": "normal"},
        bargap=0.3,
        uniformtext={"minsize": 12, "mode": "hide"},
        xaxis={"title": {"text": "parameters in one block"}, "tickformat": "~s"},
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    return go.Figure({"data": bars, "layout": layout})


def share_line(
    ratios: np.ndarray, plain: np.ndarray, gated: np.ndarray, marks: Sequence[tuple[float, float, str, str]]
) -> go.Figure:
    """The feed-forward share of a block over d_ff / d_model: both kinds (ratios,), and points (ratio, share,
    name, side of the name).
    """
    hover = "%{fullData.name}, d_ff = %{x:.2f} d: %{y:.1%}<extra></extra>"
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": ratios,
            "y": y,
            "name": name,
            "hovertemplate": hover,
            "line": {"color": colour("feedforward"), "width": 2, "dash": dash},
        }
        for y, name, dash in ((plain, "two matrices", "solid"), (gated, "three matrices (gated)", "dash"))
    ]
    dots = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [m[0] for m in marks],
        "y": [m[1] for m in marks],
        "text": [m[2] for m in marks],
        "textposition": [m[3] for m in marks],
        "marker": {"size": 10, "color": colour("output")},
        "showlegend": False,
        "cliponaxis": False,
        "hovertemplate": "%{text}: %{y:.2%}<extra></extra>",
    }
    layout = base_layout(
        margin={"l": 56, "r": 16, "t": 34, "b": 44},
        xaxis={"title": {"text": "d_ff / d_model"}},
        yaxis={"title": {"text": "share of a block"}, "range": [0, 1], "tickformat": ".0%"},
    )
    return go.Figure({"data": [*lines, dots], "layout": layout})
