"""A story of many first Transformers: the loss does not fall, the text is "the the the the", and two causes
are found one after the other, by printing shapes and by logging gradient norms. Here with our own model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from engine.config import Init, ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.data.progress import Progress, Steps, finish
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY, Parts, swapped
from engine.presets import SMALL
from engine.recording import record
from engine.sample import complete
from engine.training.batches import Batches, loss_of, measure
from engine.training.numerics import choose
from engine.training.optim import Optimiser, learning_rate_factor
from studies.experiments.command import complete as complete_file
from studies.experiments.command import folder_options, from_json, reading, strided
from studies.lab.doctor.start import stream_gradients
from studies.lab.faults.masks import transposed_mask

PATH = Path(__file__).resolve().parents[3] / "checkpoints" / "story.json"
STEPS, STRIDE, SEEN = 2000, 10, 8192  # updates; of which each STRIDE are a point; tokens of held-out text
LOOKS = (0, 20, 100, 200, 500, 1000, 2000)
LETTERS, READ = 60, "ROMEO:\nWhat"
CPU = torch.device("cpu")


def unscaled(name: str, std: float) -> float:
    """Returns the spread of the blocks' matrices as `torch.randn` draws them: 1, whatever they read."""
    return 1.0 if name.startswith("blocks.") else std


MASK = swapped(HEALTHY, "the mask transposed", mask=transposed_mask)
BOTH = swapped(MASK, "both", spread=unscaled)


@dataclass(frozen=True)
class Stage:
    """A model of the story: its parts, initial weights, and steps watched of a training of STEPS."""

    name: str
    parts: Parts
    init: Init = "scaled"
    steps: int = STEPS


STAGES: Mapping[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage("both", BOTH, steps=500),
        Stage("mask", MASK, steps=500),
        Stage("told", MASK, "plain", 500),
        Stage("mended", HEALTHY),
    )
}


@dataclass(frozen=True)
class StoryStep:
    """A model after a step: its held-out loss, nats per character, and its text, greedy and sampled."""

    step: int
    loss: float
    greedy: str
    drawn: str


@dataclass(frozen=True, eq=False)
class StageRun:
    """A stage after its training. `losses` and `norms` (point,): of the batches and of the whole gradient
    before clipping, each the mean of STRIDE steps. Before the first step: `blocks` (layer,), the gradient
    norm of each block's parameters, and `growth`, the gradient at the stream's beginning over that at its
    end. `pattern` (query, key): of the first head of the last block in the end, reading READ.
    """

    name: str
    losses: np.ndarray = field(repr=False)
    norms: np.ndarray = field(repr=False)
    first_norm: float
    blocks: np.ndarray = field(repr=False)
    growth: float
    looks: tuple[StoryStep, ...]
    pattern: np.ndarray = field(repr=False)

    @property
    def points(self) -> np.ndarray:
        """The steps after which the losses are taken."""
        return STRIDE * np.arange(1, len(self.losses) + 1)

    @property
    def last(self) -> StoryStep:
        return self.looks[-1]


def recipe(corpus: Corpus) -> tuple[ModelConfig, TrainConfig]:
    """Returns the preset "classic", for STEPS steps."""
    preset = SMALL["classic"]
    assert preset.train is not None
    settings = replace(preset.train, steps=STEPS, precision="float32")
    return replace(preset.model, vocab_size=corpus.vocab_size), settings


def play(stage: Stage, corpus: Corpus, steps: int = 0) -> Steps[StageRun]:
    """Trains a stage (for fewer steps, where asked for), with a progress after each step."""
    config, settings = recipe(corpus)
    total = min(steps or stage.steps, stage.steps)
    model = build(config, settings.seed, parts=stage.parts, init=stage.init)
    batches = Batches(corpus, config, settings)
    first = stream_gradients(model, batches.at(0))
    optimiser = Optimiser(model, settings, choose("float32", CPU))
    losses, norms, looks = [], [], []
    for step in range(total + 1):
        if step in LOOKS or step == total:
            looks.append(_look(model, batches, corpus, step))
        if step == total:
            break
        stage.parts.mode(model, True)
        loss = loss_of(model, batches.at(step), CPU)
        losses.append(float(loss.detach()))
        norms.append(optimiser.update(loss, learning_rate_factor(settings, step)))
        yield Progress(step + 1, total)
    pattern = record(model, corpus.tokenizer.encode(READ), only={"pattern"}).stacked("pattern")[-1, 0]
    curves = strided(losses, STRIDE), strided(norms, STRIDE)
    return StageRun(stage.name, *curves, norms[0], first.blocks, first.growth, tuple(looks), pattern)


def play_named(name: str, corpus: Corpus, steps: int = 0) -> Steps[StageRun]:
    """Trains the stage of that name, as `play` does. Raises KeyError for another name."""
    return (yield from play(STAGES[name], corpus, steps))


def _look(model: Transformer, batches: Batches, corpus: Corpus, step: int) -> StoryStep:
    loss = measure(model, batches, corpus.validation, SEEN).nats
    name = READ.split("\n")[0] + "\n"
    greedy, drawn = (complete(model, corpus.tokenizer, name, LETTERS, t, 0) for t in (0.0, 0.8))
    return StoryStep(step, loss, greedy, drawn)


def later(run: StageRun) -> float:
    """Returns the share of all attention weight that lies on later letters."""
    return float(np.triu(run.pattern, 1).sum() / run.pattern.sum())


def stored(path: Path) -> dict[str, StageRun]:
    """Reads the stages that are stored so far, by name. Raises CheckpointError for an unreadable file."""
    with reading(path, "story") as values:
        return {name: from_json(StageRun, {"name": name} | row) for name, row in values["stages"].items()}


@cache
def shipped(path: Path = PATH) -> Mapping[str, StageRun]:
    """Reads the stages that come with the app, by name, in their order."""
    stages = stored(path)
    return {name: stages[name] for name in STAGES if name in stages}


@cache
def baselines(path: Path = PATH) -> Mapping[str, float]:
    """Reads the losses of counting (`Corpus.baselines`) on the text of the story."""
    with reading(path, "story") as values:
        return values["lines"]


def main(arguments: Sequence[str] | None = None) -> None:
    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    torch.set_flush_denormal(True)  # numbers too small to matter would take a hundred times as long
    corpus = corpora.load("shakespeare")
    about = {
        "made_by": "python -m studies.experiments story",
        "corpus": corpus.name,
        "preset": "classic",
        "steps": STEPS,
        "torch": torch.__version__,
        "lines": dict(corpus.baselines),
    }
    complete_file(
        file,
        tuple(STAGES),
        stored,
        lambda name: finish(play(STAGES[name], corpus)),
        lambda run: f"loss {run.last.loss:.3f}",
        lambda stages: about | {"stages": stages},
    )
