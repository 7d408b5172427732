"""What a worker and its manager say to each other: one JSON object a line, never a pickle.

To the worker: `train` first, then `pause`, `resume`, `step`, `learning_rate`, `prompt`, `stop`. The end of
its input means that the manager is gone. From the worker: `ready`, `started`, `records`, `snapshot`,
`warning`, `failed`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.training.records import Record

SENT = ("Step", "Evaluation", "Sample", "Done")  # a Snapshot goes to disk, and only its place is told


def dump(message: dict[str, Any]) -> bytes:
    """One line, ASCII only: newlines and lone surrogates inside texts are escaped."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def load(line: bytes) -> dict[str, Any]:
    """The inverse of `dump`. Raises ValueError for a line that is not whole, as a killed process leaves
    it.
    """
    message = json.loads(line)
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise ValueError("a message is an object with a kind")
    return message


def encode(record: Record) -> list[Any]:
    """The name of a record's class and its fields in order."""
    return [type(record).__name__, *(getattr(record, field.name) for field in fields(record))]


def decode(values: Sequence[Any]) -> Record:
    """The inverse of `encode`. Raises ValueError for what is no record."""
    from engine.training import (
        records,  # here, so that a worker can read its input before it has imported torch
    )

    if not values or values[0] not in SENT:
        raise ValueError(f"no record is called {values[0] if values else None!r}")
    try:
        record: Record = getattr(records, values[0])(*values[1:])
    except TypeError as error:
        raise ValueError(str(error)) from error
    return record
