"""Arrays -> figures of the division by the square root. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.measure.attention.scaling import SampleQuery, ScoreScaling
from ui.figures import specs as go
from ui.figures.theme import colour

SCALED = ("quiet", "attention")  # without the scale, with it


def scaling_curves(
    curves: Mapping[str, ScoreScaling], here: Mapping[str, ScoreScaling], most: float
) -> go.Figure:
    """Draws spread, entropy and two sizes of the gradient over d_k (logarithmic); `here`, one d_k, is marked;
    `most`: the largest possible entropy.
    """
    chosen = float(next(iter(here.values())).widths[0])
    panels = (
        ("spread of the scores", "spread"),
        ("entropy (nats)", "entropy"),
        ("gradient, ‖∂p/∂s‖", "jacobian"),
        ("mean |∂pᵢ/∂sⱼ|", "slope"),
    )
    dashed = {"color": colour("validation"), "width": 1.5, "dash": "dash"}
    dotted = {"color": colour("quiet"), "width": 1, "dash": "dot"}
    traces: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = [go.rule(y=most, xref="x2 domain", yref="y2", line=dashed)]
    notes, axes = [], {}
    for i, (title, field) in enumerate(panels):
        axis, left, bottom = "" if i == 0 else str(i + 1), 0.54 * (i % 2), 0.58 * (1 - i // 2)
        traces += [
            _curve(name, c.widths, getattr(c, field), shade, axis, i == 0)
            for shade, (name, c) in zip(SCALED, curves.items(), strict=False)
        ]
        for shade, (name, c) in zip(SCALED, here.items(), strict=False):
            traces.append(
                _curve(name, c.widths, getattr(c, field), shade, axis, False)
                | dict(mode="markers", marker={"size": 11, "color": colour(shade)})
            )
        under = go.axis("d_k", tickvals=[1, 8, 64, 512], anchor=f"y{axis}")
        axes[f"xaxis{axis}"] = {"type": "log", "domain": [left, left + 0.46]} | under
        small: dict[str, Any] = {"nticks": 5} | (
            {"exponentformat": "power"} if field == "slope" else {"tickformat": "~g"}
        )
        axes[f"yaxis{axis}"] = (
            dict(rangemode="tozero", anchor=f"x{axis}", domain=[bottom, bottom + 0.36]) | small
        )
        notes.append(go.heading(title, left, bottom + 0.37))
        shapes.append(go.rule(x=chosen, xref=f"x{axis}", yref=f"y{axis} domain", line=dotted))
    for i, measured in enumerate(curves.values()):
        theory = _curve("theory", measured.widths, measured.expected, "validation", "", i == 0)
        traces.append(theory | {"mode": "lines", "line": dashed})
    margin = {"l": 52, "r": 8, "t": 44, "b": 46}
    return go.figure(traces, margin=margin, shapes=shapes, annotations=notes, legend={"y": 1.04}, **axes)


def _curve(name: str, x: np.ndarray, y: np.ndarray, shade: str, axis: str, legend: bool) -> dict[str, Any]:
    return go.line(
        x,
        y,
        shade,
        name,
        "d_k %{x}<br>%{y:.4g}",
        points=5,
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        showlegend=legend,
        legendgroup=name,
    )


def query_bars(query: SampleQuery, divided: bool) -> go.Figure:
    """Draws the weights of one query, as the scores are or `divided` by sqrt(d_k): one bar for each key, in
    the same places and on the same scale both ways; the key that wins undivided stands out in both.
    """
    values = query.scaled if divided else query.plain
    keys = np.arange(1, len(values) + 1)
    numbered = labelled(values)
    bars = go.Bar(
        x=keys,
        y=values.astype(np.float32),
        marker={"color": [colour("attention") if i == query.best else colour("quiet") for i in keys - 1]},
        customdata=query.scores,
        text=[f"{v:.0%}" if i in numbered else "" for i, v in enumerate(values)],
        textposition="outside",
        textfont={"size": 12},
        constraintext="none",
        cliponaxis=False,
        hovertemplate="key %{x}<br>score %{customdata:.2f}<br>weight %{y:.4f}<extra></extra>",
    )
    title = f"divided by √d_k = {query.spread:.3g}" if divided else "unscaled: softmax(q·k)"
    return go.figure(
        [bars],
        margin={"l": 56, "r": 8, "t": 34, "b": 44},
        showlegend=False,
        annotations=[go.heading(f"<b>{title}</b>", y=1.02, font={"size": 15})],
        bargap=0.15,
        xaxis=go.axis("key", tickvals=keys[::3]),
        yaxis={"title": {"text": "weight"}, "range": [0, 1.08], "tickformat": ".0%"},
    )


def labelled(values: np.ndarray, least: float = 0.05) -> set[int]:
    """Returns the bars that say their number: the highest first, none beside another, none below `least`.

    >>> sorted(labelled(np.array([0.1, 0.3, 0.2, 0.04, 0.36])))
    [1, 4]
    """
    numbered: set[int] = set()
    for i in np.argsort(-values, kind="stable").tolist():
        if values[i] >= least and not numbered & {i - 1, i + 1}:
            numbered.add(i)
    return numbered
