"""A training's curve in bounded memory: written by one thread, read by many."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from engine.training.records import Evaluation, Record, Sample, Step

MAX_POINTS, MAX_EVALUATIONS, MAX_SAMPLES = 2000, 1000, 400
SPEED_WINDOW = 2.0  # seconds of training over which tokens/s is measured

T = TypeVar("T")
Look = TypeVar("Look", Evaluation, Sample)


@dataclass(frozen=True)
class History:
    """An unchanging view. The seven arrays have one entry for each step kept: (points,)."""

    steps: np.ndarray  # int64
    losses: np.ndarray  # float32, nats per token, of the batch
    grad_norms: np.ndarray  # float32, before clipping
    learning_rates: np.ndarray  # float32
    tokens: np.ndarray  # int64, seen so far
    seconds: np.ndarray  # float32, of training so far
    evaluations: tuple[Evaluation, ...]
    samples: tuple[Sample, ...]
    version: int = 0
    bits: np.ndarray = field(
        default_factory=lambda: np.zeros(0, dtype=np.float32)
    )  # float32, bits per character of the batch; NaN where not measured


class HistoryLog:
    """Collects records. Past `limit` steps it keeps every second one, then every fourth and so on; the first
    and the newest stay.

    >>> log = HistoryLog(limit=4)
    >>> for step in range(1, 12):
    ...     log.add(Step(step, 1.0, 1.0, 0.1, 10 * step, 0.1 * step))
    >>> log.view().steps.tolist()
    [1, 5, 9, 11]
    """

    def __init__(self, limit: int = MAX_POINTS) -> None:
        assert limit >= 2
        self._limit = limit
        self._lock = threading.Lock()
        self._rows = np.empty((limit + 1, 7))  # float64 holds every step and token count exactly
        self._count, self._stride, self._first = 0, 1, 0
        self._latest: tuple[float, ...] | None = None  # the newest step, when the stride skips it
        self._evaluations: list[Evaluation] = []
        self._samples: list[Sample] = []
        self._version = 0
        self._view: History | None = None

    def add(self, record: Record) -> None:
        """Takes a Step, Evaluation or Sample in; other records are not part of the curve."""
        with self._lock:
            if isinstance(record, Step):
                self._add_step(record)
            elif isinstance(record, Evaluation):
                _append(self._evaluations, record, MAX_EVALUATIONS)
            elif isinstance(record, Sample):
                _append(self._samples, record, MAX_SAMPLES)
            else:
                return
            self._version += 1

    def truncate(self, step: int) -> None:
        """Forgets what came after a step: a training that goes on from a snapshot writes it anew."""
        with self._lock:
            self._count = int(np.searchsorted(self._rows[: self._count, 0], step, side="right"))
            if self._latest is not None and self._latest[0] > step:
                self._latest = None
            self._evaluations = [e for e in self._evaluations if e.step <= step]
            self._samples = [s for s in self._samples if s.step <= step]
            self._version += 1

    def view(self) -> History:
        """The curve as it is now; the same object until something is added."""
        with self._lock:
            if self._view is None or self._view.version != self._version:
                self._view = self._make_view()
            return self._view

    def tokens_per_second(self) -> float:
        """Over the last seconds of training; 0 before there are two steps."""
        with self._lock:
            rows = self._all_rows()
            if len(rows) < 2:
                return 0.0
            start = min(int(np.searchsorted(rows[:, 5], rows[-1, 5] - SPEED_WINDOW)), len(rows) - 2)
            tokens, seconds = rows[-1, 4:6] - rows[start, 4:6]
            return float(tokens / seconds) if seconds > 0 else 0.0

    def best_validation(self) -> float | None:
        """The lowest finite validation loss; None before the first."""
        with self._lock:
            return min(
                (e.validation_loss for e in self._evaluations if math.isfinite(e.validation_loss)),
                default=None,
            )

    def _add_step(self, s: Step) -> None:
        row = (
            s.step,
            s.loss,
            s.grad_norm,
            s.learning_rate,
            s.tokens,
            s.seconds,
            math.nan if s.bits is None else s.bits,
        )
        if self._count == 0:
            self._first, self._stride = s.step, 1
        if (s.step - self._first) % self._stride:
            self._latest = row
            return
        self._rows[self._count] = row
        self._count, self._latest = self._count + 1, None
        if self._count == self._limit:  # one place is left for the newest
            self._stride *= 2
            kept = self._rows[: self._count][(self._rows[: self._count, 0] - self._first) % self._stride == 0]
            if kept[-1, 0] != s.step:
                self._latest = row
            self._count = len(kept)
            self._rows[: self._count] = kept

    def _all_rows(self) -> np.ndarray:
        """(points, 7), the newest step included."""
        if self._latest is None:
            return self._rows[: self._count]
        self._rows[self._count] = self._latest
        return self._rows[: self._count + 1]

    def _make_view(self) -> History:
        rows = self._all_rows()
        kinds: tuple[type, ...] = (
            np.int64,
            np.float32,
            np.float32,
            np.float32,
            np.int64,
            np.float32,
            np.float32,
        )
        with np.errstate(
            over="ignore"
        ):  # a diverging loss may be beyond float32: infinite is what it looks like
            columns: list[np.ndarray] = [rows[:, i].astype(kind) for i, kind in enumerate(kinds)]
        for column in columns:
            column.flags.writeable = False
        steps, losses, norms, rates, tokens, seconds, bits = columns
        return History(
            steps,
            losses,
            norms,
            rates,
            tokens,
            seconds,
            tuple(self._evaluations),
            tuple(self._samples),
            self._version,
            bits,
        )


def _append(kept: list[Look], record: Look, limit: int) -> None:
    """Adds one; a training that goes on repeats the look at its first step, which then counts once."""
    if kept and kept[-1].step == record.step:
        kept.pop()
    kept.append(record)
    if len(kept) > limit:
        kept[:] = thin(kept)


def thin(items: Sequence[T]) -> list[T]:
    """Every second one; the first and the last stay.

    >>> thin([1, 2, 3, 4, 5, 6])
    [1, 3, 5, 6]
    """
    return [item for i, item in enumerate(items) if i % 2 == 0 or i == len(items) - 1]
