"""Dropout over seeds, on little text and on all of it: `python -m studies.experiments dropout` writes
`checkpoints/dropout.json`, which the app shows. Stored runs are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median

from engine.config import ModelConfig, TrainConfig, passes
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.training.records import Evaluation
from engine.training.train import train
from studies.experiments.command import complete, folder_options, made, read_runs, require_all

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "dropout.json"
CORPUS = "shakespeare"
LITTLE, WHOLE = 5_000, 0  # characters of the training split that are read; 0: all
SHARES = (0.0, 0.1, 0.3)
SEEDS = (0, 1, 2)
MODEL = ModelConfig(vocab_size=65, context=64, d_model=64, n_layers=2, n_heads=4, position="rope")
TRAINING = TrainConfig(
    steps=400,
    batch_size=8,
    learning_rate=3e-3,
    weight_decay=0.0,
    warmup_steps=20,
    schedule="constant",
    precision="float32",
    eval_every=50,
    eval_tokens=4_096,
    sample_every=0,
)


@dataclass(frozen=True)
class Plan:
    """A training: the first `characters` of the training split (0: all), the share dropped, and the seed."""

    characters: int
    dropout: float
    seed: int


@dataclass(frozen=True)
class DropoutRun:
    """A training with its losses (evaluation,) in nats per character, both measured without dropout:
    `train` on the text that it reads, `validation` on the held-out tenth of the whole corpus. `passes` is how
    often it reads its text; `made` says where and when.
    """

    plan: Plan
    passes: float
    steps: tuple[int, ...] = field(repr=False)
    train: tuple[float, ...] = field(repr=False)
    validation: tuple[float, ...] = field(repr=False)
    made: str = ""

    @property
    def lowest(self) -> tuple[int, float]:
        """Returns (step, loss) where the validation loss was lowest."""
        return min(zip(self.steps, self.validation, strict=True), key=lambda look: look[1])


PLANS = tuple(Plan(size, share, seed) for size in (LITTLE, WHOLE) for share in SHARES for seed in SEEDS)


def shortened(corpus: Corpus, characters: int) -> Corpus:
    """Returns the corpus with so many of its training tokens (0: all), and with the same held-out text."""
    return replace(corpus, train=corpus.train[:characters]) if characters else corpus


def trained(plan: Plan, corpus: Corpus | None = None, config: TrainConfig = TRAINING) -> DropoutRun:
    """Trains one model."""
    text = shortened(corpus or corpora.load(CORPUS), plan.characters)
    model = replace(MODEL, vocab_size=text.vocab_size, dropout=plan.dropout)
    records = train(model, replace(config, seed=plan.seed), text, device="cpu")
    looks = {look.step: look for look in records if isinstance(look, Evaluation)}
    return DropoutRun(
        plan,
        passes(config.steps, config.batch_size, MODEL.context, len(text.train)),
        tuple(looks),
        tuple(look.train_loss for look in looks.values()),
        tuple(look.validation_loss for look in looks.values()),
        made("dropout"),
    )


@dataclass(frozen=True)
class Ends:
    """The seeds of one share at the end: medians of both losses, nats per character, and the range of the
    validation loss. `lowest` is the median of the lowest validation losses on the way.
    """

    dropout: float
    seeds: int
    train: float
    validation: float
    spread: tuple[float, float]
    lowest: float


def ends(runs: Sequence[DropoutRun], characters: int) -> tuple[Ends, ...]:
    """Returns the end of each share on so much text, in the order of SHARES."""
    found = []
    for share in SHARES:
        some = [run for run in runs if (run.plan.characters, run.plan.dropout) == (characters, share)]
        if some:
            last = [run.validation[-1] for run in some]
            found.append(
                Ends(
                    share,
                    len(some),
                    median(run.train[-1] for run in some),
                    median(last),
                    (min(last), max(last)),
                    median(run.lowest[1] for run in some),
                )
            )
    return tuple(found)


def stored(path: Path) -> tuple[DropoutRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "dropout", DropoutRun)


@cache
def shipped(path: Path = PATH) -> tuple[DropoutRun, ...]:
    """Reads the runs that come with the app. Raises CheckpointError, also where one is not stored."""
    runs = stored(path)
    require_all({run.plan for run in runs}, PLANS, path, "dropout")
    return runs


def main(arguments: Sequence[str] | None = None) -> None:
    def losses(run: DropoutRun) -> str:
        return f"training {run.train[-1]:.3f}, held out {run.validation[-1]:.3f}"

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, stored, trained, losses)
