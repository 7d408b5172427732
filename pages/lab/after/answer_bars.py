"""Answers to one question as bars, those that are right or rewarded in another colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ui.figures import specs as go
from ui.figures.theme import colour


def answer_bars(
    answers: Sequence[str],
    lengths: Sequence[float],
    written: Sequence[str],
    marked: Sequence[bool],
    *,
    title: str,
    hover: str,
    left: int,
    xaxis: dict[str, Any],
) -> go.Figure:
    """Draws a bar for each answer, its length `written` beside it. `left`: of the margin, pixels."""
    rows = list(range(len(answers)))
    bar = go.Bar(
        x=list(lengths),
        y=rows,
        orientation="h",
        marker={"color": [colour("run0" if each else "quiet") for each in marked]},
        text=list(written),
        textposition="auto",
        hovertemplate=f"{hover}<extra></extra>",
        showlegend=False,
    )
    return go.figure(
        [bar],
        margin={"l": left, "r": 12, "t": 30, "b": 40},
        title={"text": title, "font": {"size": 15}, "x": 0.5, "y": 0.98},
        xaxis=xaxis,
        yaxis=go.ticks(rows, list(answers), autorange="reversed"),
    )
