"""Worker processes forked from one that has imported torch: as those of `Pipe`, but there at once.

A worker of `Pipe` takes one to two processor seconds to import torch. One from here is the same process in all that it
does, hears and says; only its start is another one. Tests of the start itself, of the thread that asks for it and of the
server that it ends with take `Pipe`.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import IO, Any, NoReturn

from runs.process_guards import ROOT
from runs.transport import Pipe, _environment

BYTES = 64  # of a request or an answer, both a number


class Child:
    """A worker as `Pipe` knows its `subprocess.Popen`; the nursery says its exit code on a pipe of their own."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], code: IO[bytes]) -> None:
        self.pid, self.stdin, self.stdout, self._code = pid, stdin, stdout, code

    def kill(self) -> None:
        with suppress(ValueError, OSError):  # another thread has waited for it meanwhile: it has ended
            if not select.select([self._code], [], [], 0)[0]:
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        with self._code as code:
            return int(code.read(BYTES))  # not to its end: other children may hold it open


class Forked(Pipe):
    """A worker from the nursery of this process."""

    def __init__(self, threads: int) -> None:
        self._errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115  as in Pipe
        (stdin, commands), (answers, stdout), (told, code) = (os.pipe() for _ in range(3))
        theirs = [stdin, stdout, self._errors.fileno(), code]
        socket.send_fds(door := nursery(), [str(threads).encode()], theirs)
        pid = int(door.recv(BYTES))
        for each in (stdin, stdout, code):
            os.close(each)
        self._commands = commands
        os.set_blocking(commands, False)
        files = os.fdopen(commands, "wb", 0), os.fdopen(answers, "rb"), os.fdopen(told, "rb", 0)
        self.process: Any = Child(pid, *files)


@functools.cache
def nursery() -> socket.socket:
    """The way to the process that forks; it ends when this one does, and its children with it."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tests.runs.nursery", str(theirs.fileno())]
    process = subprocess.Popen(command, cwd=ROOT, env=_environment(), pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(process.wait)  # called in the other order
    atexit.register(ours.close)
    return ours


def serve(door: socket.socket) -> NoReturn:
    """Forks a worker for each request, and says how it ended."""
    codes: dict[int, int] = {}  # pid -> where its exit code is told
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready, _, _ = select.select([door.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, BYTES)
            while (ended := _ended()) is not None:
                os.write(codes[ended[0]], str(ended[1]).encode())
                os.close(codes.pop(ended[0]))
        if door.fileno() in ready:
            threads, files, _, _ = socket.recv_fds(door, BYTES, 4)
            if not files:
                os._exit(0)
            parent = os.getpid()
            if (pid := os.fork()) == 0:
                _become(threads.decode(), parent, files)
            codes[pid] = files.pop()
            for each in files:
                os.close(each)
            door.send(str(pid).encode())


def _ended() -> tuple[int, int] | None:
    """(pid, exit code) of a child that is gone."""
    with suppress(ChildProcessError):
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            return pid, os.waitstatus_to_exitcode(status)
    return None


def _become(threads: str, parent: int, files: list[int]) -> NoReturn:
    """Makes this process the worker that `python -m runs.worker` makes."""
    from runs import worker

    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for place, file in enumerate(files[:3]):
            os.dup2(file, place)
        os.closerange(3, 256)
        sys.argv[1:] = [threads, str(parent)]
        worker.main()
    finally:
        os._exit(1)


# What a worker imports as late as it can
LATE = (
    "engine.checkpoints",
    "engine.training.train",
    "runs.kinds",
    "runs.race",
    "runs.worker",
    "studies.lab.faults",
)

if __name__ == "__main__":
    import torch

    for name in LATE:
        importlib.import_module(name)
    torch.set_num_threads(1)
    serve(socket.socket(fileno=int(sys.argv[1])))
