"""The part "no network" of Activation functions: tasks and a text learned with and without the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.slices import seed_median
from studies.experiments.no_feedforward import (
    KINDS,
    SEEDS,
    SHOWN,
    TEXT_RECIPE,
    TIMES,
    Ends,
    Kind,
    TaskRun,
    ends,
    shipped,
)
from studies.experiments.no_feedforward import TEXT as CORPUS
from studies.feedforward.linearity import midpoints
from ui import content, explain
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.players.plot import plot

TEXT = content.beside(__file__)
SHADES: dict[Kind, tuple[str, int]] = {
    "whole": ("feedforward", 100),
    "attention": ("attention", 100),
    "deep attention": ("attention", 45),
}
STEPS = TEXT_RECIPE[1].steps
WIDE = 0.26  # of a bar, in steps of the axis
WORTH = 0.05  # nats that are a gain


def draw(subject: Subject) -> None:
    """Draws the share of three tasks' problems that each kind of block solves, and its loss on a text."""
    runs = shipped()
    each_end = ends(runs)
    shares = {(each.task, each.kind): each.solved for each in each_end}
    rows = [
        TEXT(
            "alt row",
            task=TEXT[f"task {task}"],
            whole=shares[task, "whole"],
            attention=shares[task, "attention"],
            deep=shares[task, "deep attention"],
        )
        for task in SHOWN
    ]
    plot(
        solved_and_loss(runs),
        key="feedforward_without",
        height=370,
        name="without-feed-forward",
        alt=TEXT("alt", rows=content.Filled("; ".join(rows)), **_losses(each_end)),
        data=pd.DataFrame(
            [
                {
                    "task": run.plan.task,
                    "blocks": run.plan.kind,
                    "seed": run.plan.seed,
                    "parameters": run.parameters,
                    "solved": run.solved[-1],
                    "validation_loss": run.validation[-1],
                }
                for run in runs
            ]
        ),
    )
    explain.answer(answer(each_end))
    model, _ = TEXT_RECIPE
    st.caption(
        TEXT(
            "seeds",
            seeds=len(SEEDS),
            blocks=model.n_layers,
            width=model.d_model,
            times=TIMES,
            deep=_losses(each_end)["deep"],
        )
    )
    off = midpoints(subject.model, subject.recording())
    if off.attention is not None and off.feedforward is not None:
        st.caption(TEXT("mixing", attention=off.attention, feedforward=off.feedforward))
    explain.measure_it(_made, runs)


def _made(runs: Sequence[TaskRun]) -> None:
    st.caption(TEXT("made", steps=STEPS, made=content.Filled(runs[0].made)))


def _losses(ends: Sequence[Ends]) -> dict[str, float]:
    """Returns the losses on the text, nats per character, by `whole`, `attention` and `deep`."""
    return {each.kind.split()[0]: each.validation for each in ends if each.task == CORPUS}


def answer(ends: Sequence[Ends]) -> str:
    """Says what attention alone can do, and what the network is worth on text."""
    losses = _losses(ends)
    pays = losses["whole"] + WORTH < min(losses["attention"], losses["deep"])
    said = {"steps": STEPS, "attention": losses["attention"], "whole": losses["whole"]}
    return TEXT("text needs it" if pays else "all alike", **said)


def solved_and_loss(runs: Sequence[TaskRun]) -> go.Figure:
    """Draws a bar for each task and kind of block, the share solved; beside them the loss of each kind on the
    text: medians, with a dot for each seed.
    """
    traces: list[dict[str, Any]] = []
    for place, kind in enumerate(KINDS):
        label = TEXT("deeper", times=TIMES) if kind == "deep attention" else TEXT[f"kind {kind}"]
        of = {
            task: [run for run in runs if (run.plan.task, run.plan.kind) == (task, kind)]
            for task in (*SHOWN, CORPUS)
        }
        solved = [[run.solved[-1] for run in of[task]] for task in SHOWN]
        losses = [[run.validation[-1] for run in of[CORPUS]]]
        traces += _bars(solved, place, kind, label, "solved")
        traces += _bars(losses, place, kind, label, "loss")
    return go.figure(
        traces,
        margin={"l": 60, "r": 8, "t": 48, "b": 32},
        xaxis=go.ticks(list(range(len(SHOWN))), [TEXT[f"task {task}"] for task in SHOWN])
        | {"domain": [0, 0.66]},
        yaxis=go.axis(TEXT["axis solved"], range=[0, 1.08], tickformat=".0%", showgrid=True),
        xaxis2=go.ticks([0], [TEXT["text"]]) | {"domain": [0.78, 1], "anchor": "y2"},
        yaxis2=go.axis(TEXT["axis loss"], rangemode="tozero", showgrid=True, anchor="x2"),
    )


def _bars(
    groups: Sequence[Sequence[float]], place: int, kind: Kind, label: str, what: str
) -> list[dict[str, Any]]:
    """Returns the bars of one kind of block, a group's median each, and the dots of its seeds."""
    number = "" if what == "solved" else "2"
    axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    at = np.arange(len(groups)) + (place - 1) * WIDE
    medians = np.array([seed_median(group) for group in groups])
    shade, strength = SHADES[kind]
    bars = go.Bar(
        x=at,
        y=medians,
        width=WIDE * 0.92,
        name=label,
        legendgroup=kind,
        showlegend=what == "solved",
        marker={"color": colour(shade, strength)},
        text=[f"{value:.0%}" if what == "solved" else f"{value:.2f}" for value in medians],
        textposition="outside",
        cliponaxis=False,
        hovertemplate=TEXT(f"hover {what}", kind=label),
        **axes,
    )
    dots = go.Scatter(
        x=np.repeat(at, [len(group) for group in groups]),
        y=np.concatenate([np.asarray(group) for group in groups]),
        mode="markers",
        showlegend=False,
        marker={"size": 5, "color": colour("quiet")},
        hoverinfo="skip",
        **axes,
    )
    return [bars, dots]
