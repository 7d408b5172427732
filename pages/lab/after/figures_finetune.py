"""How likely each answer is by step of a fine-tuning, the losses on two texts, and the singular values of a
change. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.theme import colour

STYLES = {
    "new": ("output", "solid", 3.0),
    "reworded": ("output", "dot", 2.0),
    "known": ("validation", "solid", 2.0),
    "leak": ("run1", "dash", 2.0),
    "single": ("output", "solid", 1.0),
}


def answers_by_step(
    steps: Sequence[int],
    lines: np.ndarray,
    labels: Sequence[tuple[str, str]],
    end: int,
    plain: np.ndarray | None = None,
    stored: Sequence[tuple[Sequence[int], np.ndarray, np.ndarray]] = (),
) -> go.Figure:
    """Draws the probability of each answer (line, step) by step up to `end`; a label is its name and role.
    Below them, where it was measured, the loss on `plain` text (step,). `stored` runs, (steps, lines,
    loss on plain text), are thin lines.
    """
    traces = []
    for values, (name, role) in zip(lines, labels, strict=True):
        shade, dash, width = STYLES[role]
        traces.append(
            go.Scatter(
                x=list(steps),
                y=values,
                name=name,
                mode="lines" if role == "single" and len(steps) > 1 else "lines+markers",
                showlegend=role != "single",
                line={"color": colour(shade), "dash": dash, "width": width},
                marker={"size": 5 if len(steps) > 1 else 9},
                hovertemplate="step %{x}: %{y:.1%}<extra>" + name + "</extra>",
            )
        )
    for at, run, _ in stored:
        for values, (name, role) in zip(run, labels, strict=True):
            if role != "single":
                traces.append(_thin(at, values, name, STYLES[role][0], "%{y:.1%}"))
    below: dict[str, Any] = {}
    hangs: dict[str, Any] = {}
    if plain is not None and np.isfinite(plain).any():
        traces.append(
            go.Scatter(
                x=list(steps),
                y=plain,
                yaxis="y2",
                name="plain text: loss",
                mode="lines+markers",
                line={"color": colour("validation"), "width": 2.0},
                marker={"size": 5 if len(steps) > 1 else 9},
                hovertemplate="step %{x}: %{y:.3f} nats<extra>loss on plain text</extra>",
            )
        )
        for at, _, values in stored:
            name = "loss on plain text"
            traces.append(_thin(at, values, name, "validation", "%{y:.3f} nats") | {"yaxis": "y2"})
        every = np.concatenate([plain, *(values for _, _, values in stored)])
        room = max(0.1, 0.15 * float(np.ptp(every)))
        reach = [float(every.min()) - room, float(every.max()) + room]
        hangs = {"anchor": "y2"}
        below = {"yaxis2": go.axis("nats", domain=[0, 0.27], range=reach, showgrid=True, nticks=4)}
    return go.figure(
        traces,
        **below,
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        showlegend=True,
        xaxis=go.axis("step", dtick=max(1, end // 10), range=[-0.02 * end, 1.02 * end], **hangs),
        yaxis=go.axis("probability of the answer", range=[-0.02, 1.04], tickformat=".0%", showgrid=True)
        | ({"domain": [0.38, 1]} if below else {}),
    )


def losses_by_step(
    steps: Sequence[int],
    losses: np.ndarray,
    names: Sequence[str],
    end: int,
    stored: Sequence[tuple[Sequence[int], Sequence[Sequence[float]]]] = (),
) -> go.Figure:
    """Draws the loss on the new text and on the old one (line, step) by step up to `end`; `stored` runs,
    (steps, losses (step, line)), as thin lines.
    """
    shades = ("output", "validation")
    traces = [
        go.Scatter(
            x=list(steps),
            y=values,
            name=name,
            mode="lines+markers",
            line={"color": colour(shade), "width": 3.0},
            marker={"size": 5 if len(steps) > 1 else 9},
            hovertemplate="step %{x}: %{y:.3f} nats<extra>" + name + "</extra>",
        )
        for values, name, shade in zip(losses, names, shades, strict=True)
    ]
    for at, run in stored:
        for values, name, shade in zip(np.array(run).T, names, shades, strict=True):
            traces.append(_thin(at, values, name, shade, "%{y:.3f} nats"))
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        showlegend=True,
        xaxis=go.axis("step", range=[-0.02 * end, 1.02 * end]),
        yaxis=go.axis("held-out loss (nats)", showgrid=True),
    )


def _thin(steps: Sequence[int], values: np.ndarray, name: str, shade: str, form: str) -> go.Trace:
    return go.Scatter(
        x=list(steps),
        y=values,
        name=name,
        mode="lines",
        opacity=0.5,
        showlegend=False,
        line={"color": colour(shade), "width": 1.0},
        hovertemplate="step %{x}: " + form + "<extra>" + name + ", another seed</extra>",
    )


def singular_values(values: Sequence[float]) -> go.Figure:
    """Draws singular values, largest first."""
    bar = go.Bar(
        x=list(range(1, len(values) + 1)),
        y=list(values),
        marker={"color": colour("feedforward")},
        hovertemplate="%{x}: %{y:.3g}<extra></extra>",
    )
    return go.figure(
        [bar],
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        xaxis=go.axis("singular value of the change, by size", dtick=1),
        yaxis=go.axis("", showgrid=True),
    )
