"""Preferences (DPO), a part of the view "Reward": a model sees pairs of texts, and makes the preferred ones
likelier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import exp
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import ConfigError, CorpusError
from engine.slices import seed_median
from pages.lab.after.stored_runs import (
    choose_seed,
    draw_ends,
    joined,
    seed_lines,
    stored_runs,
    tables_of,
    train_button,
    trained,
)
from studies.after.preferences import (
    CHARACTERS,
    MOST_WORD,
    PAIRS,
    SAMPLES,
    Kind,
    Plan,
    PreferenceEvaluation,
    Taste,
    drawn_pairs,
    prefer,
    preference_loss,
)
from studies.experiments.preference_runs import BETAS, CORPUS, WORDS, begin, shipped
from studies.guesses import reward as truths
from ui import content, explain, guess, session, widgets
from ui.background_jobs import begun
from ui.figures import specs as go
from ui.figures.theme import base_layout
from ui.guess import Guess
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe

TEXT = content.beside(__file__)
TASTES: tuple[Kind, ...] = ("short", "long", "with", "without")
CHANCE = 0.6  # of held-out pairs: what not every seed ranks right counts as chance
HEIGHT = 352
PANELS = ("margin", "ranked", "chosen", "measured")
# column -> (panel, colour, dash, in the legend)
LINES = {
    "margin": (1, "training", "solid", True),
    "held_out_margin": (1, "validation", "dot", True),
    "ranked": (2, "training", "solid", False),
    "held_out_ranked": (2, "validation", "dot", False),
    "chosen": (3, "run0", "solid", True),
    "held_out_chosen": (3, "run0", "dot", False),
    "rejected": (3, "run4", "solid", True),
    "held_out_rejected": (3, "run4", "dot", False),
    "measured": (4, "output", "solid", False),
}
GAP, RAISED = 0.1, 0.57  # between panels, and where the upper ones begin; shares of the figure
Looks = tuple[PreferenceEvaluation, ...]


def draw(container: DeltaGenerator) -> None:
    """Draws margin, ranking and log-probabilities by step, the stored runs until one is trained here, and
    what the model writes before and after. Controls go into the `container`.
    """
    with container:
        plan, pressed = _plan()
    key = ("preferences", plan)
    try:
        plan.check()
        wanted = plan.taste.of_word and (pressed or begun(key))
        text = session.corpus(CORPUS).text if wanted else ""
    except (ConfigError, CorpusError) as error:
        st.info(safe(str(error)))
        return
    stored = _stored(plan)
    live = trained(
        key,
        pressed,
        partial(begin, plan, text),
        TEXT["training"],
        lambda looks: _by_step(plan, stored, looks),
    )
    if live is None:
        return
    if not (live or stored):
        explain.answer(TEXT["nothing"])
        return
    other = BETAS[-1] if plan.beta == BETAS[0] else BETAS[0]
    guess.ask("beta", _guess, plan, other, stored, _stored(replace(plan, beta=other)))
    shown = live or stored[plan.seed % len(stored)]
    left, right = st.columns([7, 4], gap="small")
    with left:
        _by_step(plan, stored, live)
    with right:
        st.markdown(samples(shown[0].texts, shown[-1].texts, plan.steps))
    explain.answer(answer(plan, (live,) if live else stored))
    measured = TEXT("measured", pairs=PAIRS, characters=CHARACTERS, samples=SAMPLES)
    explain.measure_it(draw_ends, table, stored, live, measured)
    scores = shown[-1].held_out
    explain.by_hand(
        st.markdown,
        TEXT(
            "by hand",
            chosen=scores.chosen,
            rejected=scores.rejected,
            margin=scores.margin,
            beta=plan.beta,
            weight=1 / (1 + exp(scores.margin)),
        ),
    )


def _plan() -> tuple[Plan, bool]:
    """Returns the run that is shown, or would be trained, and whether its button was pressed."""
    titles = {taste: TEXT(f"taste {taste}") for taste in TASTES}
    of_word = widgets.settled(titles, "preferred", "short") in WORDS
    a, *b, c, d, e = st.columns(
        [6, *([4] if of_word else []), 5, 3, 3], gap="small", vertical_alignment="bottom"
    )
    kind = widgets.select(TEXT["preferred"], titles, "preferred", kind="list", container=a)
    word = ""
    if of_word:
        with b[0]:
            typed = widgets.line(TEXT["word"], WORDS[kind], f"preferred_{kind}", MOST_WORD)
        word = typed.strip().lower()
    names = {beta: f"{beta:g}" for beta in BETAS}
    first = Plan().beta
    hint = TEXT["beta hint"]
    beta = widgets.select(TEXT["beta"], names, "preferred_beta", first=first, container=c, hint=hint)
    seed = choose_seed(d, "preferred", TEXT["seed hint"])
    return Plan(Taste(kind, word), beta, seed=seed), train_button(e, "preferred", TEXT["train"])


def _stored(plan: Plan) -> tuple[Looks, ...]:
    """Returns the stored runs with this taste and beta, by seed; none where the file is not whole."""
    wanted = plan.taste, plan.beta
    return tuple(
        run.preferred.looks for run in stored_runs(shipped) if (run.plan.taste, run.plan.beta) == wanted
    )


def _by_step(plan: Plan, stored: Sequence[Looks], live: Looks) -> None:
    if not (stored or live):
        return
    tables = tables_of(table, stored, live)
    last = [run[-1] for run in ((live,) if live else stored)]
    ends = [
        TEXT(
            "alt end",
            margin=look.training.margin,
            held_out=look.held_out.margin,
            ranked=look.held_out.ranked,
        )
        for look in last
    ]
    plot(
        by_step(*tables, plan),
        key="preferences_by_step",
        height=HEIGHT,
        name="preferences",
        data=joined(*tables),
        alt=TEXT("alt", ends="; ".join(ends)),
    )


def answer(plan: Plan, runs: Sequence[Sequence[PreferenceEvaluation]]) -> str:
    """Says what the model writes now and how it ranks held-out pairs: of one run, or the median of several;
    and whether even chosen texts became less likely.
    """
    before, after = ([run[at] for run in runs] for at in (0, -1))
    began, ends = (seed_median(look.measured for look in looks) for looks in (before, after))
    what = "word" if plan.taste.of_word else "length"
    alone = "" if len(runs) > 1 else " in one run"
    now = TEXT(f"now a {what}{alone}", ends=ends, began=began, seeds=len(runs), word=plan.taste.word)
    return TEXT(
        "ranked right" if all(look.held_out.ranked > CHANCE for look in after) else "ranked by chance",
        now=now,
        ranked=seed_median(look.held_out.ranked for look in after),
        fell=_fell(after),
    )


def _fell(after: Sequence[PreferenceEvaluation]) -> str:
    """Says which log-probabilities of chosen texts fell, where those of rejected texts fell further."""
    for scores, where in (
        ([look.training for look in after], ""),
        ([look.held_out for look in after], " on held-out pairs"),
    ):
        if all(each.rejected < each.chosen < 0 for each in scores):
            return TEXT(f"fell further{where}")
        if all(each.chosen < 0 and each.rejected < 0 for each in scores):
            return TEXT(f"fell{where}")
    return TEXT["rose"]


def samples(before: Sequence[str], after: Sequence[str], steps: int) -> str:
    """Returns a table of texts that the model wrote before and after, line breaks as strokes."""
    rows = [
        TEXT("sample", before=_verse(first), after=_verse(then))
        for first, then in zip(before, after, strict=False)
    ]
    return "\n".join([TEXT("samples", steps=steps), *rows])


def _verse(text: str) -> str:
    return " / ".join(line for line in text.strip().split("\n") if line)


def _guess(plan: Plan, other: float, now: Sequence[Looks], then: Sequence[Looks]) -> Guess | None:
    """Makes a guess about the stored runs `then`, with `other` as beta; a choice sets it."""
    truth = truths.beta(now, then)
    if truth is None:
        return None
    before, here, there = (truth.numbers[name] for name in ("before", "now", "then"))
    of_word = plan.taste.of_word
    return Guess.of(
        TEXT,
        truth,
        TEXT("word guess" if of_word else "guess", before=before, now=here, beta=other),
        TEXT("outcome of a word" if of_word else "outcome", then=there, runs=len(then)),
        {"preferred_beta": other},
    )


def table(looks: Sequence[PreferenceEvaluation]) -> pd.DataFrame:
    """Returns the numbers of a run, a row for each look."""
    names = ("margin", "ranked", "chosen", "rejected")
    scores = {
        prefix + name: [getattr(getattr(look, of), name) for look in looks]
        for of, prefix in (("training", ""), ("held_out", "held_out_"))
        for name in names
    }
    steps = {"step": [look.step for look in looks], "measured": [look.measured for look in looks]}
    return pd.DataFrame(steps | scores)


def by_step(stored: Sequence[pd.DataFrame], live: pd.DataFrame | None, plan: Plan) -> go.Figure:
    """Draws margin, share ranked right, log-probabilities and what the taste measures by step: stored runs as
    thin lines, thick the live one, or the median of the stored.
    """
    traces = []
    for column, (panel, shade, dash, legend) in LINES.items():
        number = "" if panel == 1 else str(panel)
        look = {"shade": shade, "dash": dash, "name": TEXT(f"line {column}")}
        look["hover"] = TEXT["hover of a share" if panel == 2 else "hover"]
        look |= {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        traces += seed_lines(stored, live, column, 2.5, showlegend=legend, **look)
    of_word = plan.taste.of_word
    share = {"range": [-0.03, 1.05], "tickformat": ".0%"}
    axes: tuple[dict[str, Any], ...] = ({}, share, {}, share if of_word else {"rangemode": "tozero"})
    layout: dict[str, Any] = base_layout(
        margin={"l": 40, "r": 8, "t": 46, "b": 34}, legend={"y": 1.1}, annotations=[]
    )
    for i, (name, given) in enumerate(zip(PANELS, axes, strict=True)):
        left, upper, number = i % 2 == 0, i < 2, str(i + 1) if i else ""
        title = TEXT(
            "panel measured word" if name == "measured" and of_word else f"panel {name}", word=plan.taste.word
        )
        where = {"xref": f"x{number} domain", "yref": f"y{number} domain"}
        corner = {"xanchor": "left", "yanchor": "bottom", "font": {"size": 13}}
        layout["annotations"].append(go.note(title, 0, 1, **where, **corner))
        across = [0, 0.5 - GAP / 2] if left else [0.5 + GAP / 2, 1]
        step = TEXT["step axis"] if not upper else ""
        layout[f"xaxis{number}"] = go.axis(
            step, range=[0, plan.steps], domain=across, anchor=f"y{number}", showticklabels=not upper
        )
        up = [RAISED, 1] if upper else [0, 1 - RAISED]
        layout[f"yaxis{number}"] = go.axis("", showgrid=True, domain=up, anchor=f"x{number}", **given)
    return go.Figure({"data": traces, "layout": layout})


PART = View("preferences", TEXT, draw, code=(prefer, preference_loss, drawn_pairs))
