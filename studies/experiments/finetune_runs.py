"""Fine-tunings of SmolLM2 and of a character model over seeds: `python -m studies.experiments finetune`
writes `checkpoints/finetune.json`, which the app draws beside a visitor's own. Runs that are stored already
are left as they are, so it goes on after an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.data import corpora
from engine.data.progress import finish
from studies.after.finetune import FinetuneRecipe
from studies.after.lessons import MANUAL, STYLES, TEXT_STEPS, TOPICS, Style, rate
from studies.after.new_fact import teach
from studies.after.new_text import in_alphabet, split, teach_text
from studies.experiments.command import complete, folder_options, made, read_runs
from studies.weights.pretrained import library, sources
from studies.weights.pretrained.library import Pretrained

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
PATH = CHECKPOINTS / "finetune.json"
REAL, SMALL = sources.PACKAGED, "shakespeare-classic"
LARGEST = 1 << 28  # parameters of a model that is read
SEEDS = (0, 1, 2)
FACT_STEPS = 10
RANKS = (4, 1, 16)


@dataclass(frozen=True)
class Plan:
    """A fine-tuning: a lesson by its name, the rank of the adapters, 0 for all weights, with or without
    rehearsal. The loss counts every token.
    """

    lesson: str
    rank: int
    rehearse: bool
    seed: int

    @property
    def recipe(self) -> FinetuneRecipe:
        """Rank, steps, rate and seed as the app sets them."""
        text = self.lesson == MANUAL
        steps = TEXT_STEPS if text else FACT_STEPS
        return FinetuneRecipe(self.rank, steps, rate(self.rank, text), self.seed)


# Nothing is drawn where all weights learn a fact: every step reads all sentences, and no adapter begins at
# random. The lessons that are shown first come first.
PLANS = (
    *(Plan(MANUAL, rank, rehearse, s) for rank in (*RANKS, 0) for rehearse in (False, True) for s in SEEDS),
    *(Plan("capital", rank, rehearse, s) for rank in RANKS for rehearse in (False, True) for s in SEEDS),
    *(Plan(name, 4, False, s) for name in ("ahoy", "author") for s in SEEDS),
)


@dataclass(frozen=True)
class FinetuneRun:
    """A stored fine-tuning: `values` (look, value) after each of `steps` are the probabilities of the
    lesson's answers, and of a text the losses on the new and on the old one. `made` says where and when.
    """

    plan: Plan
    steps: tuple[int, ...]
    values: tuple[tuple[float, ...], ...] = field(repr=False)
    made: str = ""


def trained(plan: Plan) -> FinetuneRun:
    """Fine-tunes to the end. Raises CorpusError and PretrainedError where text or model are not here."""
    if plan.lesson == MANUAL:
        small = _small()
        new = in_alphabet(corpora.load("python").text, small.tokenizer)
        old = corpora.load("shakespeare").text
        texts = split(new, old, small.tokenizer)
        looks = finish(teach_text(small.model, small.tokenizer, texts, plan.recipe, plan.rehearse)).looks
        losses = tuple((look.new, look.old) for look in looks)
        return FinetuneRun(plan, tuple(look.step for look in looks), losses, made("finetune"))
    real, topic = _real(), (TOPICS | STYLES)[plan.lesson]
    text = topic.text if isinstance(topic, Style) else ""
    lessons = topic.lessons(plan.rehearse, False)
    taught = finish(teach(real.model, real.tokenizer, lessons, topic.questions, plan.recipe, 1, text))
    values = tuple((*look.answers, *([look.plain] if text else [])) for look in taught.looks)
    return FinetuneRun(plan, tuple(look.step for look in taught.looks), values, made("finetune"))


@cache
def _small() -> Checkpoint:
    return checkpoints.load(CHECKPOINTS / SMALL)


@cache
def _real() -> Pretrained:
    return library.load(REAL, LARGEST)


@cache
def shipped() -> tuple[FinetuneRun, ...]:
    """Reads the runs that come with the app, once. Raises CheckpointError for an unreadable file."""
    return stored()


def stored(path: Path = PATH) -> tuple[FinetuneRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "finetune", FinetuneRun)


def main(arguments: Sequence[str] | None = None) -> None:
    def ends(run: FinetuneRun) -> str:
        return ", ".join(f"{value:.3f}" for value in run.values[-1])

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, stored, trained, ends)
