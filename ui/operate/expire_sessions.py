"""Tabs that were closed: Streamlit keeps what each holds for two minutes, for a browser that comes back.

A session holds its widgets' values, what was uploaded, and three descriptors (an event loop of its own).
Streamlit looks for those whose time is over only when the next tab is closed: after a lecture nobody closes
one, and so they would stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

LATER = 0.1  # seconds after its time is over that a session ends


def end_expired(storage: Any) -> None:
    """Ends the sessions in Streamlit's storage whose time is over. Called in the server's event loop."""
    for _, expired in storage._cache.expire():
        expired.session.shutdown()  # else it waits for the garbage collector, and a quiet server has none


def saver(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Returns a `MemorySessionStorage.save` that comes back to a session when its time is over."""

    def save(self: Any, session_info: Any) -> None:
        end_expired(self)  # the original would let go of them without an end
        original(self, session_info)
        asyncio.get_running_loop().call_later(self._cache.ttl + LATER, end_expired, self)

    return save
