"""The view "Scaling laws": models of several sizes for the same work, and how the best of them grows with
it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from engine.experiments.scaling import WIDTHS, Fit, Plan, ScalingRun, fit, measure, shipped
from engine.ledger import ledger
from pages.lab.ladder import figures_scaling as figures
from pages.lab.ladder import words_scaling as words
from ui import explain, guess, widgets
from ui.background_jobs import begun, measured
from ui.players.plot import plot

HEIGHT = 400
MOST_SEED, NEW_SEED = 100, 3  # the stored runs have the seeds below
BUDGETS = tuple(WIDTHS)
FIRST = BUDGETS[-2]  # the last curve is left to be guessed


def draw_scaling() -> None:
    """Draws the loss against the size, a curve for each budget up to the chosen one, and the valleys against
    the work. A run of the chosen budget and size is trained here on demand.
    """
    stored = shipped()
    plan, pressed = _plan()
    shown = [run for run in stored if run.plan.budget <= plan.budget]
    fitted = fit(shown)
    if plan.budget < BUDGETS[-1] and plan == _first(plan.budget):
        after = BUDGETS[BUDGETS.index(plan.budget) + 1]
        guess.ask("valley", words.next_valley, fit(stored), plan.budget, after, "ladder_flops")
    else:
        guess.ask("falls", words.where_it_falls, fitted, plan.budget, plan.parameters)
    key, live = ("scaling", plan), None
    left, right = st.columns([3, 2], gap="small")
    if pressed or begun(key):  # below the figures, where the answer will stand
        live = measured(key, lambda: measure(plan), words.DOING, pausable=True)
    with left:
        plot(
            figures.curves(shown, fitted, plan, live),
            key="scaling_curves",
            height=HEIGHT,
            name="isoflop",
            data=table([*shown, *([live] if live else [])]),
            alt=words.alt(fitted),
        )
    with right:
        plot(
            figures.growth(fitted),
            key="scaling_growth",
            height=HEIGHT,
            name="valleys",
            data=_valleys(fitted),
            alt=words.growth_alt(fitted),
        )
    explain.answer(words.answer(fitted, plan.budget, live))
    st.caption(words.limits(shown))
    explain.measure_it(_more, shown, fitted)


def _plan() -> tuple[Plan, bool]:
    """Returns the run that would be trained, and whether its button was pressed."""
    a, b, c, d = st.columns([8, 4, 3, 3], gap="small", vertical_alignment="bottom")
    names, hint = {budget: words.power(budget) for budget in BUDGETS}, words.BUDGET_HINT
    budget = widgets.select(words.FLOP_BUDGET, names, "ladder_flops", first=FIRST, container=a, hint=hint)
    low, high = WIDTHS[budget][0], WIDTHS[budget][-1]
    sizes = {w: words.parameters(Plan(budget, w).parameters) for w in range(low, high + 1, 4)}
    first = _first(budget).width
    width = widgets.select(words.MODEL, sizes, "ladder_width", first=first, kind="list", container=b)
    seed = widgets.whole("Seed", 0, MOST_SEED, NEW_SEED, "ladder_seed", container=c)
    with d:
        # Streamlit's own: it begins something and has no value.
        pressed = st.button(words.TRAIN, icon=":material/play_arrow:", type="primary", key="scaling_train")
    return Plan(budget, width, seed), pressed


def _first(budget: float) -> Plan:
    """Returns the run of a budget that is offered before a size or a seed is chosen."""
    return Plan(budget, WIDTHS[budget][len(WIDTHS[budget]) // 2], NEW_SEED)


def table(runs: Sequence[ScalingRun]) -> pd.DataFrame:
    """Returns a row for each run."""
    names = ("flops", "parameters", "tokens", "loss")
    rows = [{name: getattr(run, name) for name in names} | {"seed": run.plan.seed} for run in runs]
    return pd.DataFrame(rows)


def _valleys(fitted: Fit) -> pd.DataFrame:
    rows = [
        words.valley_row(
            budget,
            valley.parameters,
            fitted.spread(budget),
            valley.loss,
            budget / (6 * valley.parameters**2),
        )
        for budget, valley in fitted.valleys.items()
    ]
    return pd.DataFrame(rows)


def _more(runs: Sequence[ScalingRun], fitted: Fit) -> None:
    """Draws the table of the valleys, and how much 6 N D leaves out."""
    st.dataframe(_valleys(fitted), hide_index=True)
    costs = [ledger(run.plan.model).flops() for run in runs]
    st.caption(words.measured(fitted, [cost.training / cost.six_n for cost in costs], runs[0].made))
