"""Messages between a worker and its manager: one JSON object a line, never a pickle.

Commands go to the worker: `Train` first, then the others. The end of its input means that the manager is
gone, or needs it no more. Messages come from the worker: `Ready`, `Started`, and then what happens.

A process may do several trainings in turns (a race). Each has a number in it, `entrant`, which is said with
all that concerns it; of the only one it is 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from engine.config import ModelConfig, TrainConfig
from engine.errors import ConfigError

if TYPE_CHECKING:
    from engine.training.records import HeadScores, Record, TaskScores

SENT = ("Step", "Evaluation", "Sample", "Done")  # a Snapshot goes to disk, and only its place is told

# Commands -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Train:
    """The order: what to train, on which text, and where to leave snapshots."""

    model: ModelConfig
    train: TrainConfig
    corpus: str
    text: str | None  # path of the file that holds a text of one's own
    folder: str
    parts: str = "healthy"  # a name of engine.lab.faults.PARTS
    resume: str | None = None  # path of the snapshot to go on from
    learning_rate: float | None = None  # a peak set by hand before
    prompt: str | None = None  # likewise
    paused: bool = False  # waits before the first step
    threads: int = 0  # to compute with; 0: those that the process was started with


@dataclass(frozen=True)
class Pause:
    """Before the next step."""


@dataclass(frozen=True)
class Resume:
    """Goes on."""


@dataclass(frozen=True)
class SingleStep:
    """Does one step, and is paused after it."""


@dataclass(frozen=True)
class SetLearningRate:
    """A new peak for AdamW."""

    value: float


@dataclass(frozen=True)
class SetPrompt:
    """Sets the prompt of the next samples."""

    value: str


@dataclass(frozen=True)
class Stop:
    """After the current step, with a last look."""


@dataclass(frozen=True)
class Leave:
    """At once, without a last look: nobody wants to know any more."""


Command = Train | Pause | Resume | SingleStep | SetLearningRate | SetPrompt | Stop | Leave

# Messages -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ready:
    """torch is imported; an order is waited for."""


@dataclass(frozen=True)
class Alive:
    """Said every second, whatever the process computes: one that says nothing does not run any more."""


@dataclass(frozen=True)
class Started:
    """The text is read and the model is built. `precision` says in words what is computed in."""

    precision: str


@dataclass(frozen=True)
class Records:
    """Records of a training, in order, a bundle at a time."""

    items: tuple[Record, ...]


@dataclass(frozen=True)
class SnapshotSaved:
    """A snapshot lies on disk whole, or still lies there with fewer `bytes`."""

    step: int
    path: str
    bytes: int


@dataclass(frozen=True)
class Warned:
    """A sentence about what went wrong without ending the training."""

    text: str


@dataclass(frozen=True)
class Failed:
    """A sentence on what ended the training."""

    text: str


Message = Ready | Alive | Started | Records | SnapshotSaved | Warned | Failed

COMMANDS: Mapping[str, type[Command]] = {
    "train": Train,
    "pause": Pause,
    "resume": Resume,
    "step": SingleStep,
    "learning_rate": SetLearningRate,
    "prompt": SetPrompt,
    "stop": Stop,
    "leave": Leave,
}
MESSAGES: Mapping[str, type[Message]] = {
    "ready": Ready,
    "alive": Alive,
    "started": Started,
    "records": Records,
    "snapshot": SnapshotSaved,
    "warning": Warned,
    "failed": Failed,
}
KINDS: Mapping[type, str] = {said: kind for kinds in (COMMANDS, MESSAGES) for kind, said in kinds.items()}

# On the pipe --------------------------------------------------------------------------------------


def dump(message: Command | Message, entrant: int = 0) -> bytes:
    """Writes a command or message as one line of ASCII: newlines and lone surrogates inside texts are
    escaped.
    """
    values = (
        {"items": [encode(r) for r in message.items]} if isinstance(message, Records) else asdict(message)
    )
    line = json.dumps({"kind": KINDS[type(message)], "entrant": entrant, **values}, separators=(",", ":"))
    return line.encode("ascii") + b"\n"


def load_command(line: bytes) -> tuple[int, Command]:
    """Returns the inverse of `dump`, for the worker: (entrant, command). Raises ValueError for a line that is
    not whole, as a killed process leaves it, or is no command.
    """
    kind, entrant, values = _parts(line)
    try:
        if kind == "train":
            values["model"] = ModelConfig.from_dict(values["model"])
            values["train"] = TrainConfig.from_dict(values["train"])
        return entrant, COMMANDS[kind](**values)
    except (KeyError, TypeError, AttributeError, ConfigError) as error:
        raise ValueError(f"no command: {error}") from error


def load_message(line: bytes) -> tuple[int, Message]:
    """Returns the inverse of `dump`, for the manager: (entrant, message). Raises ValueError as
    `load_command`.
    """
    kind, entrant, values = _parts(line)
    try:
        if kind == "records":
            values["items"] = tuple(decode(item) for item in values["items"])
        return entrant, MESSAGES[kind](**values)
    except (KeyError, TypeError) as error:
        raise ValueError(f"no message: {error}") from error


def _parts(line: bytes) -> tuple[str, int, dict[str, Any]]:
    said = json.loads(line)
    if not isinstance(said, dict) or not isinstance(kind := said.pop("kind", None), str):
        raise ValueError("what is said is an object with a kind")
    if not isinstance(entrant := said.pop("entrant", 0), int):
        raise ValueError("an entrant is a number")
    return kind, entrant, said


def encode(record: Record | HeadScores | TaskScores) -> list[Any]:
    """Returns the name of a record's class and its fields in order; a record inside it likewise."""
    values = (getattr(record, field.name) for field in fields(record))
    return [type(record).__name__, *(encode(v) if _is_record(v) else v for v in values)]


def _is_record(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def decode(values: Sequence[Any]) -> Record:
    """Returns the inverse of `encode`. Raises ValueError for what is no record."""
    from engine.training import records  # here: a worker reads its input before it has imported torch

    if not values or values[0] not in SENT:
        raise ValueError(f"no record is called {values[0] if values else None!r}")
    kind, *found = values
    try:
        found = [_inside(value) if isinstance(value, list) else value for value in found]
        record: Record = getattr(records, kind)(*found)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return record


def _inside(values: Sequence[Any]) -> HeadScores | TaskScores:
    """The record inside a record. Raises TypeError for what is none."""
    from engine.training.records import HeadScores, TaskScores

    if len(values) == 5 and values[0] == "HeadScores":
        induction, previous = (tuple(tuple(row) for row in grid) for grid in values[1:3])
        return HeadScores(induction, previous, *values[3:])
    if len(values) == 3 and values[0] == "TaskScores":
        return TaskScores(*values[1:])
    raise TypeError("no scores of heads or of a task")
