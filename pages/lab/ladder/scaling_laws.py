"""The view "Scaling laws": models of several sizes for the same work, and how the best of them grows with
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from studies.costs.budget import LAWS
from studies.costs.isoflop import power_law, valley
from studies.costs.ledger import ledger
from studies.experiments.scaling import (
    BATCH,
    CONTEXT,
    MOST_RATE,
    RATE,
    WIDTHS,
    Fit,
    Plan,
    ScalingRun,
    fit,
    measure,
    shipped,
)
from studies.guesses import Truth
from ui import content, explain, guess, widgets
from ui.background_jobs import begun, measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import scientific

TEXT = content.beside(__file__)
HEIGHT = 400
MOST_SEED, NEW_SEED = 100, 3  # the stored runs have the seeds below
BUDGETS = tuple(WIDTHS)
FIRST = BUDGETS[-2]  # the last curve is left to be guessed
LENGTH = 1_003_854  # characters of Tiny Shakespeare that are trained on
SAME, ALL = 0.2, 0.8  # exponents below and above which the model stays, or takes all of the work
NEAR = 0.03  # nats above the minimum: about what seeds differ by
SHADES = ("run1", "run3", "run0", "run2", "run4")
FAINT = 0.45  # opacity of the curves that are not chosen
LOG: dict[str, Any] = {"type": "log", "dtick": "D2", "tickformat": "~s"}
MARGIN = {"l": 52, "r": 12, "t": 8, "b": 44}


def draw() -> None:
    """Draws the loss against the size, a curve for each budget up to the chosen one, and the valleys against
    the work. A run of the chosen budget and size is trained here on demand.
    """
    stored = shipped()
    plan, pressed = _plan()
    shown = [run for run in stored if run.plan.budget <= plan.budget]
    fitted = fit(shown)
    if plan.budget < BUDGETS[-1] and plan == _first(plan.budget):
        after = BUDGETS[BUDGETS.index(plan.budget) + 1]
        guess.ask("valley", next_valley, fit(stored), plan.budget, after)
    else:
        guess.ask("falls", where_it_falls, fitted, plan.budget, plan.parameters)
    key, live = ("scaling", plan), None
    left, right = st.columns([3, 2], gap="small")
    if pressed or begun(key):  # below the figures, where the answer will stand
        live = measured(key, partial(measure, plan), TEXT["training"], pausable=True)
    minima = [
        TEXT("alt minimum", power=power(budget), best=about(best.parameters), loss=best.loss)
        for budget, best in fitted.valleys.items()
    ]
    with left:
        plot(
            curves(shown, fitted, plan, live),
            key="scaling_curves",
            height=HEIGHT,
            name="isoflop",
            data=table([*shown, *([live] if live else [])]),
            alt=TEXT("alt", minima="; ".join(minima)),
        )
    with right:
        plot(
            growth(fitted),
            key="scaling_growth",
            height=HEIGHT,
            name="valleys",
            data=_valleys(fitted),
            alt=TEXT(
                "alt growth" if fitted.law else "alt no growth",
                minima=len(fitted.valleys),
                exponent=fitted.law.exponent if fitted.law else 0.0,
            ),
        )
    explain.answer(answer(fitted, plan.budget, live))
    st.caption(_limits(shown))
    explain.measure_it(_more, shown, fitted)


def _plan() -> tuple[Plan, bool]:
    """Returns the run that would be trained, and whether its button was pressed."""
    a, b, c, d = st.columns([8, 4, 3, 3], gap="small", vertical_alignment="bottom")
    names, hint = {budget: power(budget) for budget in BUDGETS}, TEXT["budget hint"]
    budget = widgets.select(TEXT["budget"], names, "ladder_flops", first=FIRST, container=a, hint=hint)
    low, high = WIDTHS[budget][0], WIDTHS[budget][-1]
    sizes = {w: TEXT("parameters", count=Plan(budget, w).parameters) for w in range(low, high + 1, 4)}
    first = _first(budget).width
    width = widgets.select(TEXT["model"], sizes, "ladder_width", first=first, kind="list", container=b)
    seed = widgets.whole(TEXT["seed"], 0, MOST_SEED, NEW_SEED, "ladder_seed", container=c)
    with d:
        # Streamlit's own: it begins something and has no value.
        pressed = st.button(TEXT["train"], icon=":material/play_arrow:", type="primary", key="scaling_train")
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
    rows = []
    for budget, best in fitted.valleys.items():
        low, high = fitted.spread(budget)
        rows.append(
            {
                TEXT["column budget"]: power(budget),
                TEXT["column size"]: round(best.parameters),
                TEXT["column range"]: TEXT("range", low=low, high=high),
                TEXT["column loss"]: f"{best.loss:.3f}",
                TEXT["column characters"]: round(budget / (6 * best.parameters**2), 1),
            }
        )
    return pd.DataFrame(rows)


def _more(runs: Sequence[ScalingRun], fitted: Fit) -> None:
    """Draws the table of the valleys, and how much 6 N D leaves out."""
    st.dataframe(_valleys(fitted), hide_index=True)
    costs = [ledger(run.plan.model).flops() for run in runs]
    shares = [cost.training / cost.six_n for cost in costs]
    said = [TEXT["fitted"]]
    if fitted.exponents:
        exponents = ", ".join(f"{each:.2f}" for each in fitted.exponents)
        said.append(TEXT("exponents", exponents=content.Filled(exponents)))
    said.append(
        TEXT(
            "counted",
            least=min(shares),
            largest=max(shares),
            context=CONTEXT,
            batch=BATCH,
            rate=RATE,
            most_rate=MOST_RATE,
            made=content.Filled(runs[0].made),
        )
    )
    st.caption(" ".join(said))


def power(budget: float) -> str:
    """Returns a budget with its power of ten.

    >>> power(3e10), power(1e11)
    ('3 × 10¹⁰', '10¹¹')
    """
    return scientific(budget, 0).removeprefix("1 × ")


def about(parameters: float) -> str:
    """Returns a count with two digits that mean something.

    >>> about(12_433.0)
    '12,000'
    """
    return f"{float(f'{parameters:.2g}'):,.0f}"


def answer(fitted: Fit, budget: float, live: ScalingRun | None) -> str:
    """Names the best size for the budget, and the exponent over the budgets shown; or where the run that was
    trained here falls.
    """
    if budget not in fitted.valleys:
        return TEXT("not stored", power=power(budget))
    best = fitted.valleys[budget]
    size = about(best.parameters)
    if live is not None:
        gap = live.loss - best.loss
        return TEXT(
            "live above" if gap >= 0 else "live below",
            parameters=live.parameters,
            loss=live.loss,
            gap=abs(gap),
            best=size,
        )
    exponents = fitted.exponents
    if fitted.law is None or len(exponents) < 2:
        low, high = map(about, fitted.spread(budget))
        return TEXT("best", power=power(budget), best=size, low=low, high=high, seeds=len(fitted.seeds))
    nearest = {min(LAWS, key=lambda law: abs(LAWS[law][0] - exponent)) for exponent in exponents}
    near, far = sorted(LAWS, key=lambda law: law not in nearest)
    return TEXT(
        "best, nearer"
        if len(nearest) == 1
        else "best, uncertain",  # where every seed has the same one nearer
        power=power(budget),
        best=size,
        exponent=fitted.law.exponent,
        least=min(exponents),
        largest=max(exponents),
        seeds=len(exponents),
        near=near.split()[0],
        near_exponent=LAWS[near][0],
        far=far.split()[0],
        far_exponent=LAWS[far][0],
    )


def _limits(runs: Sequence[ScalingRun]) -> str:
    """States what such runs cannot show."""
    sizes, budgets = [run.parameters for run in runs], {run.plan.budget for run in runs}
    return TEXT(
        "limits" if len(budgets) > 1 else "limits of one",
        budgets=len(budgets),
        least=min(sizes),
        largest=max(sizes),
        times=max(run.tokens for run in runs) / LENGTH,
    )


def next_valley(fitted: Fit, budget: float, after: float) -> Guess | None:
    """Makes a guess about the valley of the next budget; a choice sets it."""
    if not {budget, after} <= fitted.valleys.keys():
        return None
    here, there = (fitted.valleys[each].parameters for each in (budget, after))
    exponent = fitted.exponent(budget, after)
    times = after / budget
    right = "same" if exponent < SAME else "all" if exponent > ALL else "larger"
    return Guess.of(
        TEXT,
        Truth(right, ("same", "larger", "all"), {"times": times}),
        TEXT("next", power=power(budget), best=about(here), times=times),
        TEXT("next outcome", best=about(there), times=there / here),
        {"ladder_flops": after},
    )


def where_it_falls(fitted: Fit, budget: float, parameters: int) -> Guess | None:
    """Makes a guess about the run that would be trained: where on its budget's curve it falls, by the fit."""
    if budget not in fitted.valleys:
        return None
    best = fitted.valleys[budget]
    expected = float(best.at(np.array(float(parameters))))
    aside = "small" if parameters < best.parameters else "large"
    right = "near" if expected - best.loss <= NEAR else aside
    return Guess.of(
        TEXT,
        Truth(right, ("near", "small", "large"), {}),
        TEXT("falls", parameters=parameters, power=power(budget)),
        TEXT("landing", expected=expected, lowest=best.loss, best=about(best.parameters)),
    )


def curves(runs: Sequence[ScalingRun], fitted: Fit, plan: Plan, live: ScalingRun | None) -> go.Figure:
    """Draws each run's loss against its parameters, the parabola of each budget with its valley (the spread
    over seeds as a bar), and the run that was trained here as a star; until then its size as a line.
    """
    chosen = plan.budget
    traces = []
    for shade, (budget, best) in zip(SHADES, fitted.valleys.items(), strict=False):
        alike = [run for run in runs if run.plan.budget == budget]
        marker = {"color": colour(shade), "size": 8, "opacity": 1.0 if budget == chosen else FAINT}
        traces.append(_dots(alike, marker, showlegend=False))
        sizes = [run.parameters for run in alike]
        across = np.geomspace(min(sizes), max(sizes), 60)
        line = {"color": colour(shade), "width": 3 if budget == chosen else 1.5}
        traces.append(_line(across, best.at(across), power(budget), line, opacity=marker["opacity"]))
    losses = [best.loss for best in fitted.valleys.values()]
    traces.append(_diamonds(fitted, _sizes(fitted), losses, "error_x", name=TEXT["minimum"]))
    if live is None:
        ends, line = _range(runs), {"color": colour("output"), "dash": "dot", "width": 1.5}
        traces.append(_line(np.full(2, plan.parameters), ends, TEXT["your model"], line))
    else:
        marker = {"symbol": "star", "size": 18, "color": colour("output")}
        traces.append(_dots([live], marker, name=TEXT["trained here"]))
    loss = go.axis(TEXT["loss axis"], showgrid=True, zeroline=False)
    return go.figure(traces, margin=MARGIN, xaxis=go.axis(TEXT["size axis"], **LOG), yaxis=loss)


def growth(fitted: Fit) -> go.Figure:
    """Draws N at each valley against the work, the power law through them, and the published exponents, as
    lines through the middle of ours.
    """
    budgets, traces = np.array([*fitted.valleys]), []
    if fitted.law is not None:
        ends, middle = budgets[[0, -1]] * [1 / 1.5, 1.5], np.exp(np.log(budgets).mean())
        slopes = [(TEXT["ours"], fitted.law.exponent, "validation", "solid")]
        for (law, (exponent, _)), dash in zip(LAWS.items(), ("dot", "dash"), strict=True):
            slopes.append((TEXT("published law", law=law), exponent, "quiet", dash))
        for name, slope, shade, dash in slopes:
            line = {"color": colour(shade), "dash": dash, "width": 2.5}
            label = TEXT("slope", name=name, slope=slope)
            traces.append(_line(ends, fitted.law.at(middle) * (ends / middle) ** slope, label, line))
    names = [power(budget) for budget in budgets]
    return go.figure(
        [*traces, _diamonds(fitted, [*fitted.valleys], _sizes(fitted), "error_y", showlegend=False)],
        margin=MARGIN,
        xaxis=go.axis(TEXT["compute axis"], type="log", tickvals=budgets, ticktext=names),
        yaxis=go.axis(TEXT["best axis"], showgrid=True, **LOG),
    )


def _sizes(fitted: Fit) -> list[float]:
    return [best.parameters for best in fitted.valleys.values()]


def _range(runs: Sequence[ScalingRun]) -> np.ndarray:
    """Returns the lowest and the highest loss, float64 (2,)."""
    losses = [run.loss for run in runs]
    return np.array([min(losses), max(losses)])


def _dots(runs: Sequence[ScalingRun], marker: dict[str, Any], **rest: Any) -> go.Trace:
    return go.Scatter(
        x=[run.parameters for run in runs],
        y=[run.loss for run in runs],
        mode="markers",
        marker=marker,
        customdata=[TEXT("run", tokens=run.tokens, seed=run.plan.seed) for run in runs],
        hovertemplate=TEXT["run hover"],
        **rest,
    )


def _line(x: np.ndarray, y: np.ndarray, name: str, line: dict[str, Any], **rest: Any) -> go.Trace:
    return go.Scatter(x=x, y=y, mode="lines", name=name, line=line, hoverinfo="skip", **rest)


def _diamonds(fitted: Fit, x: Sequence[float], y: Sequence[float], bar: str, **rest: Any) -> go.Trace:
    """The valleys, with the range of the seeds' valleys as a bar along the axis of N."""
    best = np.array(_sizes(fitted))
    low, high = np.array([fitted.spread(budget) for budget in fitted.valleys]).T
    ink = colour("validation")
    ranges = {"array": (high - best).clip(0), "arrayminus": (best - low).clip(0), "color": ink}
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"symbol": "diamond", "size": 12, "color": ink},
        customdata=best,
        hovertemplate=TEXT["minimum hover"],
        **{bar: {"type": "data", "symmetric": False, "thickness": 2} | ranges},
        **rest,
    )


VIEW = View("scaling", TEXT, draw, code=(measure, valley, power_law), needs_model=False)
