"""When more come than the system has descriptors for: each tab takes four, each connection one."""

from __future__ import annotations

import logging
import time
from asyncio import AbstractEventLoop
from contextlib import suppress
from typing import Any

log = logging.getLogger(__name__)

MOST = 65_536  # descriptors: what goes through all of them takes no longer than it may
QUIET_SECONDS = 30.0  # between two lines about it


def more_descriptors() -> int:
    """Takes as many as the system gives whoever asks; unasked it gives 1,024. Returns how many there are; 0
    where the system does not say.
    """
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if 0 <= soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return soft


def say_seldom(loop: AbstractEventLoop) -> None:
    """Limits the log's lines about it: asyncio writes a trace for each of thousands of tries."""
    before, last = loop.get_exception_handler(), [-QUIET_SECONDS]

    def handle(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        if "out of system resource" not in str(context.get("message")):
            (before or AbstractEventLoop.default_exception_handler)(loop, context)
        elif time.monotonic() - last[0] >= QUIET_SECONDS:
            last[0] = time.monotonic()
            log.warning("no descriptor is left: nobody else can come until somebody leaves")

    loop.set_exception_handler(handle)
