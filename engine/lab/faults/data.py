"""Faults around a model: what it reads and is to predict, how it starts, how it is asked."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def not_shifted(windows: Tensor) -> tuple[Tensor, Tensor]:
    """Targets that are the inputs themselves: the model learns to copy."""
    return windows[:, :-1].contiguous(), windows[:, :-1].contiguous()


def shifted_by_two(windows: Tensor) -> tuple[Tensor, Tensor]:
    """Targets two places on; the last place has none in the window, and none is asked for (-1)."""
    beyond = torch.full_like(windows[:, :1], -1)
    return windows[:, :-1].contiguous(), torch.cat((windows[:, 2:], beyond), 1)


def overlapping(train: Tensor, validation: Tensor) -> tuple[Tensor, Tensor]:
    """The text is trained on whole, with the part that the model should not have seen."""
    return torch.cat((train, validation)), validation


def loud_embedding(name: str, std: float) -> float:
    """The embedding keeps the spread 1 that `torch.nn.Embedding` draws it with."""
    return 1.0 if name == "embedding" else std


def always_training(model: nn.Module, training: bool) -> None:
    """Nobody switches to evaluation: dropout goes on dropping."""
    model.train(True)
