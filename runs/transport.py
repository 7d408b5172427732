"""The connection to a worker process: orders go in, what happens comes out, its end is noticed. A `Pipe`
leads to a process of this machine, runs.cluster to one on another; the manager does not know which.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from runs.memory import PRODUCT_CACHES
from runs.process_guards import start_beside
from runs.protocol import Command, Message, dump, load_message
from runs.snapshots import temporary_folder

FOLDERS = ("engine", "studies", "runs")  # whose modules a run imports
MAX_ERROR_BYTES = 1 << 20  # of a worker's standard error; older lines go


class Transport(Protocol):
    """A connection to a process, as `processes.Worker` needs it."""

    @property
    def pid(self) -> int: ...  # its number on the machine that it runs on; 0 as long as there is none
    @property
    def vanished(self) -> bool: ...  # True if its machine was lost with it: its trainings go on elsewhere
    def send(self, command: Command, entrant: int) -> bool: ...  # False: it is gone, or does not read
    def messages(self) -> Iterator[tuple[int, Message]]: ...  # (entrant, message), as they come, to its end
    def close(self) -> None: ...  # ends its input, which ends it
    def kill(self) -> None: ...  # ends it whatever it is doing
    def wait(self) -> int: ...  # its exit code, after the last message; negative for a signal
    def resident_bytes(self) -> int: ...  # the memory it holds now; 0 where that is not known
    def last_error_line(self) -> str: ...  # the last line of its standard error, at most 300 characters
    def trim_errors(self) -> None: ...  # keeps a talkative library from filling the disk
    def release(self) -> None: ...  # frees what is left of it; called once, when its end was reported


Opener = Callable[[int], Transport]  # how many threads it computes with -> a new worker


class Pipe:
    """A process of this machine, spoken to by its standard input and output."""

    vanished = False

    def __init__(self, threads: int) -> None:
        temporary_folder()
        self._errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115  it lives as long as the process, and has no name
        self.process = start_beside(
            "runs.worker", str(threads), environment=_environment(), errors=self._errors
        )
        assert self.process.stdin is not None
        self._commands = self.process.stdin.fileno()
        if os.name == "posix":  # a worker that does not read must not hold up the manager
            os.set_blocking(self._commands, False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, command: Command, entrant: int) -> bool:
        data = dump(command, entrant)
        try:
            return os.write(self._commands, data) == len(data)
        except OSError:
            return False

    def messages(self) -> Iterator[tuple[int, Message]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                heard = load_message(line)
            except ValueError:
                continue  # the torn last line of a killed process
            yield heard

    def close(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def kill(self) -> None:
        self.process.kill()

    def wait(self) -> int:
        code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def resident_bytes(self) -> int:
        return resident_bytes(self.pid)

    def last_error_line(self) -> str:
        try:
            self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 4096))
            lines = self._errors.read().decode("utf-8", "replace").split("\n")
        except (OSError, ValueError):
            return ""
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")

    def trim_errors(self) -> None:
        try:
            if os.fstat(self._errors.fileno()).st_size > MAX_ERROR_BYTES:
                self._errors.truncate(0)
        except (OSError, ValueError):
            pass

    def release(self) -> None:
        self._errors.close()


def resident_bytes(process: int | str = "self") -> int:
    """Returns the memory that a process of this machine holds now; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def _environment() -> dict[str, str]:
    # A thread that waits for the others soon gives its core away: with other programs on two cores, endless
    # spinning once took 3 s a step. On a quiet one (Zen 4, `fast`, ms a step, three interleaved passes) this
    # costs nothing: default 42, 42, 56; 2,000: 43, 45, 48; 20,000: 42, 42, 44; never spinning
    # (OMP_WAIT_POLICY=passive) 74, 76, 77; one thread 69, 70, 71.
    waiting = {"GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", "2000")}
    own = {name: value for name, value in os.environ.items() if PRODUCT_CACHES.get(name) != value}
    return {**own, **waiting, "PYTHONUNBUFFERED": "1"}
