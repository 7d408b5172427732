"""Coroutines in a thread of their own: where browser tests ran before, this one has an event loop already."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def aside(story: Coroutine[Any, Any, Any]) -> Any:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, story).result()
