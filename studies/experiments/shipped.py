"""Trains the shipped checkpoints: `python -m studies.experiments NAME [--into checkpoints] [--work
FOLDER]`.

NAME is one of RECIPES, of POSITION_RECIPES (such as `positions/rope`), of TASK_RECIPES (`tasks/sort`) or of
ENCODER_RECIPES, or `positions` or `tasks` for all of these, one after another. By default the shipped
model of that name is overwritten.

Resumable: every few hundred steps the whole training state goes to the work folder, and the same command
goes on from there. The weights that are shipped are those with the lowest validation loss seen on the way.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import torch

from engine.checkpoints import load, load_state, model_with, save, save_state, write_whole
from engine.config import ModelConfig, Position, TrainConfig
from engine.data import corpora
from engine.errors import CheckpointError
from engine.model import Transformer
from engine.training.batches import Batches, guessed_right, measure
from engine.training.numerics import choose
from engine.training.records import Evaluation, Snapshot, Step
from engine.training.train import train
from studies.attention.head_scores import head_scores
from studies.costs.presets import PRESETS
from studies.experiments.command import begin, folder_options, machine, resumed
from studies.experiments.thinking_aloud import recipe
from studies.pairs.encoders import ENCODERS
from studies.positions.extrapolation import TIMES, Curve, curve, position_losses, window_starts
from studies.tasks.all import ALOUD, MODELLED, TASKS
from studies.tasks.problems import task_scores
from studies.tasks.recipes import task_recipe

log = logging.getLogger("glassformer.pretrain")


@dataclass(frozen=True)
class Recipe:
    """A checkpoint to be trained: model, training and corpus."""

    model: ModelConfig
    train: TrainConfig
    corpus: str = "shakespeare"


_SCHEDULE: dict[str, Any] = {
    "batch_size": 32, "eval_every": 200, "eval_tokens": 0, "sample_every": 0, "snapshot_every": 200,
    "snapshot_early": False, "look_early": False, "seed": 1337,
}  # fmt: skip

# `modern` learns faster and overfits sooner: after 4,000 steps it is at 1.154 on what it trains on, and no
# better than 1.521 on the validation split. A shorter schedule ends before that.
_STEPS = {"classic": 4000, "modern": 2600}

RECIPES: dict[str, Recipe] = {
    f"shakespeare-{name}": Recipe(
        replace(PRESETS[name].model, context=128),
        replace(cast(TrainConfig, PRESETS[name].train), steps=steps, **_SCHEDULE),
    )
    for name, steps in _STEPS.items()
}

# Six small models that differ in `position` and in nothing else: same seed, same windows in the same order,
# same schedule. 4 x 64 wide so that six of them are small enough to be shipped. RoPE at its published base;
# without QK-norm, as in the published models that use these schemes. Written out, not taken from a preset:
# what is shipped was trained by these, and stays.
POSITION_RECIPES: dict[str, Recipe] = {
    f"positions/{scheme}": Recipe(
        ModelConfig(context=64, d_model=64, ffn="relu2", position=scheme, norm_gain=False),
        TrainConfig(
            steps=2500,
            optimizer="muon",
            muon_momentum=0.85,
            learning_rate=6e-3,
            weight_decay=0.0,
            warmup_steps=20,
            schedule="linear",
            min_lr_fraction=0.0,
            **_SCHEDULE | {"eval_every": 250, "snapshot_every": 250},
        ),
    )
    for scheme in get_args(Position)
}

# A small model for each synthetic task, at the settings that the training page offers for it.
TASK_RECIPES: dict[str, Recipe] = {
    f"tasks/{name}": Recipe(model, replace(train, sample_every=0, snapshot_every=train.eval_every), name)
    for name, task in TASKS.items()
    for model, train in [task_recipe(task)]
}

# The model that writes a chain of thought, for its heads.
TASK_RECIPES[f"tasks/{ALOUD}"] = Recipe(*recipe(MODELLED[ALOUD]), ALOUD)

# An encoder: it fills blanks.
ENCODER_RECIPES: dict[str, Recipe] = {
    "encoders/blanks": Recipe(
        ENCODERS["blanks"].model,
        replace(
            cast(TrainConfig, ENCODERS["blanks"].train), sample_every=0, eval_every=200, snapshot_every=200
        ),
    )
}

ALL_RECIPES = RECIPES | POSITION_RECIPES | TASK_RECIPES | ENCODER_RECIPES

SEVERAL = {"positions": [*POSITION_RECIPES], "tasks": [*TASK_RECIPES]}
ASKED_AT_THE_END = 1000  # problems of each split that the shipped models of tasks are asked


def pretrain(name: str, into: Path, work: Path, threads: int | None = None) -> Mapping[str, Any]:
    """Trains a recipe from the newest state in `work`, writes `into/name`, and returns its metrics."""
    recipe = ALL_RECIPES[name]
    corpus = corpora.load(recipe.corpus, tokenizer=recipe.train.tokenizer)
    masked = recipe.train.objective == "masked"
    config = replace(recipe.model, vocab_size=corpus.vocab_size + masked).resolved()
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    latest, best, curve_file = work / f"{name}.state", work / f"{name}.best", work / f"{name}.curve.json"
    made_by = {"model": config.to_dict(), "train": recipe.train.to_dict()}
    resume, began = resumed(latest, made_by), time.process_time()
    curve = json.loads(curve_file.read_text("utf-8")) if resume else []
    torch.set_num_threads(threads or torch.get_num_threads())
    for record in train(config, recipe.train, corpus, resume=resume, score_heads=head_scores):
        if isinstance(record, Evaluation) and (not curve or record.step > curve[-1]["step"]):
            losses = {
                "train_loss": round(record.train_loss, 4),
                "validation_loss": round(record.validation_loss, 4),
            }
            curve.append(
                {"step": record.step, **losses, "seconds": round(record.seconds, 1)} | _solved(record)
            )
            log.info("%s: %s", name, curve[-1])
        elif isinstance(record, Snapshot):
            save_state(latest, record.state, made_by)
            write_whole(curve_file, json.dumps(curve).encode())
            if curve[-1]["validation_loss"] <= min(p["validation_loss"] for p in curve):
                save_state(best, record.state, made_by)
        elif isinstance(record, Step) and record.step % 100 == 0:
            log.info(
                "%s: step %d, loss %.3f, %.0f tokens/s",
                name,
                record.step,
                record.loss,
                record.tokens / record.seconds,
            )
    state, _ = load_state(best)
    # bfloat16 on disk: half the size, and the loss is measured again on what is really stored.
    rounded = {key: t.bfloat16().float() for key, t in state.weights().items()}
    spent = {"cpu_seconds": round(time.process_time() - began, 1)} if resume is None else {}
    model = model_with(config, rounded, name)
    batches = Batches(corpus, config, recipe.train)
    loss = measure(model, batches, corpus.validation)
    unit = ("hidden " if masked else "") + ("character" if corpus.kind == "char" else "token")
    metrics = {
        "corpus": recipe.corpus,
        "validation_loss": round(loss.nats, 4),
        "validation_bits": round(loss.bits, 4),  # per character
        "measured": (
            f"nats per {unit} over the whole validation split, in windows of {config.context}, in float32, on"
            " the stored weights"
        ),
        "step": state.step,
        "seconds": round(state.seconds, 1),
        **spent,  # of the whole training and its looks; unlike seconds not a matter of what else runs
        "chosen": "the snapshot with the lowest validation loss of those in `curve`",
        "train": recipe.train.to_dict(),
        "numerics": choose(recipe.train.precision).sentence,
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "curve": curve,
    }
    metrics |= _beside(name, model, batches)
    save(into / name, model, corpus.tokenizer, metrics, torch.bfloat16)
    load(into / name)  # what was written can be read
    return metrics


def _beside(name: str, model: Transformer, batches: Batches) -> dict[str, Any]:
    """Measures what some models are judged by beside their loss."""
    scores: dict[str, Any] = {}
    if (solved := task_scores(model, batches.corpus, ASKED_AT_THE_END)) is not None:
        scores["solved"] = {"train": solved.train, "validation": solved.validation}
    if batches.config.objective == "masked":
        scores["guessed_right"] = round(guessed_right(model, batches, batches.corpus.validation), 4)
    if name in POSITION_RECIPES:
        # Shown where the corpus is missing; where it is there, the page measures.
        how = "nats per character, every window of the validation split, in float32, on the stored weights"
        scores["extrapolation"] = extrapolation(model, batches.corpus.validation).to_dict() | {
            "measured": how
        }
    return scores


def _solved(look: Evaluation) -> dict[str, float]:
    """The shares of a task's problems that are solved, as they stand in a curve."""
    return {} if look.task is None else {"train_solved": look.task.train, "solved": look.task.validation}


def extrapolation(model: Transformer, tokens: torch.Tensor) -> Curve:
    """Returns the loss by position over every window of `tokens`, in nats, in float32."""
    context = model.config.context
    starts = window_starts(len(tokens), context, 0)
    losses = np.concatenate(list(position_losses(model, tokens, starts, TIMES * context)))
    return curve(losses, starts, context)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = folder_options(__doc__)
    parser.add_argument("name", choices=[*ALL_RECIPES, *SEVERAL])
    options = parser.parse_args(arguments)
    begin()
    for name in SEVERAL.get(options.name, [options.name]):
        try:
            metrics = pretrain(name, options.into, options.work or corpora.cache_folder() / "pretrain")
        except CheckpointError as error:
            raise SystemExit(f"{error}. Remove the work folder to start over.") from error
        log.info(
            "%s: validation loss %.4f after %s steps and %s s",
            name,
            metrics["validation_loss"],
            metrics["step"],
            metrics["seconds"],
        )
