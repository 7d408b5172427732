"""Arguments and results of a measurement as bytes, never a pickle: plain values, arrays, tensors, and the
records and functions of `engine` and `studies`, by their names.

Values come back equal bit by bit, types included: a tuple stays a tuple, a float32 a float32.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from engine.errors import GlassformerError
from engine.parts.registry import PARTS, Parts, parts_of

LIBRARIES = ("engine", "studies")  # whose records and functions travel
LENGTH = struct.Struct("<Q")  # before each message, and before the text that a message begins with
NUMBER = struct.Struct("<I")  # before what a process that measures says of a measurement
CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    each.__name__: each for each in (list, tuple, set, frozenset)
}
Refer = Callable[[Any], int | None]  # a value -> the number under which the other process holds it


class Unsendable(GlassformerError):
    """A value that no other process can be given."""


def pack(value: Any, refer: Refer = lambda value: None) -> bytes:
    """Writes a value as a single message. Raises Unsendable."""
    writer = _Writer(refer)
    text = json.dumps([writer.value(value), [len(each) for each in writer.buffers]]).encode("ascii")
    return b"".join([LENGTH.pack(len(text)), text, *writer.buffers])


def unpack(data: bytes, held: Mapping[int, Any] | None = None) -> Any:
    """Inverts `pack`; `held` are the values that a message refers to. Raises Unsendable for a name that is
    none of the LIBRARIES', KeyError for a value that is not held.

    >>> unpack(pack((1, [2.5, None], {"a": b"b"})))
    (1, [2.5, None], {'a': b'b'})
    """
    start = LENGTH.size + LENGTH.unpack_from(data)[0]
    value, sizes = json.loads(data[LENGTH.size : start])
    buffers = []
    for size in sizes:
        buffers.append(data[start : start + size])
        start += size
    return _Reader(buffers, held or {}).value(value)


def send(file: IO[bytes], data: bytes) -> None:
    """Writes a message, its length first. Raises OSError, or ValueError for a closed file."""
    file.write(LENGTH.pack(len(data)) + data)
    file.flush()


def receive(file: IO[bytes]) -> bytes | None:
    """Returns the next message; None at the end, also where it is within a message."""
    length = file.read(LENGTH.size)
    if len(length) < LENGTH.size:
        return None
    wanted = LENGTH.unpack(length)[0]
    data = file.read(wanted)
    return data if len(data) == wanted else None


def name_of(thing: Any) -> str:
    """Returns the name by which another process finds a function or class. Raises Unsendable.

    >>> from engine.config import ModelConfig
    >>> name_of(ModelConfig)
    'engine.config:ModelConfig'
    """
    name = f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', '')}"
    if named(name) is not thing:
        raise Unsendable(f"something else is called {name}")
    return name


def named(name: str) -> Any:
    """Returns the function or class of that name. Raises Unsendable where it is not of the LIBRARIES."""
    module, _, path = name.partition(":")
    if module.partition(".")[0] not in LIBRARIES:
        raise Unsendable(f"{name} is neither of {' nor of '.join(LIBRARIES)}")
    try:
        thing: Any = import_module(module)
        for part in path.split("."):
            thing = vars(thing)[part]
    except (ImportError, KeyError, TypeError) as error:
        raise Unsendable(f"nothing is called {name}") from error
    if getattr(thing, "__module__", None) != module:  # imported there, from anywhere
        raise Unsendable(f"{name} is at home elsewhere")
    return thing


class _Writer:
    """Writes what JSON has as itself, and anything else as a list that begins with its kind."""

    def __init__(self, refer: Refer) -> None:
        self.buffers: list[bytes] = []
        self._refer = refer

    def value(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if (number := self._refer(value)) is not None:
            return ["held", number]
        for write in (self._container, self._numbers, self._named):
            if (result := write(value)) is not None:
                return result
        raise Unsendable(f"a {type(value).__name__} does not travel")

    def _each(self, values: Any) -> list[Any]:
        return [self.value(each) for each in values]

    def _buffer(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1

    def _container(self, value: Any) -> list[Any] | None:
        kind = type(value)
        if kind is dict:
            return ["dict", *self._each(value), *self._each(value.values())]
        return [kind.__name__, *self._each(value)] if kind in CONTAINERS.values() else None

    def _numbers(self, value: Any) -> list[Any] | None:
        if isinstance(value, bytes):
            return ["bytes", self._buffer(value)]
        if isinstance(value, Tensor):
            flat = value.detach().cpu().contiguous().reshape(-1)
            at = self._buffer(flat.view(torch.uint8).numpy().tobytes() if len(flat) else b"")
            return ["tensor", str(value.dtype).removeprefix("torch."), list(value.shape), at]
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.hasobject or value.dtype.names:
            return None
        kind = "array" if isinstance(value, np.ndarray) else "number"
        return [kind, value.dtype.str, value.shape, value.flags.writeable, self._buffer(value.tobytes())]

    def _named(self, value: Any) -> list[Any] | None:
        if isinstance(value, FunctionType | type):
            return ["function", name_of(value)]
        if isinstance(value, Parts):
            return ["parts", value.name] if PARTS.get(value.name) is value else None
        if is_dataclass(value):
            items = [getattr(value, field.name) for field in fields(value)]
        elif isinstance(value, tuple):
            items = list(value)
        else:
            return None
        return ["record", name_of(type(value)), *self._each(items)]


class _Reader:
    """Reads what a `_Writer` wrote, by the kind that a list begins with."""

    def __init__(self, buffers: list[bytes], held: Mapping[int, Any]) -> None:
        self._buffers, self._held = buffers, held
        self._kinds: dict[str, Callable[..., Any]] = {
            "held": held.__getitem__,
            "dict": self._dict,
            "bytes": buffers.__getitem__,
            "array": self._array,
            "number": lambda *values: self._array(*values)[()],
            "tensor": self._tensor,
            "parts": parts_of,
            "record": self._record,
            "function": named,
        }

    def value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        kind, *items = value
        if kind in CONTAINERS:
            return CONTAINERS[kind](self._each(items))
        return self._kinds[kind](*items)

    def _each(self, values: Any) -> list[Any]:
        return [self.value(each) for each in values]

    def _dict(self, *items: Any) -> dict[Any, Any]:
        half = len(items) // 2
        return dict(zip(self._each(items[:half]), self._each(items[half:]), strict=True))

    def _array(self, dtype: str, shape: list[int], writeable: bool, at: int) -> np.ndarray:
        array: np.ndarray = np.ndarray(shape, dtype, self._buffers[at])
        return array.copy() if writeable else array

    def _tensor(self, dtype: str, shape: list[int], at: int) -> Tensor:
        result = torch.empty(shape, dtype=getattr(torch, dtype))
        if data := bytearray(self._buffers[at]):
            result.copy_(torch.frombuffer(data, dtype=result.dtype).reshape(shape))
        return result

    def _record(self, name: str, *items: Any) -> Any:
        made: Any = named(name)
        values = self._each(items)
        names = [field.name for field in fields(made)] if is_dataclass(made) else None
        return made(*values) if names is None else made(**dict(zip(names, values, strict=True)))
