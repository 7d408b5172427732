"""The part "One step": the loss after one step of each optimiser, and what its update looks like."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.training.optim import orthogonalise
from pages.inside.shapes.gradient import HEIGHT, has_gradient, three, titled
from pages.inside.shapes.single_weight import EXACT
from studies.exercises.worked.backward_step import single_weight
from studies.exercises.worked_example import WorkedExample
from studies.guesses import backward
from studies.shapes.backward import matrices
from studies.shapes.optimiser_step import (
    MAX_PARAMETERS,
    RANKED,
    RULES,
    SCALES,
    SGD_RATE,
    Rule,
    SingleStep,
    Spectra,
    parameter_count,
    rates,
    single_step,
    spectra,
    update_of,
    weight_step,
)
from ui import content, explain, fill_in, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import minus

TEXT = content.beside(__file__)
UPDATED, RATE = "shapes_updated", "shapes_rate"
LOWEST = 1e-3  # of the largest singular value: below it nothing is drawn
NAMES: dict[str, str] = {"sgd": "SGD", "adamw": "AdamW", "muon": "Muon"}
COLOURS: dict[Rule, str] = {"sgd": "run3", "adamw": "run2", "muon": "run0"}
DASHES: dict[Rule, str] = {"sgd": "dot", "adamw": "dash", "muon": "solid"}


def draw(line: DeltaGenerator, subject: Subject) -> None:
    """Draws the loss after one step of each optimiser, and the singular values of one matrix's update."""
    if not has_gradient(subject):
        return
    names = {key: titled(each) for key, each in matrices(subject.model).items() if each.block is not None}
    scale = widgets.slide_over(TEXT["rate"], SCALES, 1.0, RATE, container=line, width=320, written=multiple)
    key = None
    if names:
        key = widgets.select(
            TEXT["matrix"], names, UPDATED, first=_first(names), kind="list", container=line, width=180
        )
    left, right = st.columns(2, gap="medium")
    with left:
        taken = _taken(subject)
        if taken is not None:
            _losses(taken, scale)
    with right:
        update = _singular(subject, key) if key is not None else None
    if taken is not None:
        explain.answer(_stepped(taken, scale, update))
        ask("overshoots", overshoots, taken, RATE)
        explain.measure_it(_measured, taken, scale, update)
    elif update is not None:
        shares = {rule: update.middle(rule) for rule in RULES}
        case = "evened" if update.evened else "not evened"
        explain.answer(TEXT(case, muon=shares["muon"], adamw=shares["adamw"]))
    explain.by_hand(
        fill_in.draw,
        "shapes_step",
        partial(_one_weight, subject, key, scale),
        partial(st.markdown, TEXT["by hand"]),
    )


def _one_weight(subject: Subject, key: str | None, scale: float, seed: int) -> WorkedExample | None:
    """The step of one weight of a matrix; says where there is none to be worked out."""
    if key is None or parameter_count(subject.model) > EXACT:
        st.info(TEXT("no single weight", most=EXACT))
        return None
    step = measured(
        ("weight step", subject.key, subject.ids, key, seed % RANKED, scale),
        partial(weight_step, subject.model, subject.ids, key, seed % RANKED, scale),
        TEXT["measuring weight"],
    )
    if step is None:
        return None
    example = single_weight(step, titled(step.matrix))
    if example is None:
        st.info(TEXT["no slope"])
    return example


def _first(names: dict[str, str]) -> str:
    """The output matrix of a block in the middle, where there is one."""
    writes = [key for key in names if key.endswith("W_out")] or list(names)
    return writes[len(writes) // 2]


def _taken(subject: Subject) -> SingleStep | None:
    size = parameter_count(subject.model)
    if size > MAX_PARAMETERS:
        st.info(TEXT("too large", size=size, most=MAX_PARAMETERS))
        return None
    return measured(
        ("one step", subject.key, subject.ids),
        partial(single_step, subject.model, subject.ids),
        TEXT["taking"],
    )


def _losses(taken: SingleStep, scale: float) -> None:
    losses = ", ".join(_rule_loss(rule, taken, scale) for rule in RULES)
    plot(
        loss_by_rate(taken, scale),
        key="shapes_step_loss",
        height=HEIGHT + 40,
        name="loss-after-one-step",
        data={"times_default_rate": taken.scales} | {rule: taken.after[rule] for rule in RULES},
        alt=TEXT("alt loss", before=three(taken.before), losses=losses),
    )


def _singular(subject: Subject, key: str) -> Spectra | None:
    update = measured(
        ("spectra", subject.key, subject.ids, key),
        partial(spectra, subject.model, subject.ids, key),
        TEXT["measuring"],
    )
    if update is not None:
        shares = ", ".join(
            TEXT("rule and share", rule=NAMES[rule], share=update.middle(rule)) for rule in RULES
        )
        plot(
            spectrum_lines(update),
            key="shapes_singular",
            height=HEIGHT + 40,
            name="singular-values",
            data={"index": np.arange(1, min(update.shape) + 1)}
            | {rule: update.values[rule] for rule in RULES},
            alt=TEXT("alt singular", matrix=titled(update.matrix), shares=shares),
        )
    return update


def _measured(taken: SingleStep, scale: float, update: Spectra | None) -> None:
    """Draws a table of the three rules: their rates, the loss before and after, and singular values."""
    table = {
        "optimiser": [NAMES[rule] for rule in RULES],
        "learning rate": [rate(rule, scale) for rule in RULES],
        "loss before": [f"{taken.before:.4f}" for _ in RULES],
        "loss after": [f"{taken.at(rule, scale):.4f}" for rule in RULES],
        "change": [minus(f"{taken.at(rule, scale) - taken.before:+.4f}") for rule in RULES],
    }
    if update is not None:
        table[TEXT["median"]] = [f"{update.middle(rule):.1%}" for rule in RULES]
    st.table(pd.DataFrame(table).set_index("optimiser"), border="horizontal")
    st.caption(TEXT["how measured"])


def _stepped(taken: SingleStep, scale: float, spectra: Spectra | None) -> str:
    best = taken.lowest(scale)
    after = taken.at(best, scale)
    case = "overshoots" if after >= taken.before else "lowers"
    said = TEXT(case, before=three(taken.before), after=three(after), best=NAMES[best])
    even = case == "lowers" and spectra is not None and spectra.evened
    return f"{said} {TEXT['flatter']}" if even else said


def multiple(scale: float) -> str:
    """
    >>> multiple(0.25), multiple(8.0)
    ('1/4', '8')
    """
    return f"{scale:g}" if scale >= 1 else f"1/{1 / scale:g}"


def rate(rule: Rule, scale: float) -> str:
    """
    >>> rate("adamw", 2.0), rate("muon", 1.0)
    ('0.002', '0.02; AdamW 0.001')
    """
    first, *rest = (f"{each * scale:.3g}" for each in rates(rule))
    return first + "".join(f"; {NAMES['adamw']} {each}" for each in rest)


def _rule_loss(rule: Rule, taken: SingleStep, scale: float, between: str = " ") -> str:
    return f"{NAMES[rule]}{between}{three(taken.at(rule, scale))}"


def overshoots(taken: SingleStep, control: str) -> Guess | None:
    """Makes a guess about the learning rate at which a step first raises the loss; a choice sets it, in the
    `control`.
    """
    truth = backward.overshoots(taken)
    if truth is None:
        return None
    n = truth.numbers
    losses = ", ".join(f"{name} {three(n[rule])}" for rule, name in NAMES.items())
    outcome = TEXT(
        "outcome",
        before=three(n["before"]),
        scale=content.Filled(multiple(n["scale"])),
        losses=content.Filled(losses),
    )
    return Guess.of(TEXT, truth, TEXT["guess"], outcome, {control: n["scale"]}, NAMES)


def loss_by_rate(taken: SingleStep, scale: float) -> go.Figure:
    """Draws the text's loss after one step against the learning rate, each rule's, marked at `scale`; beyond
    twice the loss before, the scale ends.
    """
    at = np.log2(taken.scales)
    traces = [
        _rule_line(rule, at, taken.after[rule], name=_rule_loss(rule, taken, scale, ": ")) for rule in RULES
    ]
    x = float(np.log2(scale))
    traces.append(
        go.Scatter(
            x=[x] * len(RULES),
            y=[taken.at(rule, scale) for rule in RULES],
            mode="markers",
            showlegend=False,
            marker={
                "size": 12,
                "color": [colour(COLOURS[rule]) for rule in RULES],
            },
            hovertemplate="%{y:.4f} nats<extra></extra>",
        )
    )
    top = 2 * taken.before
    before = go.rule(y=taken.before, line={"color": colour("quiet"), "width": 1.5, "dash": "dash"})
    chosen = go.rule(x=x, line={"color": colour("quiet"), "width": 1}, layer="below")
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        shapes=[before, chosen],
        annotations=[
            go.note(
                TEXT("before", loss=three(taken.before)),
                0,
                taken.before,
                xref="paper",
                xanchor="left",
                yanchor="bottom",
                xshift=4,
            )
        ],
        xaxis=go.ticks(at, [multiple(each) for each in taken.scales], title=TEXT["rate"], tickangle=0)
        | {"range": [float(at[0]) - 0.3, float(at[-1]) + 0.3]},
        yaxis=go.axis(TEXT["after"], showgrid=True, range=[0, top], nticks=6),
    )


def spectrum_lines(spectra: Spectra) -> go.Figure:
    """Draws each rule's singular values as shares of its largest, on a logarithmic scale, up to the
    gradient's rank by its definition (dotted), and beyond.
    """
    at = np.arange(1, min(spectra.shape) + 1)
    shares = {rule: spectra.relative(rule) for rule in RULES}
    traces = [
        _rule_line(rule, at, np.where(values >= LOWEST, values, np.nan), ".1%")
        for rule, values in shares.items()
    ]
    rank = go.rule(
        x=spectra.rank, line={"color": colour("quiet"), "width": 1.5, "dash": "dot"}, layer="below"
    )
    low = np.log10(LOWEST)
    return go.figure(
        traces,
        margin={"l": 62, "r": 12, "t": 34, "b": 44},
        shapes=[rank],
        annotations=[
            go.note(
                TEXT["rank"],
                spectra.rank,
                float(low) + 0.12,
                xanchor="right" if 2 * spectra.rank > at[-1] else "left",
                yanchor="bottom",
            )
        ],
        xaxis=go.axis(
            TEXT("axis singular", matrix=titled(spectra.matrix)),
            zeroline=False,
            nticks=7,
            range=[0, 1.02 * float(at[-1])],
        ),
        yaxis=go.axis(TEXT["share"], showgrid=True, type="log", range=[float(low), 0.1])
        | {"tickvals": [0.001, 0.01, 0.1, 1], "ticktext": ["0.1%", "1%", "10%", "100%"]},
    )


def _rule_line(rule: Rule, x: np.ndarray, y: np.ndarray, form: str = ".4f", name: str = "") -> go.Trace:
    name, hover = name or NAMES[rule], "%{y:" + form + "}"
    return go.line(x, y, COLOURS[rule], name, hover, width=3, dash=DASHES[rule])


PART = View("step", TEXT, draw, (single_step, update_of, orthogonalise), fields={"sgd": SGD_RATE})
