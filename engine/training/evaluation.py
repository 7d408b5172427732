"""The loss of a model on a text, in nats per token, and its accuracy."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model import Transformer
from engine.training.batches import Batch, Batches, Loss


def loss_of(model: Transformer, batch: Batch, device: torch.device) -> Tensor:
    """Returns the mean cross-entropy in nats per predicted token, in float32 whatever the model computes
    in.
    """
    logits = model(batch.inputs.to(device))  # (batch, position, vocab)
    return F.cross_entropy(logits.flatten(0, 1).float(), batch.targets.to(device).flatten(), ignore_index=-1)


@torch.inference_mode()
def measure(model: Transformer, batches: Batches, tokens: Tensor, limit: int = 0) -> Loss:
    """Returns the loss over windows of a split, each `context` long: the whole split, or about `limit`
    tokens.
    """
    device = next(model.parameters()).device
    training = model.training
    model.parts.mode(model, False)
    total, count, characters = 0.0, 0, 0
    for batch in batches.windows(tokens, limit):
        loss = batches.loss(float(loss_of(model, batch, device)), batch)
        total += loss.nats * loss.tokens
        count, characters = count + loss.tokens, characters + loss.characters
    model.parts.mode(model, training)
    return Loss(total / count if count else math.nan, count, characters)


@torch.inference_mode()
def guessed_right(model: Transformer, batches: Batches, tokens: Tensor, limit: int = 0) -> float:
    """Returns the accuracy, 0 to 1, of a model in evaluation mode over the windows that `measure` reads."""
    device = next(model.parameters()).device
    right = count = 0
    for batch in batches.windows(tokens, limit):
        asked = batch.targets >= 0
        named = model(batch.inputs.to(device)).argmax(-1).cpu()
        right += int((named == batch.targets)[asked].sum())
        count += int(asked.sum())
    return right / count if count else math.nan
