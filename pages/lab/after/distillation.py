"""The view "Distillation": a small model learns from the text, or from a larger model's probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import CheckpointError
from engine.slices import median_curve, seed_median
from studies.after.distil import DarkKnowledge, dark_knowledge, distil, least_certain, soft_loss
from studies.experiments.distil_runs import (
    ITSELF,
    LITTLE,
    STUDENT,
    TEACHER,
    TRAINING,
    WAYS,
    Distilled,
    gain,
    shipped,
)
from studies.experiments.distil_runs import (
    TEXT as CHARACTERS,
)
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.labels import plain as readable
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.markdown import safe

TEXT = content.beside(__file__)
HEIGHT = 380
SHOWN = ("training", "position")
SHADES = {CHARACTERS: "quiet", 1.0: "run0", 2.0: "run1"}
TEMPERATURES = (1.0, 2.0, 4.0)
BARS = 12  # characters


def draw(subject: Subject) -> None:
    """Draws the stored trainings, or what a teacher says at one position of the text."""
    controls = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    titles = {name: TEXT[f"shown {name}"] for name in SHOWN}
    if widgets.select(TEXT["shown"], titles, "distil_shown", container=controls) == "position":
        _position(subject, controls)
    else:
        _training(controls)


def _training(controls: DeltaGenerator) -> None:
    try:
        runs = shipped()
    except CheckpointError as error:
        st.info(safe(str(error)))
        return
    titles = {
        f"{source}-{width}": TEXT(f"read {source}", characters=LITTLE, width=width)
        for source, width in dict.fromkeys((source, width) for source, width, _ in WAYS)
    }
    chosen = widgets.select(TEXT["read"], titles, "distil_read", kind="list", container=controls)
    source, width = chosen.split("-")
    some = [run for run in runs if (run.plan.source, run.plan.width) == (source, int(width))]
    plot(
        loss_lines(some, next(run.losses[-1] for run in runs if run.plan == ITSELF)),
        key="distil_training",
        height=HEIGHT,
        alt=TEXT("alt training", runs="; ".join(_ends(some))),
        data=pd.DataFrame(
            [
                {"temperature": run.plan.temperature, "seed": run.plan.seed, "step": step, "loss": loss}
                for run in some
                for step, loss in zip(run.steps, run.losses, strict=True)
            ]
        ),
        name="distillation",
    )
    explain.answer(answer(runs, source, int(width)))
    explain.measure_it(_table, runs)


def _ends(some: Sequence[Distilled]) -> list[str]:
    return [
        TEXT("of way", way=_way(temperature), loss=seed_median(_lasts(some, temperature)))
        for temperature in dict.fromkeys(run.plan.temperature for run in some)
    ]


def _lasts(runs: Sequence[Distilled], temperature: float) -> list[float]:
    return [run.losses[-1] for run in runs if run.plan.temperature == temperature]


def _way(temperature: float) -> str:
    if temperature == CHARACTERS:
        return TEXT["from text"]
    return TEXT("from teacher" if temperature == 1 else "from softened", temperature=temperature)


def answer(runs: Sequence[Distilled], source: str, width: int) -> str:
    """Says whether the teacher's probabilities helped this student (Markdown)."""
    found = gain(runs, source, width, 1.0)
    case = "alike" if not found.clear else "helps" if found.nats > 0 else "costs"
    text, teacher = seed_median(found.text), seed_median(found.teacher)
    return TEXT(f"answer {case}", text=text, teacher=teacher, seeds=len(found.text))


def _table(runs: Sequence[Distilled]) -> None:
    """A row for each student: final losses by what it learned from, and the gain."""
    rows = []
    for source, width, temperature in WAYS:
        if temperature != CHARACTERS:
            found = gain(runs, source, width, temperature)
            rows.append(
                {
                    TEXT["column read"]: TEXT(f"read {source}", characters=LITTLE, width=width),
                    TEXT["column temperature"]: f"{temperature:g}",
                    TEXT["column text"]: TEXT("range", low=min(found.text), high=max(found.text)),
                    TEXT["column teacher"]: TEXT("range", low=min(found.teacher), high=max(found.teacher)),
                    TEXT["column gain"]: f"{found.nats:+.3f}",
                    TEXT["column seconds"]: _times(runs, source, width, temperature),
                }
            )
    st.dataframe(pd.DataFrame(rows), hide_index=True)
    sizes = {"layers": STUDENT.n_layers, "steps": TRAINING.steps, "batch": TRAINING.batch_size}
    sizes["tokens"] = TRAINING.eval_tokens
    st.caption(TEXT("made", teacher=TEACHER, context=STUDENT.context, made=runs[0].made, **sizes))


def _times(runs: Sequence[Distilled], source: str, width: int, temperature: float) -> str:
    """Returns how many times the processor seconds of the text's students those of the teacher's took."""
    with_teacher, without = (
        seed_median(
            run.seconds
            for run in runs
            if (run.plan.source, run.plan.width, run.plan.temperature) == (source, width, each)
        )
        for each in (temperature, CHARACTERS)
    )
    return f"{with_teacher / without:.1f}"


def _position(subject: Subject, controls: DeltaGenerator) -> None:
    """The teacher's probabilities after one character of the text, softened by a temperature."""
    temperature = widgets.select(
        TEXT["temperature"], TEMPERATURES, "distil_temperature", container=controls, format_func="{:g}".format
    )
    last = len(subject.ids) - 2
    if last < 0:
        st.info(TEXT["too short"])
        return
    recording = subject.recording()
    first = least_certain(recording)
    at = min(token_strip(subject.labels, key="distil_token", chosen=first, label=TEXT["strip"]), last)
    knowledge = dark_knowledge(recording, at, temperature)
    right = subject.ids[at + 1]
    names = [readable(subject.vocabulary[i]) for i in knowledge.likeliest[:BARS]]
    plot(
        chance_bars(knowledge, right, names),
        key="distil_position",
        height=HEIGHT - 70,
        alt=TEXT("alt position", token=subject.labels[at], right=knowledge.right, entropy=knowledge.entropy),
        data={"token": list(subject.vocabulary), "probability": knowledge.probabilities},
        name="dark-knowledge",
    )
    explain.answer(
        TEXT(
            "dark knowledge",
            token=subject.labels[at],
            next=subject.labels[at + 1],
            rest=1 - knowledge.right,
            choices=float(np.exp(knowledge.entropy)),
        )
    )


# Figures ------------------------------------------------------------------------------------------


def loss_lines(runs: Sequence[Distilled], teacher: float) -> go.Figure:
    """Draws held-out losses by step: a thin line for each seed, thick the median; dashed, the teacher's."""
    traces = []
    for temperature in dict.fromkeys(run.plan.temperature for run in runs):
        some = [run for run in runs if run.plan.temperature == temperature]
        steps, shade = list(some[0].steps)[1:], SHADES[temperature]
        lines = [np.array(run.losses)[1:] for run in some]
        thin: go.Trace = {"showlegend": False, "opacity": 0.4, "hoverinfo": "skip"}
        traces += [go.line(steps, values, shade, width=1, **thin) for values in lines]
        name = _way(temperature)
        traces.append(go.line(steps, median_curve(lines), shade, name, TEXT["hover loss"], width=3))
    steps = list(runs[0].steps)[1:]
    name = TEXT("teacher itself", loss=teacher)
    traces.append(go.line(steps, [teacher] * len(steps), "run5", name, TEXT["hover loss"], dash="dash"))
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 40, "b": 44},
        xaxis={"title": {"text": TEXT["steps"]}},
        yaxis=go.axis(TEXT["loss"], showgrid=True, tickmode="auto", nticks=7),
    )


def chance_bars(knowledge: DarkKnowledge, right: int, names: Sequence[str]) -> go.Figure:
    """Draws the likeliest characters, the right one in another colour."""
    ids = knowledge.likeliest[: len(names)]
    shades = [colour("output") if i == right else colour("quiet") for i in ids]
    bars = go.Bar(
        x=list(range(len(names))),
        y=knowledge.probabilities[ids],
        marker={"color": shades},
        hovertemplate="%{y:.1%}<extra></extra>",
    )
    return go.figure(
        [bars],
        margin={"l": 56, "r": 12, "t": 12, "b": 44},
        showlegend=False,
        xaxis=go.ticks(list(range(len(names))), list(names), title=TEXT["next"]),
        yaxis=go.axis(TEXT["probability"], tickformat=".0%", showgrid=True),
    )


VIEW = View(
    "distillation",
    TEXT,
    draw,
    code=(soft_loss, distil, dark_knowledge),
    takes=(SAYS, CAUSAL),
)
