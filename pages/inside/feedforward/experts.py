"""The view "Experts": where a router sends a text, with and without balancing, over a training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import CheckpointError
from engine.parts.experts import Experts, Rows
from engine.slices import seed_median
from studies.costs.ledger import ledger
from studies.embeddings.token_classes import CHARACTERS, token_classes
from studies.experiments.expert_runs import (
    DENSE,
    KINDS,
    MIXTURE,
    SEEDS,
    TRAINING,
    Balance,
    ExpertRun,
    balance,
    learn_twins,
    losses,
    model_of,
    shipped,
)
from studies.experiments.ladder_gains import separate
from studies.guesses import training as guesses
from ui import content, explain, widgets
from ui.background_jobs import begun, measured
from ui.figures import specs as go
from ui.figures.labels import plain as readable
from ui.figures.theme import SEQUENTIAL, colour
from ui.guess import Guess, ask
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.tokens import show_characters

TEXT = content.beside(__file__)
HEIGHT, LOW = 430, 360  # with a row above that trains
LIVE = 3  # the seed that is trained here
ROWS, COLUMNS = 6, 20  # characters of the text that are shown for each twin
SHADES = ("feedforward", "training", "validation", "run1", "run3", "run5", "run4", "quiet")  # of experts
SHOWN = ("text", "classes")
PANELS = ((0.0, 0.48), (0.52, 1.0))
ABOVE, BELOW = (0.56, 0.94), (0.0, 0.42)  # of the figure's height: shares, texts
PHONE_ABOVE, PHONE_BELOW = (
    (0.77, 0.94),
    ((0.38, 0.63), (0.0, 0.28)),
)  # there the texts stand below one another
FEW = 0.005  # share of a class: rarer ones are left out


def draw() -> None:
    """Draws both twins: shares by step above their text, or which characters each expert takes."""
    try:
        runs = shipped()
    except CheckpointError as error:
        st.info(safe(str(error)))
        return
    controls = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    titles = {name: TEXT[f"shown {name}"] for name in SHOWN}
    shown = widgets.select(TEXT["shown"], titles, "experts_shown", container=controls)
    layers = tuple(range(MIXTURE.n_layers))
    layer = widgets.select(TEXT["layer"], layers, "experts_layer", first=layers[-1], container=controls)
    ways = {kind: TEXT[f"kind {kind}"] for kind in ("loss", "bias")}
    way = widgets.select(TEXT["balanced"], ways, "experts_by", container=controls)
    seeds = {each: TEXT("stored seed", seed=each) for each in SEEDS} | {LIVE: TEXT("live seed", seed=LIVE)}
    seed = widgets.select(TEXT["seed"], seeds, "experts_seed", container=controls)
    live = None
    if seed == LIVE:
        live = measured(
            ("experts", way),
            partial(learn_twins, way, LIVE),
            TEXT["training"],
            partial(_meanwhile, layer),
            pausable=True,
            offer=TEXT["train"],
        )
    shown_seed = SEEDS[0] if seed == LIVE else seed
    twins = live or [
        next(r for r in runs if (r.plan.kind, r.plan.seed) == (kind, shown_seed)) for kind in ("none", way)
    ]
    height = LOW if seed == LIVE else HEIGHT
    bare, evened = (balance(runs, kind, layer) for kind in ("none", way))
    numbers = {"layer": layer, "experts": MIXTURE.n_experts, "seeds": bare.seeds, "way": TEXT[f"by {way}"]}
    if shown == "classes":
        lifts = [lift(run, layer) for run in twins]
        plot(
            class_maps(lifts, way),
            key="experts_classes",
            height=height,
            alt=TEXT("alt classes", predictable=evened.predictable, shuffled=evened.shuffled, **numbers),
            data=pd.concat([each.assign(twin=run.plan.kind) for each, run in zip(lifts, twins, strict=True)]),
            name="experts-classes",
        )
        explain.answer(
            TEXT("answer classes", predictable=evened.predictable, shuffled=evened.shuffled, **numbers)
        )
    else:
        if live or not begun(("experts", way)) or seed != LIVE:
            alt = TEXT("alt", bare=bare.largest, evened=evened.largest, **numbers)
            _panels(twins, layer, height, alt)
        explain.answer(_answer(runs, bare, evened, way, numbers))
    ask("experts", _guess, runs, (layer + 1) % MIXTURE.n_layers)
    explain.measure_it(_table, runs, layer)


def _meanwhile(layer: int, twins: Sequence[ExpertRun] | None) -> None:
    """Draws the twins that are being trained, once both have a look."""
    if twins:
        _panels(twins, layer, LOW, TEXT("alt live", layer=layer))


def _panels(twins: Sequence[ExpertRun], layer: int, height: int, alt: str) -> None:
    """Draws the shares by step of both twins above their texts."""
    data = _shares(twins, layer)
    plot(twin_panels(twins, layer), key="experts_text", height=height, alt=alt, data=data, name="experts")


def _answer(
    runs: Sequence[ExpertRun], bare: Balance, evened: Balance, way: str, numbers: dict[str, object]
) -> str:
    """Says what the busiest expert takes in both twins, and whether the loss differs."""
    one, other = losses(runs, "none"), losses(runs, way)
    verdict = "alike" if not separate(one, other) else "lower" if max(other) < min(one) else "higher"
    loss = TEXT[f"loss {verdict}"]
    return TEXT("answer", bare=bare.largest, evened=evened.largest, loss=loss, **numbers)


def _guess(runs: Sequence[ExpertRun], layer: int) -> Guess | None:
    """A guess about another layer without balancing; a choice shows it."""
    found = balance(runs, "none", layer)
    truth = guesses.busiest(found.two)
    if truth is None:
        return None
    outcome = TEXT("outcome", two=found.two, layer=layer, seeds=found.seeds)
    sets = {"experts_layer": layer, "experts_shown": "text"}
    return Guess.of(TEXT, truth, TEXT("guess", layer=layer, experts=MIXTURE.n_experts), outcome, sets)


def lift(run: ExpertRun, layer: int) -> pd.DataFrame:
    """Returns how much oftener than by chance each expert has each class of characters: a row for an expert,
    without classes that hardly occur.
    """
    _, classes = token_classes([letter.encode() for letter in run.vocabulary])
    final = run.final[layer]
    table = pd.DataFrame(final.lift(classes, len(CHARACTERS)), columns=list(CHARACTERS))
    return table.loc[:, final.class_shares(classes, len(CHARACTERS)) > FEW]


def _shares(twins: Sequence[ExpertRun], layer: int) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"twin": run.plan.kind, "step": step, "expert": expert, "share": share}
            for run in twins
            for step, look in zip(run.steps, run.shares, strict=True)
            for expert, share in enumerate(look[layer])
        ]
    )


def _table(runs: Sequence[ExpertRun], layer: int) -> None:
    """A row for each kind of model: losses, balance in this layer, parameters."""
    rows = []
    for kind in (*KINDS, DENSE):
        counted = ledger(model_of(kind))
        row = {TEXT["column kind"]: TEXT[f"kind {kind}"], TEXT["column all"]: f"{counted.total:,}"}
        row |= {TEXT["column active"]: f"{counted.active:,}"}
        if ends := losses(runs, kind):
            found = balance(runs, kind, layer)
            row |= {TEXT["column loss"]: f"{seed_median(ends):.3f}"}
            row |= {TEXT["column range"]: TEXT("range", low=min(ends), high=max(ends))}
            row |= {TEXT["column largest"]: f"{found.largest:.0%}", TEXT["column unused"]: str(found.unused)}
            row |= {
                TEXT["column predictable"]: TEXT(
                    "predictable", predictable=found.predictable, shuffled=found.shuffled
                )
            }
        rows.append(row)
    st.dataframe(pd.DataFrame(rows), hide_index=True)
    c = MIXTURE
    sizes = {"experts": c.n_experts, "active": c.active_experts, "shared": c.shared_experts, "width": c.d_ff}
    st.caption(TEXT("made", **sizes, steps=TRAINING.steps, batch=TRAINING.batch_size, made=runs[0].made))


# Figures ------------------------------------------------------------------------------------------


def twin_panels(twins: Sequence[ExpertRun], layer: int) -> go.Figure:
    """Draws, for each twin, the experts' shares by step as bands, and below the text coloured by expert."""
    traces = []
    scale = [[at, colour(SHADES[i])] for i in range(8) for at in (i / 8, (i + 1) / 8)]
    for n, run in enumerate(twins):
        above, below = _axis_numbers(n)
        for expert, shade in enumerate(SHADES):
            traces.append(
                go.Scatter(
                    x=list(run.steps),
                    y=run.shares[:, layer, expert].astype(np.float32),
                    mode="lines",
                    stackgroup=f"twin{n}",
                    line={"width": 0.5, "color": colour(shade)},
                    fillcolor=colour(shade),
                    name=TEXT("expert", expert=expert),
                    showlegend=n == 0,
                    legendgroup=str(expert),
                    hovertemplate=TEXT["hover share"],
                    xaxis=f"x{above}",
                    yaxis=f"y{above}",
                )
            )
        first = run.final[layer].first[: ROWS * COLUMNS].astype(np.int64).reshape(ROWS, COLUMNS)
        letters = np.array([readable(show_characters(c)) for c in run.text[: ROWS * COLUMNS]]).reshape(
            ROWS, COLUMNS
        )
        traces.append(
            go.Heatmap(
                z=first.astype(np.float32),
                text=letters.tolist(),
                texttemplate="%{text}",
                textfont={"size": 15, "family": "monospace", "color": SEQUENTIAL[0][1]},
                colorscale=scale,
                zmin=-0.5,
                zmax=7.5,
                showscale=False,
                xgap=1,
                ygap=3,
                hovertemplate=TEXT["hover letter"],
                xaxis=f"x{below}",
                yaxis=f"y{below}",
            )
        )
    return go.figure(
        traces,
        margin={"l": 44, "r": 8, "t": 30, "b": 8},
        legend={"y": 1.02},
        meta={"narrow": _frame(twins, phone=True), "taller": 1.5},
        **_frame(twins),
    )


def _axis_numbers(twin: int) -> tuple[str, str]:
    """Returns what ends the names of a twin's axes: of its shares, and of its text."""
    return str(2 * twin + 1) if twin else "", str(2 * twin + 2)


def _frame(twins: Sequence[ExpertRun], phone: bool = False) -> dict[str, object]:
    """Returns the axes and headings of both twins: side by side, on a phone with one text below the other."""
    blank = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": ""}
    axes: dict[str, object] = {}
    notes = []
    for n, (run, panel) in enumerate(zip(twins, PANELS, strict=True)):
        above, below = _axis_numbers(n)
        upper, (low, high) = (PHONE_ABOVE, PHONE_BELOW[n]) if phone else (ABOVE, BELOW)
        across, twin = (0.0, 1.0) if phone else panel, _headed(run.plan.kind)
        axes |= {
            f"xaxis{above}": {"domain": panel, "anchor": f"y{above}", "showgrid": False}
            | ({"title": {"text": TEXT["step"], "standoff": 2}} if phone else {}),
            f"yaxis{above}": {"domain": upper, "anchor": f"x{above}", "range": [0, 1]}
            | {"tickformat": ".0%", "showgrid": False, "showticklabels": n == 0},
            f"xaxis{below}": {"domain": across, "anchor": f"y{below}", **blank},
            f"yaxis{below}": {"domain": (low, high), "anchor": f"x{below}", "autorange": "reversed", **blank},
        }
        shares, text = (
            (twin, TEXT("coloured short", twin=twin))
            if phone
            else (TEXT("share by step", twin=twin), TEXT("coloured", active=MIXTURE.active_experts))
        )
        notes += [go.heading(shares, panel[0], upper[1] + 0.005), go.heading(text, across[0], high)]
    return {"annotations": notes, **axes}


def _headed(kind: str) -> str:
    return TEXT(f"heading {kind}")


def class_maps(lifts: Sequence[pd.DataFrame], way: str) -> go.Figure:
    """Draws two maps, expert by class: how much oftener than by chance, on a logarithmic scale."""
    traces, notes = [], []
    axes: dict[str, object] = {}
    for n, (table, (left, right)) in enumerate(zip(lifts, PANELS, strict=True)):
        at = "" if n == 0 else "2"
        values = table.to_numpy(dtype=np.float64)
        with np.errstate(divide="ignore"):
            logs = np.clip(np.log2(values), -3, 3)
        traces.append(
            go.signed(
                logs,
                top=3.0,
                x=list(table.columns),
                y=[TEXT("expert", expert=i) for i in range(len(table))],
                text=[["" if np.isnan(v) else f"{v:.1f}" for v in row] for row in values],
                texttemplate="%{text}",
                hovertemplate=TEXT["hover lift"],
                showscale=False,
                xgap=1,
                ygap=1,
                xaxis=f"x{at}",
                yaxis=f"y{at}",
            )
        )
        axes |= {
            f"xaxis{at}": {"domain": [left, right], "anchor": f"y{at}", "showgrid": False},
            f"yaxis{at}": {"anchor": f"x{at}", "autorange": "reversed", "showticklabels": n == 0},
        }
        twin = _headed(way if n else "none")
        short = TEXT("chance short", twin=twin)
        notes.append(go.heading(TEXT("chance", twin=twin), left, 1.0, name=f"narrow:{short}"))
    return go.figure(
        traces,
        margin={"l": 76, "r": 8, "t": 30, "b": 40},
        showlegend=False,
        annotations=notes,
        meta={"narrow": {}},
        **axes,
    )


VIEW = View(
    "experts",
    TEXT,
    draw,
    code=(Experts, Rows),
    needs_model=False,
    fields={"experts": MIXTURE.n_experts, "active": MIXTURE.active_experts},
)
