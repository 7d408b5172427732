"""Trainings by reward over seeds: `python -m studies.experiments reward` writes `checkpoints/reward.json`,
which the app shows until somebody trains a run of his own. Stored runs are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from studies.after.reward import Plan, RewardEvaluation, half_trained, reinforce
from studies.experiments.command import complete, folder_options, made, read_runs

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "reward.json"
SEEDS = (0, 1, 2)
LEASHES = (0.0, 0.3)
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


@cache
def shipped() -> tuple[RewardRun, ...]:
    """Reads the runs that come with the app, once. Raises CheckpointError for an unreadable file."""
    return stored()


def stored(path: Path = PATH) -> tuple[RewardRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "reward", RewardRun)


def main(arguments: Sequence[str] | None = None) -> None:
    def first_try(run: RewardRun) -> str:
        return f"first try {run.looks[-1].first_try:.2f}"

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, stored, trained, first_try)
