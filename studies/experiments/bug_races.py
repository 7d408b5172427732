"""Each fault of the lab against its healthy twin: the live race, and the stored one."""

from __future__ import annotations

import argparse
import base64
import logging
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from engine.checkpoints import model_with
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.data.tokenizers import Tokenizer
from engine.errors import CheckpointError
from engine.model import Transformer
from engine.parts.registry import parts_of
from engine.recording import record
from engine.training.records import Record, Sample, Snapshot, Step
from engine.training.train import train
from runs.compare import compare
from runs.state import RunSpec, RunView
from studies.experiments.command import begin, reading
from studies.experiments.stored_races import Stored, load_race, run_race
from studies.lab.faults import FAULTS, Fault
from studies.tasks.text_statistics import known_share, words_of

log = logging.getLogger("glassformer.bugs")
FOLDER = Path(__file__).resolve().parents[2] / "checkpoints" / "bugs"
COMMAND = "python -m studies.experiments bugs"
CORPUS = "shakespeare"
SEEDS = (0, 1, 2)  # the first is that of the race, the others of its repeats
HEALTHY, BROKEN = "healthy", "with the bug"
READ = "First Citizen:\nBefore we"  # what the patterns are of
MOST_LAYERS = 4  # of a deep model, that are kept
TIMED, CLOCK = 12, "processor time of one thread, median of 12 steps"
CLOSE = 0.03  # nats: two losses nearer than that are told apart by the seed alone
LUCK = 0.3  # nats: what a bug costs with one seed and not with another
Kind = Literal["unknown", "dies", "varies", "hides", "costs", "flatters"]


@dataclass(frozen=True, eq=False)
class Patterns:
    """Attention patterns of some layers on a text: weights (layer, head, query, key) in [0, 1]."""

    tokens: tuple[str, ...]
    layers: tuple[int, ...]
    weights: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Bug:
    """A fault's shipped race: the healthy run, the faulty one, their patterns (None if not finite)."""

    fault: Fault
    race: Stored
    patterns: tuple[Patterns | None, ...]

    def read(self, text: str | None) -> Stored:
        """Returns the race with its short text, which is not stored, so that it can be told from others."""
        runs = tuple(replace(run, spec=replace(run.spec, text=text)) for run in self.race.runs)
        return replace(self.race, runs=runs)


def specs(fault: Fault, vocab_size: int = 65, text: str | None = None) -> tuple[RunSpec, RunSpec]:
    """Returns the healthy and the faulty run; `text`: a short corpus that the fault is shown on."""
    runs = []
    for name, (model, order, parts) in ((HEALTHY, fault.healthy()), (BROKEN, fault.faulty())):
        model = replace(model, vocab_size=vocab_size)
        corpus = "text" if fault.characters else CORPUS
        runs.append(RunSpec(model, order, corpus, text if fault.characters else None, name, parts))
    return runs[0], runs[1]


def patterns(model: Transformer, tokenizer: Tokenizer, text: str = READ) -> Patterns:
    """Returns a model's patterns on a text. Raises KeyError for a model without heads."""
    unknown = set(tokenizer.unknown(text))
    ids = tokenizer.encode("".join(letter for letter in text if letter not in unknown))
    recording = record(model, ids, only={"pattern"})
    ran = recording.names()
    some = np.unique(np.linspace(0, len(ran) - 1, min(MOST_LAYERS, len(ran))).astype(int))
    weights = np.stack([recording[ran[i]] for i in some])
    layers = tuple(int(ran[i].split(".")[1]) for i in some)
    return Patterns(tuple(tokenizer.decode([i]) for i in ids), layers, weights)


@dataclass(frozen=True)
class Side:
    """One of the two runs so far. `loss` is on the validation split, nats per token, NaN before the first;
    `text` its last sample after `prompt`, `words` the share of that which lies in words of its corpus. `died`
    is the step at which its numbers were not finite any more.
    """

    loss: float
    step: int
    prompt: str
    text: str
    words: float
    died: int | None


@dataclass(frozen=True)
class Comparison:
    """Both runs at the same step. `repeats`: losses (healthy, broken) of the same two with other seeds."""

    healthy: Side
    broken: Side
    repeats: tuple[tuple[float, float], ...] = ()

    @property
    def costs(self) -> tuple[float, ...]:
        """Nats by which the bug's loss lies above the healthy one, by seed."""
        pairs = ((self.healthy.loss, self.broken.loss), *self.repeats)
        return tuple(broken - healthy for healthy, broken in pairs)

    @property
    def typical(self) -> tuple[float, float]:
        """The losses (healthy, broken) of the median run of each, which end the thick lines of a race."""
        healthy, broken = zip((self.healthy.loss, self.broken.loss), *self.repeats, strict=True)
        return statistics.median_low(healthy), statistics.median_low(broken)

    @property
    def cost(self) -> float:
        """Nats by which the bug's median run ends above the healthy one's; within the range of `costs`."""
        healthy, broken = self.typical
        return broken - healthy

    @property
    def kind(self) -> Kind:
        """The bug's effect on the loss, in a word."""
        if self.broken.died is not None:
            return "dies"
        if math.isnan(self.cost):
            return "unknown"
        if min(self.costs) < CLOSE and max(self.costs) > LUCK:
            return "varies"
        return "hides" if abs(self.cost) < CLOSE else "costs" if self.cost > 0 else "flatters"


def compare_twins(views: Sequence[RunView], text: str, repeats: Sequence[RunView] = ()) -> Comparison:
    """Compares the healthy run with the faulty one, on corpus `text`; `repeats` have other seeds."""
    healthy, broken = views
    both = compare(healthy.history.evaluations, broken.history.evaluations)
    if both is not None and broken.status != "failed":  # the healthy one goes on where the other has died
        losses, steps = both.losses, both.steps
    else:
        losses = (_newest(healthy), _newest(broken))
        steps = (healthy.step, broken.step)
    one, other = (_side(v, loss, at, text) for v, loss, at in zip(views, losses, steps, strict=True))
    ends = ([_newest(r) for r in repeats if r.name == name] for name in (HEALTHY, BROKEN))
    return Comparison(one, other, tuple(zip(*ends, strict=True)))


def _newest(view: RunView) -> float:
    looks = view.history.evaluations
    return looks[-1].validation_loss if looks else math.nan


def _side(view: RunView, loss: float, step: int, text: str) -> Side:
    written = view.history.samples[-1] if view.history.samples else Sample(0, "", "")
    died = view.step if view.status == "failed" else None
    share = known_share(written.text, words_of(text))
    return Side(loss, step, written.prompt, written.text, share, died)


# What is shipped ----------------------------------------------------------------------------------


def shipped(name: str, folder: Path = FOLDER) -> Bug:
    """Reads a fault's stored race. Raises CheckpointError for an unreadable file or other settings."""
    path, fault = folder / f"{name}.json", FAULTS[name]
    race = load_race(path)
    with reading(path, f"bugs {name}") as values:
        opened = tuple(None if each is None else _opened(each) for each in values["patterns"])
        ours = specs(fault, race.runs[0].spec.model.vocab_size)
        for spec, run in zip(ours, race.runs, strict=True):
            if not replace(run.spec, corpus=spec.corpus, name=spec.name) == spec:
                raise CheckpointError(f"{path.name} is of other settings: `{COMMAND} {name}` makes it anew")
        return Bug(fault, race, opened)


def _packed(patterns: Patterns | None) -> Mapping[str, Any] | None:
    if patterns is None:
        return None
    steps = np.clip(np.rint(patterns.weights * 255), 0, 255).astype(np.uint8)
    return {
        "tokens": patterns.tokens,
        "layers": patterns.layers,
        "shape": steps.shape,
        "weights": base64.b64encode(steps.tobytes()).decode(),
    }


def _opened(values: Mapping[str, Any]) -> Patterns:
    steps = np.frombuffer(base64.b64decode(values["weights"]), np.uint8).reshape(values["shape"])
    return Patterns(tuple(values["tokens"]), tuple(values["layers"]), steps.astype(np.float32) / 255)


@dataclass
class _Kept:
    """The newest weights that were numbers."""

    snapshot: Snapshot | None = None

    def hear(self, who: int, record: Record) -> None:
        if isinstance(record, Snapshot) and record.finite:
            self.snapshot = record


def clocked(race: Stored, cost: Callable[[RunSpec], float]) -> Stored:
    """Returns the race with `cost` seconds a step: measured ones mean little on a busy machine."""
    runs = []
    for view in race.runs:
        each, history = cost(view.spec), view.history
        rows = history.rows.copy()
        rows["seconds"] = rows["step"] * each
        looks = tuple(replace(look, seconds=look.step * each) for look in history.evaluations)
        history = replace(history, rows=rows, evaluations=looks)
        runs.append(replace(view, seconds=view.step * each, history=history))
    return replace(race, runs=tuple(runs))


def seconds_a_step(spec: RunSpec, corpus: Corpus) -> float:
    """Measures the processor seconds of a step, the median of a few."""
    quick = replace(
        spec.train, eval_every=0, eval_tokens=spec.model.context, sample_every=0, look_early=False
    )
    short = replace(corpus, validation=corpus.validation[: 2 * spec.model.context])
    took: list[float] = []
    before = time.process_time()
    for event in train(spec.model, quick, short, device="cpu", parts=parts_of(spec.parts)):
        now = time.process_time()
        if isinstance(event, Step):
            took.append(now - before)
        before = now
        if len(took) == TIMED:
            break
    return statistics.median(took)


def _train(spec: RunSpec, made: str) -> tuple[RunView, Patterns | None]:
    torch.manual_seed(0)  # dropout that was left on draws while it is measured
    kept = _Kept()
    view = run_race([spec], made, "cpu", kept.hear).runs[0]
    if kept.snapshot is None:
        return view, None
    corpus = corpora.from_text(spec.text) if spec.text else corpora.load(spec.corpus)
    model = model_with(spec.model, kept.snapshot.state.weights(), parts=parts_of(spec.parts))
    return view, patterns(model, corpus.tokenizer)


def _repeat(path: Path, pair: Sequence[RunSpec], trained: dict[str, RunView]) -> None:
    """Trains both runs with the missing seeds and adds them; `trained` are healthy twins to share."""
    race = load_race(path)
    there = {(view.name, view.spec.train.seed) for view in race.repeats}
    for seed in SEEDS[1:]:
        for spec in pair:
            if (spec.name, seed) in there:
                continue
            quiet = replace(spec.train, seed=seed, sample_every=0, snapshot_every=0)
            key = repr((spec.model, quiet, spec.parts, spec.text))
            if key not in trained:
                torch.manual_seed(seed)  # dropout that was left on draws while it is measured
                (trained[key],) = run_race([replace(spec, train=quiet)], "", "cpu").runs
            view = trained[key]
            race = replace(
                race,
                repeats=(*race.repeats, replace(view, spec=replace(view.spec, text=None, name=spec.name))),
            )
    race.save(path)


def _clock(name: str, whole: Corpus, known: dict[str, float]) -> None:
    """Puts the processor's own time into a file, once."""
    path, fault = FOLDER / f"{name}.json", FAULTS[name]
    race = load_race(path)
    if race.more.get("clock") == CLOCK:
        return
    corpus = corpora.from_text(whole.text[: fault.characters]) if fault.characters else whole

    def cost(spec: RunSpec) -> float:
        key = repr((spec.model, spec.train.batch_size, spec.train.optimizer, spec.parts))
        if key not in known:
            known[key] = seconds_a_step(spec, corpus)
        return known[key]

    replace(clocked(race, cost), more={**race.more, "clock": CLOCK}).save(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*FAULTS, []], help="faults (default: all)")
    names = parser.parse_args(arguments).names or [*FAULTS]
    begin(threads=1)
    made = f"{COMMAND}, one thread of {os.cpu_count()}, torch {torch.__version__}"
    whole, trained = corpora.load(CORPUS), dict[str, tuple[RunView, Patterns | None]]()
    FOLDER.mkdir(exist_ok=True)
    repeated: dict[str, RunView] = {}
    for name in names:
        fault, path = FAULTS[name], FOLDER / f"{name}.json"
        text = whole.text[: fault.characters] if fault.characters else None
        vocab_size = corpora.from_text(text).vocab_size if text else whole.vocab_size
        pair = specs(fault, vocab_size, text)
        try:
            shipped(name)
            _repeat(path, pair, repeated)
            continue
        except CheckpointError as why:
            log.info("%s", why)
        both = []
        for spec in pair:
            key = repr((spec.model, spec.train, spec.parts, fault.characters))
            if key not in trained:
                trained[key] = _train(spec, made)
            both.append(trained[key])
        views = tuple(replace(view, spec=replace(view.spec, text=None)) for view, _ in both)
        Stored(made, views, more={"patterns": [_packed(each) for _, each in both]}).save(path)
        log.info("%s: %s", name, [view.history.evaluations[-1].validation_loss for view, _ in both])
        _repeat(path, pair, repeated)

    known: dict[str, float] = {}
    for name in names:
        _clock(name, whole, known)
