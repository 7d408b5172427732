"""Scaling laws as they are shown: stored runs up to the chosen budget, and the run that is trained here."""

from typing import Any

import numpy as np
import pytest

from engine.data.corpus import Corpus
from engine.data.progress import Progress
from pages.lab.ladder import scaling_laws
from studies.experiments.scaling import WIDTHS, Plan, ScalingRun, fit, shipped
from tests.pages.helpers import opened, unescaped
from tests.studies.test_scaling import made_up
from ui import background_jobs, guess

ROOM = "lab/ladder"
LARGEST = [*WIDTHS][-1]


@pytest.mark.parametrize("budget", [3e9, LARGEST])
def test_the_curves_up_to_the_chosen_budget_are_drawn_with_their_valleys(
    budget: float, drawn: dict[str, Any]
) -> None:
    page = opened(ROOM, ladder_view="scaling", ladder_flops=str(budget), measure="true")
    shown = [run for run in shipped() if run.plan.budget <= budget]
    fitted = fit(shown)
    *curves, diamonds, yours = drawn["scaling_curves"].traces
    assert yours["name"] == "your model" and len({*yours["x"]}) == 1 and yours["x"][0] > 0
    dots = np.concatenate([trace["y"] for trace in curves if trace["mode"] == "markers"])
    assert sorted(dots) == sorted(run.loss for run in shown)
    best = [valley.parameters for valley in fitted.valleys.values()]
    np.testing.assert_allclose(diamonds["x"], best)
    np.testing.assert_allclose(drawn["scaling_growth"].traces[-1]["y"], best)
    text = unescaped(page)
    assert f"about **{float(f'{best[-1]:.2g}'):,.0f}** parameters are best" in text
    named = [trace.get("name", "") for trace in drawn["scaling_growth"].traces]
    assert any("Kaplan" in name and "0.73" in name for name in named) == (fitted.law is not None)
    assert (fitted.law is None) or f"to the power of **{fitted.law.exponent:.2f}**" in text
    assert f"{max(run.tokens for run in shown) / scaling_laws.LENGTH:.1f} times" in text


def test_a_run_that_is_trained_here_falls_into_place(
    monkeypatch: pytest.MonkeyPatch, drawn: dict[str, Any]
) -> None:
    monkeypatch.setattr(background_jobs, "_server", background_jobs.Jobs())
    plans = []

    def measure(plan: Plan) -> Any:
        plans.append(plan)
        yield Progress(1, 1)
        return ScalingRun(plan, plan.parameters, 512, 1, 2.31)

    monkeypatch.setattr(scaling_laws, "measure", measure)
    page = opened(ROOM, ladder_view="scaling", ladder_width="12", ladder_seed="7")
    page.button(key="scaling_train").click().run()
    assert plans == [Plan(scaling_laws.FIRST, 12, 7)]
    star = drawn["scaling_curves"].traces[-1]
    assert (star["x"], star["y"]) == ([plans[0].parameters], [2.31])
    assert "reach **2.31** nats" in unescaped(page)


def test_a_published_exponent_is_preferred_only_where_every_seed_agrees() -> None:
    agree = fit([*made_up(0.5, 0), *made_up(0.52, 1), *made_up(0.48, 2)])
    assert "nearer to Hoffmann’s 0.50 than to Kaplan’s 0.73" in scaling_laws.answer(agree, 1e11, None)
    differ = fit([*made_up(0.5, 0), *made_up(0.7, 1), *made_up(0.6, 2)])
    assert "too uncertain" in scaling_laws.answer(differ, 1e11, None)
    for single in (made_up(0.5, 0), made_up(0.5, 0, (1e9,))):
        assert "power" not in scaling_laws.answer(fit(single), 1e9, None)


@pytest.mark.parametrize("exponent, right", [(0.0, 0), (0.5, 1), (1.0, 2)])
def test_the_guess_about_the_next_valley_is_that_of_the_runs(exponent: float, right: int) -> None:
    guess = scaling_laws.next_valley(fit(made_up(exponent, 0)), 1e10, 1e11)
    assert guess and guess.right == right and guess.sets == {"ladder_flops": 1e11}
    assert scaling_laws.next_valley(fit(made_up(0.5, 0)), 1e10, 3e11) is None


@pytest.mark.parametrize(
    "query, asks",
    [
        ({}, "valley"),
        ({"ladder_flops": "3000000000.0"}, "valley"),
        ({"ladder_width": "12"}, "falls"),
        ({"ladder_seed": "7"}, "falls"),
        ({"ladder_flops": str(LARGEST)}, "falls"),
    ],
)
def test_the_guess_is_about_a_run_once_its_size_or_seed_is_chosen(
    query: dict[str, str], asks: str, drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    monkeypatch.setattr(guess, "ask", lambda name, *rest: names.append(name))
    opened(ROOM, ladder_view="scaling", **query)
    assert names == [asks]


@pytest.mark.parametrize("times, right", [(1, 0), (0.1, 1), (10, 2)])
def test_the_guess_about_a_run_is_that_of_the_fit(times: float, right: int) -> None:
    fitted = fit(made_up(0.5, 0))
    best = fitted.valleys[1e10].parameters
    guess = scaling_laws.where_it_falls(fitted, 1e10, round(best * times))
    assert guess and guess.right == right and not guess.sets
    assert scaling_laws.where_it_falls(fitted, 2e10, 1000) is None


def test_the_length_of_the_text_is_right(shakespeare: Corpus) -> None:
    assert len(shakespeare.train) == scaling_laws.LENGTH
