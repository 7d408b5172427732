"""Mixtures of experts over seeds: `python -m studies.experiments experts` writes `checkpoints/experts.json`,
which the app shows. Stored runs are kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
import torch

from engine.checkpoints import model_with
from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.data.progress import Progress, Steps, finish
from engine.training.records import Evaluation, Snapshot
from engine.training.train import train
from studies.experiments.command import complete, folder_options, made, read_runs, require_all
from studies.feedforward.experts import EXCERPT, Routing, routing

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "experts.json"
CORPUS = "shakespeare"
SEEDS = (0, 1, 2)
LOOK = 4_096  # held-out characters that are read at each snapshot
DENSE = "dense"  # one network as wide as the experts that a token meets
KINDS = ("none", "loss", "bias")
MIXTURE = ModelConfig(
    vocab_size=65,
    context=64,
    d_model=96,
    n_layers=4,
    n_heads=4,
    d_ff=96,
    ffn="relu2",
    position="rope",
    norm_gain=False,
    n_experts=8,
    active_experts=2,
    shared_experts=1,
)
TRAINING = TrainConfig(
    steps=240,
    batch_size=32,
    learning_rate=3e-3,
    weight_decay=0.0,
    warmup_steps=20,
    schedule="linear",
    min_lr_fraction=0.0,
    precision="float32",
    eval_every=120,
    eval_tokens=4_096,
    sample_every=0,
    snapshot_every=15,
    snapshot_early=True,
)


@dataclass(frozen=True)
class Plan:
    """A training: how its experts are balanced (of KINDS), and its seed."""

    kind: str
    seed: int


def model_of(kind: str) -> ModelConfig:
    """Returns the model of one of KINDS, or DENSE."""
    if kind == DENSE:
        c = MIXTURE
        return replace(c, n_experts=0, shared_experts=0, d_ff=96 * (c.active_experts + c.shared_experts))
    return replace(MIXTURE, balance=kind)  # type: ignore[arg-type]


@dataclass(frozen=True)
class ExpertRun:
    """A training. `loss` is that of the whole held-out text, in nats per character; `shares` (look, layer,
    expert) are the experts' shares of held-out characters after `steps`; `final` says where characters went
    at the end. `seconds` is the processor's time.
    """

    plan: Plan
    loss: float
    seconds: float
    steps: tuple[int, ...] = field(repr=False)
    shares: np.ndarray = field(repr=False, compare=False)
    final: tuple[Routing, ...] = field(repr=False, compare=False)
    made: str = ""
    text: str = ""  # the EXCERPT that `final` has the experts of
    vocabulary: str = ""  # all characters, by id


PLANS = tuple(Plan(kind, seed) for seed in SEEDS for kind in KINDS)


def trained(plan: Plan, corpus: Corpus | None = None, config: TrainConfig = TRAINING) -> ExpertRun:
    """Trains one model to its end."""
    return finish(learn(plan, corpus, config))


def learn(plan: Plan, corpus: Corpus | None = None, config: TrainConfig = TRAINING) -> Steps[ExpertRun]:
    """Trains one model, and looks at each snapshot where it sends held-out text. Yields the run so far."""
    text, began = corpus or corpora.load(CORPUS), time.process_time()
    model = replace(model_of(plan.kind), vocab_size=text.vocab_size)
    shares: dict[int, list[np.ndarray]] = {}
    final: tuple[Routing, ...] = ()
    loss = float("nan")

    def run() -> ExpertRun:
        seconds = time.process_time() - began
        looks = np.array([*shares.values()])
        return ExpertRun(plan, loss, seconds, tuple(shares), looks, final, made("experts"), *_letters(text))

    yield Progress(0, config.steps)
    for record in train(model, replace(config, seed=plan.seed), text, device="cpu"):
        if isinstance(record, Evaluation):
            loss = record.validation_loss
        elif isinstance(record, Snapshot):
            read = text.validation if record.step == config.steps else text.validation[:LOOK]
            final = routing(model_with(model, record.state.weights()), read)
            shares[record.step] = [layer.shares for layer in final]
            yield Progress(record.step, config.steps, run())
    return run()


def learn_twins(
    kind: str, seed: int, corpus: Corpus | None = None, config: TrainConfig = TRAINING
) -> Steps[tuple[ExpertRun, ...]]:
    """Trains a model that nothing balances and its twin of a kind, a look of each in turn. Yields both so
    far, none before both have one.
    """
    trainings = [learn(Plan(each, seed), corpus, config) for each in ("none", kind)]
    done, runs = [0, 0], [None, None]  # type: list[int], list[ExpertRun | None]
    ended = 0
    while ended < len(trainings):
        ended = 0
        for i, training in enumerate(trainings):
            try:
                at = next(training)
            except StopIteration as end:
                runs[i], ended = end.value or runs[i], ended + 1
            else:
                done[i], runs[i] = at.done, at.so_far
        twins = tuple(each for each in runs if each is not None)
        yield Progress(sum(done), 2 * config.steps, twins if len(twins) == len(trainings) else ())
    return twins


def _letters(corpus: Corpus) -> tuple[str, str]:
    """Returns the excerpt and the vocabulary of a corpus of characters."""
    read = corpus.tokenizer.decode
    return read(corpus.validation[:EXCERPT].tolist()), "".join(read([i]) for i in range(corpus.vocab_size))


def stored(path: Path) -> tuple[ExpertRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "experts", ExpertRun)


@cache
def shipped(path: Path = PATH) -> tuple[ExpertRun, ...]:
    """Reads the runs that come with the app. Raises CheckpointError, also where one is not stored."""
    runs = stored(path)
    require_all({run.plan for run in runs}, PLANS, path, "experts")
    return runs


@dataclass(frozen=True)
class Balance:
    """One layer of the mixtures of a kind, at the end: medians over `seeds`. `largest` is the share of
    the busiest expert, `two` that of the two busiest, `unused` the experts with hardly any. `predictable` and
    `shuffled` are Routing's.
    """

    seeds: int
    largest: float
    two: float
    unused: int
    predictable: float
    shuffled: float


def balance(runs: Sequence[ExpertRun], kind: str, layer: int) -> Balance:
    """Returns how one layer of the mixtures of a kind is balanced."""
    finals = [run.final[layer] for run in runs if run.plan.kind == kind]
    by_size = [np.sort(each.shares)[::-1] for each in finals]
    return Balance(
        len(finals),
        median(float(shares[0]) for shares in by_size),
        median(float(shares[:2].sum()) for shares in by_size),
        int(median(each.unused for each in finals)),
        median(each.predictable for each in finals),
        median(each.shuffled() for each in finals),
    )


def losses(runs: Sequence[ExpertRun], kind: str) -> tuple[float, ...]:
    """Returns the final losses of a kind by seed."""
    return tuple(run.loss for run in runs if run.plan.kind == kind)


def main(arguments: Sequence[str] | None = None) -> None:
    def found(run: ExpertRun) -> str:
        largest = ", ".join(f"{layer.shares.max():.2f}" for layer in run.final)
        return f"held out {run.loss:.3f}, {run.seconds:.0f} s, largest shares {largest}"

    torch.set_num_threads(1)
    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, stored, trained, found)
