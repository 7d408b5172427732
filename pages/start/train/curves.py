"""Arrays -> figures of a training: losses, gradient norm, learning rate. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pages.start.train.curve_points import Curve, Unit, XAxis, _empty
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import base_layout, colour

WHOLE = "validation, whole split"
GAP = 5  # pixels between a point and its label
OTHERS = tuple(f"run{i}" for i in range(6))

BASELINE_WORDS = {
    "uniform": "uniform ({log} {v}{each})",
    "unigram": "unigram",
    "bigram": "bigram",
    "trigram": "trigram",
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
    """Draws training and validation loss of `main`, the validation loss of `others`, and what predictors
    without a network reach.

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
    labels = _apart([label for part in parts for label in part.labels], y_range, reach)
    layout = base_layout(
        uirevision=f"loss-{x}-{unit}",
        margin={"l": 48, "r": 52 if unit == "nats" else 12, "t": 8, "b": 40},
        showlegend=main is not None,
        legend={"font": {"size": 13}},
        hovermode="closest" if others else "x unified",
        xaxis=_x_axis("step" if x == "step" else "training time (s)", reach or None),
        yaxis={
            "title": {"text": f"loss (nats per {token})" if unit == "nats" else "loss (bits per character)"},
            "range": y_range,
        },
        shapes=[shape for part in parts for shape in part.shapes],
        annotations=[*(note for part in parts for note in part.notes), *labels],
        **({"yaxis2": _choices_axis(y_range)} if unit == "nats" else {}),
    )
    traces = [trace for part in parts for trace in part.traces]
    axes = ["y", *(["y2"] if unit == "nats" else [])]
    return go.Figure({"data": [*traces, *(NOTHING | {"yaxis": axis} for axis in axes)], "layout": layout})


# an axis is drawn only where something belongs to it
NOTHING = {
    "type": "scatter",
    "x": [None],
    "y": [None],
    "hoverinfo": "skip",
    "showlegend": False,
}


def _choices_axis(y_range: list[float]) -> dict[str, Any]:
    """The same losses as numbers of equally likely tokens, e^loss: 1, 2, 4, 8 ..."""
    choices = [2**power for power in range(17) if math.log(2**power) <= y_range[1]]
    return {
        "title": {"text": "perplexity"},
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
        _line(at, curve.losses, "each batch", line=thin, opacity=0.75, hovertemplate="%{y:.3f}"),
        _line(
            eval_at,
            curve.eval_losses,
            _named(curve),
            line=thick,
            marker={"size": 6},
            mode="lines+markers",
            cliponaxis=False,
            hovertemplate="%{y:.4f}",
        ),
        *_whole(whole_at, curve.whole_losses, WHOLE, shade, "%{y:.4f}"),
    )
    marks = _marks(curve, x, shade)
    return Parts(traces, marks.notes, _ends(curve, x, shade), marks.shapes)


def _named(curve: Curve) -> str:
    """The name in the legend, with its newest validation loss."""
    name = plain(_middle(curve.name))
    return f"{name} {curve.final:.2f}" if math.isfinite(curve.final) else name


def _middle(name: str) -> str:
    """A name of over 26 characters without its middle: its end may be the number that tells it apart.

    >>> _middle("fast, width 32, layers 1, steps … (2)")
    'fast, width 32, laye… (2)'
    """
    return name if len(name) <= 26 else f"{name[:20]}…{name[-4:]}"


def _ends(curve: Curve, x: XAxis, shade: str) -> tuple[dict[str, Any], ...]:
    """The loss at a curve's last point, of whatever kind, written at that point."""
    found = curve.newest(x)
    if found is None or not math.isfinite(found[1]):
        return ()
    return (_label(*found, f"{found[1]:.2f}", shade),)


def _marks(curve: Curve, x: XAxis, shade: str) -> Parts:
    """A line across the chart where somebody changed something by hand, and what it was."""
    where = [float(c.step if x == "step" else c.seconds) for c in curve.changes]
    reach = max([float(along[-1]) for along in curve.along(x) if len(along)], default=0.0)
    line = {"color": shade, "width": 1.5, "dash": "dash"}
    shapes = tuple(
        {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line} for at in where
    )
    notes = tuple(
        {
            "x": at,
            "yref": "paper",
            "y": 0.08 * (index % 4),  # low, where a falling curve leaves room
            "text": f"by hand: {change.brief}",
            "showarrow": False,
            "xanchor": "left" if at < reach / 2 else "right",
            "yanchor": "bottom",
            "xshift": 3 if at < reach / 2 else -3,
            "font": {"color": shade, "size": 12},
        }
        for index, (at, change) in enumerate(zip(where, curve.changes, strict=True))
    )
    return Parts(notes=notes, shapes=shapes)


def _whole(
    at: np.ndarray, losses: np.ndarray, name: str, shade: str, hover: str
) -> tuple[dict[str, Any], ...]:
    """Marks of the evaluations on the whole split, which no line joins to anything; nothing where there are
    none.
    """
    look = {"size": 11, "symbol": "diamond-open", "color": shade, "line": {"width": 2.5}}
    rest = {
        "mode": "markers",
        "marker": look,
        "cliponaxis": False,
        "hovertemplate": hover,
        "showlegend": False,
    }
    return (_line(at, losses, name, **rest),) if len(at) else ()


def _other(curve: Curve, x: XAxis, shade: str) -> Parts:
    _, at, whole_at = curve.along(x)
    name = plain(curve.name)
    trace = _line(
        at,
        curve.eval_losses,
        _named(curve),
        line={"color": shade, "width": 2},
        marker={"size": 5},
        mode="lines+markers",
        hovertemplate="%{y:.4f}",
    )
    whole = _whole(whole_at, curve.whole_losses, f"{name}: {WHOLE}", shade, "%{y:.4f}")
    marks = _marks(curve, x, shade)
    return Parts((trace, *whole), marks.notes, _ends(curve, x, shade), marks.shapes)


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
    said = {
        name: BASELINE_WORDS.get(name, name).format(v=f"{vocab_size:,}", log=log, each=each)
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
    """At a curve's last point: `_apart` says where."""
    look = {"font": {"color": shade, "size": 13}, "yanchor": "top", "borderpad": 0}
    return {"x": x, "y": y, "text": text, "showarrow": False} | look


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
    """Draws one thin line over steps: x (n,), y (n,)."""
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
