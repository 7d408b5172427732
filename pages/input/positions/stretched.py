"""A part of "Extrapolation": RoPE with slower frequencies, none of them trained: position interpolation, the
larger base and YaRN, on the shipped RoPE model and two of its seeds, and on SmolLM2 within its context.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data import corpora
from engine.errors import CheckpointError
from engine.slices import seed_median
from studies.experiments.stretched_rope import FACTORS, FEWER_TURNS, StretchedRun, stretched_runs
from studies.positions.extrapolation import NEAR, Curve, above_trained, contexts_within, least
from studies.positions.stretched_rope import (
    MOST_TURNS,
    STRETCHES,
    Stretch,
    Stretching,
    in_bins,
    losses_with_each,
    mean_costs,
)
from ui import content, explain, memo, model_choice, models, session, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.models import REAL_MODEL
from ui.players.plot import plot
from ui.training_step import NEWEST

TEXT = content.beside(__file__)
SHADES: dict[Stretch | None, str] = {None: "quiet", "interpolate": "run1", "ntk": "run2", "yarn": "run0"}
DASHES: dict[Stretch | None, str] = {None: "dot", "interpolate": "dash", "ntk": "dashdot", "yarn": "solid"}
HEIGHT = 300
LENGTH, WINDOWS, WIDTH = 512, 2, 32  # tokens and passages that SmolLM2 reads; positions of one point
CHARACTERS = 8 * LENGTH * WINDOWS  # that have at least as many tokens
SMALL, REAL = "small", "real"


def draw(figure: DeltaGenerator, controls: DeltaGenerator, context: int) -> None:
    """Draws the loss by position with each stretch, beside their `controls`."""
    with controls:
        read = {SMALL: TEXT("small", context=context), REAL: TEXT["real"]}
        of = widgets.select(TEXT["model"], read, "stretch_model", kind="list")
        factors = {times: TEXT("times", times=times) for times in FACTORS}
        times = widgets.select(TEXT["stretch"], factors, "stretch_times", hint=TEXT["stretch hint"])
        turns = {round(each): TEXT("turns", turns=each) for each in (MOST_TURNS, FEWER_TURNS)}
        hint = TEXT("beta hint", context=context, turns=context / (2 * np.pi))
        most_turns = float(widgets.select(TEXT["beta"], turns, "stretch_turns", hint=hint))
    ways = ways_of(times, most_turns)
    if of == REAL:
        _draw_real(figure, ways, times)
        return
    runs = _runs()
    if not runs:
        st.error(TEXT["no runs"])
        return
    with controls:
        st.caption(TEXT("seeds", seeds=len(runs)))
    curves = {by: [run.curves[by] for run in runs.values()] for by in ways}
    with figure:
        _draw_curves(curves, times, context)
    costs = costs_of(curves)
    explain.answer(answer(costs, times, context))
    st.table(_table(costs, context))


def ways_of(times: int, most_turns: float) -> tuple[Stretching, ...]:
    """Returns plain RoPE and the three stretches; only YaRN has a beta."""
    return (
        Stretching(),
        *(Stretching(kind, times, most_turns if kind == "yarn" else MOST_TURNS) for kind in STRETCHES),
    )


@memo.measured()
def _runs() -> dict[int, StretchedRun]:
    """The stored runs by seed, the shipped model first; none where their file is missing or damaged."""
    with suppress(CheckpointError):
        return stretched_runs()
    return {}


def costs_of(curves: Mapping[Stretching, list[Curve]]) -> dict[Stretching, list[dict[int, float]]]:
    """Returns the nats above the trained loss at the end of 1, 2 ... contexts, for each seed."""
    plain = curves[Stretching()]
    return {
        by: [above_trained(curve, trained) for curve, trained in zip(each, plain, strict=True)]
        for by, each in curves.items()
    }


def answer(costs: Mapping[Stretching, list[dict[int, float]]], times: int, context: int) -> str:
    """Says which stretch keeps the trained loss as far as it is meant to (Markdown)."""
    at_end = {by: seed_median(each[times] for each in seeds) for by, seeds in costs.items() if by.kind}
    best = least(at_end)
    kept = contexts_within(costs[best], NEAR) >= times
    plain = seed_median(each[times] for each in costs[Stretching()])
    squeezed = next(seeds for by, seeds in costs.items() if by.kind == "interpolate")
    return TEXT(
        "kept" if kept else "not kept",
        best=TEXT[f"kind {best.kind}"],
        more=at_end[best],
        far=times * context,
        near=NEAR,
        plain=plain,
        squeezed=seed_median(each[times] for each in squeezed),
    )


def _table(costs: Mapping[Stretching, list[dict[int, float]]], context: int) -> pd.DataFrame:
    rows = {}
    for by, seeds in costs.items():
        row = {
            TEXT("column at", length=n * context): TEXT("more", more=seed_median(each[n] for each in seeds))
            for n in (1, 2, 4)
        }
        kept = contexts_within(seeds, NEAR) * context
        row[TEXT("column kept", near=NEAR)] = TEXT("kept to", length=kept) if kept else TEXT["kept nowhere"]
        rows[_named(by)] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def _draw_curves(curves: Mapping[Stretching, list[Curve]], times: int, context: int) -> None:
    traces = []
    for by, (first, *others) in curves.items():
        traces += [_line(by, _middle(each), each.mean, thin=True) for each in others]
        traces.append(_line(by, _middle(first), first.mean))
    plain = curves[Stretching()][0]
    shapes = [go.rule(x=n * context, line={"color": colour("quiet"), "width": 1.2}) for n in (1, times)]
    plot(
        by_position(traces, TEXT["nats per character"]).changed({"shapes": shapes}),
        key="stretch_curves",
        height=HEIGHT,
        name="stretched-rope",
        data={"position": _middle(plain)} | {_named(by): c[0].mean for by, c in curves.items()},
        alt=TEXT("alt", context=context, far=len(plain.mean) * plain.width, times=times),
    )


def _middle(curve: Curve) -> np.ndarray:
    return curve.first + (curve.width - 1) / 2


def _named(by: Stretching) -> str:
    return TEXT[f"kind {by.kind or 'plain'}"]


def _line(by: Stretching, x: np.ndarray, y: np.ndarray, thin: bool = False) -> go.Trace:
    look = {"width": 1.0, "dash": "solid"} if thin else {"width": 2.5, "dash": DASHES[by.kind]}
    trace = go.Scatter(
        mode="lines",
        x=x,
        y=y.astype(np.float32),
        name=_named(by),
        legendgroup=_named(by),
        line={"color": colour(SHADES[by.kind])} | look,
    )
    if thin:
        return trace | {"opacity": 0.5, "showlegend": False, "hoverinfo": "skip"}
    return trace | {"hovertemplate": TEXT["hover"]}


def by_position(traces: list[go.Trace], unit: str) -> go.Figure:
    """Draws losses by position."""
    return go.figure(
        traces,
        margin={"l": 48, "r": 12, "t": 36, "b": 44},
        xaxis=go.axis(TEXT["position"], zeroline=False, rangemode="tozero"),
        yaxis=go.axis(TEXT("loss", unit=unit), showgrid=True),
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )


# SmolLM2, within its context ----------------------------------------------------------------------


def _draw_real(figure: DeltaGenerator, ways: tuple[Stretching, ...], times: int) -> None:
    """Draws what each stretch costs a model that others trained, on passages far shorter than its context."""
    if model_choice.first_of((REAL_MODEL,)) != REAL_MODEL:
        st.info(TEXT["not here"])
        return
    real = models.model_of(REAL_MODEL, NEWEST, ())
    corpus = session.corpus(corpora.default_name())
    text = corpus.tokenizer.decode(corpus.validation[:CHARACTERS].tolist())
    ids = real.tokenizer.encode(text)[: LENGTH * WINDOWS + 1]
    with figure:
        losses = measured(
            ("stretched", REAL_MODEL, *ways),
            partial(losses_with_each, real.model, ids, LENGTH, ways),
            TEXT("reading", length=LENGTH),
            _draw_losses,
        )
        if losses is None:
            return
        _draw_losses(losses)
    explain.answer(real_answer(mean_costs(losses), real.config.context, times))


def _draw_losses(losses: Mapping[Stretching, np.ndarray] | None) -> None:
    """Draws the losses by position (length,) that there are so far."""
    if not losses:
        return
    middle = np.arange(LENGTH // WIDTH) * WIDTH + (WIDTH - 1) / 2
    means = {by: in_bins(each, WIDTH) for by, each in losses.items()}
    plot(
        by_position([_line(by, middle, each) for by, each in means.items()], TEXT["nats per token"]),
        key="stretch_real",
        height=HEIGHT,
        name="stretched-rope-smollm2",
        data={"position": middle} | {_named(by): each for by, each in means.items()},
        alt=TEXT("alt real", length=LENGTH),
    )


def real_answer(more: Mapping[Stretching, float], context: int, times: int) -> str:
    """Says what the gentlest and the harshest stretch cost, in nats per token (Markdown)."""
    best, worst = least(more), least({by: -cost for by, cost in more.items()})
    return TEXT(
        "costs",
        context=context,
        times=times,
        best=TEXT[f"kind {best.kind}"],
        gentle=more[best],
        worst=TEXT[f"kind {worst.kind}"],
        harsh=more[worst],
    )
