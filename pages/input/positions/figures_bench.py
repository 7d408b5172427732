"""Arrays -> figures of the position schemes side by side: what each knows of distance, and the loss by
position. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.measure.positions.extrapolation import UNITS, Curve, Unit, above_tail
from engine.measure.positions.schemes import Similarity
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour

SCHEME_COLOURS = dict(
    none="quiet", sinusoidal="run2", learned="run3", rope="training", alibi="run0", t5="validation"
)
SCHEME_SYMBOLS = dict(
    none="x", sinusoidal="diamond", learned="square", rope="triangle-up", alibi="circle", t5="cross"
)
HIGHEST = 6.0  # nats: where the axis ends at the latest; knowing nothing is ln 65 = 4.17


@dataclass(frozen=True, eq=False)
class Line:
    """A scheme's curve, or that of a stopgap for it; `others` are its curves from other seeds."""

    name: str
    scheme: str
    curve: Curve
    stopgap: bool = False
    partial: bool = False
    others: Sequence[Curve] = ()


def similarity_panels(
    panels: Mapping[str, tuple[str, Similarity, Similarity | None]], context: int, reach: int
) -> go.Figure:
    """Draws scheme -> (title, at initialisation, after training): a panel each, three in a row, all on one
    axis from 0 to `reach`.
    """
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    notes, shapes = [], []
    rows = max(1, -(-len(panels) // 3))
    for i, (scheme, (title, fresh, trained)) in enumerate(panels.items()):
        axis, column, row = "" if i == 0 else str(i + 1), i % 3, i // 3
        left, top = column * 0.35, 1 - 0.09 - row * 1.09 / rows
        bottom = max(0.0, top - 1 / rows + 0.19)
        shade = SCHEME_COLOURS[scheme]
        for drawn, when in ((trained, "after training"), (fresh, "untrained")):
            traces += [] if drawn is None else _panel_lines(drawn, when, shade, axis)
        axes[f"xaxis{axis}"] = {
            "domain": [left, left + 0.3],
            "range": [0, reach],
            "anchor": f"y{axis}",
            "showgrid": False,
            "zeroline": False,
            "tickvals": [0, context, 2 * context, 4 * context],
            "title": {"text": "distance" if row == rows - 1 or i + 3 >= len(panels) else "", "standoff": 4},
        }
        axes[f"yaxis{axis}"] = dict(
            domain=[bottom, top], range=[-0.35, 1.12], anchor=f"x{axis}", tickvals=[0, 0.5, 1]
        )
        where = {
            "xref": "paper",
            "yref": "paper",
            "x": left,
            "y": top + 0.01,
            "xanchor": "left",
            "yanchor": "bottom",
            "showarrow": False,
        }
        notes.append({"text": f"<b>{title}</b> · {fresh.quantity}", "font": {"size": 13}} | where)
        shapes.append(
            {
                "type": "line",
                "xref": f"x{axis}",
                "yref": f"y{axis} domain",
                "x0": context,
                "x1": context,
                "y0": 0,
                "y1": 1,
                "line": {"color": colour("quiet"), "width": 1, "dash": "dot"},
            }
        )
    layout = base_layout(
        margin={"l": 36, "r": 8, "t": 4, "b": 40}, showlegend=False, annotations=notes, shapes=shapes
    )
    return go.Figure({"data": traces, "layout": layout | axes})


def _panel_lines(similarity: Similarity, when: str, shade: str, axis: str) -> list[dict[str, Any]]:
    fresh = when == "untrained"
    return [
        go.Scatter(
            mode="lines",
            x=similarity.distance,
            y=values.astype(np.float32),
            xaxis=f"x{axis}",
            yaxis=f"y{axis}",
            name=name,
            line=dict(color=colour(shade), width=2 if fresh else 1.5, dash="solid" if fresh else "dot"),
            opacity=1 if fresh else 0.9,
            hovertemplate=f"distance %{{x}}<br>%{{y:.4f}}<extra>{when}, {name}</extra>",
        )
        for name, values in zip(similarity.lines, similarity.values, strict=True)
    ]


def position_losses(
    lines: Sequence[Line], context: int, *, unit: Unit = "nats", above: bool = False
) -> go.Figure:
    """Loss by position, with a band of one standard error, all in `unit`; `above` draws what is above each
    model's own sliding window.

    Dotted, from `context` on: what a window that slides along gets.
    """
    traces: list[dict[str, Any]] = []
    for rank, line in sorted(
        enumerate(lines), key=lambda pair: np.isnan(pair[1].curve.mean).any()
    ):  # what ends early lies on top, where its end is seen
        c, error = line.curve, line.curve.error
        x, y = c.first + (c.width - 1) / 2, _drawn(c, above)
        shade = SCHEME_COLOURS[line.scheme]
        traces += [_thin(other, line) for other in line.others]
        there = np.isfinite(y)
        band = there & np.isfinite(error)
        if band.any():
            edge = np.concatenate((x[band], x[band][::-1]))
            traces.append(
                go.Scatter(
                    x=edge,
                    y=np.concatenate((y[band] + error[band], (y[band] - error[band])[::-1])),
                    fill="toself",
                    mode="lines",
                    line={"width": 0},
                    fillcolor=colour(shade, 20),
                    hoverinfo="skip",
                    showlegend=False,
                    legendgroup=line.name,
                )
            )
        traces.append(
            go.Scatter(
                mode="lines+markers" if c.width > 1 else "lines",
                x=x[there],
                y=y[there].astype(np.float32),
                name=line.name,
                legendgroup=line.name,
                customdata=_places(c)[there],
                opacity=0.55 if line.partial else 1.0,
                line={"color": colour(shade), "width": 2, "dash": "dash" if line.stopgap else "solid"},
                legendrank=rank,
                marker={
                    "size": _sizes(there),
                    "line": {"width": 0},
                    "symbol": SCHEME_SYMBOLS[line.scheme] + ("-open" if line.stopgap else ""),
                },
                hovertemplate=f"%{{y:.3f}} {unit}, positions %{{customdata}}",
            )
        )
        if not line.stopgap and not above:
            traces.append(
                go.Scatter(
                    mode="lines",
                    x=[context, len(c.mean) * c.width],
                    y=[c.tail[0]] * 2,
                    showlegend=False,
                    legendgroup=line.name,
                    line={"color": colour(shade), "width": 1.2, "dash": "dot"},
                    hoverinfo="skip",
                )
            )
    low, high = _range(lines, unit, above)
    end = max([len(line.curve.mean) * line.curve.width for line in lines], default=4 * context)
    rules = [(t * context, "solid" if t == 1 else "dot") for t in range(1, end // context)]
    shapes = [
        go.rule(x=at, layer="below", line={"color": colour("quiet"), "width": 1.2, "dash": dash})
        for at, dash in rules
    ]
    note = go.note(f"training length ({context})", context, 1, yref="paper", xanchor="left", yanchor="top")
    return go.figure(
        traces,
        uirevision=f"bench-{unit}-{above}",
        margin={"l": 48, "r": 12, "t": 52, "b": 44},
        hovermode="x",
        shapes=shapes,
        annotations=[note | {"xshift": 5, "font": {"color": colour("quiet"), "size": 12}}],
        xaxis=go.axis(
            "position", range=[0, end], tickvals=np.arange(0, end + 1, context // 2), zeroline=False
        ),
        yaxis=go.axis(
            f"{'excess loss' if above else 'loss'} ({unit} per character)",
            showgrid=True,
            range=[low, high],
        ),
    )


def _thin(curve: Curve, line: Line) -> dict[str, Any]:
    """A thin line for the curve of another seed."""
    return go.Scatter(
        mode="lines",
        x=curve.first + (curve.width - 1) / 2,
        y=curve.mean.astype(np.float32),
        line={"color": colour(SCHEME_COLOURS[line.scheme]), "width": 1},
        opacity=0.55,
        hoverinfo="skip",
        showlegend=False,
        legendgroup=line.name,
    )


def _sizes(there: np.ndarray) -> np.ndarray:
    """Returns the sizes of the markers in pixels: where a curve ends before the axis does, its last one is
    large.
    """
    sizes = np.full(np.count_nonzero(there), 6)
    if sizes.size and not there.all():
        sizes[-1] = 14
    return sizes


def _places(curve: Curve) -> np.ndarray:
    """Which positions a bin holds, as words: (bin,)"""
    return np.array(
        [str(a) if curve.width == 1 else f"{a} to {a + curve.width - 1}" for a in curve.first.tolist()]
    )


def _drawn(curve: Curve, above: bool) -> np.ndarray:
    """(bin,): the loss, or what is above the model's own sliding window."""
    return above_tail(curve) if above else curve.mean


def _range(lines: Sequence[Line], unit: Unit, above: bool) -> tuple[float, float]:
    """Holds all that is finite, but the first bin, where nothing has been read yet, only as far as it fits
    below HIGHEST.
    """
    values, scale = [_drawn(line.curve, above) for line in lines], UNITS[unit]
    every = np.concatenate(values) if values else np.zeros(1)
    every = every[np.isfinite(every)]
    if not every.size:
        return 0.0, HIGHEST * scale
    low, high = float(every.min()), min(float(every.max()), HIGHEST * scale)
    room = 0.06 * max(high - low, 0.2 * scale)
    return low - room, high + room
