"""Takes the time-lapse that comes with the app: `python -m studies.experiments timelapse [--into checkpoints]
[--work FOLDER]`.

One training of the preset "induction" on Tiny Shakespeare, on for longer, whose model is kept at STEPS: from
noise to Shakespeare, and on the way a head forms that reads the letter before (half of its weight at step
200), and then one that copies (step 330). Resumable: at every step that is kept the whole training state goes
to the work folder, and the same command goes on from there.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from engine.checkpoints import save_state, write_whole
from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import CheckpointError
from engine.model import Transformer
from engine.parts.registry import HEALTHY
from engine.training.batches import Batches, measure
from engine.training.numerics import choose
from engine.training.records import Control, Evaluation, HeadScores, Snapshot, Step
from engine.training.train import train
from runs.snapshot_series import Lapse, keep_facts, keep_step, model_at, open_lapse
from studies.attention.head_scores import head_scores
from studies.costs.presets import PRESETS
from studies.experiments.command import begin, folder_options, machine, resumed

log = logging.getLogger("glassformer.timelapse")

NAME, PRESET = "timelapse", "induction"
# Denser where things happen: the first words, then heads that form one after the other.
STEPS = (
    *(0, 1, 2, 4, 8, 16, 32, 64),
    *range(80, 260, 20),
    *range(260, 360, 10),
    *(360, 380, 400, 450, 500, 600, 700, 850, 1000),
)
DECIMALS = 4


def recipe() -> tuple[ModelConfig, TrainConfig]:
    """Returns the preset's recipe, in float32 wherever it is trained, until it also writes better (loss on
    unseen text 1.8 instead of 1.9), and without evaluations on the way.
    """
    preset = PRESETS[PRESET]
    settings = replace(
        cast(TrainConfig, preset.train),
        steps=STEPS[-1],
        precision="float32",
        eval_every=0,
        sample_every=0,
        look_early=False,
        snapshot_every=0,
        snapshot_early=False,
    )
    return preset.model, settings


def take(
    into: Path, work: Path, corpus: Corpus, model: ModelConfig, settings: TrainConfig, steps: tuple[int, ...]
) -> Lapse:
    """Trains from the newest state in `work`, keeps the model at `steps` in `into`, and measures it."""
    config = replace(model, vocab_size=corpus.vocab_size).resolved()
    into.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    latest, times = work / "latest.state", work / "seconds.json"
    made_by = {"model": config.to_dict(), "train": settings.to_dict(), "steps": list(steps)}
    resume = resumed(latest, made_by)
    seconds = json.loads(times.read_text("utf-8")) if resume else {}
    control = Control()
    how: dict[str, Any] = {"control": control, "resume": resume, "device": "cpu"}
    for record in train(config, settings, corpus, **how, score_heads=head_scores):
        if isinstance(record, Step):
            control.snapshot = record.step in steps
        elif isinstance(record, Snapshot):
            keep_step(into, record.step, record.state.weights())
            seconds[str(record.step)] = round(record.state.seconds, 1)
            write_whole(times, json.dumps(seconds).encode())
            save_state(latest, record.state, made_by)
            log.info("step %d kept after %.1f s", record.step, record.state.seconds)
    looks = []
    for step, spent in sorted((int(step), spent) for step, spent in seconds.items()):
        looks.append(look_at(model_at(into, config, HEALTHY, step), corpus, settings, step, spent))
        log.info("step %d: loss %.3f on unseen text", step, looks[-1].validation_loss)
    keep_facts(into, config, corpus.tokenizer, _facts(corpus, config, settings), tuple(looks))
    return open_lapse(into)


def look_at(
    model: Transformer, corpus: Corpus, settings: TrainConfig, step: int, seconds: float
) -> Evaluation:
    """Measures a stored model: losses on both splits without repeats, and every head's score."""
    batches = Batches(corpus, model.config, settings)
    training = measure(model, batches, corpus.train, len(corpus.validation))
    validation = measure(model, batches, corpus.validation)
    losses = (training.nats, validation.nats, training.bits, validation.bits)
    one, other, bits, other_bits = (round(loss, DECIMALS) for loss in losses)
    heads = head_scores(model, corpus.tokenizer)
    return Evaluation(step, one, other, seconds, True, bits, other_bits, heads and rounded(heads))


def rounded(scores: HeadScores) -> HeadScores:
    """Rounds to DECIMALS: more would be noise of the float16 weights."""
    induction, previous = (
        tuple(tuple(round(score, DECIMALS) for score in row) for row in grid)
        for grid in (scores.induction, scores.previous)
    )
    losses = (round(loss, DECIMALS) for loss in (scores.first_loss, scores.second_loss))
    return HeadScores(induction, previous, *losses)


def _facts(corpus: Corpus, config: ModelConfig, settings: TrainConfig) -> dict[str, Any]:
    return {
        "corpus": corpus.name,
        "measured": (
            "losses in nats per character, in windows of"
            f" {config.context}, on the whole validation split and on as many characters of the training"
            " text, as they are, without repeats; heads on random letters read twice (studies"
            ".head_scores); all in float32, on the stored weights"
        ),
        "train": settings.to_dict(),
        "numerics": choose(settings.precision, "cpu").sentence,
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    options = folder_options(__doc__).parse_args(arguments)
    begin()
    work = options.work or corpora.cache_folder() / "timelapse"
    try:
        lapse = take(options.into / NAME, work, corpora.load("shakespeare"), *recipe(), STEPS)
    except CheckpointError as error:
        raise SystemExit(f"{error}. Remove the work folder to start over.") from error
    for head in lapse.formed:
        log.info("step %d: head %d.%d (%s)", head.step, head.layer, head.head, head.kind)
