"""Faults in the recipe of a training, in its targets and its split, and in when dropout acts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from studies.lab.faults.fault import ADAMW, LAB_TRAIN, fault, settings_fault

settings_fault("learning_rate_30x", train={"learning_rate": 30 * LAB_TRAIN.learning_rate}, on_train=ADAMW)
settings_fault(
    "no_clipping",
    train={"grad_clip": 0.0},
    # a table at spread 1 gives first gradients of norm 30, and AdamW's memory of their size is long
    on_train=ADAMW | {"learning_rate": 1e-2, "init": "normal", "beta2": 0.999},
)

settings_fault(
    "no_clipping_sgd",
    train={"grad_clip": 0.0},
    # no denominator that remembers large gradients: a large one is a large step, and the next is larger still
    on_train={"optimizer": "sgd", "learning_rate": 1.0, "weight_decay": 0.0},
)


@fault("not_shifted", "targets")
def not_shifted(windows: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the inputs themselves as targets: the model learns to copy."""
    return windows[:, :-1].contiguous(), windows[:, :-1].contiguous()


@fault("shifted_by_two", "targets")
def shifted_by_two(windows: Tensor) -> tuple[Tensor, Tensor]:
    """Returns targets two positions on; the last position has none, and none is predicted (-1)."""
    beyond = torch.full_like(windows[:, :1], -1)
    return windows[:, :-1].contiguous(), torch.cat((windows[:, 2:], beyond), 1)


@fault("dropout_left_on", "mode", on_model={"dropout": 0.2})
def always_training(model: nn.Module, training: bool) -> None:
    """Never switches to evaluation: dropout goes on dropping."""
    model.train(True)


@fault("overlapping_split", "split", characters=6_000)
def overlapping(train: Tensor, validation: Tensor) -> tuple[Tensor, Tensor]:
    """Trains on the whole text, the validation split included."""
    return torch.cat((train, validation)), validation
