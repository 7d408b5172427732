"""Arrays -> figures of a training: losses, gradient norm, learning rate. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.experiments.race_table import Along, RunCurves, Unit
from engine.service.state import Change
from ui import content
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import base_layout, colour
from ui.run_text import FLOOR

TEXT = content.beside(__file__)
GAP = 5  # pixels between a point and its label
OTHERS = tuple(f"run{i}" for i in range(6))


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
    `main`, then of each of the `others`. `end` is where the x axis
    stops while the curves are still short of it, so that the axis holds still as they grow. Built as one
    dictionary: adding to a figure piece by piece takes ten times as long, and this one is made several times
    a second.
    """
    parts: list[Parts] = [_baselines(baselines, vocab_size, unit, token)]
    shades = [colour(OTHERS[index % len(OTHERS)]) for index in range(len(others))]
    parts += [_other(other, shade) for other, shade in zip(others, shades, strict=True)]
    parts += [_main(main)] if main is not None else []
    drawn = [*([main] if main is not None else []), *others]
    reach = max([end or 0.0, *(_reach(curve) for curve in drawn)])
    owners = zip(drawn, [colour("validation")] * (main is not None) + shades, strict=True)
    parts += [
        _marks(some, along, _reach(curve), shade)
        for some, (curve, shade) in zip(changes, owners, strict=False)
    ]
    y_range = _loss_range(drawn, main, baselines)
    labels = _apart([label for part in parts for label in part.labels], y_range, reach)
    layout = base_layout(
        uirevision=f"loss-{along}-{unit}",
        margin={"l": 48, "r": 52 if unit == "nats" else 12, "t": 8, "b": 40},
        showlegend=main is not None,
        legend={"font": {"size": 13}},
        hovermode="closest" if others else "x unified",
        xaxis=_x_axis(TEXT["step" if along == "steps" else "seconds"], reach or None),
        yaxis={
            "title": {"text": TEXT("nats", token=token) if unit == "nats" else TEXT["bits"]},
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


@dataclass(frozen=True)
class Parts:
    """Pieces of a figure, as Plotly's dictionaries."""

    traces: tuple[dict[str, Any], ...] = ()
    notes: tuple[dict[str, Any], ...] = ()
    labels: tuple[dict[str, Any], ...] = ()  # beside the ends of curves
    shapes: tuple[dict[str, Any], ...] = ()


def _reach(curve: RunCurves) -> float:
    """Returns where the last point of a curve lies on the axis; 0 before the first."""
    return max([0.0, *(float(at[-1]) for at in (curve.at, curve.looked_at, curve.end_at) if len(at))])


def _main(curve: RunCurves) -> Parts:
    shade = colour("validation")
    thin = {"color": colour("training"), "width": 1.2}
    batches = _line(
        curve.at, curve.losses, TEXT["each batch"], line=thin, opacity=0.75, hovertemplate="%{y:.3f}"
    )
    looks = _looks(curve, shade, 3, 6) | {"cliponaxis": False}
    return Parts((batches, looks, *_whole(curve, TEXT["whole"], shade)), labels=_ends(curve, shade))


def _other(curve: RunCurves, shade: str) -> Parts:
    whole = _whole(curve, TEXT("whole of", name=plain(curve.name)), shade)
    return Parts((_looks(curve, shade, 2, 5), *whole), labels=_ends(curve, shade))


def _looks(curve: RunCurves, shade: str, width: int, size: int) -> dict[str, Any]:
    """The validation losses on a part of the split."""
    look = {"line": {"color": shade, "width": width}, "marker": {"size": size}, "mode": "lines+markers"}
    return _line(curve.looked_at, curve.looked, _named(curve), hovertemplate="%{y:.4f}", **look)


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


def _marks(changes: Sequence[Change], along: Along, reach: float, shade: str) -> Parts:
    """A line across the chart where somebody changed something by hand, and what it was."""
    where = [float(c.step if along == "steps" else c.seconds) for c in changes]
    line = {"color": shade, "width": 1.5, "dash": "dash"}
    notes = tuple(
        go.note(
            TEXT("by hand", change=change.brief),
            at,
            0.08 * (index % 4),  # low, where a falling curve leaves room
            yref="paper",
            xanchor="left" if at < reach / 2 else "right",
            yanchor="bottom",
            xshift=3 if at < reach / 2 else -3,
            font={"color": shade, "size": 12},
        )
        for index, (at, change) in enumerate(zip(where, changes, strict=True))
    )
    return Parts(notes=notes, shapes=tuple(go.rule(x=at, line=line) for at in where))


def _whole(curve: RunCurves, name: str, shade: str) -> tuple[dict[str, Any], ...]:
    """Marks of the evaluations on the whole split, which no line joins to anything; nothing where there are
    none.
    """
    look = {"size": 11, "symbol": "diamond-open", "color": shade, "line": {"width": 2.5}}
    rest = {"mode": "markers", "cliponaxis": False, "hovertemplate": "%{y:.4f}", "showlegend": False}
    return (_line(curve.end_at, curve.end, name, marker=look, **rest),) if len(curve.end) else ()


def _baselines(baselines: Mapping[str, float], vocab_size: int, unit: Unit, token: str) -> Parts:
    """Dotted lines right across, each with its name and value above its right end, where the curves have long
    gone below.
    """
    line, font = (
        {"color": colour("quiet"), "width": 1.2, "dash": "dot"},
        {"color": colour("quiet"), "size": 12},
    )
    names = {
        "uniform": TEXT(
            "uniform each" if unit == "bits" and token != "character" else "uniform",
            log={"nats": "ln", "bits": "log₂"}[unit],
            choices=vocab_size,
            token=token,
        ),
        FLOOR: TEXT["floor"],
    }
    return Parts(
        shapes=tuple(go.rule(y=y, line=line, layer="below") for y in baselines.values()),
        notes=tuple(
            go.note(
                TEXT("baseline", name=names.get(name, name), loss=float(y)),
                1,
                y,
                xref="paper",
                xanchor="right",
                yanchor="bottom",
                font=font,
            )
            for name, y in baselines.items()
        ),
    )


def _line(x: np.ndarray, y: np.ndarray, name: str, **rest: Any) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "x": _small(x), "y": _small(y), "name": name} | rest


def _small(values: np.ndarray) -> np.ndarray:
    """float32: half the bytes on the way to the browser, and exact for step numbers up to 2^24."""
    return np.asarray(values, dtype=np.float32)


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


def _loss_range(
    drawn: Sequence[RunCurves], main: RunCurves | None, baselines: Mapping[str, float]
) -> list[float]:
    """Holds still as far as it can: from a little above ln V down to the lowest loss, in steps of half a nat.

    A loss that explodes is left to run out of the picture; the range stays readable, and a double click shows
    all.
    """
    top = max(baselines.values(), default=4.0)
    values = [np.zeros(0), *(y for curve in drawn for y in (curve.looked, curve.end))]
    values += [main.losses] if main else []
    finite = np.concatenate([np.asarray(v, dtype=np.float64) for v in values])
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
    line = {"color": colour(shade), "width": 1.5}
    return go.figure(
        [_line(x, y, title, line=line, hovertemplate="%{y:.4g}<extra></extra>")],
        uirevision=title,
        margin={"l": 48, "r": 12, "t": 8, "b": 34},
        showlegend=False,
        xaxis=_x_axis(TEXT["step"], end),
        yaxis=y_axis,
    )
