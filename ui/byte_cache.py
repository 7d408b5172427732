"""A cache that holds so many bytes and no more."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Bounded(Generic[T]):
    """Keeps what was used last, by name, within `limit` bytes. Thread-safe.

    >>> kept = Bounded[str](10)
    >>> kept.put("a", "one", 6), kept.put("b", "two", 4), kept.get("a"), kept.put("c", "three", 1)
    (None, None, 'one', None)
    >>> kept.get("a"), kept.get("b"), kept.get("c"), kept.bytes
    ('one', None, 'three', 7)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._held: OrderedDict[str, tuple[T, int]] = OrderedDict()  # the one used last is the last

    @property
    def bytes(self) -> int:
        """The bytes held now."""
        with self._lock:
            return sum(size for _, size in self._held.values())

    def get(self, name: str) -> T | None:
        with self._lock:
            if name not in self._held:
                return None
            self._held.move_to_end(name)
            return self._held[name][0]

    def put(self, name: str, thing: T, size: int) -> None:
        """Holds a thing of so many bytes, and lets go of those not used for longest. One that is larger than
        the limit is not held at all.
        """
        with self._lock:
            self._held.pop(name, None)
            if size <= self.limit:
                self._held[name] = thing, size
            while sum(each for _, each in self._held.values()) > self.limit:
                self._held.popitem(last=False)
