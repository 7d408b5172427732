"""Arrays -> figures of neurons. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.measure.feedforward.neurons import PromotedTokens
from ui.figures import specs as go
from ui.figures.axes import symmetric
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import DIVERGING, SEQUENTIAL, colour

CODE = 1_000_000  # layer * CODE + neuron is what a click on a cell sends
NO_BAR = {"showscale": False}
READ = 16  # bars that are high enough to be written on
ROOM = 400  # pixels across, at least


def distinct(labels: Sequence[str]) -> list[str]:
    """Returns the labels, made different from each other by characters without width: an axis of categories
    then has a place for each.
    """
    return [
        plain(short(label, MOST_LETTERS)) + "".join("\u200b\u200c"[bit == "1"] for bit in f"{i:b}")
        for i, label in enumerate(labels)
    ]


def _tokens(labels: Sequence[str], **rest: Any) -> dict[str, Any]:
    """An axis of categories that are tokens, turned where they do not fit side by side."""
    return {
        "type": "category",
        "showgrid": False,
        "tickfont": {"size": 12},
        "tickangle": -90 if crowded(labels, ROOM) else 0,
    } | rest


def _heatmap(values: np.ndarray, top: float, signed: bool, **properties: Any) -> go.Trace:
    """Returns a heatmap of activations in colours that end at `top`; `signed` ones lie around zero."""
    scale = {} if signed else {"colorscale": SEQUENTIAL, "zmin": 0.0}
    return go.signed(values, max(top, 1e-9), colorbar={"thickness": 12, "nticks": 5}, **scale, **properties)


def overview(values: np.ndarray, chosen: tuple[int, int], top: float, *, signed: bool) -> go.Figure:
    """Draws every neuron of the model: values (layer, d_ff), its strongest activation on the text, in colours
    that end at `top`. A click on a cell names the neuron.
    """
    layers, width = values.shape
    codes = (np.arange(layers, dtype=np.int32)[:, None] * CODE + np.arange(width, dtype=np.int32)).astype(
        np.int32
    )
    cells = _heatmap(
        values,
        top,
        signed,
        customdata=codes,
        y=[f"block {i}" for i in range(layers)],
        hovertemplate="%{y}, neuron %{x}<br>strongest: %{z:.3f}<extra></extra>",
        ygap=2,
    )
    return go.figure(
        [cells],
        margin={"l": 60, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis=go.axis("neuron"),
        yaxis={"autorange": "reversed", "showgrid": False},
        shapes=[go.box(chosen[1], chosen[0], "output", 2)],
    )


def layer_map(
    post: np.ndarray,
    neurons: np.ndarray,
    labels: Sequence[str],
    layer: int,
    chosen: int,
    top: float,
    *,
    signed: bool,
) -> go.Figure:
    """Draws neurons down, tokens across: post (query, d_ff) of one layer, `neurons` which of them, in the
    order of the rows; the colours end at `top`.
    """
    values = np.ascontiguousarray(post[:, neurons].T)
    codes = np.broadcast_to((layer * CODE + neurons.astype(np.int32))[:, None], values.shape).astype(np.int32)
    cells = _heatmap(
        values,
        top,
        signed,
        x=distinct(labels),
        y=[f"{n}" for n in neurons],
        customdata=codes,
        hovertemplate="neuron %{y} at “%{x}”: %{z:.3f}<extra></extra>",
    )
    at = np.flatnonzero(neurons == chosen)
    across = {"xref": "paper", "x0": 0, "x1": 1}
    frames = [go.box(0, int(at[0]), "output", 2) | across] if len(at) else []
    return go.figure(
        [cells],
        margin={"l": 56, "r": 8, "t": 8, "b": 40 + LETTER * crowded(labels, ROOM)},
        showlegend=False,
        shapes=frames,
        xaxis=_tokens(labels, title={"text": "token"}),
        yaxis=go.axis("neuron", type="category", autorange="reversed", tickfont={"size": 12}),
    )


def activation_line(values: np.ndarray, labels: Sequence[str], at: int) -> go.Figure:
    """Draws one neuron along the text: values (query,), `at` the chosen token."""
    names = distinct(labels)
    line = go.line(names, values.astype(np.float32), "feedforward", "", "“%{x}”: %{y:.4f}", points=5)
    mark = go.Scatter(
        mode="markers",
        x=[names[at]],
        y=values[at : at + 1].astype(np.float32),
        hoverinfo="skip",
        marker={"size": 12, "color": colour("output"), "symbol": "circle-open", "line": {"width": 2}},
    )
    return go.figure(
        [line, mark],
        margin={"l": 56, "r": 8, "t": 8, "b": 40 + LETTER * crowded(labels, ROOM)},
        showlegend=False,
        xaxis=_tokens(labels, categoryarray=names, categoryorder="array"),
        yaxis={"title": {"text": "activation"}, "zeroline": True},
    )


def token_bars(scores: np.ndarray, promoted: PromotedTokens, vocabulary: Sequence[str]) -> go.Figure:
    """Draws the tokens that a write raises most and lowers most: scores (vocab,) in logits, zero-mean."""
    rows = [*promoted.raised, *promoted.lowered[::-1]]
    values = scores[rows].astype(np.float32)
    top = symmetric(values)
    bars = go.Bar(
        orientation="h",
        x=values,
        y=distinct([vocabulary[i] for i in rows]),
        hovertemplate="“%{y}”: %{x:+.4f}<extra></extra>",
        marker={
            "color": values,
            "colorscale": DIVERGING,
            "cmin": -top,
            "cmax": top,
            "line": {"width": 1, "color": colour("quiet")},
            **NO_BAR,
        },
    )
    return go.figure(
        [bars],
        margin={"l": 44, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.25,
        xaxis={"title": {"text": "logit per unit"}, "zeroline": True},
        yaxis={"type": "category", "autorange": "reversed", "tickfont": {"size": 14}, "nticks": len(rows)},
    )


def share_bars(shares: np.ndarray) -> go.Figure:
    """Draws a share in [0, 1] for each layer: shares (layer,)."""
    bars = go.Bar(
        orientation="h",
        x=shares.astype(np.float32),
        y=[f"block {i}" for i in range(len(shares))],
        marker={"color": colour("feedforward")},
        text=[f"{s:.1%}" if len(shares) <= READ else "" for s in shares],
        textposition="auto",
        hovertemplate="%{y}: %{x:.2%}<extra></extra>",
    )
    return go.figure(
        [bars],
        margin={"l": 60, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.3,
        xaxis={"range": [0, 1], "tickformat": ".0%", "title": {"text": "sparsity"}},
        yaxis={"autorange": "reversed"},
    )
