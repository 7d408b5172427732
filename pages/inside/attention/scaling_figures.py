"""Arrays -> figures of the division by the square root, and of comparing tokens as they are. Pure"
" functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.measure.scaling import OneQuery, Scaled
from engine.measure.self_term import Compared
from ui.figures import specs as go
from ui.figures.theme import SEQUENTIAL, base_layout, colour

SCALED = ("quiet", "attention")  # without the scale, with it


def scaling_curves(curves: Mapping[str, Scaled], here: Mapping[str, Scaled], most: float) -> go.Figure:
    """Spread, entropy and two sizes of the gradient over d_k (logarithmic); `here`, one d_k, is marked;
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
    shapes: list[dict[str, Any]] = [
        {
            "type": "line",
            "xref": "x2 domain",
            "yref": "y2",
            "x0": 0,
            "x1": 1,
            "y0": most,
            "y1": most,
            "line": dashed,
        }
    ]
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
                | {
                    "mode": "markers",
                    "marker": {"size": 11, "color": colour(shade)},
                }
            )
        under = {
            "title": {"text": "d_k"},
            "tickvals": [1, 8, 64, 512],
            "anchor": f"y{axis}",
            "showgrid": False,
        }
        axes[f"xaxis{axis}"] = {"type": "log", "domain": [left, left + 0.46]} | under
        small: dict[str, Any] = {"nticks": 5, "tickformat": ".0e" if field == "slope" else "~g"}
        axes[f"yaxis{axis}"] = {
            "rangemode": "tozero",
            "anchor": f"x{axis}",
            "domain": [bottom, bottom + 0.36],
        } | small
        where = {
            "xref": "paper",
            "yref": "paper",
            "x": left,
            "y": bottom + 0.37,
            "xanchor": "left",
            "yanchor": "bottom",
            "showarrow": False,
        }
        notes.append({"text": title} | where)
        shapes.append(
            {
                "type": "line",
                "xref": f"x{axis}",
                "yref": f"y{axis} domain",
                "x0": chosen,
                "x1": chosen,
                "y0": 0,
                "y1": 1,
                "line": dotted,
            }
        )
    for i, found in enumerate(curves.values()):
        theory = _curve("theory", found.widths, found.expected, "validation", "", i == 0)
        traces.append(theory | {"mode": "lines", "line": dashed})
    legend = {"orientation": "h", "x": 0, "y": 1.04, "yanchor": "bottom"}
    layout = base_layout(
        margin={"l": 52, "r": 8, "t": 44, "b": 46}, shapes=shapes, annotations=notes, legend=legend
    )
    return go.Figure({"data": traces, "layout": layout | axes})


def _curve(name: str, x: np.ndarray, y: np.ndarray, shade: str, axis: str, legend: bool) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": y,
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "showlegend": legend,
        "legendgroup": name,
        "line": {"color": colour(shade), "width": 2},
        "marker": {"size": 5},
        "hovertemplate": "d_k %{x}<br>%{y:.4g}<extra>" + name + "</extra>",
    }


def query_bars(query: OneQuery) -> go.Figure:
    """The weights of one query, left as the scores are, right divided by sqrt(d_k): one bar for each key, in
    the same places and on the same scale; the key that wins on the left stands out in both.
    """
    traces: list[dict[str, Any]] = []
    keys = np.arange(1, len(query.plain) + 1)
    for axis, values in (("", query.plain), ("2", query.scaled)):
        shades = [colour("attention") if i == query.best else colour("quiet") for i in range(len(keys))]
        traces.append(
            {
                "type": "bar",
                "x": keys,
                "y": values.astype(np.float32),
                "xaxis": f"x{axis}",
                "yaxis": f"y{axis}",
                "marker": {"color": shades},
                "customdata": query.scores,
                "text": [f"{v:.0%}" if v >= 0.05 else "" for v in values],
                "textposition": "outside",
                "textfont": {"size": 12},
                "constraintext": "none",
                "cliponaxis": False,
                "hovertemplate": "key %{x}<br>score %{customdata:.2f}<br>weight %{y:.4f}<extra></extra>",
            }
        )
    titles = ("not scaled: softmax(q·k)", f"divided by √d_k = {query.spread:.3g}")
    notes = [_panel_title(title, left, 15) for title, left in zip(titles, (0, 0.54), strict=True)]
    axes: dict[str, Any] = {}
    for axis, domain in (("", [0, 0.46]), ("2", [0.54, 1])):
        axes[f"xaxis{axis}"] = {
            "title": {"text": "key"},
            "domain": domain,
            "anchor": f"y{axis}",
            "showgrid": False,
            "tickvals": keys[::3],
        }
        axes[f"yaxis{axis}"] = {
            "title": {"text": "weight" if not axis else ""},
            "range": [0, 1.08],
            "tickformat": ".0%",
            "anchor": f"x{axis}",
        }
    layout = base_layout(
        margin={"l": 56, "r": 8, "t": 34, "b": 44}, showlegend=False, annotations=notes, bargap=0.15
    )
    return go.Figure({"data": traces, "layout": layout | axes})


def compared_maps(found: Sequence[Compared], titles: Sequence[str], labels: Sequence[str]) -> go.Figure:
    """The weights (query, key) of each way to compare, side by side, on one scale."""
    traces: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for i, (one, title) in enumerate(zip(found, titles, strict=True)):
        axis, left = "" if i == 0 else str(i + 1), 0.345 * i
        traces.append(
            {
                "type": "heatmap",
                "z": one.weights.astype(np.float32),
                "x": np.arange(len(labels)),
                "y": np.arange(len(labels)),
                "xaxis": f"x{axis}",
                "yaxis": f"y{axis}",
                "zmin": 0,
                "zmax": 1,
                "colorscale": SEQUENTIAL,
                "showscale": False,
                "customdata": one.scores,
                "hovertemplate": "score %{customdata:.2f}<br>weight %{z:.4f}<extra></extra>",
                "xgap": 1,
                "ygap": 1,
            }
        )
        place: dict[str, Any] = {
            "tickvals": np.arange(len(labels)),
            "ticktext": list(labels),
            "showgrid": False,
        }
        axes[f"xaxis{axis}"] = place | {
            "domain": [left, left + 0.31],
            "anchor": f"y{axis}",
            "tickangle": -90,
            "zeroline": False,
        }
        axes[f"yaxis{axis}"] = place | {
            "anchor": f"x{axis}",
            "autorange": "reversed",
            "showticklabels": not axis,
            "zeroline": False,
        }
        notes.append(_panel_title(title, left, 14))
    layout = base_layout(margin={"l": 56, "r": 8, "t": 34, "b": 56}, showlegend=False, annotations=notes)
    return go.Figure({"data": traces, "layout": layout | axes})


def _panel_title(title: str, left: float, size: int) -> dict[str, Any]:
    """The words above a panel that begins at `left`, a share of the figure's width."""
    return {
        "text": f"<b>{title}</b>",
        "xref": "paper",
        "yref": "paper",
        "x": left,
        "y": 1.02,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": size},
    }
