"""The training loop, whatever is trained: steps and evaluations at their intervals, as records."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor, nn

from engine.config import TrainConfig
from engine.errors import CheckpointError
from engine.parts.registry import Parts
from engine.training.numerics import Numerics
from engine.training.optim import Optimiser, learning_rate_factor, spent
from engine.training.records import Control, Done, Evaluation, Record, Sample, Snapshot, Step, TrainState

M = TypeVar("M", bound=nn.Module)
B = TypeVar("B")


class Loop(Generic[M, B]):
    """Trains `model` as `config` says. A subclass says what a batch, its loss, an evaluation and a sample
    are. `has_dropout`: the model draws random numbers as it trains.
    """

    def __init__(
        self,
        model: M,
        parts: Parts,
        config: TrainConfig,
        control: Control,
        numerics: Numerics,
        has_dropout: bool,
    ) -> None:
        self.config, self.control, self.numerics, self.has_dropout = config, control, numerics, has_dropout
        self.parts, self.model = parts, model.to(numerics.device)
        parts.mode(self.model, True)
        self.optimiser = Optimiser(self.model, config, numerics)
        self.step, self.seconds = 0, 0.0
        self.last_quick_step = -1  # step of the last evaluation that was not complete

    def batch(self) -> B:
        """Returns the batch of the next step. It depends on seed and step alone, so that resuming from a
        snapshot is the same as never having stopped.
        """
        raise NotImplementedError

    def loss(self, batch: B) -> Tensor:
        """Returns the mean loss of a batch, in nats: a scalar that can be differentiated."""
        raise NotImplementedError

    def tokens(self, batch: B) -> int:
        """Returns the tokens read so far, this batch included."""
        raise NotImplementedError

    def bits(self, loss: float, batch: B) -> float | None:
        """Returns the loss of a batch in bits per character, where that is defined."""
        return None

    def quick_loss(self) -> float:
        """Returns the loss of a single batch in evaluation mode, to see that it is finite."""
        raise NotImplementedError

    def evaluation(self, complete: bool) -> Evaluation:
        raise NotImplementedError

    def sample(self) -> Sample:
        raise NotImplementedError

    def records(self, resume: TrainState | None) -> Iterator[Record]:
        if resume is not None:
            self._restore(resume)
        yield from self._due_records(complete=False, everything=True)
        while not (self._over() or self.control.stop):
            record = self._one_step()
            if not (
                math.isfinite(record.loss) and math.isfinite(record.grad_norm)
            ):  # either way the weights are now lost
                yield record
                what = (
                    f"gradient norm became {record.grad_norm}"
                    if math.isfinite(record.loss)
                    else f"loss became {record.loss}"
                )
                message = (
                    f"the {what} at step {record.step}: the training diverged. A lower learning rate or"
                    " gradient clipping helps"
                )
                yield Done(self.step, "diverged", message, self.seconds)
                return
            yield record
            if not (self._over() or self.control.stop):
                yield from self._due_records(complete=False)
        config = self.config
        if config.eval_every and config.eval_tokens and self.last_quick_step != self.step:
            # the curve of quick looks goes on to its end, beside the other kind that follows
            yield self.evaluation(complete=False)
        yield from self._due_records(complete=True, everything=True)
        if not self._over():
            message = f"stopped at step {self.step} of {self.config.steps}"
            yield Done(self.step, "stopped", message, self.seconds)
        else:
            early = f"its {config.seconds:g} s are over, after {self.step} steps"
            message = f"all {config.steps} steps done" if self.step >= config.steps else early
            yield Done(self.step, "finished", message, self.seconds)

    def _over(self) -> bool:
        """True if the budget is spent."""
        return spent(self.config, self.step, self.seconds) >= 1

    def _one_step(self) -> Step:
        started = time.perf_counter()
        factor = learning_rate_factor(self.config, self.step, self.seconds)
        if self.control.learning_rate is not None:  # a new peak, changed by hand; Muon's moves in proportion
            factor *= self.control.learning_rate / max(self.config.learning_rate, 1e-12)
        batch = self.batch()
        with (
            self.numerics.scope(),
            _seeded(self.config.seed, self.step, self.numerics.device, self.has_dropout),
        ):
            loss = self.loss(batch)
            value = float(loss.detach())
            norm = self.optimiser.update(loss, factor)
        self.step += 1
        self.seconds += time.perf_counter() - started
        return Step(
            step=self.step,
            loss=value,
            grad_norm=norm,
            learning_rate=self.config.learning_rate * factor,
            tokens=self.tokens(batch),
            seconds=self.seconds,
            bits=self.bits(value, batch),
        )

    def _due_records(self, complete: bool, everything: bool = False) -> Iterator[Record]:
        """Yields the evaluation, sample and snapshot that are due at this step, with `everything` all three.
        `complete`: the evaluation reads the whole validation split.
        """
        config, control = self.config, self.control
        # Nothing is yielded from inside a scope: while the caller holds a record, torch is as the caller left
        # it.
        evaluation = self.evaluation(complete) if everything or look_due(config, "eval", self.step) else None
        if evaluation is not None:
            yield evaluation
        if config.sample_every and (everything or look_due(config, "sample", self.step)):
            yield self.sample()
        if everything or control.snapshot or snapshot_due(config, self.step):
            control.snapshot = False
            state = TrainState(self.step, self.seconds, self.optimiser.state())
            yield Snapshot(self.step, state, self._finite(state, evaluation))

    def _finite(self, state: TrainState, evaluation: Evaluation | None) -> bool:
        """True if a training can resume from this state: its numbers are finite, and so is the loss that they
        give (in a diverging training the weights are often still finite when the logits no longer are).
        """
        if not all(bool(tensor.isfinite().all()) for tensor in state.tensors.values()):
            return False
        if evaluation is not None:
            return math.isfinite(evaluation.train_loss) and math.isfinite(evaluation.validation_loss)
        with self.numerics.scope():
            return math.isfinite(self.quick_loss())

    def in_float32(self) -> M:
        """Returns the model to look into or to write with: on a processor in float32, since one row at a time
        takes twice as long in bfloat16.
        """
        if self.numerics.device.type == "cpu" and self.numerics.dtype != torch.float32:
            return copy.deepcopy(self.model).float()
        return self.model

    def _restore(self, state: TrainState) -> None:
        try:
            self.optimiser.load_state(state.tensors)
        except (KeyError, RuntimeError) as error:
            raise CheckpointError(f"this snapshot is not of this model: {error}") from error
        self.step, self.seconds = state.step, state.seconds


def snapshot_due(config: TrainConfig, step: int) -> bool:
    """True if a snapshot is taken after this step: at the interval and, where configured, after 1, 2, 4, 8
    ... steps up to it.
    """
    early = config.snapshot_early and 0 < step < config.snapshot_every and step & (step - 1) == 0
    return early or _due(step, config.snapshot_every)


def look_due(config: TrainConfig, kind: Literal["eval", "sample"], step: int) -> bool:
    """True if the model is evaluated, or writes, after this step: at the interval and, where configured,
    after 1, 2, 5, 10, 20, 50 ... steps up to it. Most is learned early, and a straight line to the first
    interval would hide it.
    """
    every = config.eval_every if kind == "eval" else config.sample_every
    return (config.look_early and early(step, every)) or _due(step, every)


def early(step: int, every: int) -> bool:
    """True if a step is one of 1, 2, 5, 10, 20, 50 ... below an interval.

    >>> [step for step in range(120) if early(step, 100)]
    [1, 2, 5, 10, 20, 50]
    """
    return 0 < step < every and f"{step}"[0] in "125" and not f"{step}"[1:].strip("0")


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


class _seeded:
    """Draws of dropout inside depend on seed and step alone; the generators of torch on the CPU
    and CUDA are as before afterwards.
    """

    def __init__(self, seed: int, step: int, device: torch.device, needed: bool) -> None:
        devices = [device] if device.type == "cuda" else []
        self.fork = torch.random.fork_rng(devices=devices) if needed else None
        self.value = (seed * 1_000_003 + step) % 2**63

    def __enter__(self) -> None:
        if self.fork is not None:
            self.fork.__enter__()
            torch.manual_seed(self.value)

    def __exit__(self, *error: Any) -> None:
        if self.fork is not None:
            self.fork.__exit__(*error)
