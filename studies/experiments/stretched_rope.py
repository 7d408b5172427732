"""RoPE models read beyond their context with stretched frequencies: `python -m studies.experiments
stretched-rope` writes `checkpoints/positions/stretched.json`. The shipped model and its recipe with other
seeds; runs that are stored already are not made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine import checkpoints
from engine.checkpoints import model_with
from engine.data import corpora
from engine.model import Transformer
from engine.training.records import Snapshot
from engine.training.train import train
from studies.experiments.command import complete, folder_options, made, reading
from studies.experiments.extrapolation import SEEDS
from studies.experiments.shipped import POSITION_RECIPES, extrapolation
from studies.positions.extrapolation import Curve
from studies.positions.stretched_rope import STRETCHES, Stretching, stretched

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
PATH = CHECKPOINTS / "positions" / "stretched.json"
SHIPPED = POSITION_RECIPES["positions/rope"]
FACTORS = (2, 4)
FEWER_TURNS = 5.0  # a beta for this context, of which the fastest pair turns only 64 / 2 pi = 10 times
VARIANTS = (
    Stretching(),
    *(Stretching(kind, times) for times in FACTORS for kind in STRETCHES),
    *(Stretching("yarn", times, FEWER_TURNS) for times in FACTORS),
)


@dataclass(frozen=True, eq=False)
class StretchedRun:
    """A model of a seed by its losses by position, in nats, with each stretch. `made` says where and when."""

    seed: int
    curves: dict[Stretching, Curve]
    made: str = ""


def model_of(seed: int) -> Transformer:
    """Returns the shipped model, or its recipe trained to the end with another seed, stored in bfloat16."""
    if seed == SHIPPED.train.seed:
        return checkpoints.load(CHECKPOINTS / "positions" / "rope").model
    config = replace(SHIPPED.train, seed=seed)
    corpus = corpora.load(SHIPPED.corpus, tokenizer=config.tokenizer)
    resolved = replace(SHIPPED.model, vocab_size=corpus.vocab_size).resolved()
    for record in train(resolved, config, corpus):
        if isinstance(record, Snapshot):
            weights = record.state.weights()
    return model_with(resolved, {key: t.bfloat16().float() for key, t in weights.items()}, "rope")


def read_with_each(seed: int) -> StretchedRun:
    """Reads the validation split with every stretch. Raises CorpusError without Tiny Shakespeare."""
    model, tokens = model_of(seed), corpora.load(SHIPPED.corpus, tokenizer=SHIPPED.train.tokenizer).validation
    curves = {by: extrapolation(stretched(model, by), tokens) for by in VARIANTS}
    return StretchedRun(seed, curves, made("stretched-rope"))


def stretched_runs(path: Path = PATH) -> dict[int, StretchedRun]:
    """Reads the stored runs, by seed. Raises CheckpointError."""
    with reading(path, "stretched-rope") as stored:
        runs = (StretchedRun(each["seed"], _curves(each["curves"]), each["made"]) for each in stored)
        return {run.seed: run for run in runs}


def _curves(stored: Sequence[dict[str, Any]]) -> dict[Stretching, Curve]:
    return {
        Stretching(each["kind"], each["times"], each["most_turns"]): Curve.from_dict(each["curve"])
        for each in stored
    }


def _written(run: StretchedRun) -> dict[str, Any]:
    curves = [
        {"kind": by.kind, "times": by.times, "most_turns": by.most_turns, "curve": curve.to_dict()}
        for by, curve in run.curves.items()
    ]
    return {"seed": run.seed, "curves": curves, "made": run.made}


def main(arguments: Sequence[str] | None = None) -> None:
    file = folder_options(__doc__).parse_args(arguments).into / "positions" / PATH.name
    complete(
        file,
        [SHIPPED.train.seed, *SEEDS],
        stretched_runs,
        read_with_each,
        lambda run: f"plain {run.curves[Stretching()].tail[0]:.4f}",
        lambda runs: [_written(run) for run in runs.values()],
    )
