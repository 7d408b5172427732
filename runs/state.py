"""State of a run: its specification, its state inside the manager, and the view that others get of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from engine.config import ModelConfig, TrainConfig
from engine.parts.registry import parts_of
from engine.training.optim import spent
from engine.training.records import Evaluation, Record, Step
from runs.events import ID_LENGTH, note
from runs.history import History, HistoryLog, best
from runs.kinds import Kind, kind_of
from runs.processes import Seat
from runs.protocol import Train
from runs.snapshots import Saved

Status = Literal["queued", "starting", "running", "paused", "finished", "stopped", "failed"]
End = Literal["finished", "stopped", "failed"]
ACTIVE: tuple[Status, ...] = ("queued", "starting", "running", "paused")
MAX_WARNINGS = 20

# What may follow which. Its process may reach the end of its training, or be lost, in whatever state the
# manager has put the run meanwhile; an end is left by continuing for longer alone.
FOLLOWS: Mapping[Status, frozenset[Status]] = {
    "queued": frozenset({"starting", "running", "paused", "finished", "stopped", "failed"}),
    "starting": frozenset({"running", "paused", "stopped", "failed"}),
    "running": frozenset({"paused", "finished", "stopped", "failed"}),
    "paused": frozenset({"paused", "queued", "finished", "stopped", "failed"}),
    "finished": frozenset({"queued"}),
    "stopped": frozenset({"queued"}),
    "failed": frozenset({"queued"}),
}


@dataclass(frozen=True)
class RunSpec:
    """Specification of a training. `corpus` is a name in runs.kinds.NAMES, or "text" for the one
    in `text`: it says what kind of training this is. `parts` is one in engine.parts.registry.PARTS.
    """

    model: ModelConfig
    train: TrainConfig
    corpus: str
    text: str | None = field(default=None, repr=False)
    name: str = ""
    parts: str = "healthy"

    @property
    def kind(self) -> Kind:
        return kind_of(self.corpus)

    @property
    def parameters(self) -> int:
        """The parameters of all its stacks. Raises CorpusError where its data cannot be had."""
        return self.kind.parameters(self.model, self.corpus, parts_of(self.parts))

    def same_recipe(self, other: RunSpec) -> bool:
        """True if it trains the same, whatever its name."""
        return replace(self, name=other.name) == other


@dataclass(frozen=True)
class Change:
    """A change made by hand: from `step` on a run differs from what its settings would have made of it.
    learning_rate: `value` is the new peak. steps: `value` further steps after the last snapshot.
    """

    step: int
    seconds: float  # of training by then
    what: Literal["learning_rate", "steps"]
    value: float

    @property
    def words(self) -> str:
        """
        >>> Change(40, 0.9, "learning_rate", 0.003).words, Change(200, 4.1, "steps", 1000).words
        ('learning rate 0.003 from step 40', '1,000 further steps from step 200')
        """
        return f"{self.brief} from step {self.step:,}"

    @property
    def brief(self) -> str:
        """Without the step, for a place that shows it.

        >>> Change(40, 0.9, "learning_rate", 0.003).brief
        'learning rate 0.003'
        """
        if self.what == "learning_rate":
            return f"learning rate {self.value:g}"
        return f"{self.value:,.0f} further steps"


def budget(train: TrainConfig, steps: int, changes: Sequence[Change]) -> TrainConfig:
    """Returns a run's settings with its steps by now; no clock stops one that was continued by hand."""
    by_hand = any(change.what == "steps" for change in changes)
    return replace(train, steps=steps, seconds=0.0 if by_hand else train.seconds)


def changed_name(given: str, changes: Sequence[Change]) -> str:
    """Returns the name of a run with what was done to it by hand, so that no list of runs hides it.

    >>> changed_name("fast", []), changed_name("fast", [Change(40, 0.9, "learning_rate", 0.003)])
    ('fast', 'fast (by hand: learning rate 0.003 from step 40)')
    """
    if not changes:
        return given
    words = changes[0].words if len(changes) == 1 else f"{len(changes)} changes"
    return f"{given} (by hand: {words})"


@dataclass(frozen=True)
class RunView:
    """A run as it was at one moment. Losses are nats per token, `seconds` is time spent training."""

    id: str
    name: str
    spec: RunSpec
    status: Status
    queue_position: int  # in the queue: 1 is next, 0 is not queued
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
    given: str = ""  # the name without what was done by hand
    changes: tuple[Change, ...] = ()  # by hand, in order
    beside: str | None = None  # the other run of a pair
    race: str | None = None  # the id that all runs of a race have in common
    race_title: str = ""
    lost: bool = False  # it failed because its process was lost: the training itself may go on

    @property
    def active(self) -> bool:
        return self.status in ACTIVE

    @property
    def budget(self) -> TrainConfig:
        return budget(self.spec.train, self.total_steps, self.changes)

    @property
    def share(self) -> float:
        """The share of its budget that is spent, 0 to 1: of the steps, or of the seconds."""
        return min(1.0, spent(self.budget, self.step, self.seconds))

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first step, and where nothing is left or goes on."""
        if not (self.active and self.step and 0 < self.share < 1):
            return None
        return self.seconds / self.share * (1 - self.share)

    @property
    def best(self) -> Evaluation | None:
        """The lowest validation loss on the whole split; None before the first."""
        return best(self.history.evaluations, complete=True)

    @property
    def best_quick(self) -> Evaluation | None:
        """The lowest of the quick looks, each at the same part of the split; None where there are none."""
        return best(self.history.evaluations, complete=False)


@dataclass(frozen=True)
class Process:
    """A worker process as others may see it."""

    pid: int
    runs: tuple[str, ...]  # whose trainings it does, or did; none: the spare
    ready: bool  # torch is imported
    bytes: int = 0  # of memory that it holds

    @property
    def kind(self) -> Literal["training", "spare", "starting"]:
        """The state: it trains (or holds a paused run), waits warm, or is not warm yet."""
        return "training" if self.runs else "spare" if self.ready else "starting"


@dataclass(frozen=True)
class Standing:
    """Numbers of a manager at one moment, for who runs the server: statuses of all runs that are kept; who
    waits, a race as one; processes; bytes of snapshots on disk; steps that these runs have done.
    """

    statuses: tuple[Status, ...]
    queued: int
    workers: tuple[Process, ...]
    snapshot_bytes: int
    steps: int


@dataclass(eq=False)
class Run:
    """The manager's own record of a run, changed only under its lock, and its status only by `become`.
    `idle`: its process lives and waits, so that it takes no place among the running.
    """

    id: str
    owner: str
    spec: RunSpec
    folder: Path
    last_watched: float
    address: str = ""  # of the network that it was started from; empty where it is not known
    given: str = ""  # its name without what was done by hand
    listed: str = ""  # its name among all runs, where that is another: those of a race are alike in each
    beside: str | None = None  # the other run of a pair
    race: str | None = None  # the id that all runs of a race have in common
    race_title: str = ""
    lost: bool = False  # it failed because its process was lost
    changes: list[Change] = field(default_factory=list)
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
    text_bytes: int = 0  # of that file
    seat: Seat | None = None  # its part of a process
    idle: bool = False
    by_lease: bool = False  # paused because nobody watched
    parking: bool = False  # its paused process is being saved and ended
    stop_by: float | None = None  # when a process that was asked to stop is ended by force
    paused_at: float = 0.0
    moves: int = 0  # to another process, because its own was lost
    due: int = 0  # the step that it was asked to reach while paused
    history: HistoryLog = field(default_factory=HistoryLog)
    snapshots: dict[int, Saved] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    version: int = 0
    _view: RunView | None = None

    def __post_init__(self) -> None:
        self.given, self.total_steps = self.spec.name, self.spec.train.steps
        self.parameters = self.spec.parameters

    @property
    def active(self) -> bool:
        return self.status in ACTIVE

    @property
    def name(self) -> str:
        return changed_name(self.listed or self.given, self.changes)

    def note(self, what: Literal["learning_rate", "steps"], value: float) -> None:
        """Keeps what was done by hand. The last of several at one step counts."""
        step, seconds = (self.newest or 0, self.seconds) if what == "steps" else (self.step, self.seconds)
        others = [c for c in self.changes if (c.what, c.step) != (what, step)]
        self.changes = [*others, Change(step, seconds, what, value)]
        self.changed()

    @property
    def newest(self) -> int | None:
        return max(self.snapshots, default=None)

    @property
    def stopping(self) -> bool:
        """True if its process was asked for the final evaluation."""
        return self.stop_by is not None and not self.parking

    @property
    def party(self) -> str:
        """The unit that waits and is counted: a race, or the single run."""
        return self.race or self.id

    @property
    def waits(self) -> bool:
        """True if it is paused and its living process has nothing to do."""
        idle = self.seat is not None and self.idle and self.step >= self.due
        return idle and self.status == "paused" and not self.stopping

    @property
    def occupies_slot(self) -> bool:
        """True if its process is among those that train."""
        return self.seat is not None and not self.idle

    @property
    def trains(self) -> bool:
        """True if it holds a slot of its own: not only for its final evaluation, out of a pause."""
        return self.occupies_slot and self.status != "paused"

    def become(self, status: Status, message: str = "", *, by_lease: bool = False) -> None:
        """Changes the status. Raises ValueError where FOLLOWS knows no such change."""
        if status not in FOLLOWS[self.status]:
            raise ValueError(f"a run that is {self.status} cannot become {status}")
        self.status, self.message, self.by_lease = status, message, by_lease
        note("run", run=self.id[:ID_LENGTH], status=status, step=self.step, parameters=self.parameters)
        self.changed()

    def changed(self) -> None:
        """Makes the next view a new one."""
        self.version += 1

    def take_in(self, record: Record) -> None:
        self.history.add(record)
        if isinstance(record, Step):
            self.step, self.seconds = record.step, record.seconds
        self.changed()

    def begin(self) -> None:
        """Starts a process, which goes on from the newest snapshot; a paused run's begins paused."""
        self.history.truncate(-1 if self.newest is None else self.newest)
        self.step, self.idle, self.due = self.newest or 0, self.status == "paused", 0
        self.changes = [replace(c, step=min(c.step, self.step)) for c in self.changes]  # true from there on
        if self.status == "queued":
            self.become("starting")
        self.changed()

    def go_on(self) -> None:
        self.idle = False
        self.become("running")

    def hold(self, now: float, message: str = "", by_lease: bool = False) -> None:
        """Gives up its place, and keeps its process."""
        self.become("paused", message, by_lease=by_lease)
        self.idle, self.paused_at = self.seat is not None, now

    def park(self, by: float) -> None:
        self.parking, self.stop_by = True, by
        self.changed()

    def stop(self, by: float) -> None:
        """Has its process do the final evaluation and end, at the latest at `by`."""
        self.parking, self.idle, self.stop_by = False, False, by
        self.changed()

    def end(self, status: Status, message: str = "", by_lease: bool = False) -> Seat | None:
        """Takes its process away: it ended, or is paused without one. Returns the seat that it had."""
        seat, self.seat = self.seat, None
        self.idle, self.parking, self.stop_by = False, False, None
        self.become(status, message, by_lease=by_lease)
        return seat

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings = [*self.warnings, text][-MAX_WARNINGS:]
            self.changed()

    def order(self, threads: int = 0) -> Train:
        """Returns the first command for a process that begins, or goes on from the newest snapshot."""
        return Train(
            model=self.spec.model,
            train=budget(self.spec.train, self.total_steps, self.changes),
            corpus=self.spec.corpus,
            text=str(self.text_file) if self.text_file else None,
            folder=str(self.folder),
            parts=self.spec.parts,
            resume=None if self.newest is None else str(self.snapshots[self.newest].path),
            learning_rate=self.learning_rate,
            prompt=self.prompt,
            paused=self.status == "paused",
            threads=threads,
        )

    def view(self, queue_position: int) -> RunView:
        """Returns the same object until something changes."""
        if self._view is not None and self._view.queue_position != queue_position:
            self.changed()
        if self._view is None or self._view.version != self.version:
            own = {name: getattr(self, name) for name in _SHOWN if hasattr(self, name)}
            derived: dict[str, Any] = {
                "queue_position": queue_position,
                "tokens_per_second": self.history.tokens_per_second(),
                "history": self.history.view(),
                "snapshots": tuple(sorted(self.snapshots)),
                "resumable": bool(self.snapshots),
                "warnings": tuple(self.warnings),
                "changes": tuple(self.changes),
                "lost": self.lost and self.status == "failed",
            }
            self._view = RunView(**{**own, **derived})
        return self._view


_SHOWN = tuple(each.name for each in fields(RunView))
