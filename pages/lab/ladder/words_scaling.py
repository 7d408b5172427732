"""Sentences (Markdown) of the view of scaling laws, from values that they are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.experiments.scaling import BATCH, CONTEXT, MOST_RATE, RATE, Fit, ScalingRun
from engine.ledger.budget import LAWS
from ui.guess import Choice, Guess
from ui.page_frame import Words
from ui.text.numbers import scientific, short

QUESTION = "Which model size is best for a compute budget?"
TEXT = 1_003_854  # characters of Tiny Shakespeare that are trained on
BUDGET_HINT = "Draws the curves for this budget and all below it. Your model spends the chosen budget."
SCALING = Words(
    see=(
        "Each curve is one compute budget, C = 6 N D: a model of N parameters trained on D characters. At its"
        " left end, small models read more text; at its right, large ones less. Each dot is a run; the"
        " diamond is the minimum of the parabola (in log N) through them, its bar the range over seeds."
        " Right: these minima against compute, with the published slopes. N counts all parameters, embedding"
        " included (once: it is tied)."
    ),
    why=(
        "A fixed budget forces a choice. [Kaplan et al. 2020](https://arxiv.org/abs/2001.08361) published"
        " $N_{opt} \\propto C^{0.73}$ for up to 1.5 billion parameters, embedding excluded;"
        " [Hoffmann et al. 2022](https://arxiv.org/abs/2203.15556) $C^{0.50}$, and $C^{0.49}$ from such"
        " curves (*isoFLOP*, their approach 2). Their Chinchilla, a quarter of Gopher's size, read four times"
        " as much text and is better. The learning-rate schedule must match each run's length, as it does"
        " here."
    ),
    attempt=(
        "Guess where the next minimum lies, then choose the next budget. Train a model at the edge of a"
        " curve: does its star fall on it? Train it with other seeds: how far apart do they end, compared"
        " with the curve's depth?"
    ),
    texts=(
        "An exponent from models a million times smaller than the papers', on 1 MB of text that some of them"
        " read several times, is no evidence for either law. What carries over is the method."
    ),
)
DOING = "Training on Tiny Shakespeare, in steps"
FLOP_BUDGET, MODEL, TRAIN = "FLOP budget", "Your model", "Train it"


def parameters(count: int) -> str:
    return f"{count:,} parameters"


def valley_row(
    budget: float, size: float, over_seeds: tuple[float, float], loss: float, each: float
) -> dict[str, str | int | float]:
    """Returns the row of a budget in the table of the valleys; `each`: characters per parameter."""
    return {
        "budget (FLOPs)": power(budget),
        "N_opt": round(size),
        "N_opt over the seeds": "{:,.0f} to {:,.0f}".format(*over_seeds),
        "loss": f"{loss:.3f}",
        "characters per parameter": round(each, 1),
    }


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
        return f"The runs with {power(budget)} FLOPs are not all stored."
    best = fitted.valleys[budget]
    if live is not None:
        gap = live.loss - best.loss
        return (
            f"Your {live.parameters:,} parameters reach **{live.loss:.2f}** nats, {abs(gap):.2f}"
            f" {'above' if gap >= 0 else 'below'} the minimum at {about(best.parameters)} parameters."
        )
    sentence = f"At {power(budget)} FLOPs, about **{about(best.parameters)}** parameters are best"
    exponents = fitted.exponents
    if fitted.law is None or len(exponents) < 2:
        low, high = map(about, fitted.spread(budget))
        return f"{sentence} ({low} to {high} over {len(fitted.seeds)} seeds)."
    return (
        f"{sentence}; the best size grows as C to the power of **{fitted.law.exponent:.2f}**"
        f" ({min(exponents):.2f} to {max(exponents):.2f} over {len(exponents)} seeds),"
        f" {_nearer(exponents)}."
    )


def _nearer(exponents: Sequence[float]) -> str:
    """Says which published exponent is nearer, only where every seed has the same one nearer."""
    nearest = {min(LAWS, key=lambda law: abs(LAWS[law][0] - exponent)) for exponent in exponents}
    if len(nearest) > 1:
        return "too uncertain to prefer a published exponent"
    near, far = (
        f"{law.split()[0]}’s {LAWS[law][0]:.2f}" for law in sorted(LAWS, key=lambda law: law not in nearest)
    )
    return f"nearer to {near} than to {far}"


def limits(runs: Sequence[ScalingRun]) -> str:
    """States what such runs cannot show."""
    sizes, budgets = [run.parameters for run in runs], {run.plan.budget for run in runs}
    many = f"{len(budgets)} budgets" if len(budgets) > 1 else "a single budget"
    return (
        f"Not a law: {many}, {short(min(sizes))} to {short(max(sizes))} parameters, two blocks each, one text"
        f" of 1 MB, read up to {max(run.tokens for run in runs) / TEXT:.1f} times."
    )


def measured(fitted: Fit, ledger_share: Sequence[float], source: str) -> str:
    """Describes the fit and its counting: `ledger_share` are the ledger's FLOPs of each run over 6 N D."""
    exponents = ", ".join(f"{exponent:.2f}" for exponent in fitted.exponents)
    each = f" Exponent of each seed: {exponents}." if exponents else ""
    return (
        "Parabolas in ln N are fitted by least squares to the runs of all seeds, and the power law to their"
        f" minima on log-log axes.{each} Compute is 6 N D, embedding included. It leaves out attention's"
        f" scores and weighted sums; counted exactly, these runs cost {min(ledger_share):.2f} to"
        f" {max(ledger_share):.2f} times as much, the narrowest the most. Windows of {CONTEXT} characters,"
        f" {BATCH} per step, AdamW at rate {RATE} / width (at most {MOST_RATE}). Made by {source}."
    )


def alt(fitted: Fit) -> str:
    valleys = "; ".join(
        f"{power(budget)} FLOPs: minimum at {about(valley.parameters)} parameters, {valley.loss:.2f} nats"
        for budget, valley in fitted.valleys.items()
    )
    return f"Held-out loss against parameters, a parabola for each compute budget. {valleys}."


def growth_alt(fitted: Fit) -> str:
    law = f" They grow as C^{fitted.law.exponent:.2f}." if fitted.law else ""
    return f"The parameters at {len(fitted.valleys)} minima against compute.{law}"


SAME, ALL = 0.2, 0.8  # exponents below and above which the model stays, or takes all of the work


def next_valley(fitted: Fit, budget: float, after: float, control: str) -> Guess | None:
    """Makes a guess about the valley of the next budget; a choice sets it, in the `control`."""
    if not {budget, after} <= fitted.valleys.keys():
        return None
    here, there = (fitted.valleys[each].parameters for each in (budget, after))
    exponent = fitted.exponent(budget, after)
    work = f"{after / budget:.2g}"
    choices = (
        Choice("the same size: it reads more", "Then all the compute would go into text."),
        Choice(f"larger, but less than {work} times as large", "Model and text share the extra compute."),
        Choice(f"{work} times as large: it reads as much as before", "Then nothing is left for more text."),
    )
    return Guess(
        f"The best model for {power(budget)} FLOPs has {about(here)} parameters. With {work} times the"
        " compute it is …",
        choices,
        0 if exponent < SAME else 2 if exponent > ALL else 1,
        f"{about(there)} parameters, {there / here:.1f} times as many: see its curve.",
        {control: after},
    )


NEAR = 0.03  # nats above the minimum: about what seeds differ by


def where_it_falls(fitted: Fit, budget: float, parameters: int) -> Guess | None:
    """Makes a guess about the run that would be trained: where on its budget's curve it falls, by the fit."""
    if budget not in fitted.valleys:
        return None
    valley = fitted.valleys[budget]
    expected = float(valley.at(np.array(float(parameters))))
    small = parameters < valley.parameters
    choices = (
        Choice("Near the minimum", "Then its size would suit the budget."),
        Choice("Above it: too small a model", "A small model reads a lot of text but cannot use all of it."),
        Choice("Above it: too little text", "A large model has few characters to learn from."),
    )
    return Guess(
        f"A model with {parameters:,} parameters spends {power(budget)} FLOPs. Where on the curve will the"
        " run land?",
        choices,
        0 if expected - valley.loss <= NEAR else 1 if small else 2,
        f"The fit gives {expected:.2f} nats; the minimum is {valley.loss:.2f}, at {about(valley.parameters)}"
        " parameters. Train it: does its star land there?",
    )
