"""Recall with attention, with memories of fixed size, and with both, over seeds.

`python -m studies.experiments fixed-memory` writes `checkpoints/fixed_memory.json`, which the app shows.
Stored runs are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from studies.attention.recall_task import HEADS, KINDS, Kind, learn
from studies.experiments.command import complete, folder_options, made, read_runs, require_all

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "fixed_memory.json"
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Plan:
    """A training: what the blocks consist of, their heads, and the seed."""

    kind: Kind
    heads: int
    seed: int


@dataclass(frozen=True)
class RecallRun:
    """A training: the share of values recalled in new texts, at each look (look,)."""

    plan: Plan
    steps: tuple[int, ...] = field(repr=False)
    right: tuple[float, ...] = field(repr=False)
    made: str = ""


PLANS = tuple(Plan(kind, heads, seed) for heads in HEADS for seed in SEEDS for kind in KINDS)


def trained(plan: Plan) -> RecallRun:
    """Trains one model."""
    looks = list(learn(plan.kind, plan.heads, plan.seed))
    return RecallRun(
        plan, tuple(look.step for look in looks), tuple(look.right for look in looks), made("fixed-memory")
    )


def stored(path: Path) -> tuple[RecallRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "fixed-memory", RecallRun)


@cache
def shipped(path: Path = PATH) -> tuple[RecallRun, ...]:
    """Reads the runs that come with the app. Raises CheckpointError, also where one is not stored."""
    runs = stored(path)
    require_all({run.plan for run in runs}, PLANS, path, "fixed-memory")
    return runs


def main(arguments: Sequence[str] | None = None) -> None:
    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, stored, trained, lambda run: f"recalled {run.right[-1]:.1%}")
