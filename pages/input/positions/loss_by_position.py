"""The loss by position of several schemes: the figure, its rows, and the stopgaps that stretch a scheme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from engine.config import Position
from pages.input.positions.schemes import COLOURS, TITLES
from studies.positions.extrapolation import UNITS, Curve, Stopgap, Unit, above_tail
from ui import content
from ui.figures import specs as go
from ui.figures.theme import colour

Variant = tuple[Position, Stopgap | None]  # a scheme as it is, or with a stopgap
TEXT = content.beside(__file__)
STOPGAPS: tuple[tuple[Position, Stopgap], ...] = (
    ("learned", "repeat"),
    ("learned", "hold"),
    ("rope", "interpolate"),
    ("rope", "ntk"),
    ("rope", "yarn"),
    ("t5", "far"),
)
SYMBOLS = dict(
    none="x", sinusoidal="diamond", learned="square", rope="triangle-up", alibi="circle", t5="cross"
)
HIGHEST = 6.0  # nats: where the axis ends at the latest; knowing nothing is ln 65 = 4.17


@dataclass(frozen=True, eq=False)
class Line:
    """A scheme's curve, or that of a stopgap for it; `others` are its curves from other seeds."""

    variant: Variant
    curve: Curve
    partial: bool = False
    others: Sequence[Curve] = ()

    @property
    def name(self) -> str:
        return name_of(self.variant)

    @property
    def scheme(self) -> Position:
        return self.variant[0]

    @property
    def stopgap(self) -> bool:
        return self.variant[1] is not None


def name_of(variant: Variant) -> str:
    """Returns a variant's name in the legend and in the table."""
    scheme, kind = variant
    return TITLES[scheme] if kind is None else TEXT[f"stopgap {kind}"]


def above_rows(curves: dict[Variant, Curve], unit: Unit) -> pd.DataFrame:
    """Returns a row for each point: what the CSV button saves."""
    frames = [
        pd.DataFrame(
            {
                "scheme": name_of(v),
                "first_position": c.first,
                "last_position": c.first + c.width - 1,
                f"loss_{unit}": c.mean,
                f"standard_error_{unit}": c.error,
                f"above_own_tail_{unit}": above_tail(c),
                "windows": c.windows,
            }
        )
        for v, c in curves.items()
    ]
    return pd.concat(frames, ignore_index=True)


def losses_figure(
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
        shade = COLOURS[line.scheme]
        traces += [_thin(other, line) for other in line.others]
        there = np.isfinite(y)
        band = there & np.isfinite(error)
        if band.any():
            edges = y[band] + error[band], y[band] - error[band]
            group: go.Trace = {"showlegend": False, "legendgroup": line.name}
            traces.append(go.band(x[band], *edges, shade, **group))
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
                    "symbol": SYMBOLS[line.scheme] + ("-open" if line.stopgap else ""),
                },
                hovertemplate=TEXT("hover", unit=unit),
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
    note = go.note(
        TEXT("training length", context=context), context, 1, yref="paper", xanchor="left", yanchor="top"
    )
    return go.figure(
        traces,
        uirevision=f"bench-{unit}-{above}",
        margin={"l": 48, "r": 12, "t": 52, "b": 44},
        hovermode="x",
        shapes=shapes,
        annotations=[note | {"xshift": 5, "font": {"color": colour("quiet"), "size": 12}}],
        xaxis=go.axis(
            TEXT["position"], range=[0, end], tickvals=np.arange(0, end + 1, context // 2), zeroline=False
        ),
        yaxis=go.axis(
            TEXT("excess loss" if above else "loss", unit=unit),
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
        line={"color": colour(COLOURS[line.scheme]), "width": 1},
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
        [
            TEXT("place" if curve.width == 1 else "places", first=a, last=a + curve.width - 1)
            for a in curve.first.tolist()
        ]
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
