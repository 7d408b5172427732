"""The part "On a task" of "Fixed memory": stored trainings with attention, fixed memories, and both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import CheckpointError
from engine.slices import seed_median
from studies.attention.recall_task import BATCH, HEADS, KEYS, KINDS, LENGTH, STEPS, WIDTH, Kind
from studies.experiments.fixed_memory import RecallRun, shipped
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.players.plot import plot
from ui.text.markdown import safe

TEXT = content.beside(__file__)
SHADES: dict[Kind, str] = {"attention": "attention", "hybrid": "run2", "adding": "quiet", "delta": "output"}
NEAR = 0.05  # of the share recalled


def draw(line: DeltaGenerator) -> None:
    """Draws the share of values recalled by step, a line for each seed; the heads are chosen in the line."""
    sizes = {heads: TEXT("heads", heads=heads, d_head=WIDTH // heads) for heads in HEADS}
    heads = widgets.select(TEXT["heads label"], sizes, "memory_heads", container=line, hidden=True)
    try:
        runs = [run for run in shipped() if run.plan.heads == heads]
    except CheckpointError as error:
        st.error(safe(str(error)))
        return
    by_kind = {kind: [run for run in runs if run.plan.kind == kind] for kind in KINDS}
    last = {kind: seed_median(run.right[-1] for run in some) for kind, some in by_kind.items()}
    plot(
        recall_by_step(by_kind),
        key="memory_task",
        alt=TEXT("alt", seeds=len(by_kind["delta"]), **last),
        height=350,
        data=table(runs),
        name="memory-on-a-task",
    )
    enough, size = last["attention"] - last["hybrid"] < NEAR, WIDTH // heads
    if enough:
        said = TEXT("answer", d_head=size, keys=KEYS, steps=STEPS, **last)
    else:
        said = TEXT("answer too small", d_head=size, steps=STEPS, **last)
    explain.answer(said)
    explain.measure_it(_setting, runs, heads)


def table(runs: Sequence[RecallRun]) -> pd.DataFrame:
    """Returns a row for each look at a training."""
    return pd.DataFrame(
        [
            {"kind": run.plan.kind, "seed": run.plan.seed, "step": step, "right": right}
            for run in runs
            for step, right in zip(run.steps, run.right, strict=True)
        ]
    )


def recall_by_step(by_kind: Mapping[Kind, Sequence[RecallRun]]) -> go.Figure:
    """Draws a line for each training, in the colour of its kind."""
    traces = [
        go.Scatter(
            x=np.array(run.steps),
            y=np.array(run.right, np.float32),
            mode="lines",
            name=TEXT[f"name {kind}"],
            legendgroup=kind,
            showlegend=first,
            line={"color": colour(SHADES[kind]), "width": 2},
            hovertemplate=TEXT("hover", seed=run.plan.seed),
        )
        for kind, runs in by_kind.items()
        for first, run in zip((True, *[False] * len(runs)), runs, strict=False)
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 8, "t": 34, "b": 44},
        **go.level(TEXT("chance", share=1 / KEYS), 1 / KEYS, font={"size": 13, "color": colour("quiet")}),
        xaxis=go.axis(TEXT["step"], showgrid=False),
        yaxis=go.axis(TEXT["right"], range=[0, 1.03], tickformat=".0%"),
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )


def _setting(runs: Sequence[RecallRun], heads: int) -> None:
    """The task and its training, and each seed at the end."""
    st.markdown(
        TEXT(
            "setting",
            keys=KEYS,
            length=LENGTH,
            steps=STEPS,
            batch=BATCH,
            width=WIDTH,
            heads=heads,
            d_head=WIDTH // heads,
        )
    )
    ends = {
        TEXT[f"name {kind}"]: {
            TEXT("seed", seed=run.plan.seed): f"{run.right[-1]:.1%}" for run in runs if run.plan.kind == kind
        }
        for kind in KINDS
    }
    st.table(pd.DataFrame.from_dict(ends, orient="index"))
