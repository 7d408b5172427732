"""IsoFLOP runs: for each budget of work, models of several sizes, each trained on as much text as the budget
then pays for. `python -m studies.experiments scaling` writes `checkpoints/scaling.json`, run by run: runs
that are stored already are not trained again, so that it goes on after an interruption.

Work is counted as 6 N D (Kaplan et al. 2020): N are all parameters of the ledger. The embedding counts, once:
it is tied, and the same table makes the logits. D are the characters that were read, repeats included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.progress import Progress, Steps, finish
from engine.errors import GlassformerError
from engine.training.records import Evaluation, Step
from engine.training.train import train
from studies.costs.isoflop import PowerLaw, Valley, power_law, valley
from studies.costs.ledger import ledger
from studies.experiments.command import complete, folder_options, made, read_runs

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "scaling.json"
SEEDS = (0, 1, 2)
# Budget (FLOPs) -> widths on both sides of the best one; a wider spread is no parabola any more.
WIDTHS: dict[float, tuple[int, ...]] = {
    3e9: (4, 8, 12, 16, 20, 24, 28),
    1e10: (4, 8, 12, 16, 20, 24, 32),
    3e10: (8, 12, 16, 20, 24, 32, 40),
    1e11: (12, 16, 20, 24, 32, 40, 48),
    3e11: (16, 20, 24, 32, 40, 48, 64),
}
CONTEXT, BATCH = 32, 16
FEWEST = 3  # budgets under a power law
# Peak rate: the best of 0.0025 to 0.04 at widths 8 to 64 lay near 0.32 / width.
RATE, MOST_RATE = 0.32, 0.04
WARM_UP = 20  # steps at least: with fewer, short trainings lost up to 0.4 nats


@dataclass(frozen=True)
class Plan:
    """One run: a budget in FLOPs, the model's width, a seed."""

    budget: float
    width: int
    seed: int = 0

    @property
    def model(self) -> ModelConfig:
        """Two blocks, whatever the width."""
        return ModelConfig(
            context=CONTEXT, d_model=self.width, n_layers=2, n_heads=2, position="rope", norm="rmsnorm"
        )

    @property
    def parameters(self) -> int:
        return ledger(self.model).total

    @property
    def train(self) -> TrainConfig:
        """The steps that the budget pays for; the rate falls to 0 at the last of them."""
        steps = max(1, round(self.budget / (6 * self.parameters * BATCH * CONTEXT)))
        return TrainConfig(
            steps=steps,
            batch_size=BATCH,
            learning_rate=min(MOST_RATE, RATE / self.width),
            weight_decay=0.0,
            schedule="linear",
            min_lr_fraction=0.0,
            warmup_steps=max(steps // 20, min(WARM_UP, steps // 2)),
            precision="float32",
            seed=self.seed,
            eval_every=0,
            sample_every=0,
        )


@dataclass(frozen=True)
class ScalingRun:
    """A run that has ended: parameters N, characters read D, FLOPs 6 N D, and held-out loss in nats."""

    plan: Plan
    parameters: int
    tokens: int
    flops: int
    loss: float
    made: str = ""


def measure(plan: Plan) -> Steps[ScalingRun]:
    """Trains the model of a plan on Tiny Shakespeare, yielding its steps. Raises CorpusError without it."""
    config, loss = plan.train, float("nan")
    yield Progress(0, config.steps)
    for record in train(plan.model, config, corpora.load("shakespeare"), device="cpu"):
        if isinstance(record, Step):
            yield Progress(record.step, config.steps)
        elif isinstance(record, Evaluation):
            loss = record.validation_loss
    tokens = config.steps * BATCH * CONTEXT
    flops = 6 * plan.parameters * tokens
    return ScalingRun(plan, plan.parameters, tokens, flops, loss, made("scaling"))


@dataclass(frozen=True, eq=False)
class Fit:
    """Valleys by budget, of all seeds and of each, and the power law through them (None below three)."""

    valleys: Mapping[float, Valley]
    law: PowerLaw | None
    seeds: tuple[Fit, ...] = ()

    def exponent(self, budget: float, after: float) -> float:
        """Returns the exponent with which N_opt grows from one budget to another."""
        growth = self.valleys[after].parameters / self.valleys[budget].parameters
        return math.log(growth) / math.log(after / budget)

    def spread(self, budget: float) -> tuple[float, float]:
        """Returns the lowest and the highest N_opt of a budget over the seeds."""
        best = [each.valleys[budget].parameters for each in self.seeds if budget in each.valleys]
        return min(best, default=math.nan), max(best, default=math.nan)

    @property
    def exponents(self) -> tuple[float, ...]:
        """The exponent of each seed whose runs are all there."""
        whole = [each for each in self.seeds if each.valleys.keys() == self.valleys.keys()]
        return tuple(each.law.exponent for each in whole if each.law)


def fit(runs: Sequence[ScalingRun]) -> Fit:
    """Fits a parabola to each budget that has at least three sizes, and a power law through their minima."""
    whole = _fit(runs)
    seeds = sorted({run.plan.seed for run in runs})
    each = tuple(_fit([run for run in runs if run.plan.seed == seed]) for seed in seeds)
    return Fit(whole.valleys, whole.law, each)


def _fit(runs: Sequence[ScalingRun]) -> Fit:
    valleys: dict[float, Valley] = {}
    for budget in sorted({run.plan.budget for run in runs}):
        alike = [run for run in runs if run.plan.budget == budget]
        with suppress(GlassformerError):  # too few sizes so far, or no valley
            valleys[budget] = valley(*np.array([(run.parameters, run.loss) for run in alike]).T)
    if len(valleys) < FEWEST:
        return Fit(valleys, None)
    best = np.array([each.parameters for each in valleys.values()])
    return Fit(valleys, power_law(np.array([*valleys]), best))


def plans(seeds: Sequence[int] = SEEDS) -> tuple[Plan, ...]:
    """Returns the plans of all runs, a seed at a time."""
    return tuple(Plan(c, width, seed) for seed in seeds for c, widths in WIDTHS.items() for width in widths)


@cache
def shipped() -> tuple[ScalingRun, ...]:
    """Reads the runs that come with the app, once. Raises CheckpointError for an unreadable file."""
    return stored()


def stored(path: Path = PATH) -> tuple[ScalingRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "scaling", ScalingRun)


def main(arguments: Sequence[str] | None = None) -> None:
    def ends(run: ScalingRun) -> str:
        return f"{run.parameters} parameters, {run.tokens} characters, loss {run.loss:.4f}"

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, plans(), stored, lambda plan: finish(measure(plan)), ends)
