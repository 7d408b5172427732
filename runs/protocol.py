"""Messages between a worker and its manager: one JSON list a line, never a pickle.

Commands go to the worker: `Train` first, then the others. The end of its input means that the manager is
gone, or needs it no more. Messages come from the worker: `Ready`, `Started`, and then what happens.

A process may do several trainings in turns (a race). Each has a number in it, `entrant`, which is said with
all that concerns it; of the only one it is 0.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_args

from engine.config import ModelConfig, TrainConfig

if TYPE_CHECKING:
    from engine.training.records import Record

# Commands -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Train:
    """The order: what to train, on which text, and where to leave snapshots."""

    model: ModelConfig
    train: TrainConfig
    corpus: str
    text: str | None  # path of the file that holds a text of one's own
    folder: str
    parts: str = "healthy"  # a name of engine.parts.registry.PARTS
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
    """A bundle of a training's records, in order. A Snapshot goes to disk instead (SnapshotSaved)."""

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

# On the pipe --------------------------------------------------------------------------------------

_RECORDS = frozenset({"Step", "Evaluation", "Sample", "Done", "HeadScores", "TaskScores"})
_SENT = (*get_args(Command), *get_args(Message), ModelConfig, TrainConfig)
_CLASSES = {each.__name__: each for each in _SENT}
_TUPLE = "()"  # instead of a class, before the items of a tuple


def dump(message: Command | Message, entrant: int = 0) -> bytes:
    """Writes a command or message as one line of ASCII, newlines and lone surrogates escaped."""
    return json.dumps([entrant, encode(message)], separators=(",", ":")).encode("ascii") + b"\n"


def load_command(line: bytes) -> tuple[int, Command]:
    """Inverts `dump` for the worker: (entrant, command). Raises ValueError for a torn line or another."""
    entrant, command = _load(line)
    if not isinstance(command, Command):
        raise ValueError("this is no command")
    return entrant, command


def load_message(line: bytes) -> tuple[int, Message]:
    """Inverts `dump` for the manager: (entrant, message). Raises ValueError as `load_command`."""
    entrant, message = _load(line)
    if not isinstance(message, Message):
        raise ValueError("this is no message")
    return entrant, message


def _load(line: bytes) -> tuple[int, Any]:
    match json.loads(line):
        case [int(entrant), [str(), *_] as values]:
            return entrant, decode(values)
    raise ValueError("a line is an entrant and a command, or a message")


def encode(value: Any) -> Any:
    """Returns a dataclass as a list: the name of its class, then its fields, encoded likewise."""
    if is_dataclass(value):
        return [type(value).__name__, *(encode(getattr(value, field.name)) for field in fields(value))]
    return [_TUPLE, *map(encode, value)] if isinstance(value, tuple) else value


def decode(value: Any) -> Any:
    """Returns the inverse of `encode`. Raises ValueError for whatever is never sent."""
    if not isinstance(value, list):
        return value
    if not value or not isinstance(name := value[0], str):
        raise ValueError("what is sent begins with the name of its class")
    values = tuple(map(decode, value[1:]))
    if name == _TUPLE:
        return values
    if name in _RECORDS:
        from engine.training import records  # here: a worker reads its input before it has imported torch

        made = getattr(records, name)
    elif (made := _CLASSES.get(name)) is None:
        raise ValueError(f"nothing that is sent is called {name!r}")
    try:
        return made(*values)
    except TypeError as error:
        raise ValueError(str(error)) from error
