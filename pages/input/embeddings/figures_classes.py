"""Arrays -> figures of how classes of tokens lie together. Pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pages.input.embeddings.looks import token_rows
from ui.figures import specs as go
from ui.figures.theme import colour


def emergence(
    steps: np.ndarray,
    values: np.ndarray,
    chance: np.ndarray,
    matched: np.ndarray | None,
    here: int | None,
    end: float | None,
) -> go.Figure:
    """Draws `values` (step,); `chance` and `matched` (step, 2): the middle 95% of the shuffles. One step is
    drawn as a point with its bands.
    """
    traces: list[dict[str, Any]] = []
    bands = [("shuffled labels", chance, "quiet")] + (
        [("shuffled among tokens of similar frequency", matched, "run2")] if matched is not None else []
    )
    for name, band, shade in bands:
        x = np.concatenate([steps, steps[::-1]])
        y = np.concatenate([band[:, 0], band[::-1, 1]])
        traces.append(
            go.Scatter(
                mode="lines",
                x=x,
                y=y,
                fill="toself",
                fillcolor=colour(shade, 30),
                line={"color": colour(shade), "width": 1},
                name=name,
                hoverinfo="skip",
            )
        )
    traces.append(
        go.Scatter(
            mode="lines+markers",
            x=steps,
            y=values.astype(np.float32),
            name="true classes",
            marker={"size": 7},
            line={"color": colour("embedding"), "width": 3},
            hovertemplate="step %{x}: %{y:.4f}<extra></extra>",
        )
    )
    line = go.rule(x=here, line={"color": colour("attention"), "width": 1.5, "dash": "dash"})
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 48, "b": 44},
        shapes=[line] if here is not None else [],
        xaxis=go.axis("training step") | ({"range": [-0.02 * end, 1.02 * end]} if end else {}),
        yaxis=go.axis(
            "within − across",
            showgrid=True,
            exponentformat="power",
            zeroline=True,
            zerolinecolor=colour("quiet"),
        ),
    )


def null_histogram(value: float, chance: np.ndarray, matched: np.ndarray | None) -> go.Figure:
    """Draws where the true classes lie among shuffled ones: one point for each shuffle, in rows."""
    rows = [("shuffled labels", chance, "quiet")] + (
        [("shuffled within frequency", matched, "run2")] if matched is not None else []
    )
    traces: list[dict[str, Any]] = []
    for index, (name, values, shade) in enumerate(rows):
        wobble = ((np.arange(len(values)) * 0.618) % 1 - 0.5) * 0.5  # spread out, the same every time
        traces.append(
            go.Scatter(
                mode="markers",
                x=values.astype(np.float32),
                y=index + wobble,
                name=name,
                marker={"size": 6, "color": colour(shade, 60)},
                hovertemplate="%{x:.4f}<extra>" + name + "</extra>",
            )
        )
    traces.append(
        go.Scatter(
            mode="markers",
            x=[value],
            y=[len(rows)],
            name="true classes",
            marker={"size": 14, "symbol": "diamond", "color": colour("embedding")},
            hovertemplate="%{x:.4f}<extra>true classes</extra>",
        )
    )
    words = [name for name, _, _ in rows] + ["true classes"]
    return go.figure(
        traces,
        margin={"l": 8, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        xaxis=go.axis(
            "within − across (cosine)",
            showgrid=True,
            exponentformat="power",
            zeroline=True,
            zerolinecolor=colour("quiet"),
        ),
        yaxis=go.ticks(list(range(len(words))), words, range=[-0.6, len(words) - 0.4]),
    )


def cosine_map(
    values: np.ndarray, words: Sequence[str], borders: Sequence[int], names: Sequence[str]
) -> go.Figure:
    """Draws cosines (token, token), sorted by class; lines where a class ends. The diagonal is left blank: it
    is 1 by definition.
    """
    shown = values.astype(np.float32).copy()
    np.fill_diagonal(shown, np.nan)
    heat = go.signed(
        shown,
        hovertemplate="“%{y}” and “%{x}”: cosine %{z:.4f}<extra></extra>",
        colorbar=go.scale("cosine"),
    )
    line = {"type": "line", "line": {"color": colour("residual"), "width": 1.2}}
    ends = [-0.5, len(words) - 0.5]
    shapes: list[dict[str, Any]] = []
    for border in borders[1:-1]:
        at = border - 0.5
        shapes += [
            line | {"x0": at, "x1": at, "y0": ends[0], "y1": ends[1]},
            line | {"y0": at, "y1": at, "x0": ends[0], "x1": ends[1]},
        ]
    middle = [(a + b - 1) / 2 for a, b in itertools.pairwise(borders)]
    notes = [
        go.note(
            name, x, 1.0, yref="paper", yanchor="bottom", textangle=-30, font={"size": 12}, xanchor="left"
        )
        for x, name in zip(middle, names, strict=True)
    ]
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 76, "b": 8},
        showlegend=False,
        shapes=shapes,
        annotations=notes,
        xaxis=token_rows(words) | {"range": ends},
        yaxis=token_rows(words),
    )
