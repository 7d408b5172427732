"""Arrays -> figures of tokenizers. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import SEQUENTIAL, colour

SIDES = {
    "characters": "bottom center",
    "bytes": "middle right",
    "gpt2": "middle left",
    "cl100k_base": "top center",
    "o200k_base": "middle right",
}  # of labels
STRONG = 0.58  # of the scale: above, a cell's number is written in the page's own colour
# kind of tokenizer -> colour: what needs no learning, our own, the published ones.
KINDS = {"plain": "quiet", "ours": "run0", "published": "training"}


def token_bars(names: Sequence[str], kinds: Sequence[str], tokens: np.ndarray, each: np.ndarray) -> go.Figure:
    """Draws tokens of one text (tokenizer,), with the characters that each token holds on average
    (tokenizer,).
    """
    bars = go.Bar(
        orientation="h",
        x=tokens.astype(np.float64),
        y=list(names),
        marker={"color": [colour(KINDS[kind]) for kind in kinds]},
        text=[f"{n:,}" for n in tokens.tolist()],
        textposition="outside",
        cliponaxis=False,
        customdata=each.astype(np.float32),
        hovertemplate="%{y}: %{x:,} tokens<br>%{customdata:.2f} characters each<extra></extra>",
    )
    return go.figure(
        [bars],
        margin={"l": 104, "r": 56, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.3,
        xaxis={"title": {"text": "tokens"}, "rangemode": "tozero", "nticks": 6},
        yaxis={"autorange": "reversed", "type": "category", "nticks": len(names)},
    )


def line_table(
    lines: Sequence[str], names: Sequence[str], counts: np.ndarray, per_character: np.ndarray
) -> go.Figure:
    """Draws tokens of each line by each tokenizer: counts (line, tokenizer), shaded by tokens per character
    (line, tokenizer).
    """
    rows = [f"{i}" for i in range(len(lines))]
    hover = [
        [
            f"{plain(name)}, line {i}<br>“{plain(line)}”<br>{count:,} tokens, {rate:.2f} per character"
            for name, count, rate in zip(names, row, rates, strict=True)
        ]
        for i, (line, row, rates) in enumerate(
            zip(lines, counts.tolist(), per_character.tolist(), strict=True)
        )
    ]
    top = max(1.0, float(per_character.max(initial=0.0)))
    # A trace of their own: of text on a heatmap Plotly makes all cells alike or chooses badly, and a middle
    # shade needs a choice for each page.
    numbers = go.Scatter(
        mode="text",
        x=[name for _ in rows for name in names],
        y=[row for row in rows for _ in names],
        text=[f"{n:,}" for n in counts.ravel().tolist()],
        hoverinfo="skip",
        textfont={
            "color": [
                SEQUENTIAL[0][1] if rate > STRONG * top else SEQUENTIAL[-1][1]
                for rate in per_character.ravel().tolist()
            ]
        },
    )
    cells = go.Heatmap(
        z=per_character.astype(np.float32),
        x=list(names),
        y=rows,
        colorscale=SEQUENTIAL,
        zmin=0.0,
        zmax=top,
        xgap=2,
        ygap=2,
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        colorbar={"thickness": 12, "nticks": 5, "title": {"text": "tokens per<br>character"}},
    )
    return go.figure(
        [cells, numbers],
        margin={"l": 44, "r": 8, "t": 8, "b": 64},
        showlegend=False,
        xaxis={"type": "category", "showgrid": False},
        yaxis=go.axis("line", type="category", autorange="reversed", nticks=len(rows)),
    )


def trade(
    sizes: np.ndarray, tokens: np.ndarray, points: Sequence[tuple[str, str, int, int]], width: int
) -> go.Figure:
    """Draws tokens of a passage (size,) by our BPE, and other tokenizers as `points`: (name, kind,
    vocabulary, tokens), against the vocabulary (size,); on the right axis the embedding, vocabulary times
    `width`.
    """
    largest = max([int(sizes.max()), *(point[2] for point in points)])
    line = np.geomspace(28, 2 * largest, 120)
    traces: list[dict[str, Any]] = [
        go.Scatter(
            mode="lines",
            x=line,
            y=line * width,
            yaxis="y2",
            name="embedding parameters, V·d",
            line={"color": colour("embedding"), "width": 3, "dash": "dash"},
            hovertemplate="V %{x:,.0f}: %{y:,.0f} numbers<extra></extra>",
        ),
        go.Scatter(
            mode="lines+markers",
            x=sizes.astype(np.float64),
            y=tokens.astype(np.float64),
            name="tokens of the passage, our BPE",
            line={"color": colour(KINDS["ours"]), "width": 3},
            marker={"size": 6},
            hovertemplate="our BPE, V %{x:,}: %{y:,} tokens<extra></extra>",
        ),
    ]
    traces += [_point(*point, "tokens") for point in points]
    top = 1.12 * max([float(tokens.max(initial=1)), *(float(point[3]) for point in points)])
    axis = {"rangemode": "tozero", "nticks": 6, "exponentformat": "SI", "separatethousands": True}
    return go.figure(
        traces,
        uirevision="vocabulary",
        margin={"l": 64, "r": 64, "t": 34, "b": 48},
        xaxis=_vocabulary_axis(largest),
        yaxis=axis | {"title": {"text": "tokens of the passage"}, "range": [0, top]},
        yaxis2=axis | go.axis("embedding parameters", overlaying="y", side="right", tickmode="auto"),
    )


def _point(name: str, kind: str, vocabulary: int, cost: int, unit: str) -> go.Trace:
    return go.Scatter(
        mode="markers+text",
        x=[vocabulary],
        y=[cost],
        text=[name],
        textposition=SIDES.get(name, "top center"),
        textfont={"size": 14},
        cliponaxis=False,
        showlegend=False,
        marker={"size": 11, "symbol": "diamond", "color": colour(KINDS[kind])},
        hovertemplate=f"{name}, V %{{x:,}}: %{{y:,}} {unit}<extra></extra>",
    )


def score_curve(
    sizes: np.ndarray, scores: np.ndarray, points: Sequence[tuple[str, str, int, int]]
) -> go.Figure:
    """Draws attention scores of one head (size,) by our BPE, and other tokenizers as `points`: (name, kind,
    vocabulary, scores), against the vocabulary (size,).
    """
    line = go.Scatter(
        mode="lines+markers",
        x=sizes.astype(np.float64),
        y=scores.astype(np.float64),
        line={"color": colour(KINDS["ours"]), "width": 3},
        marker={"size": 6},
        hovertemplate="our BPE, V %{x:,}: %{y:,} scores<extra></extra>",
    )
    return go.figure(
        [line, *(_point(*point, "scores") for point in points)],
        uirevision="vocabulary-attention",
        margin={"l": 64, "r": 64, "t": 8, "b": 48},
        showlegend=False,
        xaxis=_vocabulary_axis(max([int(sizes.max()), *(point[2] for point in points)])),
        yaxis=go.axis(
            "attention scores, T²", showgrid=True, rangemode="tozero", nticks=6, exponentformat="SI"
        ),
    )


def _vocabulary_axis(largest: int) -> dict[str, Any]:
    return go.axis(
        "entries in the vocabulary, V",
        showgrid=True,
        type="log",
        range=[np.log10(28.0), np.log10(2 * largest)],
        tickvals=[64, 256, 1024, 4096, 16384, 65536, 262144],
        ticktext=["64", "256", "1,024", "4,096", "16k", "65k", "262k"],
        tickangle=0,
    )
