"""Trainings by reward over seeds: `python -m engine.experiments reward` writes `checkpoints/reward.json`,
which the app shows until somebody trains a run of his own. Stored runs are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.experiments.command import complete, digits, folder_options, made, reading
from engine.training.post_training.reward import Group, Plan, RewardEvaluation, half_trained, reinforce

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "reward.json"
SEEDS = (0, 1, 2)
LEASHES = (0.0, 0.3)
NUMBERS = ("greedy", "first_try", "any_of", "reward", "divergence")
PLANS = tuple(
    Plan(rewarded, leash=leash, seed=seed)
    for rewarded in ("right", "ends in 0")
    for leash in LEASHES
    for seed in SEEDS
)


@dataclass(frozen=True)
class RewardRun:
    """A training by reward, with all of its looks; `made` says where and when."""

    plan: Plan
    looks: tuple[RewardEvaluation, ...] = field(repr=False)
    made: str = ""


def trained(plan: Plan) -> RewardRun:
    """Teaches a model halfway and trains it by reward."""
    return RewardRun(plan, tuple(reinforce(half_trained(plan.seed), plan)), made("reward"))


def written(run: RewardRun) -> dict[str, Any]:
    """Returns a run as JSON."""
    return {
        "plan": asdict(run.plan),
        "made": run.made,
        "steps": [look.step for look in run.looks],
        **{name: digits((getattr(look, name) for look in run.looks), 4) for name in NUMBERS},
        "groups": [asdict(look.group) for look in run.looks],
    }


def opened(values: dict[str, Any]) -> RewardRun:
    """Reads a run from JSON. Raises KeyError or TypeError for another."""
    looks = []
    for i, (step, group) in enumerate(zip(values["steps"], values["groups"], strict=True)):
        answers, rewards, advantages = (tuple(group[name]) for name in ("answers", "rewards", "advantages"))
        shares = {name: float(values[name][i]) for name in NUMBERS}
        looks.append(
            RewardEvaluation(step, **shares, group=Group(group["question"], answers, rewards, advantages))
        )
    return RewardRun(Plan(**values["plan"]), tuple(looks), values["made"])


def shipped(path: Path = PATH) -> tuple[RewardRun, ...]:
    """Reads the runs that come with the app. Raises CheckpointError for an unreadable file."""
    with reading(path, "reward") as stored:
        return tuple(map(opened, stored))


def main(arguments: Sequence[str] | None = None) -> None:
    def first_try(run: RewardRun) -> str:
        return f"first try {run.looks[-1].first_try:.2f}"

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, shipped, trained, written, first_try)
