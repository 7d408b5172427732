"""Arrays -> figures of RoPE: the score against distance, turns within the context, which dimensions pair.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.measure.positions.rope import Turns
from ui.figures import specs as go
from ui.figures.theme import colour

PAIR_COLOURS = ("position", "attention", "validation", "run0", "output", "run2", "run3", "residual")


def score_curves(distances: np.ndarray, curves: Mapping[str, np.ndarray], context: int) -> go.Figure:
    """Draws q.k against the distance (distance,), the first curve thick; the end of the context is marked
    where it is in the picture.
    """
    traces = []
    for i, (name, values) in enumerate(curves.items()):
        line = (
            {"color": colour("position"), "width": 2.5}
            if i == 0
            else {"color": colour("quiet"), "width": 1.5, "dash": "dash"}
        )
        traces.append(
            go.Scatter(
                mode="lines",
                name=name,
                x=distances.astype(np.float32),
                y=values.astype(np.float32),
                line=line,
                hovertemplate="distance %{x}<br>%{y:.4f}<extra>" + name + "</extra>",
            )
        )
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    if context < distances[-1]:
        dotted = {"color": colour("quiet"), "dash": "dot", "width": 1.2}
        shapes.append(go.rule(x=context, line=dotted))
        text = {
            "text": f"context {context:,}",
            "font": {"color": colour("quiet"), "size": 12},
            "showarrow": False,
        }
        notes.append(
            {"x": context, "yref": "paper", "y": 1, "xanchor": "left", "yanchor": "top", "xshift": 4} | text
        )
    return go.figure(
        traces,
        margin={"l": 60, "r": 12, "t": 34, "b": 44},
        shapes=shapes,
        annotations=notes,
        xaxis=go.axis("distance: query − key, in positions", zeroline=False, range=[0, float(distances[-1])]),
        yaxis={"title": {"text": "score"}, "zeroline": True},
    )


def turn_bars(turns: Turns) -> go.Figure:
    """Draws full turns of each pair within the context, on a logarithmic axis; incomplete ones are grey."""
    counts, never = turns.count, turns.incomplete
    pairs = np.arange(len(counts))
    traces = []
    for name, mask, shade in (
        ("complete a turn", ~never, "position"),
        ("never complete one", never, "quiet"),
    ):
        if not mask.any():
            continue
        traces.append(
            go.Bar(
                name=name,
                x=pairs[mask],
                y=counts[mask].astype(np.float64),
                marker={"color": colour(shade)},
                customdata=np.stack((turns.theta[mask], turns.positions[mask]), -1),
                hovertemplate=(
                    "pair %{x}<br>%{y:.4g} turns in the context<br>θ = %{customdata[0]:.3g} rad per"
                    " position<br>one turn in %{customdata[1]:,.4g} positions<extra></extra>"
                ),
            )
        )
    low, high = np.log10(min(counts.min(), 0.5)), np.log10(max(counts.max(), 2.0))
    single_turn = go.rule(y=1, line={"color": colour("output"), "width": 1.5, "dash": "dot"})
    return go.figure(
        traces,
        margin={"l": 60, "r": 12, "t": 34, "b": 44},
        bargap=0.15,
        shapes=[single_turn],
        annotations=[
            go.note("one turn", 1, 0, xref="paper", xanchor="right", yanchor="bottom")  # log₁₀ of 1
        ],
        xaxis=go.axis("pair i, fast to slow", zeroline=False),
        yaxis=go.axis(
            "turns within the context",
            showgrid=True,
            type="log",
            range=[low - 0.15, high + 0.15],
            exponentformat="power",
            dtick=1 if high - low < 6 else 2,
        ),
    )


def layout_diagram(width: int = 8) -> go.Figure:
    """Draws two rows of dimensions, one for each layout; an arc joins the two that turn together, in the
    pair's colour.
    """
    half = width // 2
    rows = {
        "half-split (Llama, NeoX, this engine)": [(i, i + half) for i in range(half)],
        "interleaved (the paper, GPT-J)": [(2 * i, 2 * i + 1) for i in range(half)],
    }
    traces: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for row, (name, pairs) in enumerate(rows.items()):
        y = 2.2 * (1 - row)
        owner = {d: i for i, pair in enumerate(pairs) for d in pair}
        other = {d: e for a, b in pairs for d, e in ((a, b), (b, a))}
        for i, (a, b) in enumerate(pairs):
            t = np.linspace(0, np.pi, 40)
            x, up = (
                (a + b) / 2 - np.cos(t) * (b - a) / 2,
                y + 0.32 + np.sin(t) * (0.3 + 0.17 * (b - a) + 0.05 * i * (b - a > 1)),
            )
            traces.append(
                go.Scatter(
                    mode="lines",
                    x=x.astype(np.float32),
                    y=up.astype(np.float32),
                    hoverinfo="skip",
                    line={"color": colour(PAIR_COLOURS[i % len(PAIR_COLOURS)]), "width": 2.5},
                )
            )
        traces.append(
            go.Scatter(
                mode="markers+text",
                x=np.arange(width),
                y=np.full(width, y),
                text=[str(d) for d in range(width)],
                textfont={"size": 16, "color": "var(--gf-seq0)"},
                marker={
                    "symbol": "square",
                    "size": 32,
                    "color": [colour(PAIR_COLOURS[owner[d] % len(PAIR_COLOURS)]) for d in range(width)],
                },
                customdata=[
                    f"dimension {d}: pair {owner[d]}, rotates with dimension {other[d]}" for d in range(width)
                ],
                hovertemplate="%{customdata}<extra>" + name + "</extra>",
            )
        )
        notes.append(go.note(name, -0.45, y - 0.62, xanchor="left", font={"size": 14}))
    return go.figure(
        traces,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        showlegend=False,
        annotations=notes,
        xaxis={"visible": False, "range": [-0.6, width - 0.4]},
        yaxis={"visible": False, "range": [-0.95, 3.75]},
    )
