"""Shares of right sums by number of answers, and the votes for one of them. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.measure.slices import median_curve
from engine.measure.tasks.attempts import COUNTS, Attempts, Votes
from ui.figures import specs as go
from ui.figures.theme import colour

LINES = (
    ("verifier: one is right (pass@n)", "run0", "solid"),
    ("majority vote", "validation", "solid"),
    ("a single answer", "quiet", "dot"),
)
BARS = 12  # answers that are drawn, at most


def shares(attempts: Attempts) -> go.Figure:
    """Draws shares of right sums by number of answers: seeds as thin lines, their median as a thick line."""
    single = np.repeat(attempts.single[:, None], len(COUNTS), 1)
    traces = []
    for values, (name, shade, dash) in zip(
        (attempts.verifier, attempts.majority, single), LINES, strict=True
    ):
        line = {"color": colour(shade), "dash": dash, "width": 1}
        traces += [_line(each, name, line, opacity=0.5, showlegend=False) for each in values]
        traces.append(_line(median_curve(values), name, line | {"width": 3}))
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        xaxis=go.axis(
            "n, answers per sum", type="log", tickvals=list(COUNTS), ticktext=[str(n) for n in COUNTS]
        ),
        yaxis=go.axis("share of new sums", range=[0, 1.04], tickformat=".0%", showgrid=True),
    )


def _line(y: Any, name: str, line: dict[str, Any], **rest: Any) -> go.Trace:
    hover = "%{x} answers: %{y:.1%}<extra>" + name + "</extra>"
    values = {"x": list(COUNTS), "y": y, "name": name, "mode": "lines+markers", "line": line}
    return go.Scatter(**values, marker={"size": 4}, hovertemplate=hover, **rest)


def votes(each: Votes) -> go.Figure:
    """Draws how often each answer was given, the right one in another colour."""
    shown = each.answers[:BARS]
    rows = list(range(len(shown)))
    bar = go.Bar(
        x=[count for _, count in shown],
        y=rows,
        orientation="h",
        marker={"color": [colour("run0" if text == each.right else "quiet") for text, _ in shown]},
        text=[str(count) for _, count in shown],
        textposition="auto",
        hovertemplate="%{text} times<extra></extra>",
        showlegend=False,
    )
    return go.figure(
        [bar],
        margin={"l": 52, "r": 12, "t": 30, "b": 40},
        title={"text": f"{each.question} … (right: {each.right})", "font": {"size": 15}, "x": 0.5, "y": 0.98},
        xaxis=go.axis("out of 64"),
        yaxis=go.ticks(rows, [text for text, _ in shown], autorange="reversed"),
    )
