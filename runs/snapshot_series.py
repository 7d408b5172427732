"""A time-lapse on disk: the model of one training at many of its steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from engine.checkpoints import (
    CONFIG,
    METRICS,
    TOKENIZER,
    Checkpoint,
    architecture,
    json_bytes,
    json_object,
    model_from,
    read,
    stored,
    tokenizer_for,
    write_whole,
)
from engine.config import ModelConfig, ResolvedConfig, TrainConfig
from engine.data.tokenizers import Storable
from engine.errors import CheckpointError, ConfigError
from engine.model import Transformer
from engine.parts.registry import Parts
from engine.training.records import Evaluation, Grid, HeadScores
from studies.attention.head_scores import HeadFormation, formed


@dataclass(frozen=True, eq=False)
class Lapse:
    """A time-lapse. `looks` holds, for each stored step, the losses of its model on the whole validation
    split and on as much of the training text, and its head scores.
    """

    folder: Path
    config: ResolvedConfig
    parts: Parts = field(repr=False)
    tokenizer: Storable = field(repr=False)
    train: TrainConfig
    looks: tuple[Evaluation, ...] = field(repr=False)
    metrics: Mapping[str, Any] = field(repr=False)

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps whose model is stored, in order."""
        return tuple(look.step for look in self.looks)

    @property
    def losses(self) -> tuple[float, ...]:
        """The training loss at each step, nats per token."""
        return tuple(look.train_loss for look in self.looks)

    @property
    def formed(self) -> tuple[HeadFormation, ...]:
        """The steps at which heads formed that read the previous token, or copy."""
        return formed((look.step, look.heads) for look in self.looks)

    def at(self, step: int) -> Checkpoint:
        """Reads the model after a step, float32 on the CPU, in evaluation mode. Raises CheckpointError for a
        step that is not stored, and for a file that is missing, damaged or of another model.
        """
        look = next((look for look in self.looks if look.step == step), None)
        if look is None:
            raise CheckpointError(f"{self.folder} keeps no model of step {step}")
        model = model_at(self.folder, self.config, self.parts, step)
        metadata = {name: self.metrics[name] for name in ("corpus", "train") if name in self.metrics}
        reached = {"step": step, "validation_loss": look.validation_loss}
        return Checkpoint(model, model.config, self.tokenizer, metadata | reached)


def name_of(step: int) -> str:
    """Returns the file name of a step.

    >>> name_of(250)
    'step-000250.safetensors'
    """
    return f"step-{step:06d}.safetensors"


def open_lapse(folder: Path | str) -> Lapse:
    """Reads the facts of a time-lapse, and no weights yet. Raises CheckpointError when a file is missing, cut
    short or edited.
    """
    folder, where = Path(folder), str(folder)
    config, parts = architecture(read(folder / CONFIG), where)
    tokenizer = tokenizer_for(config, read(folder / TOKENIZER), where)
    metrics = json_object(read(folder / METRICS), METRICS, where)
    try:
        train = TrainConfig.from_dict(metrics["train"]).validate()
        looks = tuple(_look(values) for values in metrics["looks"])
    except (ConfigError, TypeError, KeyError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{where}: {METRICS} is not that of a time-lapse ({error})") from error
    steps = [look.step for look in looks]
    if not steps or steps != sorted(set(steps)):
        raise CheckpointError(f"{where}: the steps in {METRICS} do not ascend")
    for look in looks:
        if look.heads and any(
            _shape(grid) != (config.n_layers, config.n_heads) for grid in _grids(look.heads)
        ):
            raise CheckpointError(f"{where}: {METRICS} has scores of other heads than {CONFIG} has")
    return Lapse(folder, config.resolved(), parts, tokenizer, train, looks, metrics)


def model_at(folder: Path, config: ModelConfig, parts: Parts, step: int) -> Transformer:
    """Reads the model of a step's file. Raises CheckpointError as `Lapse.at`."""
    path = folder / name_of(step)
    return model_from(read(path), config, parts, str(folder), path.name)


def keep_step(folder: Path, step: int, weights: Mapping[str, torch.Tensor]) -> None:
    """Writes the model of a step, in float16: half the bytes, and the logits hardly differ."""
    write_whole(folder / name_of(step), stored(weights, torch.float16))


def keep_facts(
    folder: Path,
    config: ModelConfig,
    tokenizer: Storable,
    metrics: Mapping[str, Any],
    looks: tuple[Evaluation, ...],
) -> None:
    """Writes everything but the weights: what `open_lapse` reads."""
    metadata = {**metrics, "looks": [asdict(look) for look in looks]}
    for name, values in ((CONFIG, config.to_dict()), (TOKENIZER, tokenizer.to_dict()), (METRICS, metadata)):
        write_whole(folder / name, json_bytes(values))


def _look(values: Mapping[str, Any]) -> Evaluation:
    """Raises TypeError or ValueError for what is none."""
    heads = values["heads"]
    look = Evaluation(**{**values, "heads": None if heads is None else _heads(heads)})
    numbers = (look.train_loss, look.validation_loss, look.seconds)
    if type(look.step) is not int or look.step < 0 or not all(_is_number(x) for x in numbers):
        raise ValueError(f"a look at step {look.step!r} has no numbers")
    return look


def _heads(values: Mapping[str, Any]) -> HeadScores:
    grids = {name: tuple(tuple(row) for row in values[name]) for name in ("induction", "previous")}
    scores = HeadScores(**{**values, **grids})
    all_of_them = [x for grid in _grids(scores) for row in grid for x in row]
    if not all(_is_number(x) for x in (*all_of_them, scores.first_loss, scores.second_loss)):
        raise ValueError("a head's score is not a number")
    return scores


def _grids(scores: HeadScores) -> tuple[Grid, Grid]:
    return scores.induction, scores.previous


def _shape(grid: Grid) -> tuple[int, int]:
    """(rows, columns); (-1, -1) where the rows differ."""
    widths = {len(row) for row in grid}
    return (len(grid), widths.pop()) if len(widths) == 1 else (-1, -1)


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
