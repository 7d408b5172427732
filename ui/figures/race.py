"""The curves of a race -> one figure. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from engine.experiments.race_table import Along, RunCurves, Unit
from ui.figures import specs as go
from ui.figures.labels import plain, short
from ui.figures.theme import base_layout, colour

Curves = Literal["validation", "training", "both"]
SHADES = ("validation", "training", "run0", "run1", "run2", "run4", "run3", "run5")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "triangle-down")
AXES: Mapping[Along, str] = {
    "steps": "steps",
    "tokens": "tokens read",
    "seconds": "seconds of training",
    "flops": "floating-point operations",
}
LETTER = 7  # pixels, about
LONGEST = 22  # letters of a name beside its curve
LINE = 17  # pixels of a label
LINES = {
    "uniform": "uniform guess",
    "unigram": "unigram",
    "bigram": "bigram",
    "trigram": "trigram",
    "floor": "floor of this task",
}
SHORT = {"uniform": "chance", "floor": "floor"}  # on a phone; the others go by their own names
WIDE = 800  # pixels: about what the chart is wide
# what is other on a phone: names stand in a legend, for beside the chart there is no room (plot_narrow.js)
NARROW = {
    "margin": {"l": 44, "r": 10, "t": 64, "b": 42},
    "showlegend": True,
    "legend": base_layout()["legend"],
}


def race_curves(
    runs: Sequence[RunCurves],
    lines: Mapping[str, float],
    repeats: Sequence[RunCurves] = (),
    *,
    along: Along = "steps",
    curves: Curves = "validation",
    unit: Unit = "nats",
    token: str = "character",
    end: float = 0.0,
    height: int = 360,
    wide: int = WIDE,
) -> go.Figure:
    """Draws `runs` in one chart, `lines` (name -> loss) across it, and at the right the name of each at its
    end. `repeats` are runs of the same names with other seeds: of each name the median run is thick and has
    the name at its end, the others are thin lines of their validation losses. `height` is the figure's and
    `wide` about the curves' own width, in pixels: labels are kept apart by them.
    """
    word = token
    runs, repeats = median_runs(runs, repeats)
    y_range = loss_range([*runs, *repeats], lines)
    ends = [end, *(float(at[-1]) for c in runs for at in (c.at, c.looked_at, c.end_at) if len(at))]
    traces = [] if curves == "training" else [_repeat(each, runs) for each in repeats]
    traces += [trace for i, each in enumerate(runs) for trace in _traces(each, i, curves)]
    inside = height - 8 - 42
    longest = max((len(short(each.name, LONGEST)) for each in runs), default=0)
    return go.figure(
        traces,
        uirevision=f"race-{along}-{unit}",
        margin={"l": 48, "r": 24 + LETTER * (5 + longest), "t": 8, "b": 42},
        showlegend=False,
        meta={"narrow": NARROW},
        xaxis={
            "title": {"text": AXES[along]},
            "range": [0, max(ends) or 1],
            "showgrid": False,
            "exponentformat": "SI",
        },
        yaxis={
            "title": {"text": f"loss (nats per {token})" if unit == "nats" else "loss (bits per character)"},
            "range": y_range,
        },
        shapes=[_across(y) for y in lines.values()],
        annotations=[
            *_across_labels(lines, word, runs, curves, max(ends) or 1, y_range, (wide, inside)),
            *_names(runs, y_range, inside, curves),
        ],
    )


def loss_range(runs: Sequence[RunCurves], lines: Mapping[str, float]) -> list[float]:
    """Returns the range from the lowest loss to a little above knowing nothing; what explodes runs out of the
    picture.
    """
    top = max(lines.values(), default=4.5)
    losses = np.concatenate(
        [np.zeros(0), *(np.asarray(y) for c in runs for y in (c.losses, c.looked, c.end))]
    )
    losses = losses[np.isfinite(losses)]
    lowest = min([*lines.values(), *([float(losses.min())] if losses.size else [])], default=0.0)
    return [max(0.0, math.floor((lowest - 0.1) * 4) / 4), top * 1.05]


def median_runs(
    runs: Sequence[RunCurves], repeats: Sequence[RunCurves]
) -> tuple[list[RunCurves], list[RunCurves]]:
    """Returns (of each name the run whose newest validation loss is the median of all seeds, the other runs);
    of an even number of seeds the lower one in the middle, so that a line ends there.
    """
    middle: list[RunCurves] = []
    others: list[RunCurves] = []
    for each in runs:
        seeds = [each, *(one for one in repeats if one.name == each.name and one.newest)]
        if each.newest:
            seeds.sort(key=lambda one: one.newest[1] if one.newest else math.inf)
        median = seeds[(len(seeds) - 1) // 2] if each.newest else each
        middle.append(median)
        others += [one for one in seeds if one is not median]
    return middle, others


def _traces(each: RunCurves, index: int, curves: Curves) -> list[dict[str, Any]]:
    shade, name = colour(SHADES[index % len(SHADES)]), plain(each.name)
    dash = DASHES[index % len(DASHES)]
    result = []
    if curves != "validation":
        thin = {"color": shade, "width": 1.3, "dash": "solid"}
        rest = {"line": thin, "opacity": 0.6, "mode": "lines", "showlegend": curves == "training"}
        result.append(_line(each.at, each.losses, f"{name}, each batch", **rest))
    if curves != "training":
        thick = {"color": shade, "width": 2.5, "dash": dash}
        mark = {"symbol": SYMBOLS[index % len(SYMBOLS)], "size": 7, "color": shade}
        newest = f" {each.newest[1]:.2f}" if each.newest else ""  # for the legend, where there is one
        rest = {"line": thick, "marker": mark, "mode": "lines+markers"}
        result.append(_line(each.looked_at, each.looked, name, **rest) | {"name": name + newest})
        if len(each.end):
            mark = mark | {
                "size": 11,
                "line": {"width": 2, "color": shade},
                "symbol": f"{mark['symbol']}-open",
            }
            rest = {"marker": mark, "mode": "markers", "showlegend": False}
            result.append(_line(each.end_at, each.end, f"{name}, whole split", **rest))
    return result


def _repeat(each: RunCurves, runs: Sequence[RunCurves]) -> dict[str, Any]:
    """The evaluations of the same run with another seed."""
    index = [run.name for run in runs].index(each.name)
    thin = {"color": colour(SHADES[index % len(SHADES)]), "width": 1.2, "dash": DASHES[index % len(DASHES)]}
    name = f"{plain(each.name)}, another seed"
    return _line(each.looked_at, each.looked, name, line=thin, opacity=0.55, mode="lines", showlegend=False)


def _line(x: np.ndarray, y: np.ndarray, name: str, **rest: Any) -> dict[str, Any]:
    small = {"x": np.asarray(x, np.float32), "y": np.asarray(y, np.float32)}
    hover = {"hovertemplate": f"{name}: %{{y:.3f}}<extra></extra>"}
    return {"type": "scatter", "name": name, "cliponaxis": False} | small | hover | rest


def _across(y: float) -> dict[str, Any]:
    line = {"color": colour("quiet"), "width": 1.2, "dash": "dot"}
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": line,
        "layer": "below",
    }


def _across_labels(
    lines: Mapping[str, float],
    word: str,
    runs: Sequence[RunCurves],
    curves: Curves,
    end: float,
    y_range: list[float],
    size: tuple[int, int],
) -> list[dict[str, Any]]:
    """The name of each line, above it or below, where the fewest curves run through it."""
    wide, inside = size
    scale = inside / (y_range[1] - y_range[0])
    points = [
        (np.asarray(at, np.float64) / end * wide, (y_range[1] - np.asarray(y, np.float64)) * scale)
        for each in runs
        for at, y, there in (
            (each.looked_at, each.looked, curves != "training"),
            (each.at, each.losses, curves != "validation"),
        )
        if there and len(at)
    ]
    result = []
    same: dict[str, list[str]] = {}  # lines that are written with the same number lie on each other
    for name, y in lines.items():
        same.setdefault(f"{y:.2f}", []).append(name)
    for number, names in same.items():
        text = f"{', '.join(LINES[name].format(token=word) for name in names)}: {number}"
        y = lines[names[0]]
        top, width = (y_range[1] - y) * scale, LETTER * len(text)
        others = [(y_range[1] - other) * scale for name, other in lines.items() if name not in names]
        at, above = label_anchor(points, others, top, width, (wide, inside))
        start, middle = _start(at, width, wide), top + (-LINE if above else LINE) / 2
        points.append((np.array([start, start + width]), np.array([middle, middle])))  # the next keep off it
        short = ", ".join(SHORT.get(name, name) for name in names)
        result.append(_said(text, y, at, above) | {"name": f"narrow:{short} {number}"})
    return result


def label_anchor(
    points: Sequence[tuple[np.ndarray, np.ndarray]],
    others: Sequence[float],
    line: float,
    width: float,
    size: tuple[int, int],
) -> tuple[Literal["right", "center", "left"], bool]:
    """Returns where a label `width` pixels wide stands at a line (pixels from the top), and whether above it:
    the first place with the fewest points of curves (pixels from the left, from the top) and other lines
    in it. `size` is that of the chart in pixels: a label does not reach below it, into its axis.
    """
    wide, inside = size

    def crowd(at: str, above: bool) -> int:
        start = _start(at, width, wide)
        low, high = (line - LINE, line) if above else (line, line + LINE)
        along = np.linspace(start, start + width, 24)
        hit = sum(int(((low < (y := _at(x, ys, along))) & (y < high)).sum()) for x, ys in points)
        return hit + 24 * sum(low < other < high for other in others)

    sides: tuple[Literal["right", "center", "left"], ...] = ("right", "left", "center")
    heights = (True, False) if line + LINE <= inside else (True,)
    return min(((at, above) for above in heights for at in sides), key=lambda side: crowd(*side))


def _start(at: str, width: float, wide: int) -> float:
    """Returns where a label begins, in pixels from the left."""
    return {"right": wide - width, "center": (wide - width) / 2, "left": 0.0}[at]


def _at(x: np.ndarray, y: np.ndarray, along: np.ndarray) -> np.ndarray:
    """A curve's height there; NaN beyond its ends, and where it is no number."""
    heights: np.ndarray = np.interp(along, x, y, left=np.nan, right=np.nan)
    return heights


def _said(words: str, y: float, at: Literal["right", "center", "left"], above: bool) -> dict[str, Any]:
    look = {"font": {"color": colour("quiet"), "size": 12}, "yanchor": "bottom" if above else "top"}
    x, shift = {"right": (1.0, 0), "center": (0.5, 0), "left": (0.0, 4)}[at]
    anchor = {"xref": "paper", "x": x, "xanchor": at, "xshift": shift, "y": y}
    return anchor | {"text": words, "showarrow": False} | look


def _names(
    runs: Sequence[RunCurves],
    y_range: list[float],
    inside: int,
    curves: Curves,
) -> list[dict[str, Any]]:
    """At the right of the chart, each at the height of its curve's end, apart where they would overlap."""
    ends = []
    for index, each in enumerate(runs):
        if curves != "training" and each.newest:
            last = each.newest[1]
        else:
            last = float(each.losses[-1]) if len(each.losses) else math.nan
        if math.isfinite(last):
            ends.append((last, index, each.name))
    scale = inside / (y_range[1] - y_range[0])
    wanted = [(y_range[1] - min(max(y, y_range[0]), y_range[1])) * scale for y, _, _ in sorted(ends)[::-1]]
    return [
        {
            "xref": "paper",
            "x": 1,
            "xshift": 11,
            "name": "wide",
            "yref": "paper",
            "y": 1 - height / inside,
            "text": f"<b>{y:.2f}</b> {plain(short(name, LONGEST))}",
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "middle",
            "font": {"color": colour(SHADES[index % len(SHADES)]), "size": 13},
        }
        for height, (y, index, name) in zip(apart(wanted, inside), sorted(ends)[::-1], strict=True)
    ]


def apart(wanted: Sequence[float], inside: float, least: float = LINE) -> list[float]:
    """Returns the places (pixels from the top, rising) as near to the wanted ones as lines `least` high
    allow, all within the chart.

    >>> apart([10.0, 12.0, 60.0], 100.0, 16.0)
    [10.0, 26.0, 60.0]
    """
    result: list[float] = []
    for height in wanted:
        result.append(max(height, result[-1] + least) if result else height)
    for i in range(len(result) - 1, -1, -1):
        below = result[i + 1] - least if i + 1 < len(result) else inside
        result[i] = min(result[i], below)
    return result
