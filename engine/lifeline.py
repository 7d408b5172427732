"""A process that ends with the one that started it, in every case."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress


def die_with(parent: int) -> None:
    """Has the system end this process with the one that started it: the end of the input reaches no process
    that is stopped. Linux alone can (prctl(2), PR_SET_PDEATHSIG); elsewhere the end of the input remains.
    """
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it had gone before this was said
        os._exit(0)
