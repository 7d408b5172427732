"""Results that are kept for everybody, as many as fit into so many bytes: `measured` for what a model and a
text give, `loaded` for models and texts that were read or learned.

    @memo.measured()
    def _lens(key: tuple[str, int], ids: tuple[int, ...], _model: Transformer) -> Lens: ...

All arguments name the result but those whose name begins with an underscore. It is made once, also where
several ask at the same time, and shared: nobody may change it, or it is `copied` for each who asks.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import streamlit as st

from runs import profiles
from ui.byte_cache import Bounded

P = ParamSpec("P")
T = TypeVar("T")
CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)  # held anyway
ENTRY = 500  # bytes of a name and its place


@dataclass(frozen=True)
class _Held:
    result: Any


class Store:
    """Results by function and arguments, within the bytes that `limit` returns."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._held: Bounded[_Held] | None = None  # made with the first result: then the profile is settled
        self._made: dict[Hashable, tuple[threading.Lock, int]] = {}  # results under way, and how many wait

    @property
    def held(self) -> Bounded[_Held]:
        with self._lock:
            if self._held is None:
                self._held = Bounded(self._limit())
            return self._held

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._held = None

    def get(self, name: Hashable, make: Callable[[], tuple[Any, int]]) -> Any:
        """Returns the result of that name; what `make` returns, with its bytes, where there is none."""
        found = self.held.get(name)
        if found is None:
            with self._turn(name):
                found = self.held.get(name)
                if found is None:
                    result, size = make()
                    found = _Held(result)
                    self.held.put(name, found, size)
        return found.result

    def known(self, name: Hashable) -> Any:
        """Returns the result of that name; None where there is none."""
        found = self.held.get(name)
        return None if found is None else found.result

    def put(self, name: Hashable, result: Any, size: int) -> None:
        """Keeps a result of so many bytes."""
        self.held.put(name, _Held(result), size)

    @contextmanager
    def _turn(self, name: Hashable) -> Iterator[None]:
        with self._lock:
            lock, waiting = self._made.get(name, (threading.Lock(), 0))
            self._made[name] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, waiting = self._made.pop(name)
                if waiting > 1:
                    self._made[name] = lock, waiting - 1


MEASURED = Store(lambda: profiles.current().measured_bytes)
LOADED = Store(lambda: profiles.current().loaded_bytes)


def measured(spinner: str = "", *, copied: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keeps what a function measures: a result larger than all that is kept is given to who asks, and made
    again for the next.
    """
    return _keeper(MEASURED, spinner, copied)


def loaded(spinner: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keeps what a function reads or learns. One thing that is larger than all that is kept is kept alone:
    who works with it asks for it at every step.
    """
    return _keeper(LOADED, spinner, False)


def _keeper(store: Store, spinner: str, copied: bool) -> Callable[[Callable[P, T]], Callable[P, T]]:
    def keep(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        where = function.__module__, function.__qualname__

        @functools.wraps(function)
        def kept(*args: P.args, **kwargs: P.kwargs) -> T:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = [value for name, value in bound.arguments.items() if not name.startswith("_")]

            def make() -> tuple[Any, int]:
                with st.spinner(spinner) if spinner else nullcontext():
                    result: Any = function(*args, **kwargs)
                size = size_of(result, bound.arguments.values()) + size_of(given) + ENTRY
                return result, size if store is MEASURED else min(size, store.held.limit)

            found = store.get((*where, *map(name_of, given)), make)
            return cast("T", copy.deepcopy(found) if copied else found)

        return kept

    return keep


def clear() -> None:
    """Forgets all results."""
    MEASURED.clear()
    LOADED.clear()


def name_of(value: Any) -> Hashable:
    """Returns what an argument is called in a name: itself where it can be, else its contents. 1, 1.0 and
    True are three.

    >>> name_of([1, [2.0]]) == name_of([1, [2.0]]), name_of([1]) == name_of([True]), name_of("a")
    (True, False, 'a')
    """
    if isinstance(value, str | None):
        return value
    if isinstance(value, bool | int | float):
        return type(value), value
    if isinstance(value, list | tuple):
        return type(value), *map(name_of, value)
    if isinstance(value, dict):
        return dict, *((name_of(key), name_of(each)) for key, each in value.items())
    if isinstance(value, set | frozenset):
        return frozenset, frozenset(map(name_of, value))
    if isinstance(value, np.ndarray):
        return np.ndarray, value.shape, value.dtype.str, hashlib.sha256(value.tobytes()).digest()
    hash(value)  # TypeError for what cannot name anything
    return cast("Hashable", value)


def size_of(value: Any, without: Any = ()) -> int:
    """Returns about how many bytes of memory a value holds, each part once; nothing for the parts of
    `without`, which others hold, and for code.

    >>> size_of(np.zeros(1000)) // 1000, size_of([np.zeros(1000)[:10]] * 9) // 1000
    (8, 8)
    """
    if hasattr(value, "memory"):  # a checkpoint knows
        return int(value.memory())
    seen: set[Hashable] = set()
    for each in without:
        seen.add(id(each))
        seen.update(map(id, getattr(each, "__dict__", {}).values()))
    rest, total = [value], 0
    while rest:
        each = rest.pop()
        if id(each) in seen or isinstance(each, CODE):
            continue
        seen.add(id(each))
        total += _own(each, seen)
        rest += _parts(each)
    return total


def _own(value: Any, seen: set[Hashable]) -> int:
    """Bytes of a value without its parts. An array that is a view of another holds the whole of it."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        if ("array", id(value)) in seen:
            return 0
        seen.add(("array", id(value)))
        return int(value.nbytes)
    if hasattr(value, "untyped_storage"):  # a tensor of PyTorch
        storage = value.untyped_storage()
        if ("tensor", storage.data_ptr()) in seen:
            return 0
        seen.add(("tensor", storage.data_ptr()))
        return int(storage.nbytes())
    if hasattr(value, "memory_usage") and hasattr(value, "columns"):  # a table of pandas
        return int(sum(value.memory_usage(deep=True)))
    return sys.getsizeof(value)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, str | bytes | bytearray | int | float | complex | np.ndarray | None):
        return []
    if hasattr(value, "memory_usage"):
        return []
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    slots = [
        getattr(value, name)
        for each in type(value).__mro__
        for name in getattr(each, "__slots__", ())
        if isinstance(name, str) and hasattr(value, name)
    ]
    fields = getattr(value, "__dict__", None)
    return slots + ([] if fields is None else [fields])
