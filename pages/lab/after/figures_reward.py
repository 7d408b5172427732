"""Shares by step of a training by reward, and the advantages of one group. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from engine.training.post_training.reward import TRIES, Group, Rewarded, RewardEvaluation
from pages.lab.after.figures_by_seed import seed_lines
from ui.figures import specs as go
from ui.figures.theme import colour

LINES = {
    "any_of": (f"at least one of {TRIES} right (pass@{TRIES})", "validation", "dot", 2.0),
    "first_try": ("first answer right (pass@1)", "output", "solid", 3.0),
    "greedy": ("likeliest answer right", "quiet", "solid", 1.5),
    "reward": ("mean reward", "run1", "dash", 2.5),
}


def table(looks: Sequence[RewardEvaluation]) -> pd.DataFrame:
    """Returns the shares of a run, a row for each look."""
    names = ("step", "first_try", "greedy", "any_of", "reward", "divergence")
    return pd.DataFrame({name: np.array([getattr(look, name) for look in looks]) for name in names})


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
        traces += seed_lines(stored, live, key, line, width, partial(_line, name=name))
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        xaxis=go.axis("step of training on reward", range=[0, steps]),
        yaxis=go.axis("share of new sums", range=[-0.02, 1.04], tickformat=".0%", showgrid=True),
    )


def _line(x: Any, y: Any, name: str, **rest: Any) -> go.Trace:
    hover = "step %{x}: %{y:.0%}<extra>" + name + "</extra>"
    return go.Scatter(x=np.asarray(x), y=np.asarray(y), name=name, mode="lines", hovertemplate=hover, **rest)


def advantages(group: Group) -> go.Figure:
    """Draws the advantage of each answer, rewarded ones in another colour."""
    rows = list(range(len(group.answers)))
    bar = go.Bar(
        x=list(group.advantages),
        y=rows,
        orientation="h",
        marker={"color": [colour("run0" if reward else "quiet") for reward in group.rewards]},
        text=[f"{value:+.2f}".replace("-", "−") for value in group.advantages],
        textposition="auto",
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
    return go.figure(
        [bar],
        margin={"l": 64, "r": 12, "t": 30, "b": 40},
        title={"text": f"{group.question} …", "font": {"size": 15}, "x": 0.5, "y": 0.98},
        xaxis=go.axis(
            "advantage: reward minus the group mean",
            range=[-1.15, 1.15],
            zeroline=True,
            zerolinecolor=colour("quiet"),
        ),
        yaxis=go.ticks(rows, list(group.answers), autorange="reversed"),
    )
