"""Several trainings at once, in turns: each does a slice of its budget and makes room for the one that is
behind, so that all curves grow together, on one core if need be.

    for who, record in race([Entrant(small, TrainConfig(), text), Entrant(large, TrainConfig(), text)]):
        ...

A training is what it would be alone: its weights, batches and dropout depend on its seed and step, never on
who had the turn before. With one seed, batch size and context the entrants read the very same windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from engine.config import ModelConfig, TrainConfig
from engine.parts.registry import HEALTHY, Parts
from engine.training.optim import spent
from engine.training.records import Control, Done, Record, Step, TrainState
from runs.kinds import OF_DATA, Data

SLICES = 100  # of a budget: as finely as a curve on a screen shows it
# a training of many steps changes more often: curves that stand still for seconds look dead
SLICE_SECONDS = 0.25


@dataclass(frozen=True, eq=False)
class Entrant:
    """One training of a race: its settings and data, and the state it resumes from. Its `control` may be
    changed meanwhile, and concerns no other.
    """

    model: ModelConfig
    train: TrainConfig
    corpus: Data
    parts: Parts = HEALTHY
    control: Control = field(default_factory=Control)
    resume: TrainState | None = None


class _Runner:
    """An entrant on its way."""

    def __init__(self, entrant: Entrant, device: str | torch.device) -> None:
        e = entrant
        self.control, self.config = e.control, e.train
        self.step, self.seconds = (e.resume.step, e.resume.seconds) if e.resume else (0, 0.0)
        self.records = OF_DATA[type(e.corpus)].records(
            e.model, e.train, e.corpus, e.parts, e.control, resume=e.resume, device=device
        )

    @property
    def share(self) -> float:
        """The share of its budget that is spent; -1 for an entrant that was stopped, which goes first to its
        end.
        """
        return -1.0 if self.control.stop else spent(self.config, self.step, self.seconds)

    def next(self) -> Record | None:
        """Returns the next record; None after the last."""
        record = next(self.records, None)
        if isinstance(record, Step | Done):
            self.step, self.seconds = record.step, record.seconds
        return record


class Race:
    """The entrants, and whose turn it is. `race` below is all of it in one loop; a caller that pauses some,
    or lets others join later, asks for the turns one by one.
    """

    def __init__(self, device: str | torch.device = "auto") -> None:
        self._device = device
        self._runners: dict[int, _Runner] = {}
        self._turn: tuple[int, float, float] | None = None  # who; share and seconds when the slice began

    def enter(self, who: int, entrant: Entrant) -> None:
        """Adds an entrant. Raises ConfigError or CorpusError at once, as `train` does."""
        self._runners[who] = _Runner(entrant, self._device)

    def leave(self, who: int) -> None:
        """Removes an entrant without a last evaluation, and frees its memory."""
        self._runners.pop(who, None)

    def turn(self, waits: Callable[[int], bool] = lambda who: False) -> int | None:
        """Returns the entrant whose turn it is among those that do not wait: the last one while its slice
        lasts, else the one that has spent the smallest share of its budget. None where nobody can go on.
        """
        ready = [who for who in self._runners if not waits(who)]
        if not ready:
            return None
        if self._turn is not None and self._turn[0] in ready and not self._over(*self._turn):
            return self._turn[0]
        who = min(ready, key=lambda each: self._runners[each].share)
        self._turn = (who, self._runners[who].share, self._runners[who].seconds)
        return who

    def _over(self, who: int, share: float, seconds: float) -> bool:
        runner = self._runners[who]
        spent = runner.share - share >= 1 / SLICES or runner.seconds - seconds >= SLICE_SECONDS
        stopped = any(other.control.stop for other in self._runners.values()) and not runner.control.stop
        return spent or stopped

    def next(self, who: int) -> Record | None:
        """Returns an entrant's next record; None when it has finished and left the race. Raises whatever goes
        wrong in that training, which leaves the race; the others go on.
        """
        try:
            record = self._runners[who].next()
        except BaseException:
            self.leave(who)
            raise
        if record is None:
            self.leave(who)
        return record


def race(entrants: Sequence[Entrant], *, device: str | torch.device = "auto") -> Iterator[tuple[int, Record]]:
    """Yields all records of several trainings in turns, each with the index of its entrant: at any time all
    have spent about the same share of their budgets. One that diverges, or is stopped by its `control`, ends
    with its own Done, and the others go on. Raises ConfigError or CorpusError before the first record, when
    one of them cannot be trained.
    """
    field_of = Race(device)
    for who, entrant in enumerate(entrants):
        field_of.enter(who, entrant)
    return _records(field_of)


def _records(field_of: Race) -> Iterator[tuple[int, Record]]:
    while (who := field_of.turn()) is not None:
        record = field_of.next(who)
        if record is not None:
            yield who, record
