"""Arrays -> figures of steering and of weights in few bits. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.measure.circuits.quantisation import FULL, Histogram
from engine.weights.pretrained.blocks import QuantisedBlock
from pages.inside.circuits.words_weights import coefficient
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.text.numbers import minus

MOST_LINES = 32  # levels that are drawn as lines; more would be a grey field


def _mark(x: float | str, y: float) -> go.Trace:
    return go.Scatter(
        x=[x],
        y=[y],
        mode="markers",
        name="chosen",
        showlegend=False,
        marker={"color": colour("output"), "symbol": "diamond-open", "size": 16, "line": {"width": 2.5}},
        hovertemplate="%{y:.4g}<extra></extra>",
    )


def cost_curve(coefficients: Sequence[float], perplexity: np.ndarray, chosen: float) -> go.Figure:
    """Draws perplexity (coefficient,), on a logarithmic scale; a diamond on the chosen one. The coefficients
    stand side by side at equal distances, since they double.
    """
    names = [coefficient(value) for value in coefficients]
    at = list(coefficients).index(chosen)
    line = go.line(np.arange(len(names)), perplexity, "residual", "", "perplexity %{y:.1f}", points=6)
    return go.figure(
        [line, _mark(at, float(perplexity[at]))],
        margin={"l": 62, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        xaxis=go.ticks(np.arange(len(names)), names, title="coefficient"),
        yaxis={"title": {"text": "perplexity"}, "type": "log", "nticks": 5, "tickformat": ".3~s"},
    )


def lifted_bars(words: Sequence[str], before: Sequence[float], after: Sequence[float]) -> go.Figure:
    """Draws probabilities of next tokens without and with the addition, the largest gain on top."""
    at = -np.arange(len(words))
    rest: dict[str, Any] = {"y": at, "orientation": "h", "hovertemplate": "%{x:.4f}<extra></extra>"}
    bars = [
        go.Bar(x=after, name="with", marker={"color": colour("output")}, **rest),
        go.Bar(x=before, name="without", marker={"color": colour("quiet")}, **rest),
    ]
    return go.figure(
        bars,
        margin={"l": 8, "r": 12, "t": 26, "b": 40},
        xaxis={"title": {"text": "probability"}, "rangemode": "tozero", "nticks": 5},
        yaxis=go.ticks(at, [plain(w) for w in words]),
    )


def weights_before_after(histogram: Histogram, after: str) -> go.Figure:
    """Draws how the numbers of a matrix lie, before as a filled line, after as bars."""
    bars = go.Bar(
        x=histogram.middles,
        y=histogram.after,
        name=after,
        marker={"color": colour("output")},
        hovertemplate="%{x:.3f}: %{y:.2%}<extra></extra>",
    )
    line = go.line(histogram.middles, histogram.before, "embedding", "original", "%{x:.3f}: %{y:.2%}")
    line["line"]["shape"] = "hvh"
    return go.figure(
        [bars, line],
        margin={"l": 56, "r": 8, "t": 28, "b": 44},
        bargap=0,
        xaxis={"title": {"text": "weight"}, "zeroline": False, "nticks": 6},
        yaxis={"title": {"text": "share of the weights"}, "tickformat": ".0~%", "rangemode": "tozero"},
    )


def loss_by_bits(
    bits: Sequence[int],
    full: float,
    lines: Mapping[str, np.ndarray],
    chosen: tuple[str, int],
    guessing: float,
) -> go.Figure:
    """Draws the loss (number of bits,) of each way, with the model as it is at its left; a diamond on the
    chosen way and bits. Beyond twice the loss of guessing the scale ends.
    """
    names = [str(n) for n in (FULL, *bits)]
    traces = [
        go.line(names, np.concatenate([[full], values]), shade, name, "%{x} bits: %{y:.3f} nats", points=6)
        for (name, values), shade in zip(lines.items(), ("residual", "attention"), strict=True)
    ]
    way, n = chosen
    here = full if n == FULL else float(lines[way][list(bits).index(n)])
    highest = float(np.nanmax([full, *(values.max() for values in lines.values())]))
    ends = min(highest, 2 * guessing)
    guess = go.rule(y=guessing, line={"color": colour("quiet"), "width": 1, "dash": "dot"})
    named = go.note(
        f"uniform guess: {guessing:.2f}", 1, guessing, xref="paper", xanchor="right", yanchor="top"
    )
    shown = guessing < 1.08 * ends
    return go.figure(
        [*traces, _mark(str(n), here)],
        margin={"l": 48, "r": 8, "t": 28, "b": 44},
        xaxis=go.axis("bits per weight", type="category"),
        yaxis={"title": {"text": "loss (nats per token)"}, "range": [0, 1.08 * ends], "nticks": 6},
        shapes=[guess] if shown else [],
        annotations=[named] if shown else [],
    )


def block_of_numbers(block: QuantisedBlock, chosen: int) -> go.Figure:
    """Draws the numbers of a block on the levels that they may have, q above each; hollow, what was rounded.

    A diamond on number `chosen`.
    """
    at = np.arange(len(block.q))
    levels = block.levels if len(block.levels) <= MOST_LINES else block.levels[:0]
    lines = [
        go.rule(y=float(level), line={"color": colour("quiet", 40), "width": 1}, layer="below")
        for level in levels
    ]
    traces: list[go.Trace] = []
    if block.original is not None:
        traces.append(
            go.Scatter(
                x=at,
                y=block.original,
                mode="markers",
                name="original weight",
                marker={"symbol": "circle-open", "size": 11, "color": colour("embedding")},
                hovertemplate="weight %{x}: %{y:.5f}<extra></extra>",
            )
        )
    traces.append(
        go.Scatter(
            x=at,
            y=block.numbers,
            mode="markers+text",
            name="d · q + m" if block.minimum else "d · q",
            text=[minus(str(q)) for q in block.q],
            textposition="top center",
            textfont={"size": 12},
            cliponaxis=False,
            marker={"size": 8, "color": colour("output")},
            hovertemplate="weight %{x}: q = %{text}, %{y:.5f}<extra></extra>",
        )
    )
    traces.append(_mark(chosen, float(block.numbers[chosen])))
    return go.figure(
        traces,
        margin={"l": 62, "r": 8, "t": 28, "b": 44},
        xaxis=go.axis("index in the block", zeroline=False, dtick=4, range=[-0.8, len(at) - 0.2]),
        yaxis=go.axis("weight", zeroline=True, nticks=7),
        shapes=lines,
    )
