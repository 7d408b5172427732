"""Arrays -> figures of the view "RoPE against sinusoidal". Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.measure.positions.position_scores import DistanceScores, PositionScores
from pages.input.positions.maps import signed_map
from ui.figures import specs as go
from ui.figures.theme import colour

BOTTOM, TOP = 1.06, 1.15  # of the strip of blocks, in heights of the plot
EMBEDDING = 0.3  # of the strip's width


def moved_pair(
    title: str,
    entrances: Sequence[tuple[str, bool]],
    row: DistanceScores,
    reach: tuple[float, float],
    distance: int,
) -> go.Figure:
    """Draws the score of a pair as it moves through the text, on an axis that holds `reach`; above it, where
    positions enter.
    """
    line = go.Scatter(
        x=row.positions,
        y=row.scores.astype(np.float32),
        mode="lines+markers",
        line={"color": colour("position"), "width": 3},
        marker={"size": 5},
        customdata=row.positions - distance,
        hovertemplate="query at %{x}, key at %{customdata}: score %{y:.4f}<extra></extra>",
    )
    low, high = reach
    room = 0.08 * max(high - low, 0.1)
    boxes, names = _strip(entrances)
    named = go.note(
        f"<b>{title}</b>",
        0,
        1.2,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        font={"size": 14},
    )
    return go.figure(
        [line],
        margin={"l": 44, "r": 8, "t": 84, "b": 42},
        showlegend=False,
        shapes=boxes,
        annotations=[*names, named],
        xaxis=go.axis("position of the query", zeroline=False),
        yaxis={"title": {"text": "score"}, "range": [low - room, high + room], "zeroline": True},
    )


def _strip(entrances: Sequence[tuple[str, bool]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A box for the embedding and for each block, filled where positions enter."""
    width = (1 - EMBEDDING) / max(len(entrances) - 1, 1)
    edges = [0.0, *(EMBEDDING + i * width for i in range(len(entrances)))]
    boxes, names = [], []
    for (name, lit), left, right in zip(entrances, edges, edges[1:], strict=False):
        boxes.append(
            {
                "type": "rect",
                "xref": "paper",
                "yref": "paper",
                "x0": left + 0.005,
                "x1": right - 0.005,
                "y0": BOTTOM,
                "y1": TOP,
                "line": {"color": colour("position" if lit else "quiet"), "width": 1.5},
                "fillcolor": colour("position", 40) if lit else "rgba(0,0,0,0)",
            }
        )
        names.append(
            go.note(
                name,
                (left + right) / 2,
                (BOTTOM + TOP) / 2,
                xref="paper",
                yref="paper",
                xanchor="center",
                yanchor="middle",
                font={"size": 11},
            )
        )
    return boxes, names


def every_two_positions(scores: PositionScores, reach: float) -> go.Figure:
    """Draws scores (query, key), zero in the middle of the scale."""
    hover = "query at %{y}, key at %{x}: score %{z:.4f}"
    return signed_map(scores.scores, "position of the key", "position of the query", hover, reach)
