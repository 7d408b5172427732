"""Blocks without a feed-forward network, over tasks, a text and seeds: `python -m studies.experiments
no-feedforward` writes `checkpoints/feedforward.json`, which the app shows. Stored runs are kept.

A task's usual model (studies.tasks.recipes), and for the text that of the dropout runs, is trained beside the
same blocks of attention alone, and beside three times as many of these, which have as many parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Literal

from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.model import count_parameters
from engine.training.records import Evaluation
from engine.training.train import train
from studies.experiments import dropout_runs
from studies.experiments.command import complete, folder_options, made, read_runs, require_all
from studies.tasks.all import TASKS
from studies.tasks.recipes import task_recipe

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "feedforward.json"
Kind = Literal["whole", "attention", "deep attention"]
KINDS: tuple[Kind, ...] = ("whole", "attention", "deep attention")
SHOWN = ("repeat", "sort", "addition_reversed")  # names of tasks
TEXT = dropout_runs.CORPUS
SEEDS = (0, 1, 2)
TEXT_RECIPE = dropout_runs.MODEL, replace(dropout_runs.TRAINING, batch_size=16)
TIMES = 3  # attention has 4 d² parameters in a block, the network 8 d²


@dataclass(frozen=True)
class Plan:
    """A training: a task by its name, or TEXT, what its blocks consist of, and the seed."""

    task: str
    kind: Kind
    seed: int

    @property
    def recipe(self) -> tuple[ModelConfig, TrainConfig]:
        model, how = task_recipe(TASKS[self.task]) if self.task in TASKS else TEXT_RECIPE
        if self.kind != "whole":
            layers = model.n_layers * (TIMES if self.kind == "deep attention" else 1)
            model = replace(model, ffn="none", n_layers=layers)
        return model, replace(how, seed=self.seed, precision="float32", sample_every=0)


@dataclass(frozen=True)
class TaskRun:
    """A training with its evaluations (evaluation,): `solved`, the share of held-out problems that it solves
    (0 of a text), and the validation loss in nats. `made` says where and when.
    """

    plan: Plan
    parameters: int
    blocks: int
    steps: tuple[int, ...] = field(repr=False)
    solved: tuple[float, ...] = field(repr=False)
    validation: tuple[float, ...] = field(repr=False)
    made: str = ""


PLANS = tuple(Plan(task, kind, seed) for task in (*SHOWN, TEXT) for kind in KINDS for seed in SEEDS)


def trained(plan: Plan, steps: int | None = None) -> TaskRun:
    """Trains one model, for the steps of its recipe or fewer."""
    model, how = plan.recipe
    how = how if steps is None else replace(how, steps=steps)
    records = train(model, how, corpora.load(plan.task), device="cpu")
    looks = {look.step: look for look in records if isinstance(look, Evaluation)}
    return TaskRun(
        plan,
        count_parameters(model),
        model.n_layers,
        tuple(looks),
        tuple(look.task.validation if look.task else 0.0 for look in looks.values()),
        tuple(look.validation_loss for look in looks.values()),
        made("no-feedforward"),
    )


@dataclass(frozen=True)
class Ends:
    """The seeds of one task and kind at the end: medians of the share solved and the loss in nats."""

    task: str
    kind: Kind
    parameters: int
    blocks: int
    solved: float
    validation: float


def ends(runs: Sequence[TaskRun]) -> tuple[Ends, ...]:
    """Returns the end of each task and kind, in the order of SHOWN and KINDS."""
    found = []
    for task in (*SHOWN, TEXT):
        for kind in KINDS:
            some = [run for run in runs if (run.plan.task, run.plan.kind) == (task, kind)]
            if some:
                size = some[0].parameters, some[0].blocks
                last = median(run.solved[-1] for run in some), median(run.validation[-1] for run in some)
                found.append(Ends(task, kind, *size, *last))
    return tuple(found)


def stored(path: Path) -> tuple[TaskRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "no-feedforward", TaskRun)


@cache
def shipped(path: Path = PATH) -> tuple[TaskRun, ...]:
    """Reads the runs that come with the app. Raises CheckpointError, also where one is not stored."""
    runs = stored(path)
    require_all({run.plan for run in runs}, PLANS, path, "no-feedforward")
    return runs


def main(arguments: Sequence[str] | None = None) -> None:
    def end(run: TaskRun) -> str:
        return f"{run.parameters:,} parameters, solved {run.solved[-1]:.1%}, {run.validation[-1]:.3f} nats"

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, stored, trained, end)
