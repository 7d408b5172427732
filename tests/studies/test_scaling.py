"""IsoFLOP runs: what they spend, the fit of their valleys, and the runs that are shipped."""

from __future__ import annotations

import numpy as np
import pytest

from engine.data.progress import finish
from engine.errors import GlassformerError
from engine.model import build
from studies.costs.isoflop import power_law, valley
from studies.experiments import scaling
from studies.experiments.scaling import SEEDS, WIDTHS, Plan, ScalingRun, fit, measure, plans, shipped

SMALL = Plan(2e7, 4)
SIZES = np.array([1e3, 3e3, 1e4, 3e4])


def test_a_valley_is_the_minimum_of_the_parabola_through_its_runs():
    losses = 2 + 0.1 * (np.log(SIZES) - np.log(5e3)) ** 2
    lowest = valley(SIZES, losses)
    assert (lowest.parameters, lowest.loss) == (pytest.approx(5e3), pytest.approx(2))
    np.testing.assert_allclose(lowest.at(SIZES), losses)


@pytest.mark.parametrize("sizes, losses", [(SIZES[:2], [2.0, 1.9]), (SIZES, [2.0, 2.2, 2.2, 2.0])])
def test_losses_without_a_valley_are_refused(sizes, losses):
    with pytest.raises(GlassformerError):
        valley(sizes, np.array(losses))


def test_the_exponent_is_the_slope_in_logarithms():
    work = np.array([1e9, 1e10, 1e12])
    law = power_law(work, 0.02 * work**0.6)
    assert (law.exponent, law.factor) == (pytest.approx(0.6), pytest.approx(0.02))


def made_up(exponent: float, seed: int, budgets=(1e9, 1e10, 1e11)) -> list[ScalingRun]:
    """Runs whose valleys lie at 1,000 (C / 1e9)^exponent."""
    best = {c: 1000 * (c / 1e9) ** exponent for c in budgets}
    return [
        ScalingRun(Plan(c, i, seed), round(n * times), 0, 0, 2 + 0.1 * np.log(times) ** 2)
        for c, n in best.items()
        for i, times in enumerate((0.1, 0.5, 2, 10))
    ]


def test_each_seed_has_its_exponent_and_a_seed_without_all_budgets_has_none():
    every = (1e8, 1e9, 1e10, 1e11)
    runs = [*made_up(0.5, 0, every), *made_up(0.6, 1, every), *made_up(0.7, 2, every[:3])]
    fitted = fit(runs)
    assert fitted.exponents == pytest.approx((0.5, 0.6), abs=1e-3)
    assert fitted.spread(1e11) == pytest.approx((1000 * 100**0.5, 1000 * 100**0.6), rel=1e-3)
    assert fitted.law and 0.5 < fitted.law.exponent < 0.6
    assert fit([run for run in runs if run.plan.budget < 1e10]).law is None


def test_a_plan_counts_every_parameter_and_spends_its_budget():
    for plan in plans((0,)):
        spent = 6 * plan.parameters * plan.train.steps * scaling.BATCH * scaling.CONTEXT
        assert spent == pytest.approx(plan.budget, rel=0.02)
    plan = Plan(3e9, 8)
    assert plan.parameters == sum(p.numel() for p in build(plan.model, 0).parameters())


@pytest.mark.usefixtures("shakespeare")
def test_a_run_reads_what_its_budget_pays_for_and_is_repeated_exactly():
    run = finish(measure(SMALL))
    assert run.tokens == SMALL.train.steps * 512 and run.flops == 6 * run.parameters * run.tokens
    assert 2.5 < run.loss < 4.2 and finish(measure(SMALL)).loss == run.loss


def test_every_shipped_run_is_there_and_every_valley_lies_between_trained_sizes():
    runs = shipped()
    assert [run.plan for run in runs] == list(plans()) and len(SEEDS) == 3
    for run in runs:
        assert run.parameters == run.plan.parameters
        assert run.tokens == run.plan.train.steps * scaling.BATCH * scaling.CONTEXT
        assert run.flops == 6 * run.parameters * run.tokens and "experiments scaling" in run.made
    for each in (fit(runs), *fit(runs).seeds):
        assert [*each.valleys] == [*WIDTHS]
        for (low, *_, high), lowest in zip(WIDTHS.values(), each.valleys.values(), strict=True):
            assert Plan(0, low).parameters < lowest.parameters < Plan(0, high).parameters


@pytest.mark.exhaustive
def test_a_shipped_run_is_repeated_by_its_plan():
    """Close, not equal: another processor sums in another order, and a training makes more of it."""
    stored = {run.plan: run for run in shipped()}
    for plan in (Plan(3e9, 8), Plan(3e9, 24, 1)):
        assert finish(measure(plan)).loss == pytest.approx(stored[plan].loss, abs=0.05)
