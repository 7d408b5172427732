"""Reward as it is shown: the stored runs until one is trained here, and a claim only where all seeds agree."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.config import ModelConfig
from engine.data.progress import finish
from engine.data.tokenizers.char import CharTokenizer
from engine.model import build
from pages.lab.after import best_of_n, reward
from pages.lab.after import preferences as preferences_view
from studies.after import preferences
from studies.after import reward as engine
from studies.after.preferences import Taste
from studies.after.reward import CONFIG, Plan
from studies.experiments import preference_runs, reward_runs
from studies.experiments.command import from_json, to_json
from studies.experiments.preference_runs import PreferenceRun
from studies.experiments.reward_runs import PLANS, RewardRun, shipped, stored
from studies.tasks import attempts
from tests.pages.helpers import clicked, lacking, opened, unescaped
from ui import background_jobs

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")

ROOM = "lab/after"
LETTERS_OF_TEXT = "\n :.EMORadet"
CONFIG_OF_LETTERS = ModelConfig(
    vocab_size=len(LETTERS_OF_TEXT), d_model=16, n_layers=1, n_heads=2, context=64, position="learned"
)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "teach", lambda model, seed: iter(()))
    monkeypatch.setattr(engine, "_taught", {})
    monkeypatch.setattr(engine, "ASKED", 16)
    monkeypatch.setattr(reward, "measure", lambda plan: engine.measure(replace(plan, **SHORT)))


SHORT = {"steps": 2, "questions": 2, "look_every": 1}


def lines_of(figure: Any, name: str, axis: str = "x") -> list[Any]:
    """The y of the lines of that name: three stored runs, their median, and one that was trained here."""
    return [t["y"] for t in figure.traces if t["name"] == name and t.get("xaxis", "x") == axis]


def test_every_stored_run_is_there_with_three_seeds() -> None:
    runs = {run.plan: run for run in shipped()}
    assert tuple(runs) == PLANS and len({plan.seed for plan in PLANS}) == 3
    for run in runs.values():
        assert run.looks[-1].step == run.plan.steps and "studies.experiments reward" in run.made
        for look in run.looks:
            assert sum(look.group.advantages) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("rewarded, leash", [("right", "0"), ("ends in 0", "0"), ("ends in 0", "0.3")])
def test_the_stored_runs_are_drawn_with_their_median(
    rewarded: str, leash: str, drawn: dict[str, Any]
) -> None:
    page = opened(ROOM, after_view="reward", reward_for=rewarded, reward_leash=leash, measure="true")
    runs = [run for run in shipped() if (run.plan.rewarded, run.plan.leash) == (rewarded, float(leash))]
    first = [[look.first_try for look in run.looks] for run in runs]
    lines = lines_of(drawn["reward_by_step"], reward.TEXT("line first_try"))
    np.testing.assert_allclose(lines[:4], [*first, np.median(first, 0)], atol=1e-6)
    assert not lacking(unescaped(page), f"**{np.median(first, 0)[-1]:.0%}**", "median of 3 seeds")
    low, high = drawn["reward_by_step"].layout["yaxis"]["range"]
    assert low < 0 and high > 1, "a share of 0% or 100% stands inside the axes"
    (bar,) = drawn["reward_group"].traces
    np.testing.assert_allclose(bar["x"], runs[0].looks[0].group.advantages, atol=1e-6)
    named = {trace["name"] for trace in drawn["reward_by_step"].traces}
    assert (reward.TEXT["line reward"] in named) == (rewarded != "right")


def test_a_run_trained_here_is_the_engines(drawn: dict[str, Any]) -> None:
    page = clicked(opened(ROOM, after_view="reward", reward_seed="7"), "reward_train")
    found = finish(engine.measure(Plan(seed=7, **SHORT)))
    line = lines_of(drawn["reward_by_step"], reward.TEXT("line first_try"))[-1]
    np.testing.assert_allclose(line, [look.first_try for look in found.looks], atol=1e-6)
    assert "in this run" in unescaped(page)


def test_a_claim_is_made_only_where_every_seed_has_it() -> None:
    look = shipped()[0].looks[0]

    def said(*ends: tuple[float, float], rewarded: Any = "right") -> str:
        runs = [
            (replace(look, first_try=before), replace(look, first_try=after, reward=0.99))
            for before, after in ends
        ]
        return reward.answer(Plan(rewarded), runs)

    better = [(0.45, 0.7), (0.46, 0.8), (0.44, 0.75)]
    assert "makes answers more reliable: the first try is right for **75%**" in said(*better)
    assert "does not help reliably" in said(*better[:2], (0.45, 0.47))
    for change, wanted in ((0.04, "does not help reliably"), (0.06, "makes answers more reliable")):
        assert wanted in said(*[(0.45, 0.45 + change)] * 3)
        fell = said(*[(0.45, 0.45 - change)] * 3, rewarded="ends in 0")
        assert fell.startswith("The reward was learned" if change < 0.05 else "The model learned what was")
    hacked = said((0.45, 0.0), (0.45, 0.1), rewarded="ends in 0")
    assert hacked.startswith("The model learned what was rewarded, not what was meant: **99%**")
    assert said(*better, rewarded="ends in 0").startswith("The reward was learned")


def test_a_run_is_read_as_it_was_written_and_kept(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = (Plan(steps=1, questions=2, answers=2), Plan("ends in 0", steps=1, questions=2, answers=2))
    monkeypatch.setattr(reward_runs, "PLANS", plans)
    monkeypatch.setattr(reward_runs, "half_trained", lambda seed: build(CONFIG, seed))
    reward_runs.main(["--into", str(tmp_path)])
    once = stored(tmp_path / "reward.json")
    assert tuple(run.plan for run in once) == plans
    monkeypatch.setattr(reward_runs, "trained", lambda plan: pytest.fail("it is stored already"))
    reward_runs.main(["--into", str(tmp_path)])
    again = from_json(RewardRun, to_json(once[0]))
    assert isinstance(again, RewardRun) and again == once[0]


@pytest.mark.parametrize(("mode", "view"), [("reward", reward), ("preferences", preferences_view)])
def test_a_closed_fold_has_no_tables_made(mode: str, view: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, table = [], view.table
    monkeypatch.setattr(view, "table", lambda looks: made.append(looks) or table(looks))
    runs = len(reward_runs.SEEDS)
    opened(ROOM, after_view="reward", reward_mode=mode)
    assert len(made) == runs, "of the figure"
    opened(ROOM, after_view="reward", reward_mode=mode, measure="true")
    assert len(made) == 3 * runs


def stored_by(taste: Taste, beta: float) -> list[PreferenceRun]:
    return [run for run in preference_runs.shipped() if (run.plan.taste, run.plan.beta) == (taste, beta)]


def preferred(**query: str) -> Any:
    return opened(ROOM, after_view="reward", reward_mode="preferences", **query)


@pytest.mark.parametrize("kind, word, beta", [("short", "", 0.02), ("without", "the", 0.1)])
def test_stored_preferences_are_drawn_with_their_median(
    kind: Any, word: str, beta: float, drawn: dict[str, Any]
) -> None:
    query = {"preferred": kind, "preferred_beta": str(beta), "measure": "true"}
    said, runs = unescaped(preferred(**query)), stored_by(Taste(kind, word), beta)
    ends = np.array([[look.held_out.margin for look in run.preferred.looks] for run in runs])
    lines = lines_of(drawn["preferences_by_step"], "held-out pairs")
    assert len(runs) == 3
    np.testing.assert_allclose(lines[:4], [*ends, np.median(ends, 0)], atol=1e-6)
    across = [drawn["preferences_by_step"].layout[f"xaxis{n}"]["domain"] for n in ("", 2, 3, 4)]
    for left, right in (across[:2], across[2:]):
        assert left[0] == 0 and left[1] < right[0] and right[1] == 1, "the panels stand as they are counted"
    ranked = np.median([run.preferred.looks[-1].held_out.ranked for run in runs])
    text = runs[0].preferred.looks[-1].texts[1].split("\n")[0]
    assert not lacking(said, f"**{ranked:.0%}** of held-out pairs", "median of 3 seeds", text)


def test_preferences_trained_here_are_the_engines(
    drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, letters = build(CONFIG_OF_LETTERS, 1), CharTokenizer(LETTERS_OF_TEXT)
    plans: list[preferences.Plan] = []

    def begin(plan: preferences.Plan, text: str) -> Any:
        plans.append(plan)
        return preferences.measure(model, letters, replace(plan, steps=2, look_every=1), text)

    monkeypatch.setattr("pages.lab.after.preferences.begin", begin)
    page = clicked(preferred(preferred_seed="7"), "preferred_train")
    (plan,) = plans
    assert (plan.taste, plan.seed) == (Taste("short"), 7)
    looks, line = (
        finish(begin(plan, "")).looks,
        lines_of(drawn["preferences_by_step"], "chosen text", "x3")[-1],
    )
    np.testing.assert_allclose(line, [look.training.chosen for look in looks], atol=1e-5)
    assert "in this run" in unescaped(page)


def test_a_word_that_cannot_be_a_taste_is_explained() -> None:
    assert "must be one word" in unescaped(preferred(preferred="with", preferred_with="a b"), "info")
    assert preferences_view.TEXT["nothing"] in unescaped(preferred(preferred="with", preferred_with="Romeo"))


def test_that_both_probabilities_fell_is_said_only_where_they_did() -> None:
    long, short = (stored_by(Taste(kind), 0.1) for kind in ("long", "short"))
    looks = [run.preferred.looks for run in short]
    said = preferences_view.answer(short[0].plan, looks)
    assert "Both log-probabilities fell, that of the rejected text further" in said
    up = [(run[0], replace(run[-1], training=replace(run[-1].training, chosen=1.0))) for run in looks]
    assert "fell on held-out pairs, that" in preferences_view.answer(short[0].plan, up)
    best = [(a, replace(b, held_out=replace(b.held_out, chosen=1.0))) for a, b in up]
    assert "fell" not in preferences_view.answer(short[0].plan, best)
    chance = preferences_view.answer(long[0].plan, [run.preferred.looks for run in long])
    assert "hardly better than by chance: **47%**" in chance


def test_answers_to_a_sum_are_the_engines(drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "teach", lambda model, seed: iter(()))
    monkeypatch.setattr(attempts, "ASKED", 8)
    chosen = {"attempts_temperature": "0.5", "attempts_sum": "2"}
    page = opened(ROOM, after_view="aloud", aloud_mode="attempts", **chosen)
    found = finish(attempts.measure())[0.5]
    vote = lines_of(drawn["attempts_shares"], "majority vote")
    np.testing.assert_allclose(vote[:4], [*found.majority, np.median(found.majority, 0)])
    (bar,) = drawn["attempts_votes"].traces
    assert bar["x"] == [count for _, count in found.votes[1].answers[:12]]
    assert f"**{np.median(found.verifier[:, -1]):.1%}** of new sums" in unescaped(page)
    better = replace(found, majority=found.single[:, None] + 0.2)
    assert "gains less" in best_of_n.answer(better) and "hardly" in best_of_n.answer(found)
    right = replace(found.votes[1], answers=((found.votes[1].right, 40), ("000", 24)))
    assert best_of_n.votes(right) == "The vote is right: 40 of 64."
    wrong = replace(right, answers=(("999", 40), (right.right, 24)))
    assert "find the 24 right ones" in best_of_n.votes(wrong)


def test_the_measurement_of_many_answers_can_be_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(attempts, "teach", lambda model, seed: iter(ended.wait, True))
    monkeypatch.setattr(background_jobs, "GLANCE", 0.0)
    page = opened(ROOM, after_view="aloud", aloud_mode="attempts")
    labels = [button.label for button in page.button]
    background_jobs._server.leave(0)
    ended.set()
    assert labels[-2:] == ["Pause", "Cancel"]


def test_samples_stand_side_by_side_a_line_each() -> None:
    assert "| a / b | **c** |" in preferences_view.samples(["a\n\nb "], [" c "], 40)
