"""A training's curve in bounded memory: written by one thread, read by many."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, get_type_hints

import numpy as np

from engine.training.records import Evaluation, Record, Sample, Step

MAX_POINTS, MAX_EVALUATIONS, MAX_SAMPLES = 2000, 1000, 400
SMOOTH = 5  # batches whose mean loss tells of a step
SPEED_WINDOW = 2.0  # seconds of training over which tokens/s is measured

T = TypeVar("T")
Entry = TypeVar("Entry", Evaluation, Sample)


def _kinds(of_float: type) -> np.dtype[np.void]:
    """The columns of a Step, by the names of its fields: whole numbers, and numbers that may be NaN."""
    hints = get_type_hints(Step)
    return np.dtype([(f.name, np.int64 if hints[f.name] is int else of_float) for f in fields(Step)])


def _column(name: str) -> Any:
    return property(lambda history: history.rows[name])


KEPT, SHOWN = _kinds(np.float64), _kinds(np.float32)


@dataclass(frozen=True)
class History:
    """An unchanging view of a curve."""

    rows: np.ndarray  # (points,): for each step kept, the fields of its Step by name; float32, None is NaN
    evaluations: tuple[Evaluation, ...]
    samples: tuple[Sample, ...]
    version: int = 0

    # (points,), each: the columns of a curve
    steps, losses, grad_norms = _column("step"), _column("loss"), _column("grad_norm")
    learning_rates, tokens = _column("learning_rate"), _column("tokens")
    seconds, bits = _column("seconds"), _column("bits")


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
        self._rows = np.zeros(limit + 1, KEPT)
        self._count, self._stride, self._first = 0, 1, 0
        self._latest: Step | None = None  # the newest step, when the stride skips it
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
                last = self._evaluations[-1] if self._evaluations else record
                if last.step == record.step and last.complete > record.complete:
                    return  # a training that goes on takes a quick look where all had been read
                _append(self._evaluations, record, MAX_EVALUATIONS)
            elif isinstance(record, Sample):
                _append(self._samples, record, MAX_SAMPLES)
            else:
                return
            self._version += 1

    def truncate(self, step: int) -> None:
        """Forgets what came after a step: a training that goes on from a snapshot writes it anew."""
        with self._lock:
            self._count = int(np.searchsorted(self._rows["step"][: self._count], step, side="right"))
            if self._latest is not None and self._latest.step > step:
                self._latest = None
            self._evaluations = [e for e in self._evaluations if e.step <= step]
            self._samples = [s for s in self._samples if s.step <= step]
            self._version += 1

    def view(self) -> History:
        """Returns the curve as it is now; the same object until something is added."""
        with self._lock:
            if self._view is None or self._view.version != self._version:
                self._view = self._make_view()
            return self._view

    def tokens_per_second(self) -> float:
        """Returns the speed over the last seconds of training; 0 before there are two steps."""
        with self._lock:
            rows = self._all_rows()
            if len(rows) < 2:
                return 0.0
            spent = rows["seconds"]
            start = min(int(np.searchsorted(spent, spent[-1] - SPEED_WINDOW)), len(rows) - 2)
            tokens, seconds = rows["tokens"][-1] - rows["tokens"][start], spent[-1] - spent[start]
            return float(tokens / seconds) if seconds > 0 else 0.0

    def _add_step(self, step: Step) -> None:
        if self._count == 0:
            self._first, self._stride = step.step, 1
        if (step.step - self._first) % self._stride:
            self._latest = step
            return
        self._rows[self._count] = _row(step)
        self._count, self._latest = self._count + 1, None
        if self._count == self._limit:  # one place is left for the newest
            self._stride *= 2
            full = self._rows[: self._count]
            kept = full[(full["step"] - self._first) % self._stride == 0]
            if kept["step"][-1] != step.step:
                self._latest = step
            self._count = len(kept)
            self._rows[: self._count] = kept

    def _all_rows(self) -> np.ndarray:
        """(points,), the newest step included."""
        if self._latest is None:
            return self._rows[: self._count]
        self._rows[self._count] = _row(self._latest)
        return self._rows[: self._count + 1]

    def _make_view(self) -> History:
        with np.errstate(over="ignore"):  # a diverging loss may be beyond float32: infinite is what it is
            rows = self._all_rows().astype(SHOWN)
        rows.flags.writeable = False
        return History(rows, tuple(self._evaluations), tuple(self._samples), self._version)


def losses_at(steps: Sequence[int], history: History) -> list[float | None]:
    """Returns the training loss around each snapshot, the mean of up to SMOOTH batches that end with it (nats
    per token); None for none. A batch's loss is measured before its update, so the first tells of the start.
    """
    result: list[float | None] = []
    for step in steps:
        end = int(np.searchsorted(history.steps, max(step, 1), side="right"))
        some = history.losses[max(0, end - SMOOTH) : end] if step else history.losses[:1]
        result.append(float(some.mean()) if len(some) and np.isfinite(some).all() else None)
    return result


def best(evaluations: Iterable[Evaluation], complete: bool) -> Evaluation | None:
    """Returns the lowest finite validation loss of the complete evaluations, or of the quick looks; None for
    none. The two are never compared: a part of the split may happen to be easy.
    """
    some = [e for e in evaluations if e.complete == complete and math.isfinite(e.validation_loss)]
    return min(some, key=lambda e: e.validation_loss, default=None)


def _row(step: Step) -> tuple[float, ...]:
    """The fields in order; NaN where not measured."""
    values = (getattr(step, name) for name in KEPT.names or ())
    return tuple(math.nan if value is None else value for value in values)


def _append(entries: list[Entry], record: Entry, limit: int) -> None:
    """Adds an entry. A training that goes on repeats that of its first step, which then counts once. At its
    end a quick evaluation and one of the whole split are of the same step: both stay.
    """
    if entries and entries[-1].step == record.step and _kind(entries[-1]) == _kind(record):
        entries.pop()
    entries.append(record)
    if len(entries) > limit:
        entries[:] = thin(entries)


def _kind(entry: Evaluation | Sample) -> bool:
    return isinstance(entry, Evaluation) and entry.complete


def thin(items: Sequence[T]) -> list[T]:
    """Returns every second one; the first and the last stay.

    >>> thin([1, 2, 3, 4, 5, 6])
    [1, 3, 5, 6]
    """
    return [item for i, item in enumerate(items) if i % 2 == 0 or i == len(items) - 1]
