"""Differences along the stream as a figure. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.lab.reference.compare import TOLERANCE, Comparison, Difference
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.text.numbers import scientific

FLOOR = 1e-9  # where an exact equality stands: a logarithm has no zero
MOST_TICKS = 12
GOOD, BAD = "run0", "run4"


def along(comparison: Comparison) -> go.Figure:
    """Draws the relative difference of every state of the stream, from the embedding to the logits."""
    states = comparison.states
    heights = np.array([max(row.relative, FLOOR) for row in states])
    top = max(10.0, float(np.nan_to_num(heights, posinf=10.0).max()) * 10)
    heights = np.minimum(np.nan_to_num(heights, posinf=top), top)
    at = np.arange(len(states))
    close = np.array([row.close for row in states])
    line = go.Scatter(
        x=at, y=heights, mode="lines", line={"color": colour("quiet")}, hoverinfo="skip", showlegend=False
    )
    traces = [line]
    for name, part, symbol, there in (
        ("agrees", GOOD, "circle", close),
        ("differs", BAD, "x", ~close),
    ):
        if there.any():
            traces.append(
                go.Scatter(
                    x=at[there],
                    y=heights[there],
                    mode="markers",
                    name=name,
                    marker={"color": colour(part), "symbol": symbol, "size": 9 if len(states) < 24 else 6},
                    text=[hover(row) for row, drawn in zip(states, there, strict=True) if drawn],
                    hovertemplate="%{text}<extra></extra>",
                )
            )
    return go.figure(
        traces,
        margin={"l": 64, "r": 84, "t": 24, "b": 40},
        xaxis={
            "title": {"text": "block"},
            "zeroline": False,
            "range": [-0.5, len(states) - 0.5],
            **ticks(states),
        },
        yaxis={
            "type": "log",
            "title": {"text": "difference"},
            "range": [np.log10(FLOOR) - 0.3, float(np.log10(top))],
            "exponentformat": "power",
            "dtick": 2,
        },
        shapes=[tolerance()],
        annotations=[tolerance_label(), *begins(comparison, heights)],
        uirevision=f"differences-{len(states)}",
    )


def hover(row: Difference) -> str:
    where = "" if row.block is None else f"block {row.block}, "
    return f"{where}{row.bare}<br>difference {scientific(row.largest)}<br>largest number there {row.size:.3g}"


def ticks(states: tuple[Difference, ...]) -> dict[str, Any]:
    """Returns the embedding, every block (every few where there are many) and the end."""
    blocks = [(i, row.block) for i, row in enumerate(states) if row.bare == "resid_post"]
    step = -(-len(blocks) // MOST_TICKS)
    ends = {"resid_pre": "embed", "norm_final": "norm", "logits": "logits"}
    named = [(i, ends[row.bare]) for i, row in enumerate(states) if row.bare in ends]
    if len(blocks) > 3:  # no room for two words side by side
        named = [(i, word) for i, word in named if word != "norm"]
    few = blocks[step if step > 1 else 0 :: max(step, 1)]
    last = named[-1][0] if named else len(states)
    few = [(i, block) for i, block in few if last - i > len(states) / 12]  # no number runs into the last word
    shown = sorted(named + [(i, str(block)) for i, block in few])
    return {
        "tickangle": 0,
        "tickmode": "array",
        "tickvals": [i for i, _ in shown],
        "ticktext": [word for _, word in shown],
    }


def tolerance() -> dict[str, Any]:
    return go.rule(y=TOLERANCE, line={"color": colour("output"), "width": 2, "dash": "dash"})


def tolerance_label() -> dict[str, Any]:
    return go.note(
        "tolerance",
        1.005,
        float(np.log10(TOLERANCE)),
        xref="paper",
        xanchor="left",
        font={"color": colour("output")},
    )


def begins(comparison: Comparison, heights: np.ndarray) -> list[dict[str, Any]]:
    """Returns an arrow to the first state that is out of tolerance, with the activation where it began."""
    first = comparison.begins
    at = next((i for i, row in enumerate(comparison.states) if not row.close), None)
    if first is None or at is None:
        return []
    where = first.bare if first.block is None else f"block {first.block}, {first.bare}"
    right = at < len(heights) / 2
    return [
        {
            "x": at,
            "y": float(np.log10(heights[at])),
            "text": f"begins: {where}",
            "showarrow": True,
            "arrowhead": 2,
            "ax": 70 if right else -70,
            "ay": 24 if heights[at] > 0.1 else -24,  # clear of the tolerance
            "xanchor": "left" if right else "right",
            "font": {"color": colour(BAD)},
            "arrowcolor": colour(BAD),
        }
    ]
