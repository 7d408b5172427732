"""What a run is: its order, its state inside the manager, and the view that others get of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from engine.config import ModelConfig, TrainConfig
from engine.ledger import parameter_formula
from engine.service.history import History, HistoryLog
from engine.service.processes import Worker
from engine.service.snapshots import Saved
from engine.training.records import Evaluation

Status = Literal["queued", "starting", "running", "paused", "finished", "stopped", "failed"]
ACTIVE: tuple[Status, ...] = ("queued", "starting", "running", "paused")
MAX_WARNINGS = 20


@dataclass(frozen=True)
class RunSpec:
    """What to train. `corpus` is a name in engine.corpora.CORPORA, or "text" for the one in `text`; `parts`
    is one in engine.faults.PARTS.
    """

    model: ModelConfig
    train: TrainConfig
    corpus: str
    text: str | None = field(default=None, repr=False)
    name: str = ""
    parts: str = "healthy"


@dataclass(frozen=True)
class RunView:
    """A run as it was at one moment. Losses are nats per token, `seconds` is time spent training."""

    id: str
    name: str
    spec: RunSpec
    status: Status
    place: int  # in the queue: 1 is next, 0 is not queued
    message: str  # one sentence on why it failed or was paused, else ""
    step: int
    total_steps: int
    seconds: float
    tokens_per_second: float
    history: History = field(repr=False)
    snapshots: tuple[int, ...]  # the steps that can be looked into
    precision: str
    parameters: int
    version: int  # another one whenever anything has changed
    resumable: bool  # a snapshot exists to go on from
    warnings: tuple[str, ...]
    learning_rate: float | None = None  # a peak set by hand while it trained; None: the spec's
    prompt: str | None = None  # likewise

    @property
    def active(self) -> bool:
        return self.status in ACTIVE

    @property
    def best_validation(self) -> float | None:
        """The lowest finite validation loss so far; None before the first."""
        return self._best.validation_loss if self._best else None

    @property
    def best_bits(self) -> float | None:
        """The same evaluation in bits per character; None where that was not measured."""
        return self._best.validation_bits if self._best else None

    @cached_property
    def _best(self) -> Evaluation | None:
        finite = [e for e in self.history.evaluations if abs(e.validation_loss) < float("inf")]
        return min(finite, key=lambda e: e.validation_loss, default=None)


@dataclass(eq=False)
class Run:
    """The manager's own record of a run. Changed only under the manager's lock.

    `idle`: its process lives and waits (paused, or queued again after a pause), so that it takes no place
    among the running.
    """

    id: str
    owner: str
    spec: RunSpec
    folder: Path
    last_watched: float
    name: str = ""
    status: Status = "queued"
    message: str = ""
    total_steps: int = 0
    step: int = 0
    seconds: float = 0.0
    precision: str = ""
    parameters: int = 0
    learning_rate: float | None = None  # set by hand; kept when another process goes on
    prompt: str | None = None
    text_file: Path | None = None
    worker: Worker | None = None
    idle: bool = False
    by_lease: bool = False  # paused because nobody watched
    parking: bool = False  # its paused process is being saved and ended
    stop_by: float | None = None  # when a process that was asked to stop is ended by force
    paused_at: float = 0.0
    history: HistoryLog = field(default_factory=HistoryLog)
    snapshots: dict[int, Saved] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    version: int = 0
    _view: RunView | None = None

    def __post_init__(self) -> None:
        self.name, self.total_steps = self.spec.name, self.spec.train.steps
        self.parameters = parameter_formula(self.spec.model)

    @property
    def active(self) -> bool:
        return self.status in ACTIVE

    @property
    def newest(self) -> int | None:
        """The step of the newest snapshot."""
        return max(self.snapshots, default=None)

    def change(self, **values: Any) -> None:
        """Sets fields, and makes the next view a new one."""
        for name, value in values.items():
            setattr(self, name, value)
        self.version += 1

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings = [*self.warnings, text][-MAX_WARNINGS:]
            self.version += 1

    def order(self) -> dict[str, Any]:
        """The `train` command for a process that begins, or goes on from the newest snapshot."""
        return {
            "model": self.spec.model.to_dict(),
            "train": replace(self.spec.train, steps=self.total_steps).to_dict(),
            "parts": self.spec.parts,
            "corpus": self.spec.corpus,
            "text": str(self.text_file) if self.text_file else None,
            "folder": str(self.folder),
            "resume": None if self.newest is None else str(self.snapshots[self.newest].path),
            "learning_rate": self.learning_rate,
            "prompt": self.prompt,
            "paused": self.status == "paused",
        }

    def view(self, place: int) -> RunView:
        """The same object until something changes."""
        if self._view is None or self._view.version != self.version or self._view.place != place:
            if self._view is not None and self._view.version == self.version:
                self.version += 1  # the place alone has changed
            self._view = RunView(
                self.id,
                self.name,
                self.spec,
                self.status,
                place,
                self.message,
                self.step,
                self.total_steps,
                self.seconds,
                self.history.tokens_per_second(),
                self.history.view(),
                tuple(sorted(self.snapshots)),
                self.precision,
                self.parameters,
                self.version,
                bool(self.snapshots),
                tuple(self.warnings),
                self.learning_rate,
                self.prompt,
            )
        return self._view
