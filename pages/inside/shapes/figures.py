"""Activations -> small heatmaps, and weights -> bars. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from engine.measure.shapes.attention_by_hand import HandExample, MaskExample
from ui.figures import specs as go
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import SEQUENTIAL, colour

SHARES = ("pattern", "probabilities")  # numbers in [0, 1]
MOST_TICKS, MOST_NUMBERS = 20, 8
ROOM = 220  # pixels across
Labels = Mapping[str, Sequence[str]]  # axis -> what its places are called


def tensor_map(
    values: np.ndarray, axes: tuple[str, ...], labels: Labels, *, name: str, limit: float | None = None
) -> go.Figure:
    """Draws a matrix (or a vector, drawn as one row) as a heatmap, its axes named. `limit` is the largest
    size of the whole tensor's numbers.

    Numbers in [0, 1] run from the page's colour, signed ones around zero; −∞ stays empty.
    """
    matrix, (down, across) = as_matrix(values, axes)
    is_share = name in SHARES
    scale = {"colorscale": SEQUENTIAL, "zmin": 0} if is_share or name == "tokens" else {}
    trace = go.signed(
        matrix,
        1 if is_share else limit or 1.0,
        x=_names(across, matrix.shape[1], labels),
        y=_names(down, matrix.shape[0], labels),
        hovertemplate=f"{down} %{{y}}<br>{across} %{{x}}<br>{name} = %{{z:.4g}}<extra></extra>",
        colorbar={"thickness": 12, "len": 0.9, "x": 1.01, "nticks": 3 if len(matrix) == 1 else 6},
        **scale,
    )
    tall = crowded(labels.get(across, ())[: matrix.shape[1]], ROOM)
    return go.figure(
        [trace],
        margin={"l": 62, "r": 8, "t": 8, "b": 56 + LETTER * tall},
        showlegend=False,
        uirevision=f"{name}-{matrix.shape}",
        xaxis=_axis(across, matrix.shape[1], labels) | {"tickangle": -90 if tall else 0},
        yaxis=_axis(down, matrix.shape[0], labels) | {"autorange": "reversed"},
    )


def as_matrix(values: np.ndarray, axes: tuple[str, ...]) -> tuple[np.ndarray, tuple[str, str]]:
    return (values[None, :], ("", axes[0])) if values.ndim == 1 else (values, (axes[0], axes[1]))


def table(values: np.ndarray, axes: tuple[str, ...]) -> pd.DataFrame:
    """Returns the numbers as columns along the shorter axis: a table of many columns is slow."""
    matrix, (down, across) = as_matrix(values, axes)
    if matrix.shape[1] > matrix.shape[0] and down:
        matrix, down, across = matrix.T, across, down
    frame = pd.DataFrame(matrix, columns=[f"{across} {j}" for j in range(matrix.shape[1])])
    frame.insert(0, down or "row", np.arange(len(matrix)))
    return frame


def _names(axis: str, count: int, labels: Labels) -> list[str]:
    """Each place's own name: its index, and its token where there is one."""
    known = labels.get(axis, ())
    return [f"{i}: {plain(known[i])}" if i < len(known) else str(i) for i in range(count)]


def _axis(name: str, count: int, labels: Labels) -> dict[str, object]:
    """Every place has its token where all have room, else every n-th its number: every fourth letter says
    nothing.
    """
    known = labels.get(name, ()) if count <= MOST_TICKS else ()
    indexes = list(range(0, count, max(1, -(-count // (MOST_TICKS if known else MOST_NUMBERS)))))
    shown = [plain(short(known[i], MOST_LETTERS)) if i < len(known) else str(i) for i in indexes]
    names = _names(name, count, labels)
    axis = go.axis(name, type="category", tickvals=[names[i] for i in indexes], ticktext=shown, tickangle=0)
    return axis | ({"visible": False} if not name else {})


def weight_bars(keys: Sequence[str], example: MaskExample) -> go.Figure:
    """Draws weights of one query over its keys: masked before the softmax, and after it."""
    right, _, late = example.sums
    bars = [
        go.Bar(
            x=list(keys),
            y=values,
            name=f"{name} (sum {total:.2f})",
            marker={"color": colour(part)},
            text=[f"{v:.2f}" for v in values],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x}: %{y:.4f}<extra>" + name + "</extra>",
        )
        for name, values, total, part in (
            ("mask before softmax", example.weights, right, "attention"),
            ("mask after softmax", example.masked_after, late, "quiet"),
        )
    ]
    return go.figure(
        bars,
        barmode="group",
        yaxis={"title": {"text": "weight"}, "range": [0, 1.1]},
        xaxis={"title": {"text": "key"}},
        bargap=0.3,
    )


def head_bars(example: HandExample) -> go.Figure:
    """Draws the weights that each head's query gives to the keys."""
    keys = [f"k{i + 1}" for i in range(example.k.shape[1])]
    bars = [
        go.Bar(
            x=[f"head {h + 1}" for h in range(len(example.q))],
            y=example.pattern[:, 0, i],
            name=f"to {key}",
            marker={"color": colour("attention" if i == 0 else "quiet")},
            text=[f"{v:.3f}" for v in example.pattern[:, 0, i]],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x}: %{y:.4f} to " + key + "<extra></extra>",
        )
        for i, key in enumerate(keys)
    ]
    return go.figure(
        bars,
        barmode="group",
        margin={"l": 52, "r": 8, "t": 34, "b": 34},
        yaxis={"title": {"text": "weight"}, "range": [0, 1.12], "nticks": 6},
        bargap=0.3,
    )
