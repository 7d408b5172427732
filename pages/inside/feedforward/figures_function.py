"""Arrays -> figures of activation functions, and of gates. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.measure.feedforward.activation_functions import Curve, Inputs
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.text.numbers import minus

SHADES = {"relu": "run1", "relu2": "run2", "gelu": "validation", "gelu_tanh": "run3", "silu": "training"}


def function_curves(
    curves: Sequence[Curve], highlighted: str | None, inputs: Inputs | None, *, slopes: bool
) -> go.Figure:
    """Draws activation functions or their slopes; `highlighted` is drawn thicker. Behind them, the
    distribution of the model's own inputs.
    """
    behind = []
    if inputs is not None:
        middles = (inputs.edges[:-1] + inputs.edges[1:]) / 2
        behind = [
            go.Bar(
                x=middles,
                y=inputs.density,
                yaxis="y2",
                width=np.diff(inputs.edges),
                name="model's inputs",
                marker={"color": colour("feedforward", 30)},
                hovertemplate="density of inputs at %{x:.2f}: %{y:.3f}<extra></extra>",
            )
        ]
    lines = [
        go.line(
            c.x.astype(np.float32),
            (c.slope if slopes else c.y).astype(np.float32),
            SHADES.get(c.name, "feedforward"),
            c.written,
            width=4 if c.name == highlighted else 2,
            dash="dash" if c.name == "gelu_tanh" else "solid",
            hovertemplate="%{fullData.name} at %{x:.2f}: %{y:.4f}<extra></extra>",
        )
        for c in curves
    ]
    high = max([float(np.max(c.slope if slopes else c.y)) for c in curves], default=1.0)
    reach = float(curves[0].x[-1]) if curves else 4.0
    top = min(high, 3.0 if slopes else 1.25 * reach)  # squared ReLU would press the others flat
    low = -0.22 if slopes else -0.45
    tallest = float(inputs.density.max()) if inputs is not None and inputs.density.size else 1.0
    return go.figure(
        [*behind, *lines],
        uirevision=f"functions-{reach}",
        margin={"l": 48, "r": 8, "t": 64, "b": 44},
        bargap=0,
        legend={"entrywidth": 96},
        xaxis={"title": {"text": "input x"}, "range": [-reach, reach]},
        yaxis=go.axis(
            "slope" if slopes else "output",
            showgrid=True,
            range=[low, top * 1.05],
            overlaying="y2",
            tickmode="auto",
            nticks=6,
        ),
        yaxis2={
            "visible": False,
            "range": [low * 2.2 * max(tallest, 1e-9) / (top * 1.05), 2.2 * max(tallest, 1e-9)],
            "fixedrange": True,
        },
    )


def difference_line(x: np.ndarray, difference: np.ndarray) -> go.Figure:
    """Draws tanh GELU minus exact GELU: both (points,)."""
    x, difference = x.astype(np.float32), difference.astype(np.float32)
    return go.figure(
        [go.line(x, difference, "feedforward", "", "at %{x:.2f}: %{y:.3~g}")],
        margin={"l": 76, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": "input x"}},
        yaxis={"title": {"text": "tanh − exact"}, "exponentformat": "power"},
    )


def gated_map(
    axis: np.ndarray, surface: np.ndarray, points: tuple[np.ndarray, np.ndarray] | None
) -> go.Figure:
    """Draws the output of a gated neuron: surface (value, gate) over axis (points,), with contours. `points`
    are (gates, values) of a model.
    """
    hover = "gate %{x:.2f}, value %{y:.2f}: %{z:.3f}<extra></extra>"
    lines = dict(coloring="none", showlabels=True, labelfont={"size": 12}, start=-12, end=12, size=2)
    small = axis.astype(np.float32)
    bar = {"thickness": 12, "nticks": 7}
    heat = go.signed(surface, x=small, y=small, hovertemplate=hover, colorbar=bar, zsmooth="fast")
    data = [
        heat,
        {
            "type": "contour",
            "x": small,
            "y": small,
            "z": surface,
            "contours": lines,
            "line": {"color": colour("quiet"), "width": 1},
            "hoverinfo": "skip",
            "showscale": False,
        },
    ]
    if points is not None:
        x, y = (p.astype(np.float32) for p in points)
        data.append(
            go.Scatter(
                mode="markers",
                x=x,
                y=y,
                marker={"color": colour("feedforward", 70), "size": 4},
                hoverinfo="skip",
            )
        )
    reach = [float(axis[0]), float(axis[-1])]
    return go.figure(
        data,
        margin={"l": 52, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": "gate"}, "range": reach},
        yaxis={"title": {"text": "value"}, "range": reach},
    )


def gated_slices(axis: np.ndarray, surface: np.ndarray) -> go.Figure:
    """Draws the same as lines over the gate, one for each of five values."""
    rows = np.linspace(0, len(axis) - 1, 5).round().astype(int)
    shades = ("run0", "run1", "quiet", "run3", "training")
    lines = [
        go.line(
            axis.astype(np.float32),
            surface[row],
            shade,
            f"value {minus(f'{axis[row] + 0.0:.1f}')}",
            "gate %{x:.2f}: %{y:.3f}",
        )
        for row, shade in zip(rows, shades, strict=True)
    ]
    return go.figure(
        lines,
        margin={"l": 52, "r": 8, "t": 34, "b": 44},
        xaxis={"title": {"text": "gate"}},
        yaxis={"title": {"text": "output"}},
    )
