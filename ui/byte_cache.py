"""A cache that holds so many bytes and no more."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
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
        self.limit, self.bytes = limit, 0  # held at most, and now
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()  # the one used last is the last

    def get(self, name: Hashable) -> T | None:
        with self._lock:
            if name not in self._held:
                return None
            self._held.move_to_end(name)
            return self._held[name][0]

    def put(self, name: Hashable, thing: T, size: int) -> None:
        """Holds a thing of so many bytes, and lets go of those not used for longest. One that is larger than
        the limit is not held at all.
        """
        with self._lock:
            self.bytes -= self._held.pop(name, (None, 0))[1]
            if size <= self.limit:
                self._held[name] = thing, size
                self.bytes += size
            while self.bytes > self.limit:
                self.bytes -= self._held.popitem(last=False)[1][1]
