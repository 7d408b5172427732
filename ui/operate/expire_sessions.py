"""Tabs that were closed: Streamlit keeps what each holds for two minutes, for a browser that comes back.

A session holds its widgets' values, what was uploaded, and three descriptors (an event loop of its own).
Streamlit looks for those whose time is over only when the next tab is closed: after a lecture nobody closes
one, and so they would stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from streamlit.runtime import Runtime

from ui.operate import patches

EVERY = 30.0  # seconds between two looks


def forget(storage: Any) -> None:
    """Ends the sessions in Streamlit's storage whose time is over. Called in the server's event loop."""
    # Streamlit's own: a storage has no other way to say it
    before = dict(storage._cache._data)
    storage._cache.expire()
    for name, kept in before.items():
        if name not in storage._cache._data:
            kept.session.shutdown()  # else it waits for the garbage collector, and a quiet server has none


@asynccontextmanager
async def forgetting() -> AsyncIterator[None]:
    """Looks again and again while the server runs."""

    async def look() -> None:
        while True:
            await asyncio.sleep(EVERY)
            if Runtime.exists() and patches.holds(patches.SESSIONS):
                # Streamlit's own: it keeps both to itself
                forget(Runtime.instance()._session_mgr._session_storage)  # type: ignore[attr-defined]

    task = asyncio.create_task(look())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
