"""The models of *Extrapolation* with other seeds: `python -m studies.experiments extrapolation` writes
`checkpoints/positions/seeds.json`. Runs that are stored already are not trained again, so it goes on after an
interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from engine.checkpoints import model_with
from engine.config import Position
from engine.data import corpora
from engine.training.batches import Batches, measure
from engine.training.records import Snapshot
from engine.training.train import train
from studies.experiments.command import complete, folder_options, made, reading
from studies.experiments.shipped import POSITION_RECIPES, extrapolation
from studies.positions.extrapolation import Curve

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "positions" / "seeds.json"
SEEDS = (0, 1)  # beside the shipped model's own


@dataclass(frozen=True)
class Plan:
    """A training of the shipped recipe of a scheme, with another seed."""

    scheme: Position
    seed: int


@dataclass(frozen=True, eq=False)
class SchemeRun:
    """A finished training: its held-out loss in nats per character, and its loss by position. `made` says
    where and when.
    """

    plan: Plan
    validation_loss: float
    curve: Curve
    made: str = ""


def trained(plan: Plan) -> SchemeRun:
    """Trains to the end and measures the last weights as they would be stored, in bfloat16. Raises
    CorpusError without Tiny Shakespeare.
    """
    recipe = POSITION_RECIPES[f"positions/{plan.scheme}"]
    config = replace(recipe.train, seed=plan.seed)
    corpus = corpora.load(recipe.corpus, tokenizer=config.tokenizer)
    resolved = replace(recipe.model, vocab_size=corpus.vocab_size).resolved()
    for record in train(resolved, config, corpus):
        if isinstance(record, Snapshot):
            weights = record.state.weights()
    model = model_with(resolved, {key: t.bfloat16().float() for key, t in weights.items()}, plan.scheme)
    loss = measure(model, Batches(corpus, resolved, config), corpus.validation).nats
    return SchemeRun(plan, round(loss, 4), extrapolation(model, corpus.validation), made("extrapolation"))


def shipped_runs(path: Path = PATH) -> tuple[SchemeRun, ...]:
    """Reads the stored runs: each position scheme with other seeds. Raises CheckpointError."""
    with reading(path, "extrapolation") as stored:
        return tuple(
            SchemeRun(
                Plan(values["scheme"], values["seed"]),
                float(values["validation_loss"]),
                Curve.from_dict(values["curve"]),
                values["made"],
            )
            for values in stored
        )


def _written(run: SchemeRun) -> dict[str, Any]:
    return {
        "scheme": run.plan.scheme,
        "seed": run.plan.seed,
        "validation_loss": run.validation_loss,
        "curve": run.curve.to_dict(),
        "made": run.made,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    file = folder_options(__doc__).parse_args(arguments).into / PATH.parent.name / PATH.name
    plans = [Plan(scheme, seed) for seed in SEEDS for scheme in get_args(Position)]
    complete(
        file,
        plans,
        shipped_runs,
        trained,
        lambda run: f"held-out loss {run.validation_loss:.4f}",
        lambda runs: [_written(run) for run in runs.values()],
    )
