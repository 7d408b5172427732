"""Processes of Python beside this one: started apart from the terminal, ended with who started them in every
case, and before them where memory runs out.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
FIRST = 600  # of 1,000: more than any share of the memory that a server may have
_SCORE = Path("/proc/self/oom_score_adj")


def start_beside(
    module: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    errors: IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts `python -m module`, its last argument this process's id, with pipes to its input and output.

    A command and not a child of multiprocessing, which would import app.py again and run the app inside.
    """
    environment = os.environ if environment is None else environment
    paths = [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,  # Ctrl-C in the terminal reaches the server alone, which ends its processes
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same for Windows
    )


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
