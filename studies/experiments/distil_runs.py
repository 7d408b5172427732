"""Students of a shipped model over seeds: `python -m studies.experiments distillation` writes
`checkpoints/distillation.json`, which the app shows. Stored runs are kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median

import torch

from engine.checkpoints import load
from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.training.batches import Batches, measure
from studies.after.distil import distil
from studies.experiments.command import complete, folder_options, made, read_runs, require_all
from studies.experiments.ladder_gains import separate

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
PATH, TEACHER, CORPUS = CHECKPOINTS / "distillation.json", "shakespeare-modern", "shakespeare"
SEEDS = (0, 1, 2)
LITTLE = 5_000  # characters
SOURCES = ("whole", "little", "unseen")  # the teacher's training text, its beginning, text that it never read
TEXT = 0.0  # in the place of a temperature: the characters themselves
STUDENT = ModelConfig(
    vocab_size=65, context=64, n_layers=2, n_heads=4, position="rope", norm="rmsnorm", ffn="relu2"
)
TRAINING = TrainConfig(
    steps=200,
    batch_size=8,
    learning_rate=4e-3,
    weight_decay=0.0,
    warmup_steps=20,
    schedule="linear",
    min_lr_fraction=0.0,
    eval_every=50,
    eval_tokens=16_384,
)


@dataclass(frozen=True)
class Plan:
    """A student of a `width`, which reads a text of SOURCES and learns from its characters (TEXT) or from the
    teacher's probabilities at a temperature.
    """

    source: str
    width: int
    temperature: float
    seed: int


@dataclass(frozen=True)
class Distilled:
    """A training: losses (look,) in nats per character of held-out text that neither model has read."""

    plan: Plan
    steps: tuple[int, ...] = field(repr=False)
    losses: tuple[float, ...] = field(repr=False)
    seconds: float = 0.0  # of the processor
    made: str = ""


WAYS = (  # what is read, by which width, and what is learned from
    ("little", 64, TEXT),
    ("little", 64, 1.0),
    ("little", 64, 2.0),
    ("whole", 64, TEXT),
    ("whole", 64, 1.0),
    ("whole", 32, TEXT),
    ("whole", 32, 1.0),
    ("unseen", 64, TEXT),
    ("unseen", 64, 1.0),
)
ITSELF = Plan("teacher", 0, TEXT, 0)  # no training: the teacher, judged as its students are
PLANS = (*(Plan(*way, seed) for seed in SEEDS for way in WAYS), ITSELF)


def text_of(source: str, corpus: Corpus) -> Corpus:
    """Returns the corpus that a student reads. All are judged on the second half of the validation split."""
    half = len(corpus.validation) // 2
    whole, unseen = corpus.train, corpus.validation[:LITTLE]
    read = {"whole": whole, "little": whole[:LITTLE], "unseen": unseen}[source]
    return replace(corpus, train=read, validation=corpus.validation[half:])


def judged(corpus: Corpus) -> Distilled:
    """Measures the teacher in the windows by which its students are judged."""
    text, began = text_of("whole", corpus), time.process_time()
    batches = Batches(text, STUDENT, TRAINING)
    loss = measure(load(CHECKPOINTS / TEACHER).model, batches, text.validation, TRAINING.eval_tokens).nats
    return Distilled(ITSELF, (0,), (loss,), time.process_time() - began, made("distillation"))


def trained(plan: Plan, corpus: Corpus | None = None, config: TrainConfig = TRAINING) -> Distilled:
    """Trains one student; of the teacher ITSELF it is the loss alone."""
    if plan == ITSELF:
        return judged(corpus or corpora.load(CORPUS))
    text, began = text_of(plan.source, corpus or corpora.load(CORPUS)), time.process_time()
    teacher = load(CHECKPOINTS / TEACHER).model if plan.temperature else None
    model = replace(STUDENT, d_model=plan.width)
    looks = dict(distil(model, replace(config, seed=plan.seed), text, teacher, plan.temperature or 1.0))
    seconds = time.process_time() - began
    return Distilled(plan, tuple(looks), tuple(looks.values()), seconds, made("distillation"))


@dataclass(frozen=True)
class Gain:
    """Students that read the same text, by what they learned from: final losses by seed."""

    text: tuple[float, ...]
    teacher: tuple[float, ...]

    @property
    def nats(self) -> float:
        """How much lower the loss is with the teacher: a difference of medians."""
        return median(self.text) - median(self.teacher)

    @property
    def clear(self) -> bool:
        return separate(self.text, self.teacher)


def gain(runs: Sequence[Distilled], source: str, width: int, temperature: float) -> Gain:
    """Compares the students of a teacher with those of the same text."""

    def ends(wanted: float) -> tuple[float, ...]:
        return tuple(r.losses[-1] for r in runs if r.plan == Plan(source, width, wanted, r.plan.seed))

    return Gain(ends(TEXT), ends(temperature))


def stored(path: Path) -> tuple[Distilled, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "distillation", Distilled)


@cache
def shipped(path: Path = PATH) -> tuple[Distilled, ...]:
    """Reads the runs that come with the app. Raises CheckpointError, also where one is not stored."""
    runs = stored(path)
    require_all({run.plan for run in runs}, PLANS, path, "distillation")
    return runs


def main(arguments: Sequence[str] | None = None) -> None:
    def found(run: Distilled) -> str:
        return f"held out {run.losses[-1]:.3f}, {run.seconds:.0f} s"

    torch.set_num_threads(1)
    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, stored, trained, found)
