"""Figures of the doctor's views. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.lab.doctor.check import Check
from engine.lab.doctor.patient import Patient
from engine.lab.doctor.story import StageRun
from engine.lab.doctor.table import Chart
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour

VALUES = {"not applicable": 0.0, "pass": 0.5, "fail": 1.0}
SCALE = [  # nothing to ask, passed, failed
    [0.0, colour("quiet", 8)],
    [0.34, colour("quiet", 8)],
    [0.34, colour("run0", 25)],
    [0.67, colour("run0", 25)],
    [0.67, colour("run4")],
    [1.0, colour("run4")],
]
SHORT = 34  # letters of a row's label on a phone; the longest has 42
NARROW = 9  # pixels: the letters of the grid's names on a phone
LINES = {"mended": "run0", "both": "run4", "spread": "run3", "mask": "run1", "told": "run2"}


def grid(
    charts: Mapping[str, Chart], titles: Mapping[str, str], checks: Mapping[str, Check], chosen: str
) -> go.Figure:
    """Draws (fault, check): whether the check fails. The row of the chosen fault is framed."""
    names = list(charts)[::-1]
    verdicts = [[verdict(charts[name], check) for check in checks] for name in names]
    row = names.index(chosen)
    trace = go.Heatmap(
        z=np.array([[VALUES[v] for v in line] for line in verdicts], dtype=np.float32),
        x=list(range(len(checks))),
        y=list(range(len(names))),
        zmin=0.0,
        zmax=1.0,
        colorscale=SCALE,
        showscale=False,
        xgap=2,
        ygap=2,
        customdata=[[name] * len(checks) for name in names],
        text=[
            [
                f"{titles[name]}<br>{check.title}: {verdict}"
                for check, verdict in zip(checks.values(), line, strict=True)
            ]
            for name, line in zip(names, verdicts, strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
    )
    frame = {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": row - 0.5,
        "y1": row + 0.5,
        "line": {"color": colour("residual"), "width": 2},
    }
    columns = _every(list(checks), [check.title for check in checks.values()]) | {"side": "top"}
    rows = _every(names, [titles[name] for name in names])
    small = {"tickfont": {"size": NARROW}}
    narrow = {  # a column is as wide as a letter is high: its name stands upright
        "margin": {"l": 184, "r": 4, "t": 112, "b": 8},
        "xaxis": columns | small | {"tickangle": -90},
        "yaxis": rows | small | {"ticktext": [_short(titles[name]) for name in names]},
    }
    return go.figure(
        [trace],
        margin={"l": 264, "r": 104, "t": 116, "b": 8},  # slanted names reach beyond the last column
        xaxis=columns | {"tickangle": -45},
        yaxis=rows,
        shapes=[frame],
        showlegend=False,
        meta={"narrow": narrow},
    )


def verdict(chart: Chart, check: str) -> str:
    finding = chart.findings.get(check)
    return "not applicable" if finding is None else finding.verdict


def _every(names: Sequence[str], written: Sequence[str]) -> dict[str, Any]:
    """An axis that names every row or column, and keeps its room."""
    return go.ticks(
        list(range(len(names))), list(written), tickfont={"size": 11}, automargin=False, fixedrange=True
    )


def _short(title: str) -> str:
    """A title that leaves room for the grid; the list above it has it whole."""
    return title if len(title) <= SHORT else f"{title[: SHORT - 1].rstrip()}…"


def curves(patient: Patient, names: Mapping[str, str]) -> go.Figure:
    """Draws training and validation loss over the steps, with the line of counting letters."""
    chart = patient.chart
    looks = chart.evaluations
    traces = [
        _line(chart.steps, chart.losses, names["losses"], "training"),
        _line([e.step for e in looks], [e.validation_loss for e in looks], names["validation"], "validation"),
    ]
    return go.Figure({"data": traces, "layout": _losses(chart.counting, "unigram")})


def loss_curves(runs: Sequence[StageRun], names: Mapping[str, str], line: float, baseline: str) -> go.Figure:
    """Draws the losses of some stages over their steps, as lines, and as points those on held-out text."""
    traces = [_line(run.points, run.losses, names[run.name], LINES[run.name]) for run in runs]
    traces += [_looked(run, names[run.name]) for run in runs if run.looks]
    return go.Figure({"data": traces, "layout": _losses(line, baseline)})


def gradient_norms(runs: Sequence[StageRun], names: Mapping[str, str]) -> go.Figure:
    """Draws the norm of the whole gradient over the steps, on a logarithmic scale."""
    traces = [_line(run.points, run.norms, names[run.name], LINES[run.name]) for run in runs]
    return go.figure(
        traces,
        xaxis={"title": {"text": "step"}, "rangemode": "tozero"},
        yaxis={"title": {"text": "norm of the gradient"}, "type": "log", "dtick": 1},
    )


def _line(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray, name: str, of: str) -> go.Trace:
    return go.Scatter(
        x=np.asarray(x),
        y=np.asarray(y),
        mode="lines",
        name=name,
        line={"color": colour(of), "width": 2.5},
        hovertemplate=f"{name}, step %{{x}}: %{{y:.2f}}<extra></extra>",
    )


def _looked(run: StageRun, name: str) -> go.Trace:
    return go.Scatter(
        x=[look.step for look in run.looks],
        y=[look.loss for look in run.looks],
        mode="markers",
        name=f"{name}, validation",
        marker={"color": colour(LINES[run.name]), "size": 8, "symbol": "circle-open", "line": {"width": 2}},
        hovertemplate=f"{name}, step %{{x}}: validation %{{y:.2f}}<extra></extra>",
    )


def _losses(line: float, text: str) -> dict[str, object]:
    return base_layout(
        xaxis={"title": {"text": "step"}, "rangemode": "tozero"},
        yaxis={"title": {"text": "loss, nats"}, "rangemode": "tozero"},
        shapes=[go.rule(y=line, line={"color": colour("quiet"), "dash": "dot", "width": 1.5})],
        annotations=[
            go.note(text, 1, line, xref="paper", xanchor="right", yanchor="bottom", font={"size": 12})
        ],
    )
