"""Arrays -> figures of the three ways to answer. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.experiments.thinking_aloud import Accuracy
from ui.figures import specs as go
from ui.figures.race import DASHES, SHADES
from ui.figures.solved import Solved, solved_curves
from ui.figures.theme import colour


def accuracy_curves(scores: Sequence[Accuracy], end: float, chance: float) -> go.Figure:
    """Draws the share of right answers by step: the mean of all seeds, each seed as a thin line, and the
    share that is right by `chance` unless it is 0.
    """
    means = [Solved(each.title, each.steps, each.mean, SHADES[i], DASHES[i]) for i, each in enumerate(scores)]
    figure = solved_curves(means, end, what="new problems solved")
    thin = [
        go.Scatter(
            x=each.steps,
            y=np.asarray(shares, np.float32),
            mode="lines",
            line={"color": colour(SHADES[i]), "width": 1},
            opacity=0.5,
            showlegend=False,
            hovertemplate=f"{each.title}, one seed: %{{y:.0%}}<extra></extra>",
        )
        for i, each in enumerate(scores)
        for shares in each.shares
        if len(each.shares) > 1
    ]
    if not chance:
        return go.Figure([*thin, *figure.traces], figure.arrangement)
    quiet = {"color": colour("quiet"), "width": 1.2, "dash": "dot"}
    coin = go.note(
        "chance",
        1,
        chance,
        xref="paper",
        xanchor="right",
        yanchor="top",
        font={"color": colour("quiet"), "size": 13},
    )
    layout = figure.arrangement | {
        "shapes": [go.rule(y=chance, line=quiet, layer="below")],
        "annotations": [coin],
    }
    return go.Figure([*thin, *figure.traces], layout)
