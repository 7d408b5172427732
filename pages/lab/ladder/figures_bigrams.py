"""Bars of next letters, a panel for what was read before. A pure function."""

from __future__ import annotations

from engine.experiments.bigram_expectations import (
    DOUBLE,
    SINGLE,
    TABLE,
    Expectations,
)
from engine.presets.ladder import LADDER
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour
from ui.fit_text import show_token

COLUMNS = 3
GAP = 0.05  # between panels, of the width
SHADES = {"text": "quiet", TABLE: "training", "other": "validation"}


def panels(expectations: Expectations, other: str, top: int) -> go.Figure:
    """Draws two rows of three. The first four compare text and table; in the last two the other rung joins
    them.
    """
    layout = base_layout(
        margin={"l": 44, "r": 12, "t": 66, "b": 28},
        barmode="group",
        bargap=0.25,
        legend={"y": 1.09},
    )
    traces = []
    contexts = (*SINGLE, *DOUBLE)
    width, height = (1 - GAP * (COLUMNS - 1)) / COLUMNS, 0.38
    annotations = []
    for n, each in enumerate(contexts):
        row, column = divmod(n, COLUMNS)
        axis = "" if n == 0 else str(n + 1)
        left = column * (width + GAP)
        base = 0.0 if row else 1 - height
        letters = expectations.top(each, top)
        layout[f"xaxis{axis}"] = {"domain": [left, left + width], "anchor": f"y{axis}", "type": "category"}
        layout[f"yaxis{axis}"] = {
            "domain": [base, base + height],
            "anchor": f"x{axis}",
            "range": [0, 0.55],
            "tickformat": ".0%",
            "nticks": 4,
            "showticklabels": column == 0,
        }
        annotations.append(
            go.note(
                f"after <b>{''.join(show_token(c) for c in each)}</b>",
                left + width / 2,
                base + height,
                xref="paper",
                yref="paper",
                xanchor="center",
                yanchor="bottom",
                font={"size": 14},
            )
        )
        sources = ("text", TABLE, other) if each in DOUBLE else ("text", TABLE)
        for source in sources:
            shade = SHADES.get(source, SHADES["other"])
            label = "the text" if source == "text" else LADDER[source].title
            traces.append(
                go.Bar(
                    x=[show_token(c) for c in letters],
                    y=[expectations.of(source, each, c) for c in letters],
                    name=label,
                    legendgroup=source,
                    showlegend=each == (SINGLE[0] if source in ("text", TABLE) else DOUBLE[0]),
                    marker={"color": colour(shade)},
                    xaxis=f"x{axis}",
                    yaxis=f"y{axis}",
                    hovertemplate=f"{label}: %{{y:.1%}}<extra></extra>",
                )
            )
    layout["annotations"] = annotations
    return go.Figure({"data": traces, "layout": layout})
