"""Arrays -> figures of a training: losses, gradient norm, learning rate. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pages.start.train.curve_points import Curve, Unit, XAxis, _empty
from ui.figures import specs as go
from ui.figures.labels import plain, short
from ui.figures.theme import base_layout, colour

WHOLE = "validation, whole split"
OTHERS = tuple(f"run{i}" for i in range(6))

BASELINE_WORDS = {
    "uniform": "knowing nothing ({log} {v}{each})",
    "unigram": "{what} frequencies",
    "bigram": "{what} pairs",
    "trigram": "{what} triples",
}


def loss_curves(
    main: Curve | None,
    baselines: Mapping[str, float],
    vocab_size: int,
    *,
    x: XAxis = "step",
    others: Sequence[Curve] = (),
    end: float | None = None,
    unit: Unit = "nats",
    token: str = "character",
) -> go.Figure:
    """Training and validation loss of `main`, the validation loss of `others`, and what predictors without a
    network reach.

    Curves and baselines are in `unit`; `token` says what a token is, in words. `end` is where the x axis
    stops while the curves are still short of it, so that the axis holds still as they grow. Built as one
    dictionary: adding to a figure piece by piece takes ten times as long, and this one is made several times
    a second.
    """
    parts: list[Parts] = [_baselines(baselines, vocab_size, unit, token)]
    parts += [_other(other, x, colour(OTHERS[index % len(OTHERS)])) for index, other in enumerate(others)]
    parts += [_main(main, x)] if main is not None else []
    reach = max(
        [
            end or 0.0,
            *(
                float(along[-1])
                for curve in (*others, *([main] if main else []))
                for along in curve.along(x)
                if len(along)
            ),
        ]
    )
    y_range = _loss_range(main, others, baselines)
    labels = _apart([label for part in parts for label in part.labels], y_range)
    layout = base_layout(
        uirevision=f"loss-{x}-{unit}",
        margin={"l": 48, "r": 122, "t": 8, "b": 40},
        showlegend=False,
        hovermode="closest" if others else "x unified",
        xaxis=_x_axis("step" if x == "step" else "training time (s)", reach or None),
        yaxis={
            "title": {"text": f"loss (nats per {token})" if unit == "nats" else "loss (bits per character)"},
            "range": y_range,
        },
        shapes=[shape for part in parts for shape in part.shapes],
        annotations=[*(note for part in parts for note in part.notes), *labels],
    )
    return go.Figure({"data": [trace for part in parts for trace in part.traces], "layout": layout})


@dataclass(frozen=True)
class Parts:
    """Pieces of a figure, as Plotly's dictionaries."""

    traces: tuple[dict[str, Any], ...] = ()
    notes: tuple[dict[str, Any], ...] = ()
    labels: tuple[dict[str, Any], ...] = ()  # beside the ends of curves
    shapes: tuple[dict[str, Any], ...] = ()


def _main(curve: Curve, x: XAxis) -> Parts:
    at, eval_at, whole_at = curve.along(x)
    shade = colour("validation")
    thin, thick = {"color": colour("training"), "width": 1.2}, {"color": colour("validation"), "width": 3}
    traces = (
        _line(at, curve.losses, "training (each batch)", line=thin, opacity=0.75, hovertemplate="%{y:.3f}"),
        _line(
            eval_at,
            curve.eval_losses,
            "validation",
            line=thick,
            marker={"size": 7},
            mode="lines+markers",
            cliponaxis=False,
            hovertemplate="%{y:.4f}",
        ),
        *_whole(whole_at, curve.whole_losses, WHOLE, shade, "%{y:.4f}"),
    )
    # all labels stand right of all curves
    front = max([float(end[-1]) for end in (at, eval_at, whole_at) if len(end)], default=0.0)
    ends = [
        (name, float(y[-1]), look)
        for name, y, look in (
            ("training", curve.losses, colour("training")),
            ("validation", curve.eval_losses, shade),
            ("whole split", curve.whole_losses, shade),
        )
        if len(y)
    ]
    return Parts(
        traces,
        labels=tuple(
            _label(front, value, f"{name} {value:.2f}", look)
            for name, value, look in ends
            if math.isfinite(value)
        ),
    )


def _whole(
    at: np.ndarray, losses: np.ndarray, name: str, shade: str, hover: str
) -> tuple[dict[str, Any], ...]:
    """Marks of the evaluations on the whole split, which no line joins to anything; nothing where there are
    none.
    """
    look = {"size": 11, "symbol": "diamond-open", "color": shade, "line": {"width": 2.5}}
    rest = {"mode": "markers", "marker": look, "cliponaxis": False, "hovertemplate": hover}
    return (_line(at, losses, name, **rest),) if len(at) else ()


def _other(curve: Curve, x: XAxis, shade: str) -> Parts:
    _, at, whole_at = curve.along(x)
    name = plain(curve.name)
    hover = f"{name}: %{{y:.4f}}<extra></extra>"
    trace = _line(
        at,
        curve.eval_losses,
        name,
        line={"color": shade, "width": 2},
        marker={"size": 5},
        mode="lines+markers",
        hovertemplate=hover,
    )
    whole = _whole(
        whole_at,
        curve.whole_losses,
        f"{name}: {WHOLE}",
        shade,
        f"{name}, whole split: %{{y:.4f}}<extra></extra>",
    )
    # named at its last point, of whatever kind
    ends = [(where, y) for where, y in ((at, curve.eval_losses), (whole_at, curve.whole_losses)) if len(y)]
    where, y = max(ends, key=lambda end: float(end[0][-1]), default=(at, curve.eval_losses))
    named = len(y) > 0 and math.isfinite(y[-1])
    return Parts(
        (trace, *whole),
        labels=((_label(float(where[-1]), float(y[-1]), plain(short(curve.name)), shade),) if named else ()),
    )


def _baselines(baselines: Mapping[str, float], vocab_size: int, unit: Unit, token: str) -> Parts:
    """Dotted lines right across, each with its name and value above its right end, where the curves have long
    gone below.
    """
    line, font = (
        {"color": colour("quiet"), "width": 1.2, "dash": "dot"},
        {"color": colour("quiet"), "size": 12},
    )
    log = {"nats": "ln", "bits": "log₂"}[unit]
    each = f" a {token}" if unit == "bits" and token != "character" else ""
    what = "letter" if token == "character" else token
    said = {
        name: BASELINE_WORDS.get(name, name).format(v=f"{vocab_size:,}", log=log, each=each, what=what)
        for name in baselines
    }
    words = {name: f"{said[name]}: {value:.2f}" for name, value in baselines.items()}
    return Parts(
        shapes=tuple(
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": y,
                "y1": y,
                "line": line,
                "layer": "below",
            }
            for y in baselines.values()
        ),
        notes=tuple(
            {
                "xref": "paper",
                "x": 1,
                "y": y,
                "text": words[name],
                "showarrow": False,
                "xanchor": "right",
                "yanchor": "bottom",
                "font": font,
            }
            for name, y in baselines.items()
        ),
    )


def _line(x: np.ndarray, y: np.ndarray, name: str, **rest: Any) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "x": _small(x), "y": _small(y), "name": name} | rest


def _small(values: np.ndarray) -> np.ndarray:
    """float32: half the bytes on the way to the browser, and exact for step numbers up to 2^24."""
    return np.asarray(values, dtype=np.float32)


def _label(x: float, y: float, text: str, shade: str) -> dict[str, Any]:
    """To the right of a curve's end, on the colour of the page, so that no dotted line runs through it."""
    look = {"font": {"color": shade, "size": 13}, "bgcolor": "var(--gf-seq0)", "borderpad": 0}
    return {"x": x, "y": y, "text": text, "showarrow": False, "xanchor": "left", "xshift": 6} | look


def _apart(
    labels: list[dict[str, Any]], y_range: list[float], height: int = 240, line: int = 17
) -> list[dict[str, Any]]:
    """The labels, moved up or down (pixels) until no two share a line. `height` is about that of the plot's
    inside.
    """
    scale = height / (y_range[1] - y_range[0])
    placed, lowest = [], -math.inf
    for label in sorted(labels, key=lambda label: label["y"]):
        natural = label["y"] * scale
        at = max(natural, lowest + line)
        placed.append((label, at - natural))
        lowest = at
    middle = (sum(shift for _, shift in placed) / len(placed)) if placed else 0.0  # as much down as up
    return [label | {"yshift": round(shift - middle)} for label, shift in placed]


def _x_axis(title: str, end: float | None) -> dict[str, Any]:
    return {"title": {"text": title}, "rangemode": "tozero", "showgrid": False} | (
        {"range": [0, end]} if end else {}
    )


def _loss_range(main: Curve | None, others: Sequence[Curve], baselines: Mapping[str, float]) -> list[float]:
    """Holds still as far as it can: from a little above ln V down to the lowest loss, in steps of half a nat.

    A loss that explodes is left to run out of the picture; the range stays readable, and a double click shows
    all.
    """
    top = max(baselines.values(), default=4.0)
    curves = (*others, *([main] if main else []))
    values = [y for curve in curves for y in (curve.eval_losses, curve.whole_losses)]
    values += [main.losses] if main else []
    finite = np.concatenate([np.asarray(v, dtype=np.float64) for v in values]) if values else _empty()
    finite = finite[np.isfinite(finite)]
    lowest = min([*baselines.values(), *([float(finite.min())] if finite.size else [])], default=0.0)
    highest = float(np.quantile(finite, 0.95)) if finite.size else top
    return [max(0.0, math.floor((lowest - 0.1) * 2) / 2), min(max(top, highest), 3 * top) * 1.06]


def small_curve(
    x: np.ndarray,
    y: np.ndarray,
    *,
    title: str,
    shade: str = "quiet",
    log: bool = False,
    end: float | None = None,
) -> go.Figure:
    """One thin line over steps: x (n,), y (n,)."""
    y_axis = {"type": "log", "nticks": 4} if log else {"type": "linear", "rangemode": "tozero", "nticks": 4}
    layout = base_layout(
        uirevision=title,
        margin={"l": 48, "r": 12, "t": 8, "b": 34},
        showlegend=False,
        xaxis=_x_axis("step", end),
        yaxis=y_axis,
    )
    line = _line(
        x, y, title, line={"color": colour(shade), "width": 1.5}, hovertemplate="%{y:.4g}<extra></extra>"
    )
    return go.Figure({"data": [line], "layout": layout})
