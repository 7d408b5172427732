"""The lecture's own experiment, repeated: `python -m engine.experiments ladder` trains its rungs."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from engine.config import TrainConfig, passes
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.experiments.command import (
    begin,
    folder_options,
    machine,
    processor,
    reading,
    resumed,
    write_json,
)
from engine.lab.faults import parts_of
from engine.model import count_parameters
from engine.presets.ladder import LECTURE, LECTURE_TRAINING
from engine.training.numerics import choose
from engine.training.records import Done, Evaluation, Sample, Snapshot
from engine.training.train import train
from engine.weights.checkpoints import save_state, write_whole

log = logging.getLogger("glassformer.ladder")
SHIPPED = Path(__file__).parents[2] / "checkpoints" / "ladder.json"
CORPUS = "shakespeare"
NEAR = 0.05  # nats: as near to the lecture's loss counts as the same
LAST = 1_000  # steps at the end of a curve, over which it is said how fast its loss still falls


@dataclass(frozen=True)
class Climbed:
    """A rung after its training. `steps` (evaluation,) with the losses there, nats per letter: `train` on a
    fixed part of the training split, `validation` on a part of the other. `whole` is the loss on all of that
    after the last step; None where the end was not reached. `text` is its last sample.
    """

    name: str
    parameters: int
    steps: tuple[int, ...]
    train: tuple[float, ...]
    validation: tuple[float, ...]
    of: int
    seconds: float
    whole: float | None = None
    text: str = ""
    numerics: str = ""
    processor: str = ""

    @property
    def finished(self) -> bool:
        return self.steps[-1] >= self.of

    @property
    def published(self) -> float | None:
        """The lecture's result for its training loss."""
        return LECTURE[self.name].loss

    @property
    def off(self) -> float | None:
        """Our training loss minus the lecture's; None where it gave none, or ours is not at its end."""
        if self.published is None or not self.finished:
            return None
        return self.train[-1] - self.published

    @property
    def agrees(self) -> bool | None:
        """True if ours is within NEAR of the lecture's; None where the two cannot be compared."""
        return None if self.off is None else abs(self.off) <= NEAR

    @property
    def precision(self) -> str:
        """The precision in a word: float32 or bfloat16."""
        return self.numerics.partition(" ")[0]

    @property
    def falling(self) -> float | None:
        """Returns by how many nats the training loss fell over the last LAST steps; None where its curve has
        no evaluation there.
        """
        before = dict(zip(self.steps, self.train, strict=True)).get(self.steps[-1] - LAST)
        return None if before is None else before - self.train[-1]

    @property
    def best(self) -> tuple[int, float]:
        """(step, loss) where the loss on unseen text was lowest: later it only overfitted."""
        at = min(range(len(self.steps)), key=lambda i: self.validation[i])
        return self.steps[at], self.validation[at]


@dataclass(frozen=True)
class Experiment:
    """All trained rungs, by name in LECTURE's order, and the letters of the training text."""

    rungs: Mapping[str, Climbed]
    letters: int
    made: Mapping[str, Any]

    @property
    def passes(self) -> float:
        """Returns how often the lecture's training reads its text."""
        c = LECTURE_TRAINING
        context = LECTURE["last"].rung.model.context
        return passes(c.steps, c.batch_size, context, self.letters)

    @property
    def agreeing(self) -> tuple[str, ...]:
        """Rungs at their end whose training loss is within NEAR of the lecture's."""
        return tuple(name for name, each in self.rungs.items() if each.agrees)

    @property
    def compared(self) -> tuple[str, ...]:
        """Rungs at their end for which the lecture gave a number."""
        return tuple(name for name, each in self.rungs.items() if each.off is not None)

    @property
    def machines(self) -> Mapping[tuple[str, str], int]:
        """Returns how many rungs were trained in each (precision, processor)."""
        return Counter((each.precision, each.processor) for each in self.rungs.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """Rungs without a single trained step."""
        return tuple(name for name in LECTURE if name not in self.rungs)


@dataclass(frozen=True)
class Overfit:
    """A validated training: losses (nats per letter) after `passes` (evaluation,) over the text."""

    name: str
    passes: tuple[float, ...]
    train: tuple[float, ...]
    validation: tuple[float, ...]

    @property
    def gap(self) -> float:
        """The gap at the end."""
        return self.validation[-1] - self.train[-1]


def of_checkpoint(name: str, letters: int) -> Overfit:
    """Reads the training of a shipped model. Raises CheckpointError where it cannot be read."""
    folder = SHIPPED.parent / name
    with reading(folder / "metrics.json", name) as story:
        context = json.loads((folder / "config.json").read_text())["context"]
        batch = story["train"]["batch_size"]
        looks = story["curve"]
        return Overfit(
            name,
            tuple(passes(look["step"], batch, context, letters) for look in looks),
            tuple(look["train_loss"] for look in looks),
            tuple(look["validation_loss"] for look in looks),
        )


@cache
def shipped(path: Path = SHIPPED) -> Experiment:
    """Reads the experiment that comes with the app. Raises CheckpointError where it cannot be read."""
    with reading(path, "ladder") as stored:
        rungs = {}
        for name, each in stored["rungs"].items():
            curve = tuple(zip(*each.pop("curve"), strict=True))
            rungs[name] = Climbed(name=name, steps=curve[0], train=curve[1], validation=curve[2], **each)
        return Experiment(rungs, stored["letters"], stored["made"])


def train_rung(name: str, corpus: Corpus, work: Path, config: TrainConfig = LECTURE_TRAINING) -> None:
    """Trains a rung from its newest state in `work` to its end, leaving state, curve and text there."""
    rung = LECTURE[name].rung
    model = replace(rung.model, vocab_size=corpus.vocab_size)
    state_file, story_file = work / f"{name}.state", work / f"{name}.json"
    made_by = {"model": model.to_dict(), "train": config.to_dict(), "parts": rung.parts}
    resume = resumed(state_file, made_by)
    story: dict[str, Any] = {"parameters": count_parameters(model, parts_of(rung.parts)), "curve": []}
    story |= {"of": config.steps, "seconds": 0.0, "numerics": choose(config.precision).sentence}
    story |= {"processor": processor()}
    if resume:
        story = json.loads(story_file.read_text())
        if resume.step >= config.steps:
            return
    for record in train(model, config, corpus, resume=resume, parts=parts_of(rung.parts)):
        if isinstance(record, Evaluation):
            _look(story, record)
            log.info("%s: %s", name, story["curve"][-1])
        elif isinstance(record, Sample):
            story["text"] = record.text
        elif isinstance(record, Snapshot):
            story["seconds"] = round(record.state.seconds, 1)
            save_state(state_file, record.state, made_by)
            write_whole(story_file, json.dumps(story).encode())
        elif isinstance(record, Done):
            log.info("%s: %s, %.0f s", name, record.message, record.seconds)


def _look(story: dict[str, Any], seen: Evaluation) -> None:
    if seen.complete:
        story["whole"] = round(seen.validation_loss, 4)
    elif not story["curve"] or seen.step > story["curve"][-1][0]:
        story["curve"].append([seen.step, round(seen.train_loss, 4), round(seen.validation_loss, 4)])


def collect(work: Path, into: Path, corpus: Corpus, config: TrainConfig = LECTURE_TRAINING) -> Experiment:
    """Writes the results in `work` as `into/ladder.json`, and returns them as the app reads them."""
    rungs = {
        name: json.loads(path.read_text()) for name in LECTURE if (path := work / f"{name}.json").exists()
    }
    made = {
        "command": "python -m engine.experiments ladder",
        "corpus": corpus.name,
        "measured": (
            f"nats per character, in windows of {LECTURE['last'].rung.model.context}: curves on about"
            f" {config.eval_tokens:,} letters of each split, `whole` on the whole validation split"
        ),
        "train": config.to_dict(),
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
    }
    what = {"made": made, "letters": len(corpus.train), "rungs": rungs}
    write_json(into / "ladder.json", what)
    shipped.cache_clear()
    return shipped(into / "ladder.json")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = folder_options(__doc__)
    parser.add_argument("rungs", nargs="*", choices=[*LECTURE, []], help="which ones (default: all)")
    parser.add_argument("--collect", action="store_true", help="write what there is, and train nothing")
    options = parser.parse_args(arguments)
    begin()
    corpus = corpora.load(CORPUS, tokenizer=LECTURE_TRAINING.tokenizer)
    work = options.work or corpora.cache_folder() / "ladder"
    work.mkdir(parents=True, exist_ok=True)
    for name in () if options.collect else options.rungs or LECTURE:
        train_rung(name, corpus, work)
    experiment = collect(work, options.into, corpus)
    log.info(
        "%d of %d rungs, %d of them to their end",
        len(experiment.rungs),
        len(LECTURE),
        sum(r.finished for r in experiment.rungs.values()),
    )
