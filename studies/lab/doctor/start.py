"""Checks that start the model anew: its first loss, its first gradients, and overfitting one batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model import Transformer
from engine.training.batches import Batch, loss_of
from engine.training.numerics import choose
from engine.training.optim import Optimiser, learning_rate_factor
from studies.lab.doctor.case import Case, NotApplicable, by_the_book
from studies.lab.doctor.check import Measurement
from studies.residual.gradient_by_depth import block_gradients

CPU = torch.device("cpu")
ROWS, PLACES, UPDATES = 4, 32, 150  # of the batch that is learned by heart, and how often
PIECE = 512  # tokens of a batch that are read at a time, so that a large batch takes no more memory


@torch.no_grad()
def first_loss(case: Case) -> Measurement:
    """Measures the loss before the first step, minus ln V."""
    model, uniform = case.twin(), math.log(case.model.config.vocab_size)
    loss = sum(share * float(loss_of(model, piece, CPU)) for piece, share in pieces(case.batch()))
    return Measurement(
        loss - uniform, {"loss": loss, "uniform": uniform, "vocab": case.model.config.vocab_size}
    )


def gradients_by_block(case: Case) -> Measurement:
    """Measures how much larger the gradient is where the stream begins than where it ends, before the first
    step, relative to the model that was meant with the usual initial weights. Infinite if a block gets none.
    """
    batch = case.batch()
    ours, theirs = (stream_gradients(model, batch) for model in (case.twin(), by_the_book(case)))
    if len(ours.blocks) and not ours.blocks.min() > 0:
        missing = int(np.argmin(ours.blocks))
        sentence = f"block {missing} gets no gradient"
        return Measurement(math.inf, {"said": sentence, "ours": ours.growth, "theirs": theirs.growth})
    sentence = (
        f"the gradient at the bottom of the stack is {ours.growth:.1f} times the one at the top, where"
        f" {theirs.growth:.1f} times would be healthy"
    )
    return Measurement(
        ours.growth / theirs.growth, {"said": sentence, "ours": ours.growth, "theirs": theirs.growth}
    )


class Gradients:
    """Norms of d loss / d stream at both ends, and of d loss / d parameters of each block, (layer,)."""

    def __init__(self, first: float, last: float, blocks: np.ndarray) -> None:
        self.first, self.last, self.blocks = first, last, blocks

    @property
    def growth(self) -> float:
        return self.first / self.last if self.last > 0 else math.inf


def stream_gradients(model: Transformer, batch: Batch) -> Gradients:
    """Runs one backward pass and returns its gradient norms."""
    kept: dict[str, Tensor] = {}
    squares = {"first": 0.0, "last": 0.0}
    last = len(model.blocks) - 1

    def probe(name: str, x: Tensor) -> Tensor:
        ends = name.startswith(f"blocks.{last}.") and name.endswith(("resid_post", "norm2"))
        if name == "blocks.0.resid_pre" or ends:
            if not x.requires_grad:
                x = x.requires_grad_(True)
            kept["first" if name == "blocks.0.resid_pre" else "last"] = x
            x.retain_grad()
        return x

    for piece, share in pieces(batch):
        with torch.enable_grad():
            logits = model.requires_grad_(True)(piece.inputs, probe)
            loss = F.cross_entropy(logits.flatten(0, 1), piece.targets.flatten(), ignore_index=-1)
            (share * loss).backward()
        for name, x in kept.items():
            if x.grad is not None:
                squares[name] += float(x.grad.double().square().sum())
    return Gradients(math.sqrt(squares["first"]), math.sqrt(squares["last"]), block_gradients(model))


def clipped(case: Case) -> Measurement:
    """Measures the norm of the first gradient after clipping."""
    model = case.twin().requires_grad_(True)
    for piece, share in pieces(case.batch()):
        (share * loss_of(model, piece, CPU)).backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients))
    limit = case.settings.grad_clip
    return Measurement(min(norm, limit) if limit > 0 else norm, {"norm": norm})


def overfits_a_batch(case: Case) -> Measurement:
    """Measures the loss on ROWS texts of PLACES tokens after UPDATES updates on these alone."""
    if case.wanted.mixer != "attention":
        raise NotApplicable("Without attention no model can overfit a batch: it sees too little of the text.")
    batch = small(case.batch())
    settings = replace(
        case.settings, schedule="constant", steps=UPDATES, warmup_steps=min(case.settings.warmup_steps, 20)
    )
    model = case.twin().requires_grad_(True)
    optimiser = Optimiser(model, settings, choose("float32", CPU))
    first = value = math.nan
    for step in range(UPDATES):
        loss = loss_of(model, batch, CPU)
        value = float(loss.detach())
        first = value if step == 0 else first
        if not math.isfinite(value):
            break
        optimiser.update(loss, learning_rate_factor(settings, step))
    return Measurement(value, {"first": first, "tokens": batch.inputs.numel(), "updates": UPDATES})


def pieces(batch: Batch) -> Iterator[tuple[Batch, float]]:
    """Yields the texts of a batch, a few at a time, and the share of its predicted tokens that they have."""
    rows, predicted = max(1, PIECE // batch.inputs.shape[1]), int((batch.targets != -1).sum())
    for inputs, targets in zip(batch.inputs.split(rows), batch.targets.split(rows), strict=True):
        count = int((targets != -1).sum())
        if count or not predicted:  # a mean over nothing is no number
            yield Batch(inputs, targets), count / predicted if predicted else 1.0


def small(batch: Batch) -> Batch:
    return Batch(batch.inputs[:ROWS, :PLACES].contiguous(), batch.targets[:ROWS, :PLACES].contiguous())
