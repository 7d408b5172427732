"""Reward as it is shown: the stored runs until one is trained here, and a claim only where all seeds agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from engine.data.progress import finish
from engine.experiments import reward_runs
from engine.experiments.reward_runs import PLANS, RewardRun, shipped
from engine.model import build
from engine.training import reward as engine
from engine.training.reward import CONFIG, Plan
from pages.lab.after import reward, words_reward
from pages.lab.after.figures_reward import LINES
from tests.pages.helpers import opened, unescaped
from tests.pages.stage import StageManager
from ui import background_jobs

ROOM = "lab/after"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(background_jobs, "_server", background_jobs.Jobs())
    monkeypatch.setattr(engine, "_half_trained", lambda seed: build(CONFIG, seed))
    monkeypatch.setattr(
        reward, "measure", lambda plan: engine.measure(replace(plan, steps=2, questions=2, look_every=1))
    )


def test_every_stored_run_is_there_with_three_seeds() -> None:
    runs = {run.plan: run for run in shipped()}
    assert tuple(runs) == PLANS and len({plan.seed for plan in PLANS}) == 3
    for run in runs.values():
        assert run.looks[-1].step == run.plan.steps and "engine.experiments reward" in run.made
        for look in run.looks:
            assert sum(look.group.advantages) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("rewarded, leash", [("right", "0"), ("ends in 0", "0"), ("ends in 0", "0.3")])
def test_the_stored_runs_are_drawn_with_their_median(
    rewarded: str, leash: str, manager: StageManager, drawn: dict[str, Any]
) -> None:
    page = opened(ROOM, after_view="reward", reward_for=rewarded, reward_leash=leash, measure="true")
    runs = [run for run in shipped() if (run.plan.rewarded, run.plan.leash) == (rewarded, float(leash))]
    first = [[look.first_try for look in run.looks] for run in runs]
    lines = [trace for trace in drawn["reward_by_step"].traces if trace["name"] == LINES["first_try"][0]]
    np.testing.assert_allclose([trace["y"] for trace in lines[:3]], first, atol=1e-6)
    np.testing.assert_allclose(lines[3]["y"], np.median(first, 0), atol=1e-6)
    assert f"**{np.median(first, 0)[-1]:.0%}**" in unescaped(page) and "median of 3 seeds" in unescaped(page)
    (bar,) = drawn["reward_group"].traces
    np.testing.assert_allclose(bar["x"], runs[0].looks[0].group.advantages, atol=1e-6)
    named = {trace["name"] for trace in drawn["reward_by_step"].traces}
    assert (LINES["reward"][0] in named) == (rewarded != "right")


def test_a_run_trained_here_is_the_engines(manager: StageManager, drawn: dict[str, Any]) -> None:
    page = opened(ROOM, after_view="reward", reward_seed="7")
    page.button(key="reward_train").click().run()
    found = finish(engine.measure(Plan(seed=7, steps=2, questions=2, look_every=1)))
    lines = [trace for trace in drawn["reward_by_step"].traces if trace["name"] == LINES["first_try"][0]]
    np.testing.assert_allclose(lines[-1]["y"], [look.first_try for look in found.looks], atol=1e-6)
    assert "in this run" in unescaped(page)


def test_a_claim_is_made_only_where_every_seed_has_it() -> None:
    look = shipped()[0].looks[0]

    def run(before: float, after: float) -> tuple[engine.RewardLook, ...]:
        return replace(look, first_try=before), replace(look, first_try=after, reward=0.99)

    better = [run(0.45, 0.7), run(0.46, 0.8), run(0.44, 0.75)]
    assert "makes answers more reliable: the first try is right for **75%**" in words_reward.answer(
        Plan(), better
    )
    assert "does not help reliably" in words_reward.answer(Plan(), [*better[:2], run(0.45, 0.47)])
    hacked = [run(0.45, 0.0), run(0.45, 0.1)]
    said = words_reward.answer(Plan("ends in 0"), hacked)
    assert said.startswith("The model learned what was rewarded, not what was meant: **99%**")
    assert words_reward.answer(Plan("ends in 0"), better).startswith("The reward was learned")


def test_a_run_is_read_as_it_was_written_and_kept(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = (Plan(steps=1, questions=2, answers=2), Plan("ends in 0", steps=1, questions=2, answers=2))
    monkeypatch.setattr(reward_runs, "PLANS", plans)
    monkeypatch.setattr(reward_runs, "half_trained", lambda seed: build(CONFIG, seed))
    reward_runs.main(["--into", str(tmp_path)])
    once = shipped(tmp_path / "reward.json")
    assert tuple(run.plan for run in once) == plans
    monkeypatch.setattr(reward_runs, "trained", lambda plan: pytest.fail("it is stored already"))
    reward_runs.main(["--into", str(tmp_path)])
    again = reward_runs.opened(reward_runs.written(once[0]))
    assert isinstance(again, RewardRun) and again == once[0]
