"""Arrays -> figures of the Sampling page. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.sample.scoring import Scored
from ui.figures import specs as go
from ui.figures.axes import MONO, token_axis
from ui.figures.labels import LETTER, crowded, plain
from ui.figures.theme import SEQUENTIAL, base_layout, colour


def stage_map(words: Sequence[str], values: np.ndarray, stages: Sequence[str]) -> go.Figure:
    """Draws probabilities (stage, token) as cells, the first stage on top; tokens along the bottom, likeliest
    first.
    """
    heat = go.Heatmap(
        z=values.astype(np.float32),
        y=list(stages),
        zmin=0,
        zmax=max(float(values.max()), 1e-6),
        colorscale=SEQUENTIAL,
        xgap=1,
        ygap=1,
        customdata=np.broadcast_to(np.asarray([plain(w) for w in words]), values.shape),
        hovertemplate="“%{customdata}” after %{y}: p = %{z:.5f}<extra></extra>",
        colorbar={"title": {"text": "p", "side": "top"}, "thickness": 10},
    )
    tall = crowded(words)
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 8, "b": 40 + LETTER * tall},
        showlegend=False,
        xaxis=token_axis(words, "token, most likely first", upright=tall > 0),
        yaxis={"autorange": "reversed", "showgrid": False, "ticks": ""},
    )


def temperatures(words: Sequence[str], values: np.ndarray, titles: Sequence[str]) -> go.Figure:
    """Draws probabilities (temperature, token) as one panel of bars for each temperature, all on
    one scale.
    """
    at = -np.arange(len(words))
    count, gap = len(titles), 0.018
    width = (1 - gap * (count - 1)) / count
    traces = []
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 26, "b": 24},
        showlegend=False,
        bargap=0.25,
        yaxis=go.ticks(at, [plain(w) for w in words], tickfont=MONO),
        annotations=[
            go.note(
                title,
                i * (width + gap) + width / 2,
                1.0,
                xref="paper",
                yref="paper",
                xanchor="center",
                yanchor="bottom",
            )
            for i, title in enumerate(titles)
        ],
    )
    top = float(values.max()) * 1.05
    for i, title in enumerate(titles):
        axis = "" if i == 0 else str(i + 1)
        begin = i * (width + gap)
        layout[f"xaxis{axis}"] = {
            "domain": [begin, min(1.0, begin + width)],
            "range": [0, top],
            "nticks": 3,
            "anchor": "y",
            "tickformat": ".1~f",
        }
        traces.append(
            go.Bar(
                x=values[i].astype(np.float32),
                y=at,
                orientation="h",
                xaxis=f"x{axis}",
                yaxis="y",
                marker={"color": colour("output")},
                customdata=[plain(w) for w in words],
                hovertemplate=f"“%{{customdata}}” at {title}: %{{x:.4f}}<extra></extra>",
            )
        )
    return go.Figure({"data": traces, "layout": layout})


def shares(words: Sequence[str], probabilities: np.ndarray, drawn: np.ndarray) -> go.Figure:
    """Draws share of the draws (token,) as bars, the probability as a mark on each."""
    at = np.arange(len(words))
    bars = go.Bar(
        x=at,
        y=drawn.astype(np.float32),
        name="share of the draws",
        marker={"color": colour("output")},
        hovertemplate="share %{y:.4f}<extra></extra>",
    )
    marks = go.Scatter(
        x=at,
        y=probabilities,
        mode="markers",
        name="probability",
        hovertemplate="p = %{y:.4f}<extra></extra>",
        marker={"symbol": "line-ew", "size": 18, "line": {"width": 3, "color": colour("quiet")}},
    )
    tall = crowded(words)
    return go.figure(
        [bars, marks],
        margin={"l": 48, "r": 8, "t": 30, "b": 44 + LETTER * tall},
        xaxis=token_axis(words, "token, most likely first", upright=tall > 0),
        yaxis={"rangemode": "tozero"},
    )


def scored(tokens: Sequence[str], scored: Scored, *, upright: int) -> go.Figure:
    """Draws -ln p of each scored token (token,), with p above it, their mean, and the cost of guessing; names
    are turned where they are `upright`: that many letters high.
    """
    at, mean = np.arange(len(tokens)), scored.likelihood.nats
    few = len(tokens) <= 24
    bars = go.Bar(
        x=at,
        y=scored.nats.astype(np.float32),
        marker={"color": colour("output")},
        text=[f"{p:.2f}" for p in scored.p] if few else None,
        textposition="outside",
        textangle=0,
        cliponaxis=False,
        customdata=scored.p,
        hovertext=[plain(token) for token in tokens],
        hovertemplate="“%{hovertext}”: p = %{customdata:.4f}, −ln p = %{y:.3f} nats<extra></extra>",
    )
    lines = [
        go.rule(y=y) | {"line": {"color": colour(shade), "width": 2, "dash": dash}}
        for y, shade, dash in ((mean, "attention", "solid"), (scored.guessing, "quiet", "dot"))
    ]
    named = (
        (mean, f" mean {mean:.2f}:<br> the loss"),
        (scored.guessing, f" guessing:<br> {scored.guessing:.2f}"),
    )
    notes = [
        go.note(text, 1, y, xref="paper") | {"xanchor": "left", "yanchor": "middle", "align": "left"}
        for y, text in named
    ]
    return go.figure(
        [bars],
        margin={"l": 44, "r": 82, "t": 18, "b": 40 + LETTER * upright},
        showlegend=False,
        bargap=0.25,
        shapes=lines,
        annotations=notes,
        xaxis=token_axis(
            tokens, "token; above each bar its probability p" if few else "token", upright=upright > 0
        ),
        yaxis={"title": {"text": "surprisal −ln p (nats)"}, "rangemode": "tozero"},
    )
