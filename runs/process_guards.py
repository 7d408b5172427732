"""A process that ends with the one that started it in every case, and before it where memory runs out."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

FIRST = 600  # of 1,000: more than any share of the memory that a server may have
_SCORE = Path("/proc/self/oom_score_adj")


def die_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Has the system end this process, by a signal, with the one that started it: the end of the input
    reaches no process that is stopped. Linux alone can (prctl(2), PR_SET_PDEATHSIG); elsewhere the end of the
    input remains.
    """
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, int(by), 0, 0, 0)
    if os.getppid() != parent:  # it had gone before this was said
        os._exit(0)


def end_first() -> None:
    """Has the system choose this process before others when memory runs out: a training goes on from its last
    snapshot, and a server would take everybody's with it. proc_pid_oom_score_adj(5), on Linux alone.
    """
    with suppress(OSError):
        if int(_SCORE.read_text(encoding="utf-8")) < FIRST:  # who is further to the front stays there
            _SCORE.write_text(str(FIRST), encoding="utf-8")
