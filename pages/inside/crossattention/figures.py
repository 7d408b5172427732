"""Arrays -> figures of cross-attention. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.experiments.masks_swapped import HEALTHY, SWAPPED, Swapped
from engine.measure.families.cross_attention import AlignmentScore
from ui.figures import specs as go
from ui.figures.labels import crowded
from ui.figures.patterns import MOST, named_cells, placed, token_axis
from ui.figures.solved import Solved, solved_curves
from ui.figures.theme import SEQUENTIAL, colour
from ui.text.tokens import show_characters

ROWS = 24  # that have room for their names beside each other
COLUMNS = {True: 28, False: 20}  # whose names fit on a phone: of one letter each, or words standing upright


def alignment_figure(
    weights: np.ndarray,
    source: Sequence[str],
    written: Sequence[str],
    step: int,
    true: Sequence[Sequence[int]],
) -> go.Figure:
    """Draws weights (query, key) in [0, 1]: a row for each written symbol, those after `step` blank. Rings
    stand where a symbol truly comes from.
    """
    source, written = (
        [show_characters(symbol) for symbol in source],
        [show_characters(symbol) for symbol in written],
    )
    shown = weights.astype(np.float32).copy()
    shown[step:] = np.nan
    heat = {
        "type": "heatmap",
        "z": shown,
        "zmin": 0,
        "zmax": 1,
        "colorscale": SEQUENTIAL,
        "hoverongaps": False,
        **named_cells(
            [f"writes {n}" for n in placed(written)], [f"attends to {n}" for n in placed(source)], ", "
        ),
        "hovertemplate": "%{hovertext}<br>weight %{z:.3f}<extra></extra>",
        "colorbar": {"thickness": 10, "title": {"text": "weight", "side": "right"}},
    }
    ways = [(row, key) for row, keys in enumerate(true[:step]) for key in keys]
    rings = go.Scatter(
        mode="markers",
        x=[key for _, key in ways],
        y=[row for row, _ in ways],
        marker={"size": 12, "color": colour("output", 0), "line": {"width": 2, "color": colour("output")}},
        hovertemplate="its true position<extra></extra>",
    )
    letters = max(map(len, source[:-1]), default=1) == 1  # all but the source's end
    upright = crowded(source[:-1] if letters else source, 440)
    high = 100 if upright or letters else 56
    return go.figure(
        [heat, rings],
        margin={"l": 70, "r": 4, "t": high, "b": 6},
        showlegend=False,
        xaxis=_read(source, letters, upright, 12, MOST),
        yaxis=token_axis(written, "output written", 12, most=ROWS, autorange="reversed"),
        meta={"narrow": {"xaxis": _read(source, letters, not letters, 9, COLUMNS[letters])}},
    )


def _read(source: Sequence[str], letters: bool, upright: bool | int, size: int, most: int) -> dict[str, Any]:
    """The axis of the source. Letters stand as they are read, and below each other the word for their end,
    which has no more room than they have.
    """
    axis = token_axis(source, "source", size, most, side="top", tickangle=-90 if upright else 0)
    if letters and axis["tickvals"][-1:] == [len(source) - 1]:
        axis["ticktext"][-1] = "<br>".join(source[-1].strip("<>"))
    return axis


def grown_figure(scores: Mapping[int, AlignmentScore], end: float) -> go.Figure:
    """Draws, by step of a training, the share of the symbols whose look is at a true place."""
    steps = np.array(list(scores))
    curves = {
        "best head": ("attention", "solid", [score.best.value for score in scores.values()]),
        "all heads together": ("output", "solid", [score.together for score in scores.values()]),
        "by chance": ("quiet", "dot", [score.chance for score in scores.values()]),
    }
    return solved_curves(
        [Solved(name, steps, np.array(v), shade, dash) for name, (shade, dash, v) in curves.items()],
        end,
        what="symbols aligned correctly",
    )


def swapped_curves(runs: Mapping[str, Swapped], at: int, quantity: str) -> go.Figure:
    """Draws, over the steps of the training, the `losses`, or the share that is `right` when it
    writes alone.
    """
    traces = []
    for name, shade, words in (
        (HEALTHY, "attention", "correct masks"),
        (SWAPPED, "output", "masks swapped"),
    ):
        run = runs[name]
        values = getattr(run, quantity)
        traces.append(
            go.Scatter(
                mode="lines+markers",
                name=words,
                x=run.steps,
                y=values,
                line={"color": colour(shade), "width": 3},
                marker={"size": [11 if i == at else 3 for i in range(len(values))]},
                hovertemplate="step %{x}<br>%{y:.3f}<extra>" + words + "</extra>",
            )
        )
    titles = {"losses": "loss, teacher forcing (nats)", "right": "exact match"}
    return go.figure(
        traces,
        margin={"l": 54, "r": 8, "t": 28, "b": 40},
        xaxis=go.axis("training step"),
        yaxis={"title": {"text": titles[quantity]}, "rangemode": "tozero"}
        | ({"tickformat": ".0%", "range": [0, 1.04]} if quantity == "right" else {}),
    )
