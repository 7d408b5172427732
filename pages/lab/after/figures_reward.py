"""Shares by step of a training by reward, and the advantages of one group. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from engine.measure.slices import median_curve
from engine.training.post_training.reward import TRIES, Group, Rewarded
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour

LINES = {
    "any_of": (f"at least one of {TRIES} right (pass@{TRIES})", "validation", "dot", 2.0),
    "first_try": ("first answer right (pass@1)", "output", "solid", 3.0),
    "greedy": ("likeliest answer right", "quiet", "solid", 1.5),
    "reward": ("mean reward", "run1", "dash", 2.5),
}


def shares_by_step(
    stored: Sequence[pd.DataFrame], live: pd.DataFrame | None, steps: int, rewarded: Rewarded
) -> go.Figure:
    """Draws each share by step: stored runs as thin lines, thick the live one, or the median of the stored;
    the reward where it is another than the right answer.
    """
    traces = []
    for key, (name, shade, dash, width) in LINES.items():
        if key == "reward" and rewarded == "right":
            continue
        line = {"color": colour(shade), "dash": dash}
        for table in stored:
            thin = line | {"width": 1}
            traces.append(_line(table["step"], table[key], name, thin, opacity=0.4, showlegend=False))
        bold = line | {"width": width}
        if live is not None:
            traces.append(_line(live["step"], live[key], name, bold))
        elif stored:
            middle = median_curve([table[key] for table in stored])
            traces.append(_line(stored[0]["step"], middle, name, bold))
    layout = base_layout(
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        xaxis=go.axis("step of training on reward", range=[0, steps]),
        yaxis=go.axis("share of new sums", range=[-0.02, 1.04], tickformat=".0%", showgrid=True),
    )
    return go.Figure({"data": traces, "layout": layout})


def _line(x: Any, y: Any, name: str, line: dict[str, Any], **rest: Any) -> go.Trace:
    hover = "step %{x}: %{y:.0%}<extra>" + name + "</extra>"
    values = {"x": np.asarray(x), "y": np.asarray(y), "name": name, "mode": "lines", "line": line}
    return go.Scatter(**values, hovertemplate=hover, **rest)


def advantages(group: Group) -> go.Figure:
    """Draws the advantage of each answer, rewarded ones in another colour."""
    places = list(range(len(group.answers)))
    bar = go.Bar(
        x=list(group.advantages),
        y=places,
        orientation="h",
        marker={"color": [colour("run0" if reward else "quiet") for reward in group.rewards]},
        text=[f"{value:+.2f}".replace("-", "−") for value in group.advantages],
        textposition="auto",
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
    layout = base_layout(
        margin={"l": 64, "r": 12, "t": 30, "b": 40},
        title={"text": f"{group.question} …", "font": {"size": 15}, "x": 0.5, "y": 0.98},
        xaxis=go.axis(
            "advantage: reward minus the group mean",
            range=[-1.15, 1.15],
            zeroline=True,
            zerolinecolor=colour("quiet"),
        ),
        yaxis=go.ticks(places, list(group.answers), autorange="reversed"),
    )
    return go.Figure({"data": [bar], "layout": layout})
