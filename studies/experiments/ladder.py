"""The lecture's own experiment, repeated: `python -m studies.experiments ladder` trains its rungs."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, get_args

import torch

from engine.checkpoints import save_state, write_whole
from engine.config import Init, Precision, TrainConfig, passes
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.model import count_parameters
from engine.parts.registry import parts_of
from engine.training.numerics import choose
from engine.training.records import Done, Evaluation, Sample, Snapshot
from engine.training.train import train
from studies.experiments.command import begin, folder_options, processor, reading, resumed, write_json
from studies.tasks.rungs import LECTURE, LECTURE_TRAINING
from studies.tokens import published
from studies.tokens.published import PublishedTokenizer

log = logging.getLogger("glassformer.ladder")
SHIPPED = Path(__file__).parents[2] / "checkpoints" / "ladder.json"
CORPUS = "shakespeare"
NEAR = 0.05  # nats: as near to the lecture's loss counts as the same
CUTS = {
    "cut-characters": "block-4-sinusoidal",
    "cut-gpt2": "block-4-sinusoidal",
}  # figure 7.1: run -> its rung
CUT_STEPS = 3_000
LOST = 1.0  # nats: a training loss so far above its lowest has diverged
LAST = 1_000  # steps at the end of a curve, over which it is said how fast its loss still falls


@dataclass(frozen=True)
class Climbed:
    """A rung after one training. `steps` (evaluation,) with the losses there, nats per token: `train` on a
    fixed part of the training split, `validation` on a part of the other. `whole` is the loss on all of that
    after the last step, `bits` the same in bits per character; None where the end was not reached. `text` is
    its last sample. `overflow` is the step at which a gradient was no longer finite.
    """

    name: str
    parameters: int
    steps: tuple[int, ...]
    train: tuple[float, ...]
    validation: tuple[float, ...]
    of: int
    seconds: float
    whole: float | None = None
    bits: float | None = None
    text: str = ""
    numerics: str = ""
    processor: str = ""
    init: Init = "normal"
    seed: int = LECTURE_TRAINING.seed
    biases: bool = False
    overflow: int | None = None

    @property
    def diverged(self) -> int | None:
        """The first evaluation at which the training loss was LOST above its lowest so far, or the step at
        which a gradient overflowed; None for a training that held.
        """
        lowest = self.train[0]
        for step, loss in zip(self.steps, self.train, strict=True):
            if loss > lowest + LOST:
                return step
            lowest = min(lowest, loss)
        return self.overflow

    @property
    def finished(self) -> bool:
        """True if the last step was reached by a training that held."""
        return self.steps[-1] >= self.of and self.diverged is None

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
    """All trainings of rungs in LECTURE's order, those of its figure 7.1 by name, and the letters of the
    training text.
    """

    runs: tuple[Climbed, ...]
    letters: int
    made: Mapping[str, Any]
    cuts: Mapping[str, Climbed] = field(default_factory=dict)

    def of(self, name: str, init: Init | None = None) -> tuple[Climbed, ...]:
        """Returns the trainings of a rung without biases from one kind of first weights: those of the
        lecture's code where there are some, else those of its text.
        """
        runs = [each for each in self.runs if each.name == name and not each.biases]
        if init is None:
            init = "torch" if any(each.init == "torch" for each in runs) else "normal"
        return tuple(each for each in runs if each.init == init)

    @cached_property
    def rungs(self) -> Mapping[str, Climbed]:
        """The training that stands for each rung: of those that held to the end the one of median training
        loss; else the one that came furthest before it diverged or was broken off.
        """
        result = {}
        for name in LECTURE:
            if runs := self.of(name):
                ended = sorted((each for each in runs if each.finished), key=lambda each: each.train[-1])
                furthest = max(runs, key=lambda each: each.diverged or each.steps[-1])
                result[name] = ended[(len(ended) - 1) // 2] if ended else furthest
        return result

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
    def lost(self) -> tuple[str, ...]:
        """Rungs for which the lecture gave a number, and of which every training diverged."""
        return tuple(
            name
            for name in self.rungs
            if LECTURE[name].loss is not None and all(each.diverged is not None for each in self.of(name))
        )

    @property
    def machines(self) -> Mapping[tuple[str, str], int]:
        """Returns how many trainings were made in each (precision, processor)."""
        return Counter((each.precision, each.processor) for each in self.runs)

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
        order = {name: i for i, name in enumerate(LECTURE)}
        runs = [_climbed(name, each) for name, each in stored["runs"].items()]
        cuts = {each.name: each for each in runs if each.name in CUTS}
        rungs = sorted((each for each in runs if each.name in order), key=lambda each: order[each.name])
        return Experiment(tuple(rungs), stored["letters"], stored["made"], cuts)


def _climbed(stem: str, story: Mapping[str, Any]) -> Climbed:
    """Returns a training from what was stored of it, under the name that `file_stem` gave it."""
    steps, train, validation = zip(*story["curve"], strict=True)
    rest = {key: value for key, value in story.items() if key != "curve"}
    return Climbed(name=stem.split(".")[0], steps=steps, train=train, validation=validation, **rest)


def file_stem(name: str, config: TrainConfig = LECTURE_TRAINING, biases: bool = False) -> str:
    """Returns the name under which a training is stored: that of its rung, and what differs from
    LECTURE_TRAINING.

    >>> file_stem("block-4", replace(LECTURE_TRAINING, init="torch", seed=7), biases=True)
    'block-4.torch.7.biases'
    """
    base = LECTURE_TRAINING
    differ = [
        config.init if config.init != base.init else "",
        str(config.seed) if config.seed != base.seed else "",
        config.precision if config.precision != base.precision else "",
        "biases" if biases else "",
    ]
    return ".".join([name, *filter(None, differ)])


@dataclass(frozen=True)
class _Gpt2:
    """GPT-2's published tokens, as a corpus wants them."""

    encoding: PublishedTokenizer

    @property
    def vocab_size(self) -> int:
        return self.encoding.vocab_size

    @cached_property
    def tokens(self) -> list[bytes]:
        return [self.encoding.decode_bytes([i]) for i in range(self.vocab_size)]

    def encode(self, text: str) -> list[int]:
        return self.encoding.encode(text)

    def decode(self, ids: list[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return self.encoding.decode_bytes(ids)

    def unknown(self, text: str) -> list[str]:
        return []

    def to_dict(self) -> dict[str, Any]:
        return {"kind": published.GPT2}


def in_gpt2_tokens(corpus: Corpus) -> Corpus:
    """Returns the same two parts of a text in GPT-2's tokens. Raises TokenizerError without them."""
    tokenizer = _Gpt2(published.load(published.GPT2, seconds=60))
    cut = len(corpus.train)
    ids = [torch.tensor(tokenizer.encode(part)) for part in (corpus.text[:cut], corpus.text[cut:])]
    return replace(
        corpus, tokenizer=tokenizer, train=ids[0], validation=ids[1], cut=f"bpe:{tokenizer.vocab_size}"
    )


def train_cut(name: str, corpus: Corpus, work: Path, config: TrainConfig = LECTURE_TRAINING) -> None:
    """Trains the model of the lecture's figure 7.1 on one of its tokenizers, as `train_rung` does a rung."""
    if name == "cut-gpt2":
        corpus = in_gpt2_tokens(corpus)
    config = replace(config, steps=CUT_STEPS, tokenizer=corpus.cut)
    train_rung(name, corpus, work, config)


def train_rung(
    name: str, corpus: Corpus, work: Path, config: TrainConfig = LECTURE_TRAINING, biases: bool = False
) -> None:
    """Trains a rung from its newest state in `work` to its end, leaving state, curve and text there. With
    `biases`, its feed-forward networks have them.
    """
    rung = LECTURE[CUTS.get(name, name)].rung
    model = replace(rung.model, vocab_size=corpus.vocab_size, ffn_bias=biases)
    stem = file_stem(name, config, biases)
    state_file, story_file = work / f"{stem}.state", work / f"{stem}.json"
    made_by = {"model": model.to_dict(), "train": config.to_dict(), "parts": rung.parts}
    resume = resumed(state_file, made_by)
    story: dict[str, Any] = {"parameters": count_parameters(model, parts_of(rung.parts)), "curve": []}
    story |= {"init": config.init, "seed": config.seed, "biases": biases}
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
            if record.reason == "diverged":
                story["overflow"] = record.step
                write_whole(story_file, json.dumps(story).encode())
            log.info("%s: %s, %.0f s", name, record.message, record.seconds)


def _look(story: dict[str, Any], seen: Evaluation) -> None:
    if seen.complete:
        story["whole"] = round(seen.validation_loss, 4)
        if seen.validation_bits is not None:
            story["bits"] = round(seen.validation_bits, 4)
    elif not story["curve"] or seen.step > story["curve"][-1][0]:
        story["curve"].append([seen.step, round(seen.train_loss, 4), round(seen.validation_loss, 4)])


def collect(work: Path, into: Path, corpus: Corpus, config: TrainConfig = LECTURE_TRAINING) -> Experiment:
    """Adds the trainings in `work` to those of `into/ladder.json`, and returns them as the app reads them."""
    path = into / "ladder.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    names = {*LECTURE, *CUTS}
    stories = sorted(each for each in work.glob("*.json") if each.name.split(".")[0] in names)
    runs |= {each.name.removesuffix(".json"): json.loads(each.read_text()) for each in stories}
    made = {
        "command": "python -m studies.experiments ladder",
        "corpus": corpus.name,
        "measured": (
            f"nats per token, in windows of {LECTURE['last'].rung.model.context}: curves on about"
            f" {config.eval_tokens:,} tokens of each split, `whole` on the whole validation split"
        ),
        "train": config.to_dict(),
        "date": time.strftime("%Y-%m-%d"),
    }
    write_json(path, {"made": made, "letters": len(corpus.train), "runs": runs})
    shipped.cache_clear()
    return shipped(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = folder_options(__doc__)
    parser.add_argument("rungs", nargs="*", choices=[*LECTURE, *CUTS, []], help="which ones (default: all)")
    parser.add_argument(
        "--init", choices=("normal", "torch"), default=LECTURE_TRAINING.init, help="first weights"
    )
    parser.add_argument("--seed", type=int, default=LECTURE_TRAINING.seed)
    parser.add_argument("--precision", choices=get_args(Precision), default=LECTURE_TRAINING.precision)
    parser.add_argument("--biases", action="store_true", help="in the feed-forward networks")
    parser.add_argument("--collect", action="store_true", help="write what there is, and train nothing")
    options = parser.parse_args(arguments)
    begin()
    corpus = corpora.load(CORPUS, tokenizer=LECTURE_TRAINING.tokenizer)
    work = options.work or corpora.cache_folder() / "ladder"
    work.mkdir(parents=True, exist_ok=True)
    chosen = {name: getattr(options, name) for name in ("init", "seed", "precision")}
    config = replace(LECTURE_TRAINING, **chosen)
    for name in () if options.collect else options.rungs or LECTURE:
        if name in CUTS:
            train_cut(name, corpus, work, config)
        else:
            train_rung(name, corpus, work, config, options.biases)
    experiment = collect(work, options.into, corpus)
    log.info(
        "%d trainings of %d of %d rungs, %d of them to their end",
        len(experiment.runs),
        len(experiment.rungs),
        len(LECTURE),
        sum(each.finished for each in experiment.runs),
    )
