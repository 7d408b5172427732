"""Marks of SmolLM2 on our questions, and of copies that were trained on them, over seeds:
`python -m studies.experiments benchmark` writes `checkpoints/benchmark.json`. Stored measurements are left as
they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from engine.data.progress import finish
from studies.after.benchmark import RECIPE, WAYS, Scores, contaminate, measure
from studies.after.benchmark_questions import EXAMPLES
from studies.experiments.command import complete, folder_options, made, read_runs
from studies.weights.pretrained import library, sources

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "benchmark.json"
LARGEST = 1 << 28  # parameters of a model that is read
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Plan:
    """A measurement with that many examples before each question; after a training on the questions with this
    seed, None for the model as it was published.
    """

    examples: int
    seed: int | None = None


PLANS = (*(Plan(count) for count in range(len(EXAMPLES) + 1)), *(Plan(0, seed) for seed in SEEDS))


@dataclass(frozen=True)
class BenchmarkRun:
    """Scores, and the losses of the training before them; `made` says where and when."""

    plan: Plan
    scores: Scores = field(repr=False)
    losses: tuple[float, ...] = field(default=(), repr=False)
    made: str = ""


def measured(plan: Plan) -> BenchmarkRun:
    """Measures, after a training where the plan has a seed. Raises PretrainedError without the model."""
    real = library.load(sources.PACKAGED, LARGEST)
    if plan.seed is None:
        scores = finish(measure(real.model, real.tokenizer, plan.examples))
        return BenchmarkRun(plan, scores, (), made("benchmark"))
    trained = finish(contaminate(real.model, real.tokenizer, replace(RECIPE, seed=plan.seed)))
    return BenchmarkRun(plan, trained.scores, trained.losses, made("benchmark"))


@cache
def shipped() -> tuple[BenchmarkRun, ...]:
    """Reads the runs that come with the app, once. Raises CheckpointError for an unreadable file."""
    return stored()


def stored(path: Path = PATH) -> tuple[BenchmarkRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "benchmark", BenchmarkRun)


def main(arguments: Sequence[str] | None = None) -> None:
    def marks(run: BenchmarkRun) -> str:
        return ", ".join(f"{way} {run.scores.mark(way)}" for way in WAYS)

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, stored, measured, marks)
