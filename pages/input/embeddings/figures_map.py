"""Arrays -> figures of the map of tokens. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pages.input.embeddings.looks import class_look
from ui.figures import specs as go
from ui.figures.axes import MONO
from ui.figures.labels import plain
from ui.figures.theme import SEQUENTIAL, colour


def token_map(
    scores: np.ndarray,
    words: Sequence[str],
    ids: np.ndarray,
    names: Sequence[str],
    classes: np.ndarray,
    *,
    labelled: np.ndarray,
    chosen: int,
    near: np.ndarray,
    titles: Sequence[str],
    ranges: tuple[Sequence[float], Sequence[float]],
    frequency: np.ndarray | None = None,
    letters: bool = True,
) -> go.Figure:
    """Draws scores (vocab, 2 or more); `ids` are the tokens drawn, `labelled` (vocab,) says which carry their
    name. A click gives an id.

    Thin lines go from `chosen` to its neighbours `near`. With `frequency` (vocab,) the colour is that, else
    the class. `letters`: tokens of one character, which stand inside their marker.
    """
    traces: list[dict[str, Any]] = []
    pairs = np.stack([np.full(len(near), chosen), near, np.full(len(near), -1)], axis=1).ravel()
    x, y = (np.where(pairs < 0, np.nan, scores[np.maximum(pairs, 0), axis]) for axis in (0, 1))
    line = {"color": colour("quiet"), "width": 1.2, "dash": "dot"}
    traces.append(go.Scatter(mode="lines", x=x, y=y, line=line, hoverinfo="skip", showlegend=False))
    inside = letters and frequency is None
    for index, name in enumerate(names):
        members = ids[classes[ids] == index]
        if not len(members):
            continue
        shade, symbol = class_look(name)
        marker: dict[str, Any] = {"symbol": symbol, "size": 18 if inside else 10 if letters else 7}
        if frequency is not None:
            top = max(float(frequency.max()), 1e-6)
            marker |= dict(
                color=frequency[members].astype(np.float32), cmin=0, cmax=top, colorscale=SEQUENTIAL
            )
            marker |= {"line": {"color": colour("quiet"), "width": 1}, "showscale": len(traces) == 1}
            marker |= {"colorbar": go.scale("log₁₀(1 + count)")}
        else:
            marker |= {
                "color": colour(shade, 25 if inside else 85),
                "line": {"color": colour(shade), "width": 1.3},
            }
        traces.append(
            go.Scatter(
                mode="markers+text",
                name=name,
                x=scores[members, 0],
                y=scores[members, 1],
                customdata=members.astype(np.int32),
                text=[plain(words[i]) if labelled[i] else "" for i in members],
                hovertext=[plain(words[i]) for i in members],
                marker=marker,
                textposition="middle center" if inside else "middle right",
                textfont=MONO | {"size": 14 if inside else 13},
                hovertemplate="“%{hovertext}”, id %{customdata}, "
                + name
                + "<br>%{x:.3f}, %{y:.3f}<extra></extra>",
                cliponaxis=False,
            )
        )
    ring = {
        "size": 30 if inside else 20,
        "symbol": "circle-open",
        "color": colour("attention"),
        "line": {"width": 3},
    }
    traces.append(
        go.Scatter(
            mode="markers",
            x=scores[[chosen], 0],
            y=scores[[chosen], 1],
            marker=ring,
            hoverinfo="skip",
            showlegend=False,
        )
    )
    axis = {"zeroline": True, "zerolinecolor": colour("quiet", 40)}
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 44, "b": 44},
        xaxis=axis | {"title": {"text": titles[0]}, "range": list(ranges[0])},
        yaxis=axis | {"title": {"text": titles[1]}, "range": list(ranges[1])},
        showlegend=frequency is None,
        uirevision=f"map-{list(ranges[0])}",
    )


def neighbour_bars(
    words: Sequence[str], values: np.ndarray, shades: Sequence[str], ids: np.ndarray
) -> go.Figure:
    """Draws cosines of the nearest tokens, best on top, in the colours of their classes. A click
    gives an id.
    """
    at = -np.arange(len(words))
    bars = go.Bar(
        orientation="h",
        x=values.astype(np.float32),
        y=at,
        marker={"color": [colour(s) for s in shades]},
        customdata=ids.astype(np.int32),
        hovertext=[plain(w) for w in words],
        hovertemplate="“%{hovertext}”: cosine %{x:.4f}<extra></extra>",
    )
    return go.figure(
        [bars],
        margin={"l": 8, "r": 12, "t": 8, "b": 40},
        showlegend=False,
        bargap=0.25,
        xaxis={"title": {"text": "cosine"}, "range": [min(0.0, float(values.min(initial=0))) * 1.05, 1]},
        yaxis=go.ticks(at, [plain(w) for w in words], tickfont=MONO | {"size": 14}),
    )


def share_bars(shares: np.ndarray, random: np.ndarray) -> go.Figure:
    """Draws share of the variance by principal component, beside those of a random cloud of as many points
    and dimensions.
    """
    at = np.arange(1, len(shares) + 1)
    traces = [
        go.Bar(
            x=at,
            y=shares.astype(np.float32),
            name="this embedding",
            marker={"color": colour("embedding")},
            hovertemplate="component %{x}: %{y:.1%}<extra>this embedding</extra>",
        ),
        go.Scatter(
            mode="lines+markers",
            x=at,
            y=random.astype(np.float32),
            name="random numbers",
            line={"color": colour("quiet"), "dash": "dot", "width": 1.5},
            marker={"size": 5},
            hovertemplate="component %{x}: %{y:.1%}<extra>random numbers</extra>",
        ),
    ]
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 30, "b": 40},
        xaxis=go.axis("principal component", dtick=1),
        yaxis=go.axis("share of the variance", showgrid=True, rangemode="tozero", tickformat=".1%", nticks=5),
    )


def frequency_scatter(
    frequency: np.ndarray,
    score: np.ndarray,
    words: Sequence[str],
    names: Sequence[str],
    classes: np.ndarray,
    ids: np.ndarray,
    y: str,
) -> go.Figure:
    """Draws one principal component against log10(1 + count), (vocab,) each; `ids` are the tokens drawn."""
    traces = []
    for index, name in enumerate(names):
        members = ids[classes[ids] == index]
        if len(members):
            shade, symbol = class_look(name)
            traces.append(
                go.Scatter(
                    mode="markers",
                    name=name,
                    x=frequency[members].astype(np.float32),
                    y=score[members],
                    customdata=members.astype(np.int32),
                    hovertext=[plain(words[i]) for i in members],
                    marker={"color": colour(shade), "symbol": symbol, "size": 8},
                    hovertemplate="“%{hovertext}”: %{x:.2f}, %{y:.3f}<extra></extra>",
                )
            )
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 12, "b": 40},
        showlegend=False,
        xaxis={"title": {"text": "log₁₀(1 + count in the training text)"}},
        yaxis={"title": {"text": y}},
    )
