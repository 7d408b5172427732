"""Arrays -> figures of the residual stream: the lens, who pushed a logit, norms, shares, gradients by depth.
Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pages.inside.residual.words_wirings import WIRINGS
from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis, token_axis
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import SEQUENTIAL, colour

MANY = 40  # names beside one another that are too many
FITS = 5  # letters of a guess that there is always room for, and that room in pixels
CELL = 36
LETTER_CELL = 16  # pixels of a column whose cells hold one letter
PART_WORDS = {
    "embedding": "embedding",
    "position": "position",
    "attention": "attention",
    "feedforward": "feed-forward",
    "norm": "norm's bias",
    "others": "all others",
}


def _by_block(labels: Sequence[str]) -> dict[str, Any]:
    """Ticks of an axis that has too many rows to name each: every fifth block, where it begins."""
    if len(labels) <= MANY:
        return {}
    at: dict[str, int] = {}
    for i, label in enumerate(labels):
        block = label.rpartition(" ")[2]
        if block.isdecimal() and int(block) % 5 == 0:
            at.setdefault(f"block {block}", i)
    return {"tickvals": np.array(list(at.values())), "ticktext": list(at)}


def lens_table(
    words: Sequence[Sequence[str]],
    values: np.ndarray,
    labels: Sequence[str],
    depths: Sequence[str],
    *,
    settled: np.ndarray,
    chosen: tuple[int, int],
    title: str,
    top: float,
    hover: Sequence[Sequence[str]],
) -> go.Figure:
    """Draws `words`, `values`, `hover`: (depth, query). Cells hold the guessed token; a click gives depth *
    query count + query.

    The line runs below the first depth from which on the guess is the final one.
    """
    rows, columns = values.shape
    tall = crowded(labels)
    size, fits = (
        (11, max(FITS, 620 // 7 // columns)) if tall else (13, MOST_LETTERS)
    )  # letters of a guess in its cell; the hover has all of them
    heat = go.Heatmap(
        z=values.astype(np.float32),
        text=[[plain(short(w, fits)) for w in row] for row in words],
        texttemplate="%{text}",
        textfont={**MONO, "size": size},
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=np.arange(rows * columns, dtype=np.int32).reshape(rows, columns),
        colorscale=SEQUENTIAL,
        zmin=0,
        zmax=max(top, 1e-6),
        xgap=1,
        ygap=1,
        colorbar=go.scale_above(title),
    )
    edges = np.repeat(np.arange(columns + 1), 2)[1:-1] - 0.5
    line = go.line(edges, np.repeat(settled, 2) - 0.5, "output", hoverinfo="skip")
    depth, position = chosen
    return go.figure(
        [heat, line],
        margin={"l": 8, "r": 8, "t": 8, "b": 44 + LETTER * tall},
        showlegend=False,
        shapes=[go.box(position, depth, "attention")],
        xaxis=token_axis(labels, upright=tall > 0),
        yaxis=rows_axis(depths, range=[-0.52, rows - 0.48]),
        uirevision=f"lens-{columns}",
    )


def top_tokens(words: Sequence[str], probabilities: np.ndarray, final: np.ndarray) -> go.Figure:
    """Draws the likeliest tokens at one place (token,), best on top, beside what the finished model gives
    them.
    """
    at = -np.arange(len(words))
    bars = go.Bar(
        x=probabilities,
        y=at,
        orientation="h",
        name="here",
        marker={"color": colour("residual")},
        hovertemplate="%{x:.4f}",
    )
    ends = go.Scatter(
        x=final,
        y=at,
        mode="markers",
        name="at the output",
        hovertemplate="%{x:.4f}",
        marker={"color": colour("output"), "symbol": "diamond", "size": 9},
    )
    return go.figure(
        [bars, ends],
        margin={"l": 8, "r": 12, "t": 26, "b": 40},
        xaxis={"title": {"text": "probability"}, "rangemode": "tozero", "nticks": 5},
        yaxis=go.ticks(at, [plain(w) for w in words], tickfont=MONO),
    )


def part_bars(
    labels: Sequence[str],
    parts: Sequence[str],
    values: np.ndarray,
    *,
    title: str,
    marks: np.ndarray | None = None,
    marks_name: str = "",
) -> go.Figure:
    """Draws a bar for each of `labels`, in the colour of its part; `marks` are diamonds over them."""
    at = np.arange(len(labels))
    traces: list[go.Trace] = []
    kinds = np.asarray(parts)
    texts = [plain(label) for label in labels]
    for part in dict.fromkeys(parts):
        members = kinds == part
        traces.append(
            go.Bar(
                x=at[members],
                y=values[members],
                name=PART_WORDS.get(part, part),
                marker={"color": colour("quiet" if part == "others" else part)},
                customdata=[texts[i] for i in at[members]],
                hovertemplate="%{customdata}: %{y:+.3f}<extra></extra>",
            )
        )
    if marks is not None:
        traces.append(
            go.Scatter(
                x=at,
                y=marks,
                mode="markers",
                name=marks_name,
                marker={"symbol": "diamond-open", "size": 8, "color": colour("quiet"), "line": {"width": 2}},
                hovertemplate="%{y:+.3f}",
            )
        )
    angle = -45 if 6 < len(labels) <= 14 or len(labels) > MANY else 0 if len(labels) <= 6 else -90
    return go.figure(
        traces,
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        bargap=0.15,
        xaxis=rows_axis(texts, tickangle=angle, tickfont={"size": 12}, range=[-0.6, len(labels) - 0.4])
        | _by_block(labels),
        yaxis=go.axis(title, showgrid=True, zeroline=True, zerolinecolor=colour("quiet"), zerolinewidth=1),
    )


def head_map(nats: np.ndarray) -> go.Figure:
    """Draws what each head adds to a logit, (layer, head), blue below zero, orange above; layer 0 at the
    bottom.
    """
    layers, heads = ([str(i) for i in range(count)] for count in nats.shape)
    every = 5 if len(nats) > 20 else 1
    heat = go.signed(
        nats,
        xgap=1,
        ygap=1,
        hovertemplate="block %{y}, head %{x}: %{z:+.3f} nats<extra></extra>",
        colorbar={"title": {"text": "nats", "side": "top"}},
        texttemplate="%{z:+.2f}" if nats.size <= 64 else None,
    )
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        showlegend=False,
        xaxis=rows_axis(heads, title={"text": "head"}, tickangle=0),
        yaxis=go.ticks(np.arange(0, len(nats), every), layers[::every], title="block"),
    )


def stream_map(values: np.ndarray, labels: Sequence[str], rows: Sequence[str], top: float) -> go.Figure:
    """Draws norms (state, query), the embedding at the bottom, stronger for longer, full from `top` on."""
    heat = go.Heatmap(
        z=values.astype(np.float32),
        zmin=0,
        zmax=max(top, 1e-6),
        colorscale=SEQUENTIAL,
        customdata=np.broadcast_to(np.asarray([plain(label) for label in labels]), values.shape).tolist(),
        hovertemplate="%{y}, token “%{customdata}”: %{z:.3f}<extra></extra>",
        colorbar=go.scale_above("norm of the stream"),
    )
    tall = crowded(labels)
    margin = {"l": 8, "r": 8, "t": 8, "b": 44 + LETTER * tall}
    return go.figure(
        [heat],
        margin=margin,
        showlegend=False,
        xaxis=token_axis(labels, upright=tall > 0),
        yaxis=rows_axis(rows) | _by_block(rows),
    )


def stream_line(
    mean: np.ndarray,
    token_norms: np.ndarray,
    rows: Sequence[str],
    token_name: str,
    writes: Sequence[tuple[str, str, int, float]],
) -> go.Figure:
    """Draws norm of the stream by state: the mean over tokens, and one token. Below the line the norm of each
    of `writes`: its label, its part, the state that it is in first, and its mean norm.
    """
    at = np.arange(len(rows))
    bars = []
    for part in dict.fromkeys(part for _, part, _, _ in writes):
        members = [write for write in writes if write[1] == part]
        bars.append(
            go.Bar(
                x=[write[2] for write in members],
                y=np.array([write[3] for write in members]),
                name=f"written by {PART_WORDS[part]}",
                marker={"color": colour(part)},
                customdata=[write[0] for write in members],
                hovertemplate="%{customdata}: %{y:.3f}<extra></extra>",
            )
        )
    average = go.line(at, mean, "residual", "stream, mean over tokens", "%{y:.3f}", width=4, points=6)
    single = go.line(at, token_norms, "quiet", plain(token_name), "%{y:.3f}", dash="dot", points=6)
    return go.figure(
        [*bars, average, single],
        margin={"l": 56, "r": 8, "t": 30, "b": 8},
        bargap=0.3,
        xaxis=rows_axis(
            rows, tickangle=-90 if 14 < len(rows) <= MANY else -45, tickfont={"size": 12}, automargin=True
        )
        | _by_block(rows),
        yaxis={"title": {"text": "Euclidean norm"}, "rangemode": "tozero"},
    )


# The gradient highway ---------------------------------------------------------------------------

WIRING_LOOKS = {"pre": ("run0", "solid"), "post": ("run2", "dash"), "none": ("run4", "dot")}


def gradient_lines(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]],
    *,
    x: str,
    y: str,
    flat: bool = False,
    end: float | None = None,
) -> go.Figure:
    """Draws wiring -> (x, y), on a logarithmic y axis, without values that are 0 or not finite.

    `flat` draws a line at 1; `end` is where the x axis stops while the curves are still short of it.
    """
    traces = []
    for wiring, (at, values) in curves.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            positive = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        (shade, dash), name = WIRING_LOOKS[wiring], WIRINGS[wiring]
        size = 6 if len(at) < 30 else 4
        traces.append(go.line(at, positive, shade, name, "%{y:.3g}", width=2.5, dash=dash, points=size))
    span = decades([v for _, v in curves.values()], flat)
    level = go.rule(y=1, line={"color": colour("quiet"), "dash": "dot", "width": 1.2})
    shapes = [level] if flat else []
    equal = go.note("equal", 1, 0, xref="paper", xanchor="right", yanchor="bottom")  # log₁₀ of 1
    return go.figure(
        traces,
        margin={"l": 8, "r": 12, "t": 30, "b": 44},
        hovermode="x unified",
        shapes=shapes,
        annotations=[equal] if flat else [],
        xaxis=go.axis(x, zeroline=False) | ({"range": [0, 1.03 * end]} if end else {}),
        yaxis=go.axis(
            y,
            showgrid=True,
            type="log",
            exponentformat="power",
            tickfont={"size": 12},
            range=span,
            tick0=0,
            dtick=max(1, math.ceil((span[1] - span[0]) / 7)),
        ),
    )


def decades(values: Sequence[np.ndarray], flat: bool = False) -> list[float]:
    """Returns a range of log10 that is never narrower than two decades, so that what is flat looks flat."""
    every = np.concatenate([*values, [1.0] if flat else []]) if values else np.ones(1)
    shown = np.log10(every[np.isfinite(every) & (every > 0)]) if len(every) else np.zeros(1)
    low, high = (float(shown.min()), float(shown.max())) if shown.size else (-1.0, 1.0)
    wanting = max(0.0, 2.0 - (high - low)) / 2
    return [low - wanting - 0.15, high + wanting + 0.15]
