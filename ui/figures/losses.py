"""The losses of trainings as one figure: of a run with others laid over it, or of a race. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from runs.state import Change
from studies.experiments.race_table import Along, RunCurves, Unit
from ui import content
from ui.figures import specs as go
from ui.figures.labels import plain, short
from ui.figures.theme import base_layout, colour

TEXT = content.beside(__file__)
Curves = Literal["validation", "training", "both"]
FLOOR = "floor"  # the lowest loss that a model of a task can reach, beside the names of `Corpus.baselines`
GAP = 5  # pixels between a point and its label
OTHERS = tuple(f"run{i}" for i in range(6))  # laid over a run
SHADES = ("validation", "training", "run0", "run1", "run2", "run4", "run3", "run5")  # of a race
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "triangle-down")
LETTER = 7  # pixels, about
LONGEST = 22  # letters of a name beside its curve
LINE = 17  # pixels of a label
WIDE = 800  # pixels: about what the chart is wide
# what is other on a phone: names stand in a legend, for beside the chart there is no room (plot_narrow.js)
NARROW = {
    "margin": {"l": 44, "r": 10, "t": 64, "b": 42},
    "showlegend": True,
    "legend": base_layout()["legend"],
}
# an axis is drawn only where something belongs to it
NOTHING = {
    "type": "scatter",
    "x": [None],
    "y": [None],
    "hoverinfo": "skip",
    "showlegend": False,
}

# Both charts -------------------------------------------------------------------------------------


def _line(x: np.ndarray, y: np.ndarray, name: str, **rest: Any) -> dict[str, Any]:
    """In float32: half the bytes on the way to the browser, and exact for step numbers up to 2^24."""
    small = {"x": np.asarray(x, np.float32), "y": np.asarray(y, np.float32)}
    return {"type": "scatter", "mode": "lines", "name": name} | small | rest


def _whole(curve: RunCurves, name: str, marker: dict[str, Any], hover: str) -> list[dict[str, Any]]:
    """Marks of the evaluations on the whole split, which no line joins to anything; nothing where there are
    none.
    """
    look = {"mode": "markers", "marker": marker, "cliponaxis": False, "showlegend": False}
    return [_line(curve.end_at, curve.end, name, hovertemplate=hover, **look)] if len(curve.end) else []


def _reach(curve: RunCurves) -> float:
    """Returns where the last point of a curve lies on the axis; 0 before the first."""
    return max([0.0, *(float(at[-1]) for at in (curve.at, curve.looked_at, curve.end_at) if len(at))])


def _finite(losses: Sequence[np.ndarray]) -> np.ndarray:
    every = np.concatenate([np.zeros(0), *(np.asarray(each, dtype=np.float64) for each in losses)])
    return every[np.isfinite(every)]


def _bottom(losses: np.ndarray, lines: Mapping[str, float], parts: int) -> float:
    """Returns where the axis begins: below the lowest loss, in `parts` of a nat."""
    lowest = min([*lines.values(), *([float(losses.min())] if losses.size else [])], default=0.0)
    return max(0.0, math.floor((lowest - 0.1) * parts) / parts)


def _loss_axis(unit: Unit, token: str, y_range: list[float]) -> dict[str, Any]:
    title = TEXT("nats", token=token) if unit == "nats" else TEXT["bits"]
    return {"title": {"text": title}, "range": y_range}


def _across(lines: Mapping[str, float]) -> list[dict[str, Any]]:
    look = {"color": colour("quiet"), "width": 1.2, "dash": "dot"}
    return [go.rule(y=y, line=look, layer="below") for y in lines.values()]


# A run, and others laid over it ------------------------------------------------------------------


def loss_curves(
    main: RunCurves | None,
    baselines: Mapping[str, float],
    vocab_size: int,
    *,
    along: Along = "steps",
    others: Sequence[RunCurves] = (),
    changes: Sequence[Sequence[Change]] = (),
    end: float | None = None,
    unit: Unit = "nats",
    token: str = "character",
) -> go.Figure:
    """Draws training and validation loss of `main`, the validation loss of `others`, and what predictors
    without a network reach.

    Curves and baselines are in `unit`; `token` says what a token is, in words. `changes` by hand are those of
    `main`, then of each of the `others`. `end` is where the x axis stops while the curves are still short of
    it, so that the axis holds still as they grow. Built as one dictionary: adding to a figure piece by piece
    takes ten times as long, and this one is made several times a second.
    """
    first = [(main, colour("validation"))] if main is not None else []
    laid = [(other, colour(OTHERS[i % len(OTHERS)])) for i, other in enumerate(others)]
    reach = max([end or 0.0, *(_reach(curve) for curve, _ in (*first, *laid))])
    marks = [
        mark
        for some, (curve, shade) in zip(changes, (*first, *laid), strict=False)
        for mark in _marks(some, along, _reach(curve), shade)
    ]
    y_range = _run_range(main, others, baselines)
    labels = [label for curve, shade in (*laid, *first) for label in _ends(curve, shade)]
    axes = ["y", *(["y2"] if unit == "nats" else [])]
    return go.figure(
        [
            *(trace for curve, shade in laid for trace in _other(curve, shade)),
            *(trace for curve, shade in first for trace in _main(curve, shade)),
            *(NOTHING | {"yaxis": axis} for axis in axes),
        ],
        uirevision=f"loss-{along}-{unit}",
        margin={"l": 48, "r": 52 if unit == "nats" else 12, "t": 8, "b": 40},
        showlegend=main is not None,
        legend={"font": {"size": 13}},
        hovermode="closest" if others else "x unified",
        xaxis=go.axis(TEXT["step" if along == "steps" else "seconds"], rangemode="tozero")
        | ({"range": [0, reach]} if reach else {}),
        yaxis=_loss_axis(unit, token, y_range),
        shapes=[*_across(baselines), *(shape for shape, _ in marks)],
        annotations=[
            *_baseline_names(baselines, vocab_size, unit, token),
            *(note for _, note in marks),
            *_apart(labels, y_range, reach),
        ],
        **({"yaxis2": _choices_axis(y_range)} if unit == "nats" else {}),
    )


def _choices_axis(y_range: list[float]) -> dict[str, Any]:
    """The same losses as numbers of equally likely tokens, e^loss: 1, 2, 4, 8 ..."""
    choices = [2**power for power in range(17) if math.log(2**power) <= y_range[1]]
    return {
        "title": {"text": TEXT["perplexity"]},
        "overlaying": "y",
        "matches": "y",
        "side": "right",
        "range": y_range,
        "tickmode": "array",
        "tickvals": [math.log(n) for n in choices],
        "ticktext": [f"{n:,}" for n in choices],
        "showgrid": False,
        "zeroline": False,
    }


def _main(curve: RunCurves, shade: str) -> list[dict[str, Any]]:
    thin = {"color": colour("training"), "width": 1.2}
    batches = _line(
        curve.at, curve.losses, TEXT["each batch"], line=thin, opacity=0.75, hovertemplate="%{y:.3f}"
    )
    looks = _looks(curve, shade, 3, 6) | {"cliponaxis": False}
    return [batches, looks, *_whole_split(curve, TEXT["whole"], shade)]


def _other(curve: RunCurves, shade: str) -> list[dict[str, Any]]:
    whole = _whole_split(curve, TEXT("whole of", name=plain(curve.name)), shade)
    return [_looks(curve, shade, 2, 5), *whole]


def _looks(curve: RunCurves, shade: str, width: int, size: int) -> dict[str, Any]:
    """The validation losses on a part of the split."""
    look = {"line": {"color": shade, "width": width}, "marker": {"size": size}, "mode": "lines+markers"}
    return _line(curve.looked_at, curve.looked, _named(curve), hovertemplate="%{y:.4f}", **look)


def _whole_split(curve: RunCurves, name: str, shade: str) -> list[dict[str, Any]]:
    look = {"size": 11, "symbol": "diamond-open", "color": shade, "line": {"width": 2.5}}
    return _whole(curve, name, look, "%{y:.4f}")


def _named(curve: RunCurves) -> str:
    """The name in the legend, with its newest validation loss."""
    name = plain(_middle(curve.name))
    return f"{name} {curve.newest[1]:.2f}" if curve.newest and math.isfinite(curve.newest[1]) else name


def _middle(name: str) -> str:
    """A name of over 26 characters without its middle: its end may be the number that tells it apart.

    >>> _middle("fast, width 32, layers 1, steps … (2)")
    'fast, width 32, laye… (2)'
    """
    return name if len(name) <= 26 else f"{name[:20]}…{name[-4:]}"


def _ends(curve: RunCurves, shade: str) -> tuple[dict[str, Any], ...]:
    """The loss at a curve's last point, of whatever kind, written at that point: `_apart` says where."""
    if not curve.newest or not math.isfinite(curve.newest[1]):
        return ()
    at, loss = curve.newest
    look = {"font": {"color": shade, "size": 13}, "yanchor": "top", "borderpad": 0}
    return (go.note(f"{loss:.2f}", at, loss, **look),)


def _marks(
    changes: Sequence[Change], along: Along, reach: float, shade: str
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Lines across the chart where somebody changed something by hand, each with what it was."""
    line = {"color": shade, "width": 1.5, "dash": "dash"}
    marks = []
    for index, change in enumerate(changes):
        at = float(change.step if along == "steps" else change.seconds)
        note = go.note(
            TEXT("by hand", change=change.brief),
            at,
            0.08 * (index % 4),  # low, where a falling curve leaves room
            yref="paper",
            xanchor="left" if at < reach / 2 else "right",
            yanchor="bottom",
            xshift=3 if at < reach / 2 else -3,
            font={"color": shade, "size": 12},
        )
        marks.append((go.rule(x=at, line=line), note))
    return marks


def _baseline_names(
    baselines: Mapping[str, float], vocab_size: int, unit: Unit, token: str
) -> list[dict[str, Any]]:
    """The name and value of each line above its right end, where the curves have long gone below."""
    names = {
        "uniform": TEXT(
            "uniform each" if unit == "bits" and token != "character" else "uniform",
            log={"nats": "ln", "bits": "log₂"}[unit],
            choices=vocab_size,
            token=token,
        ),
        FLOOR: TEXT["floor"],
    }
    font = {"color": colour("quiet"), "size": 12}
    look: dict[str, Any] = {"xref": "paper", "xanchor": "right", "yanchor": "bottom", "font": font}
    return [
        go.note(TEXT("baseline", name=names.get(name, name), loss=float(y)), 1, y, **look)
        for name, y in baselines.items()
    ]


def _apart(
    labels: list[dict[str, Any]], y_range: list[float], reach: float, height: int = 240, line: int = 16
) -> list[dict[str, Any]]:
    """The labels just below their points, from the lowest up; one without room there, because of another
    (within a sixth of the width) or of the chart's edge, stands above its point and above those others.
    `height` is about that of the plot's inside, in pixels.
    """
    scale = height / (y_range[1] - y_range[0])
    placed: list[tuple[float, float]] = []  # (x, top edge in pixels above the chart's lower edge)
    moved = []
    for label in sorted(labels, key=lambda label: label["y"]):
        point = (label["y"] - y_range[0]) * scale
        near = [top for x, top in placed if abs(x - label["x"]) <= reach / 6]
        top = point - GAP
        if top - line < max(near, default=0.0):
            top = max(point + GAP + line, *(each + line for each in near), 0.0)
        placed.append((label["x"], top))
        # "left" or "right" of the point near the edges, so that no label is cut off
        anchor = "left" if label["x"] < reach / 12 else "right" if label["x"] > reach * 11 / 12 else "center"
        moved.append(label | {"yshift": round(top - point), "xanchor": anchor})
    return moved


def _run_range(
    main: RunCurves | None, others: Sequence[RunCurves], baselines: Mapping[str, float]
) -> list[float]:
    """Holds still as far as it can: from a little above ln V down to the lowest loss, in steps of half a nat.

    A loss that explodes is left to run out of the picture; the range stays readable, and a double click shows
    all.
    """
    first = [main] if main is not None else []
    finite = _finite(
        [*(y for curve in (*first, *others) for y in (curve.looked, curve.end)), *(c.losses for c in first)]
    )
    top = max(baselines.values(), default=4.0)
    highest = float(np.quantile(finite, 0.95)) if finite.size else top
    return [_bottom(finite, baselines, 2), min(max(top, highest), 3 * top) * 1.06]


# A race ------------------------------------------------------------------------------------------


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
    runs, repeats = median_runs(runs, repeats)
    y_range = _race_range([*runs, *repeats], lines)
    reach = max([end, *map(_reach, runs)]) or 1
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
            "title": {"text": TEXT[f"along {along}"]},
            "range": [0, reach],
            "showgrid": False,
            "exponentformat": "SI",
        },
        yaxis=_loss_axis(unit, token, y_range),
        shapes=_across(lines),
        annotations=[
            *_across_labels(lines, runs, curves, reach, y_range, (wide, inside)),
            *_names(runs, y_range, inside, curves),
        ],
    )


def _race_range(runs: Sequence[RunCurves], lines: Mapping[str, float]) -> list[float]:
    """From the lowest loss to a little above knowing nothing; what explodes runs out of the picture."""
    finite = _finite([y for c in runs for y in (c.losses, c.looked, c.end)])
    return [_bottom(finite, lines, 4), max(lines.values(), default=4.5) * 1.05]


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
    dash, symbol = DASHES[index % len(DASHES)], SYMBOLS[index % len(SYMBOLS)]
    result = []
    if curves != "validation":
        thin = {"color": shade, "width": 1.3, "dash": "solid"}
        rest = {"line": thin, "opacity": 0.6, "showlegend": curves == "training"}
        result.append(_pointed(each.at, each.losses, f"{name}, each batch", **rest))
    if curves != "training":
        thick = {"color": shade, "width": 2.5, "dash": dash}
        mark = {"symbol": symbol, "size": 7, "color": shade}
        newest = f" {each.newest[1]:.2f}" if each.newest else ""  # for the legend, where there is one
        rest = {"line": thick, "marker": mark, "mode": "lines+markers"}
        result.append(_pointed(each.looked_at, each.looked, name, **rest) | {"name": name + newest})
        ring = {"size": 11, "line": {"width": 2, "color": shade}, "symbol": f"{symbol}-open", "color": shade}
        whole = f"{name}, whole split"
        result += _whole(each, whole, ring, _hover(whole))
    return result


def _repeat(each: RunCurves, runs: Sequence[RunCurves]) -> dict[str, Any]:
    """The evaluations of the same run with another seed."""
    index = [run.name for run in runs].index(each.name)
    thin = {"color": colour(SHADES[index % len(SHADES)]), "width": 1.2, "dash": DASHES[index % len(DASHES)]}
    name = f"{plain(each.name)}, another seed"
    return _pointed(each.looked_at, each.looked, name, line=thin, opacity=0.55, showlegend=False)


def _pointed(x: np.ndarray, y: np.ndarray, name: str, **rest: Any) -> dict[str, Any]:
    return _line(x, y, name, cliponaxis=False, hovertemplate=_hover(name), **rest)


def _hover(name: str) -> str:
    return f"{name}: %{{y:.3f}}<extra></extra>"


def _across_labels(
    lines: Mapping[str, float],
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
    full, brief = {"uniform": TEXT["guess"], FLOOR: TEXT["floor of task"]}, {"uniform": TEXT["chance"]}
    result = []
    same: dict[str, list[str]] = {}  # lines that are written with the same number lie on each other
    for name, y in lines.items():
        same.setdefault(f"{y:.2f}", []).append(name)
    for number, names in same.items():
        text = f"{', '.join(full.get(name, name) for name in names)}: {number}"
        y = lines[names[0]]
        top, width = (y_range[1] - y) * scale, LETTER * len(text)
        others = [(y_range[1] - other) * scale for name, other in lines.items() if name not in names]
        at, above = label_anchor(points, others, top, width, (wide, inside))
        start, middle = _start(at, width, wide), top + (-LINE if above else LINE) / 2
        points.append((np.array([start, start + width]), np.array([middle, middle])))  # the next keep off it
        short = ", ".join(brief.get(name, name) for name in names)
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
        go.note(
            f"<b>{y:.2f}</b> {plain(short(name, LONGEST))}",
            1,
            1 - height / inside,
            name="wide",
            xref="paper",
            yref="paper",
            xshift=11,
            xanchor="left",
            yanchor="middle",
            font={"color": colour(SHADES[index % len(SHADES)]), "size": 13},
        )
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
