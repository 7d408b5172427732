"""Heatmaps of weights between tokens, and the tables behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.axes import MOST as MOST
from ui.figures.axes import token_axis as token_axis
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain
from ui.figures.theme import SEQUENTIAL


def pattern_heatmap(weights: np.ndarray, labels: Sequence[str], most: int = MOST) -> go.Figure:
    """Draws weights (query, key) in [0, 1]; queries go down. A narrow figure has room for `most` upright
    tokens.
    """
    return matrix_heatmap(weights, labels, "weight", signed=False, most=most)


def heatmap_height(rows: int) -> int:
    """Pixels that give every label its line."""
    return max(340, 76 + round(12.6 * min(rows, 64)))


def matrix_heatmap(
    values: np.ndarray,
    labels: Sequence[str],
    name: str,
    *,
    signed: bool,
    columns: Sequence[str] | None = None,
    across: str = "key: the token attended to",
    most: int = MOST,
) -> go.Figure:
    """Draws values (query, key) or (query, anything). -inf is left blank. Signed ones are shown
    around zero.
    """
    limits: dict[str, Any] = {} if signed else {"zmin": 0, "zmax": 1, "colorscale": SEQUENTIAL}
    words = columns or labels
    tall = 0 if columns is not None else crowded(labels)  # letters of tokens that have to stand upright
    heat = go.signed(
        values,
        hovertemplate=f"%{{hovertext}}<br>{name} %{{z:.4f}}<extra></extra>",
        colorbar=go.scale(name),
        **named_cells([f"query {name}" for name in placed(labels)], _columns(labels, columns), " → "),
        **limits,
    )
    return go.figure(
        [heat],
        margin={
            "l": 44 + LETTER * min(max(map(len, labels), default=1), MOST_LETTERS),
            "r": 8,
            "t": 30 + LETTER * tall,
            "b": 8,
        },
        showlegend=False,
        xaxis=(
            token_axis(words, across, side="top", tickangle=-90 if tall else 0, most=most if tall else MOST)
            if columns is None
            else {"title": {"text": across}, "side": "top", "showgrid": False, "zeroline": False}
        ),
        yaxis=token_axis(labels, "query: the token that attends", autorange="reversed", size=12),
    )


def placed(labels: Sequence[str]) -> list[str]:
    """Returns the tokens in full, with where they stand: at an axis long ones are cut, and equal ones look
    alike.

    >>> placed(["␣a", "<b>"])
    ['␣a at 0', '&lt;b&gt; at 1']
    """
    return [f"{plain(label)} at {i}" for i, label in enumerate(labels)]


def named_cells(rows: Sequence[str], columns: Sequence[str], between: str) -> dict[str, Any]:
    """Returns the properties of a heatmap whose cells say their row and their column when pointed at, as
    `%{hovertext}`: the browser joins them (plot.js), since there are as many as cells.
    """
    return {"meta": {"rows": list(rows), "columns": list(columns), "between": between}}


def _columns(labels: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    return [f"key {name}" for name in placed(labels)] if columns is None else list(columns)


def pattern_table(weights: np.ndarray, labels: Sequence[str]) -> dict[str, Any]:
    """Returns one row for each query; the columns are named by position and token."""
    names = [f"{i} {label}" for i, label in enumerate(labels)]
    return {"query": names, **dict(zip(names, np.asarray(weights, dtype=np.float32).T, strict=True))}
