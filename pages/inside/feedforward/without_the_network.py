"""The part "without it" of Activation functions: tasks learned with and without feed-forward networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from studies.experiments.no_feedforward import KINDS, SEEDS, SHOWN, TIMES, Ends, Kind, TaskRun, ends, shipped
from studies.tasks.all import TASKS
from studies.tasks.recipes import task_recipe
from ui import content, explain
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.players.plot import plot

TEXT = content.beside(__file__)
SHADES: dict[Kind, tuple[str, int]] = {
    "whole": ("feedforward", 100),
    "attention": ("attention", 100),
    "deep attention": ("attention", 45),
}
WIDE = 0.26  # of a bar, in steps of the axis


def draw() -> None:
    """Draws what share of three tasks' problems each kind of block solves."""
    runs = shipped()
    found = ends(runs)
    shares = {(each.task, each.kind): each.solved for each in found}
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
        solved_bars(found, runs),
        key="feedforward_without",
        height=410,
        name="without-feed-forward",
        alt=TEXT("alt", rows=content.Filled("; ".join(rows))),
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
    explain.answer(answer(found))
    model, _ = task_recipe(TASKS[SHOWN[0]])
    st.caption(
        TEXT(
            "made",
            seeds=len(SEEDS),
            blocks=model.n_layers,
            width=model.d_model,
            times=TIMES,
            made=runs[0].made,
        )
    )


def answer(found: Sequence[Ends]) -> str:
    """Says which task attention alone solves best, and which worst."""
    shares = {(each.task, each.kind): each.solved for each in found}
    easy, *_, hard = sorted(SHOWN, key=lambda task: -shares[task, "attention"])
    said = {
        "hard": shares[hard, "attention"],
        "hard_task": TEXT[f"of {hard}"],
        "whole": shares[hard, "whole"],
        "deep": shares[hard, "deep attention"],
        "easy": shares[easy, "attention"],
        "easy_task": TEXT[f"of {easy}"],
    }
    lost = said["whole"] - said["deep"] > 0.2 and said["easy"] > 0.9
    if lost:
        del said["whole"]
        return TEXT("cannot", **said)
    return TEXT("can", hard=said["hard"], hard_task=said["hard_task"], whole=said["whole"])


def solved_bars(found: Sequence[Ends], runs: Sequence[TaskRun]) -> go.Figure:
    """Draws a group of bars for each task, one for each kind of block: medians, with a dot for each seed."""
    traces = []
    for place, kind in enumerate(KINDS):
        shade, strength = SHADES[kind]
        label = TEXT(f"kind {kind}", times=TIMES) if kind == "deep attention" else TEXT[f"kind {kind}"]
        some = [each for each in found if each.kind == kind]
        at = np.arange(len(some)) + (place - 1) * WIDE
        traces.append(
            go.Bar(
                x=at,
                y=np.array([each.solved for each in some]),
                width=WIDE * 0.92,
                name=label,
                marker={"color": colour(shade, strength)},
                text=[f"{each.solved:.0%}" for each in some],
                textposition="outside",
                cliponaxis=False,
                hovertemplate=TEXT("hover", kind=label),
            )
        )
        dots = [
            (SHOWN.index(r.plan.task) + (place - 1) * WIDE, r.solved[-1]) for r in runs if r.plan.kind == kind
        ]
        traces.append(
            go.Scatter(
                x=np.array([x for x, _ in dots]),
                y=np.array([y for _, y in dots]),
                mode="markers",
                showlegend=False,
                marker={"size": 6, "color": colour("quiet")},
                hovertemplate=TEXT["hover seed"],
            )
        )
    return go.figure(
        traces,
        margin={"l": 60, "r": 8, "t": 48, "b": 32},
        xaxis=go.ticks(list(range(len(SHOWN))), [TEXT[f"task {task}"] for task in SHOWN]),
        yaxis=go.axis(TEXT["axis"], range=[0, 1.08], tickformat=".0%", showgrid=True),
    )
