"""Arrays -> figures of embeddings. Pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.patterns import token_axis
from ui.figures.theme import DIVERGING, SEQUENTIAL, base_layout, colour

MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
# A class has a colour *and* a shape, so that it can be told without the colour.
CLASS_COLOURS = ("run4", "validation", "training", "run3", "run0", "run1", "run2", "quiet")
CLASS_SYMBOLS = ("circle", "square", "diamond", "star", "triangle-up", "hexagon", "cross", "x")
# By name: a class that two kinds of vocabulary share looks alike in both.
_ORDER = {
    "vowels": 0,
    "consonants": 1,
    "capitals": 2,
    "digits": 3,
    "punctuation": 4,
    "whitespace": 5,
    "other": 7,
    "begins a word": 1,
    "inside a word": 0,
    "capitalised": 2,
    "part of a character": 6,
}


def class_look(name: str) -> tuple[str, str]:
    """(name of its colour, symbol) of a class of tokens."""
    index = _ORDER.get(name, 7)
    return CLASS_COLOURS[index], CLASS_SYMBOLS[index]


# The lookup -------------------------------------------------------------------------------------


def lookup_figure(
    table: np.ndarray,
    table_labels: Sequence[str],
    rows: np.ndarray,
    labels: Sequence[str],
    picked: np.ndarray,
    chosen: int,
    reach: float,
) -> go.Figure:
    """E (row, d_model) on the left, the text's rows of it (query, d_model) on the right; a line from each row
    to the places it is copied to.

    `picked` (query,) is the row of `table` that each position takes; `chosen` is the position that stands
    out; `reach` the end of the colour scale.
    """
    height, length, width = len(table), len(rows), table.shape[1]
    scale = {"zmin": -reach, "zmax": reach, "colorscale": DIVERGING}
    bar = {
        "orientation": "h",
        "x": 0.49,
        "xanchor": "center",
        "y": 0,
        "yanchor": "top",
        "len": 0.11,
        "thickness": 10,
        "ypad": 8,
    }
    bar |= {
        "tickvals": [-reach, 0, reach],
        "ticktext": [f"−{reach:.2g}", "0", f"{reach:.2g}"],
        "tickangle": 0,
        "tickfont": {"size": 11},
    }
    traces: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "z": table.astype(np.float32),
            "showscale": False,
            "hovertemplate": "E, row of “%{y}”, dimension %{x}: %{z:.4f}<extra></extra>",
            **scale,
        },
        {
            "type": "heatmap",
            "z": rows.astype(np.float32),
            "xaxis": "x3",
            "yaxis": "y3",
            "hovertemplate": "token “%{y}”, dimension %{x}: %{z:.4f}<extra></extra>",
            "colorbar": bar,
            **scale,
        },
    ]
    left, right = (picked + 0.5) / height, (np.arange(length) + 0.5) / length
    others = np.arange(length) != chosen
    for some, shade, thick in ((others, colour("embedding", 40), 1.0), (~others, colour("attention"), 3.0)):
        x = np.tile([0.0, 1.0, np.nan], int(some.sum()))
        y = np.stack([left[some], right[some], np.full(int(some.sum()), np.nan)], axis=1).ravel()
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "y": y,
                "xaxis": "x2",
                "yaxis": "y2",
                "hoverinfo": "skip",
                "showlegend": False,
                "line": {"color": shade, "width": thick},
            }
        )
    box = {
        "type": "rect",
        "line": {"color": colour("attention"), "width": 2.5},
        "x0": -0.5,
        "x1": width - 0.5,
    }
    shapes = [
        box | {"xref": "x", "yref": "y", "y0": picked[chosen] - 0.5, "y1": picked[chosen] + 0.5},
        box | {"xref": "x3", "yref": "y3", "y0": chosen - 0.5, "y1": chosen + 0.5},
    ]
    title = {"xref": "paper", "yref": "paper", "y": 1.0, "yanchor": "bottom", "showarrow": False, "yshift": 4}
    dimension = {"title": {"text": "dimension"}, "showgrid": False, "zeroline": False}
    hidden = {"visible": False, "fixedrange": True}
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 30, "b": 40},
        showlegend=False,
        shapes=shapes,
        uirevision=f"lookup-{height}-{length}",
        annotations=[
            title | {"text": f"E ({height} rows shown)", "x": 0.0, "xanchor": "left"},
            title | {"text": f"input ({length} × {width})", "x": 0.56, "xanchor": "left"},
        ],
        xaxis=dimension | {"domain": [0, 0.42], "anchor": "y"},
        yaxis=_rows(table_labels, title={"text": "token of the vocabulary"}),
        xaxis2=hidden | {"domain": [0.425, 0.555], "range": [0, 1], "anchor": "y2"},
        yaxis2=hidden | {"range": [1, 0], "anchor": "x2"},
        xaxis3=dimension | {"domain": [0.56, 1], "anchor": "y3"},
        yaxis3=_rows(labels, side="right", anchor="x3"),
    )
    return go.Figure({"data": traces, "layout": layout})


def _rows(labels: Sequence[str], **rest: Any) -> dict[str, Any]:
    """A y axis of tokens, the first on top; with very many, every second, third ... is named."""
    step = -(-len(labels) // 72)
    ticks = {
        "tickvals": list(range(0, len(labels), step)),
        "ticktext": [plain(label) for label in labels[::step]],
    }
    return token_axis(labels, "", 10) | ticks | {"range": [len(labels) - 0.5, -0.5]} | rest


# The map ----------------------------------------------------------------------------------------


def token_map(
    scores: np.ndarray,
    words: Sequence[str],
    ids: np.ndarray,
    names: Sequence[str],
    classes: np.ndarray,
    *,
    labelled: np.ndarray,
    chosen: int,
    near: np.ndarray,
    titles: Sequence[str],
    ranges: tuple[Sequence[float], Sequence[float]],
    frequency: np.ndarray | None = None,
    letters: bool = True,
) -> go.Figure:
    """scores (vocab, 2 or more); `ids` are the tokens drawn, `labelled` (vocab,) says which carry their name.
    A click gives an id.

    Thin lines go from `chosen` to its neighbours `near`. With `frequency` (vocab,) the colour is that, else
    the class. `letters`: tokens of one character, which stand inside their marker.
    """
    traces: list[dict[str, Any]] = []
    pairs = np.stack([np.full(len(near), chosen), near, np.full(len(near), -1)], axis=1).ravel()
    x, y = (np.where(pairs < 0, np.nan, scores[np.maximum(pairs, 0), axis]) for axis in (0, 1))
    line = {"color": colour("quiet"), "width": 1.2, "dash": "dot"}
    traces.append(
        {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": y,
            "line": line,
            "hoverinfo": "skip",
            "showlegend": False,
        }
    )
    inside = letters and frequency is None
    for index, name in enumerate(names):
        own = ids[classes[ids] == index]
        if not len(own):
            continue
        shade, symbol = class_look(name)
        marker: dict[str, Any] = {"symbol": symbol, "size": 20 if inside else 10 if letters else 7}
        if frequency is not None:
            top = max(float(frequency.max()), 1e-6)
            marker |= {
                "color": frequency[own].astype(np.float32),
                "cmin": 0,
                "cmax": top,
                "colorscale": SEQUENTIAL,
            }
            marker |= {"line": {"color": colour("quiet"), "width": 1}, "showscale": len(traces) == 1}
            marker |= {"colorbar": {"title": {"text": "log₁₀(1 + count)", "side": "right"}}}
        else:
            marker |= {
                "color": colour(shade, 25 if inside else 85),
                "line": {"color": colour(shade), "width": 1.3},
            }
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": name,
                "x": scores[own, 0],
                "y": scores[own, 1],
                "customdata": own.astype(np.int32),
                "text": [plain(words[i]) if labelled[i] else "" for i in own],
                "hovertext": [plain(words[i]) for i in own],
                "marker": marker,
                "textposition": "middle center" if inside else "middle right",
                "textfont": {"family": MONO, "size": 14 if inside else 13},
                "hovertemplate": (
                    "“%{hovertext}”, id %{customdata}, " + name + "<br>%{x:.3f}, %{y:.3f}<extra></extra>"
                ),
                "cliponaxis": False,
            }
        )
    ring = {
        "size": 32 if inside else 20,
        "symbol": "circle-open",
        "color": colour("attention"),
        "line": {"width": 3},
    }
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": scores[[chosen], 0],
            "y": scores[[chosen], 1],
            "marker": ring,
            "hoverinfo": "skip",
            "showlegend": False,
        }
    )
    axis = {"zeroline": True, "zerolinecolor": colour("quiet", 40)}
    layout = base_layout(
        margin={"l": 52, "r": 12, "t": 44, "b": 44},
        xaxis=axis | {"title": {"text": titles[0]}, "range": list(ranges[0])},
        yaxis=axis | {"title": {"text": titles[1]}, "range": list(ranges[1])},
        hovermode="closest",
        showlegend=frequency is None,
        uirevision=f"map-{list(ranges[0])}",
    )
    return go.Figure({"data": traces, "layout": layout})


def neighbour_bars(
    words: Sequence[str], values: np.ndarray, shades: Sequence[str], ids: np.ndarray
) -> go.Figure:
    """Cosines of the nearest tokens, best on top, in the colours of their classes. A click gives an id."""
    at = -np.arange(len(words))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": values.astype(np.float32),
        "y": at,
        "marker": {"color": [colour(s) for s in shades]},
        "customdata": ids.astype(np.int32),
        "hovertext": [plain(w) for w in words],
        "hovertemplate": "“%{hovertext}”: cosine %{x:.4f}<extra></extra>",
    }
    layout = base_layout(
        margin={"l": 8, "r": 12, "t": 8, "b": 40},
        showlegend=False,
        bargap=0.25,
        xaxis={"title": {"text": "cosine"}, "range": [min(0.0, float(values.min(initial=0))) * 1.05, 1]},
        yaxis={
            "tickvals": at,
            "ticktext": [plain(w) for w in words],
            "tickfont": {"family": MONO, "size": 14},
            "showgrid": False,
            "zeroline": False,
        },
    )
    return go.Figure({"data": [bars], "layout": layout})


def share_bars(shares: np.ndarray, random: np.ndarray) -> go.Figure:
    """Share of the variance by principal component, beside those of a random cloud of as many points and
    dimensions.
    """
    at = np.arange(1, len(shares) + 1)
    traces = [
        {
            "type": "bar",
            "x": at,
            "y": shares.astype(np.float32),
            "name": "this embedding",
            "marker": {"color": colour("embedding")},
            "hovertemplate": "component %{x}: %{y:.1%}<extra>this embedding</extra>",
        },
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": at,
            "y": random.astype(np.float32),
            "name": "random numbers",
            "line": {"color": colour("quiet"), "dash": "dot", "width": 1.5},
            "marker": {"size": 5},
            "hovertemplate": "component %{x}: %{y:.1%}<extra>random numbers</extra>",
        },
    ]
    layout = base_layout(
        margin={"l": 52, "r": 12, "t": 30, "b": 40},
        xaxis={"title": {"text": "principal component"}, "dtick": 1, "showgrid": False},
        yaxis={
            "title": {"text": "share of the variance"},
            "rangemode": "tozero",
            "tickformat": ".1%",
            "nticks": 5,
        },
    )
    return go.Figure({"data": traces, "layout": layout})


def frequency_scatter(
    frequency: np.ndarray,
    score: np.ndarray,
    words: Sequence[str],
    names: Sequence[str],
    classes: np.ndarray,
    ids: np.ndarray,
    y: str,
) -> go.Figure:
    """One principal component against log10(1 + count), (vocab,) each; `ids` are the tokens drawn."""
    traces = []
    for index, name in enumerate(names):
        own = ids[classes[ids] == index]
        if len(own):
            shade, symbol = class_look(name)
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": frequency[own].astype(np.float32),
                    "y": score[own],
                    "customdata": own.astype(np.int32),
                    "hovertext": [plain(words[i]) for i in own],
                    "marker": {"color": colour(shade), "symbol": symbol, "size": 8},
                    "hovertemplate": "“%{hovertext}”: %{x:.2f}, %{y:.3f}<extra></extra>",
                }
            )
    layout = base_layout(
        margin={"l": 52, "r": 12, "t": 12, "b": 40},
        showlegend=False,
        xaxis={"title": {"text": "log₁₀(1 + count in the corpus)"}},
        yaxis={"title": {"text": y}},
    )
    return go.Figure({"data": traces, "layout": layout})


# Classes ----------------------------------------------------------------------------------------


def emergence(
    steps: np.ndarray,
    values: np.ndarray,
    chance: np.ndarray,
    matched: np.ndarray | None,
    here: int | None,
    end: float | None,
) -> go.Figure:
    """`values` (step,); `chance` and `matched` (step, 2): the middle 95% of the shuffles. One step is drawn
    as a point with its bands.
    """
    traces: list[dict[str, Any]] = []
    bands = [("shuffled labels", chance, "quiet")] + (
        [("shuffled among tokens of like frequency", matched, "run2")] if matched is not None else []
    )
    for name, band, shade in bands:
        x = np.concatenate([steps, steps[::-1]])
        y = np.concatenate([band[:, 0], band[::-1, 1]])
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "y": y,
                "fill": "toself",
                "fillcolor": colour(shade, 30),
                "line": {"color": colour(shade), "width": 1},
                "name": name,
                "hoverinfo": "skip",
            }
        )
    traces.append(
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": steps,
            "y": values.astype(np.float32),
            "name": "true classes",
            "marker": {"size": 7},
            "line": {"color": colour("embedding"), "width": 3},
            "hovertemplate": "step %{x}: %{y:.4f}<extra></extra>",
        }
    )
    line = {
        "type": "line",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "x0": here,
        "x1": here,
        "line": {"color": colour("attention"), "width": 1.5, "dash": "dash"},
    }
    layout = base_layout(
        margin={"l": 52, "r": 12, "t": 48, "b": 44},
        shapes=[line] if here is not None else [],
        xaxis={"title": {"text": "step of the training"}, "showgrid": False}
        | ({"range": [-0.02 * end, 1.02 * end]} if end else {}),
        yaxis={
            "title": {"text": "within − across"},
            "exponentformat": "power",
            "zeroline": True,
            "zerolinecolor": colour("quiet"),
        },
    )
    return go.Figure({"data": traces, "layout": layout})


def null_histogram(value: float, chance: np.ndarray, matched: np.ndarray | None) -> go.Figure:
    """Where the true classes lie among shuffled ones: one point for each shuffle, in rows."""
    rows = [("shuffled labels", chance, "quiet")] + (
        [("like frequency", matched, "run2")] if matched is not None else []
    )
    traces: list[dict[str, Any]] = []
    for index, (name, values, shade) in enumerate(rows):
        wobble = ((np.arange(len(values)) * 0.618) % 1 - 0.5) * 0.5  # spread out, the same every time
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": values.astype(np.float32),
                "y": index + wobble,
                "name": name,
                "marker": {"size": 6, "color": colour(shade, 60)},
                "hovertemplate": "%{x:.4f}<extra>" + name + "</extra>",
            }
        )
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [value],
            "y": [len(rows)],
            "name": "true classes",
            "marker": {"size": 14, "symbol": "diamond", "color": colour("embedding")},
            "hovertemplate": "%{x:.4f}<extra>true classes</extra>",
        }
    )
    words = [name for name, _, _ in rows] + ["true classes"]
    layout = base_layout(
        margin={"l": 8, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        xaxis={
            "title": {"text": "within − across"},
            "exponentformat": "power",
            "zeroline": True,
            "zerolinecolor": colour("quiet"),
        },
        yaxis={
            "tickvals": list(range(len(words))),
            "ticktext": words,
            "showgrid": False,
            "zeroline": False,
            "range": [-0.6, len(words) - 0.4],
        },
    )
    return go.Figure({"data": traces, "layout": layout})


def cosine_map(
    values: np.ndarray, words: Sequence[str], borders: Sequence[int], names: Sequence[str]
) -> go.Figure:
    """Cosines (token, token), sorted by class; lines where a class ends. The diagonal is left blank: it is 1
    by definition.
    """
    shown = values.astype(np.float32).copy()
    np.fill_diagonal(shown, np.nan)
    reach = float(np.nanmax(np.abs(shown))) if np.isfinite(shown).any() else 1.0
    heat = {
        "type": "heatmap",
        "z": shown,
        "zmin": -reach,
        "zmax": reach,
        "colorscale": DIVERGING,
        "hoverongaps": False,
        "hovertemplate": "“%{y}” and “%{x}”: cosine %{z:.4f}<extra></extra>",
        "colorbar": {"title": {"text": "cosine", "side": "right"}},
    }
    line = {"type": "line", "line": {"color": colour("residual"), "width": 1.2}}
    ends = [-0.5, len(words) - 0.5]
    shapes: list[dict[str, Any]] = []
    for border in borders[1:-1]:
        at = border - 0.5
        shapes += [
            line | {"x0": at, "x1": at, "y0": ends[0], "y1": ends[1]},
            line | {"y0": at, "y1": at, "x0": ends[0], "x1": ends[1]},
        ]
    middle = [(a + b - 1) / 2 for a, b in itertools.pairwise(borders)]
    notes = [
        {
            "x": x,
            "y": 1.0,
            "yref": "paper",
            "yanchor": "bottom",
            "showarrow": False,
            "text": name,
            "textangle": -30,
            "font": {"size": 12},
            "xanchor": "left",
        }
        for x, name in zip(middle, names, strict=True)
    ]
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 76, "b": 8},
        showlegend=False,
        shapes=shapes,
        annotations=notes,
        xaxis=_rows(words) | {"range": ends},
        yaxis=_rows(words),
    )
    return go.Figure({"data": [heat], "layout": layout})
