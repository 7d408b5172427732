"""Four curves of a training by preferences, side by side. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from engine.training.post_training.preferences import Plan, PreferenceEvaluation
from pages.lab.after.figures_by_seed import seed_lines
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour

# column -> (panel, name, colour, dash, in the legend)
LINES = {
    "margin": (1, "training pairs", "training", "solid", True),
    "held_out_margin": (1, "held-out pairs", "validation", "dot", True),
    "ranked": (2, "training pairs", "training", "solid", False),
    "held_out_ranked": (2, "held-out pairs", "validation", "dot", False),
    "chosen": (3, "chosen text", "run0", "solid", True),
    "held_out_chosen": (3, "chosen, held out", "run0", "dot", False),
    "rejected": (3, "rejected text", "run4", "solid", True),
    "held_out_rejected": (3, "rejected, held out", "run4", "dot", False),
    "measured": (4, "new samples", "output", "solid", False),
}
GAP, RAISED = 0.1, 0.57  # between panels, and where the upper ones begin; shares of the figure


def table(looks: Sequence[PreferenceEvaluation]) -> pd.DataFrame:
    """Returns the numbers of a run, a row for each look."""
    names = ("margin", "ranked", "chosen", "rejected")
    scores = {
        prefix + name: [getattr(getattr(look, of), name) for look in looks]
        for of, prefix in (("training", ""), ("held_out", "held_out_"))
        for name in names
    }
    steps = {"step": [look.step for look in looks], "measured": [look.measured for look in looks]}
    return pd.DataFrame(steps | scores)


def by_step(stored: Sequence[pd.DataFrame], live: pd.DataFrame | None, plan: Plan) -> go.Figure:
    """Draws margin, share ranked right, log-probabilities and what the taste measures by step: stored runs as
    thin lines, thick the live one, or the median of the stored.
    """
    traces = []
    for key, (panel, name, shade, dash, legend) in LINES.items():
        line, draw = {"color": colour(shade), "dash": dash}, partial(_line, panel, name=name)
        traces += seed_lines(stored, live, key, line, 2.5, draw, showlegend=legend)
    of_word = plan.taste.of_word
    titles = (
        "margin",
        "pairs ranked right",
        "log p, change (nats)",
        f"new samples with “{plan.taste.word}”" if of_word else "sentence length",
    )
    share = {"range": [-0.03, 1.05], "tickformat": ".0%"}
    kinds: tuple[dict[str, Any], ...] = ({}, share, {}, share if of_word else {"rangemode": "tozero"})
    layout: dict[str, Any] = base_layout(
        margin={"l": 40, "r": 8, "t": 46, "b": 34},
        legend={"y": 1.1},
        annotations=[_title(i + 1, title) for i, title in enumerate(titles)],
    )
    for i, kind in enumerate(kinds):
        left, upper = i % 2 == 0, i < 2
        name, number = ("", "") if i == 0 else (str(i + 1), str(i + 1))
        across = [0, 0.5 - GAP / 2] if left else [0.5 + GAP / 2, 1]
        step = go.axis("" if upper else "step", range=[0, plan.steps], domain=across, anchor=f"y{number}")
        layout[f"xaxis{name}"] = step | {"showticklabels": not upper}
        up = [RAISED, 1] if upper else [0, 1 - RAISED]
        layout[f"yaxis{name}"] = go.axis("", showgrid=True, domain=up, anchor=f"x{number}", **kind)
    return go.Figure({"data": traces, "layout": layout})


def _line(panel: int, x: Any, y: Any, name: str, **rest: Any) -> go.Trace:
    number = "" if panel == 1 else str(panel)
    form = ".0%" if panel == 2 else ".3~g"
    values = {"x": np.asarray(x), "y": np.asarray(y), "name": name, "mode": "lines"}
    hover = f"step %{{x}}: %{{y:{form}}}<extra>{name}</extra>"
    return go.Scatter(**values, xaxis=f"x{number}", yaxis=f"y{number}", hovertemplate=hover, **rest)


def _title(panel: int, text: str) -> dict[str, Any]:
    number = "" if panel == 1 else str(panel)
    return go.note(
        text,
        0,
        1,
        xref=f"x{number} domain",
        yref=f"y{number} domain",
        xanchor="left",
        yanchor="bottom",
        font={"size": 13},
    )
