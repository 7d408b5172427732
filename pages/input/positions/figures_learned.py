"""Arrays -> figures of tables of position vectors. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.theme import SEQUENTIAL, colour


def path(scores: np.ndarray, share: np.ndarray) -> go.Figure:
    """Draws positions on two principal components (position, 2), joined in order and coloured by position."""
    at = np.arange(len(scores))
    scale = [[i / 5, stop[1]] for i, stop in enumerate(SEQUENTIAL[1:])]  # without the page's own colour
    marker = {
        "size": 8,
        "color": at.astype(np.float32),
        "colorscale": scale,
        "showscale": True,
        "line": {"width": 1, "color": colour("position")},
    }
    trace = go.Scatter(
        mode="lines+markers+text",
        x=scores[:, 0],
        y=scores[:, 1],
        line={"color": colour("position", 40), "width": 1.5},
        marker=marker | {"colorbar": go.scale("position")},
        text=_names(scores),
        textposition=_outside(scores),
        hovertemplate="position %{customdata}: %{x:.3f}, %{y:.3f}<extra></extra>",
        customdata=at.astype(np.int32),
        cliponaxis=False,
    )
    return go.figure(
        [trace],
        margin={"l": 52, "r": 8, "t": 20, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": f"component 1 ({share[0]:.1%})"}},
        yaxis={"title": {"text": f"component 2 ({share[1]:.1%})"}},
    )


def _names(scores: np.ndarray, apart: float = 0.08) -> list[str]:
    """The first, the last and some positions between, of those that are not too near each other to be read;
    the others are nameless.
    """
    flat, last = _flat(scores), len(scores) - 1
    named: list[int] = []
    for i in [0, last, *range(0, last, max(1, len(scores) // 8))]:
        if i not in named and (i in (0, last) or all(np.abs(flat[i] - flat[j]).max() > apart for j in named)):
            named.append(i)
    return [str(i) if i in named else "" for i in range(len(scores))]


def _flat(scores: np.ndarray) -> np.ndarray:
    """Scales the picture so that both axes are equally long."""
    flat: np.ndarray = (scores - scores.mean(0)) / np.maximum(np.ptp(scores, axis=0), 1e-12)
    return flat


def _outside(scores: np.ndarray) -> list[str]:
    """Where the name of each point stands: beside the path, on the side away from its middle."""
    flat = _flat(scores)
    along = np.roll(flat, -2, axis=0) - np.roll(flat, 2, axis=0)
    along[:2], along[-2:] = flat[2] - flat[0], flat[-1] - flat[-3]
    across = np.stack((-along[:, 1], along[:, 0]), axis=1)
    across *= np.where((across * flat).sum(1, keepdims=True) < 0, -1.0, 1.0) / np.maximum(
        np.linalg.norm(across, axis=1, keepdims=True), 1e-12
    )
    sides = [
        (
            "left" if x < -0.5 else "right" if x > 0.5 else "center",
            "bottom" if y < -0.5 else "top" if y > 0.5 else "middle",
        )
        for x, y in across
    ]
    return [f"{'top' if (x, y) == ('center', 'middle') else y} {x}" for x, y in sides]


def two_lines(
    curves: Sequence[tuple[str, np.ndarray, np.ndarray | None]], x: str, y: str, *, first: int = 0
) -> go.Figure:
    """Draws (name, values (n,), spread (n,) or None): the learned table first, drawn full, then the
    sinusoidal one, dashed. x counts from `first`.
    """
    traces: list[dict[str, Any]] = []
    for (name, values, spread), shade, dash in zip(
        curves, ("position", "validation"), ("solid", "dash"), strict=False
    ):
        at = np.arange(first, first + len(values))
        if spread is not None and spread.max() > 1e-5:
            traces.append(
                go.Scatter(
                    mode="lines",
                    x=np.concatenate([at, at[::-1]]),
                    y=np.concatenate([values + spread, (values - spread)[::-1]]),
                    fill="toself",
                    fillcolor=colour(shade, 20),
                    line={"width": 0, "color": colour(shade, 20)},
                    hoverinfo="skip",
                    showlegend=False,
                )
            )
        traces.append(
            go.Scatter(
                mode="lines",
                x=at,
                y=values.astype(np.float32),
                name=name,
                line={"color": colour(shade), "width": 2.5, "dash": dash},
                hovertemplate="%{y:.4f}",
            )
        )
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 30, "b": 44},
        hovermode="x unified",
        xaxis=go.axis(x),
        yaxis={"title": {"text": y}, "zeroline": True, "zerolinecolor": colour("quiet")},
    )


def rising(steps: np.ndarray, values: np.ndarray, level: float, shown: int, end: float) -> go.Figure:
    """Draws the learned table's correlation (step,); a dotted line at the sinusoidal one's `level`; a dashed
    one marks the step that is `shown`.
    """
    trace = go.Scatter(
        mode="lines+markers",
        x=steps,
        y=values.astype(np.float32),
        marker={"size": 7},
        line={"color": colour("position"), "width": 3},
        hovertemplate="step %{x}: %{y:.4f}<extra></extra>",
    )
    still = go.rule(y=level, line={"color": colour("validation"), "dash": "dot"})
    here = go.rule(x=shown, line={"color": colour("attention"), "width": 1.5, "dash": "dash"})
    name = go.note(f"sinusoidal: {level:.2f}", 1, level, xref="paper", xanchor="right", yanchor="bottom")
    return go.figure(
        [trace],
        margin={"l": 52, "r": 12, "t": 12, "b": 44},
        showlegend=False,
        shapes=[still, here],
        annotations=[name | {"font": {"color": colour("validation")}}],
        xaxis=go.axis("training step", range=[-0.02 * end, 1.02 * end]),
        yaxis=go.axis(
            "correlation",
            showgrid=True,
            zeroline=True,
            zerolinecolor=colour("quiet"),
            range=[min(-0.15, float(values.min()) - 0.05), 1.08],
        ),
    )
