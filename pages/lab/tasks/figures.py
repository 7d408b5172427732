"""Arrays -> figures of tasks: how one was learned, and what a head looks at. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.measure.tasks.task_heads import ProblemReading
from engine.measure.tasks.task_scores import TaskCurve
from ui.figures import specs as go
from ui.figures.patterns import pattern_heatmap
from ui.figures.theme import colour

PARTS = {"held-out": "validation", "trained on": "training"}


def learned(curve: TaskCurve, floor: float, *, log: bool = False) -> go.Figure:
    """Draws, above, the share of problems solved by step; below, the loss, nats, with its floor. `log`: steps
    in powers of ten.
    """
    some = curve.steps > 0 if log else curve.steps >= 0
    steps = curve.steps[some]
    shares = (curve.solved[some], curve.train_solved[some])
    losses = (curve.validation_loss[some], curve.train_loss[some])
    traces: list[dict[str, Any]] = []
    for (name, shade), share, loss in zip(PARTS.items(), shares, losses, strict=True):
        wide = 3 if name == "held-out" else 1.6
        line = {"color": colour(shade), "width": wide, "dash": "solid" if name == "held-out" else "dot"}
        both = {"type": "scatter", "mode": "lines", "x": steps, "line": line, "cliponaxis": False}
        hover = f"{name}, step %{{x:,}}: "
        traces += [
            both | {"y": share, "name": name, "hovertemplate": hover + "%{y:.0%}<extra></extra>"},
            both
            | {
                "y": loss,
                "yaxis": "y2",
                "showlegend": False,
                "hovertemplate": hover + "%{y:.3f} nats<extra></extra>",
            },
        ]
    end = float(steps[-1])
    lowest = min(floor, float(min(np.nanmin(loss) for loss in losses)))
    highest = float(max(np.nanquantile(loss, 0.98) for loss in losses))
    room = 0.08 * (highest - lowest)
    scale = (
        {"type": "log", "range": [float(np.log10(steps[0])), float(np.log10(end))], "dtick": 1}
        if log
        else {"range": [0, end]}
    )
    return go.figure(
        traces,
        uirevision="task-learned",
        margin={"l": 56, "r": 14, "t": 8, "b": 40},
        showlegend=True,
        legend={"font": {"size": 13}},
        xaxis=go.axis("step", anchor="y2") | scale,
        yaxis={
            "title": {"text": "solved"},
            "range": [-0.03, 1.05],
            "tickformat": ".0%",
            "domain": [0.53, 1],
            "nticks": 4,
        },
        yaxis2={
            "title": {"text": "loss (nats)"},
            "range": [max(0.0, lowest - 2 * room) if lowest else -room, highest + room],
            "domain": [0, 0.44],
            "anchor": "x",
            "nticks": 5,
            "zeroline": False,
        },
        shapes=[_across(floor)],
        annotations=[_named(floor)],
    )


def _across(floor: float) -> dict[str, Any]:
    line = {"color": colour("quiet"), "width": 2, "dash": "dash"}
    return go.rule(y=floor, yref="y2") | {
        "line": line,
        "layer": "below",
    }


def _named(floor: float) -> dict[str, Any]:
    return go.note(
        f"entropy floor: {floor:.3f}",
        1,
        floor,
        xref="paper",
        yref="y2",
        xanchor="right",
        yanchor="bottom",
        font={"color": colour("quiet"), "size": 13},
    )


def looked_at(reading: ProblemReading, layer: int, head: int) -> go.Figure:
    """Draws a head's pattern; framed, for every letter of the answer, the positions that it comes from."""
    labels = ["⏎" if letter == "\n" else letter for letter in reading.letters]
    heat = pattern_heatmap(reading.patterns[layer, head], labels)
    line = {"color": colour("output"), "width": 2}
    frames = [
        {"type": "rect", "x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5, "line": line}
        for query, keys in reading.targets
        for key in keys
    ]
    return heat.changed({"shapes": frames})


def scores(values: np.ndarray, even: float, chosen: tuple[int, int]) -> go.Figure:
    """Draws the score of every head, (layer, head), as bars; the chosen one in full colour, a
    line at `even`.
    """
    names = [f"{layer}.{head}" for layer, head in np.ndindex(values.shape)]
    strong = [at == chosen for at in np.ndindex(values.shape)]
    bars = go.Bar(
        x=names,
        y=values.ravel(),
        marker={"color": [colour("attention", 100 if bold else 45) for bold in strong]},
        text=[f"{value:.0%}" for value in values.ravel()],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="head %{x}: %{y:.1%}<extra></extra>",
    )
    line = {"color": colour("quiet"), "width": 1.5, "dash": "dot"}
    return go.figure(
        [bars],
        margin={"l": 48, "r": 8, "t": 22, "b": 40},
        showlegend=False,
        xaxis=go.axis("head (layer.head)", type="category"),
        yaxis={
            "title": {"text": "weight on the source"},
            "range": [0, 1.05],
            "tickformat": ".0%",
            "nticks": 4,
        },
        shapes=[go.rule(y=even, line=line)],
    )


def heads_table(values: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the scores as columns."""
    layer, head = (grid.ravel() for grid in np.indices(values.shape))
    return {"layer": layer, "head": head, "weight_on_source": values.ravel()}
