"""Worker processes as the manager sees them: started, spoken to, listened to, ended; and one warm spare."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.service.events import note
from engine.service.protocol import Command, Message, dump, load_message

ROOT = Path(__file__).resolve().parents[2]
MAX_ERROR_BYTES = 1 << 20  # of a worker's standard error; older lines go
SPARE_DELAY = (
    5.0  # seconds: importing torch for the next run must not slow down the first seconds of this one
)
RETRY_DELAY = 30.0  # seconds after a spare that could not start


@dataclass(frozen=True)
class Job:
    """Whose training a process does."""

    run: str  # its id
    folder: Path  # where its files lie


@dataclass(frozen=True)
class Seat:
    """A run's part of a process, which may do several trainings in turns."""

    worker: Worker
    entrant: int  # its number there

    def send(self, command: Command) -> bool:
        """As `Worker.send`, to this training alone."""
        return self.worker.send(command, self.entrant)


class NoProcess(OSError):
    """As many processes live as may."""


class Worker:
    """One process. `on_message(worker, entrant, message)` and `on_exit(worker, code)` are called by its
    reader thread, and held weakly.
    """

    def __init__(
        self,
        threads: int,
        on_message: Callable[[Worker, int, Message], None],
        on_exit: Callable[[Worker, int], None],
    ) -> None:
        self._on_message, self._on_exit = weakref.WeakMethod(on_message), weakref.WeakMethod(on_exit)
        self._lock = threading.Lock()
        self._closed = self._reported = False
        self.jobs: list[Job] = []  # by entrant, those that have ended included; none for the spare
        self.ready = False
        self._errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115  it lives as long as the process, and has no name
        # A process of its own by a command of its own: a multiprocessing child would import app.py again and
        # run the app inside. A session of its own: Ctrl-C in the terminal reaches the server alone, which
        # then ends its workers.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine.service.worker", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env=_environment(),
            start_new_session=True,
            close_fds=True,
        )
        assert self.process.stdin is not None
        self._commands = self.process.stdin.fileno()
        if os.name == "posix":  # a worker that does not read must not hold up the manager
            os.set_blocking(self._commands, False)
        note("worker started", pid=self.process.pid)
        self.reader = threading.Thread(target=self._read, name=f"worker-{self.process.pid}", daemon=True)
        self.reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def lives(self) -> bool:
        """Whether its end has not been reported yet."""
        return not self._reported

    def listens(self) -> bool:
        """Whether it has not been told to end."""
        return not self._closed and not self._reported

    def send(self, command: Command, entrant: int = 0) -> bool:
        """False when the process is gone or does not read; its end is then reported by `on_exit`."""
        data = dump(command, entrant)
        with self._lock:
            if self._closed:
                return False
            try:
                if os.write(self._commands, data) == len(data):
                    return True
            except OSError:
                pass
        self.process.kill()
        return False

    def retire(self) -> None:
        """Closes the worker's input, which ends it at once."""
        with self._lock:
            if not self._closed:
                self._closed = True
                assert self.process.stdin is not None
                with contextlib.suppress(OSError):
                    self.process.stdin.close()

    def kill(self) -> None:
        """Ends it whatever it is doing."""
        self.process.kill()
        self.retire()

    def resident_bytes(self) -> int:
        """Memory it holds now; 0 where the system does not tell."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError, AttributeError):
            return 0

    def last_words(self) -> str:
        """The last line of its standard error, at most 300 characters."""
        try:
            self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 4096))
            lines = self._errors.read().decode("utf-8", "replace").split("\n")
        except (OSError, ValueError):
            return ""
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")

    def trim_errors(self) -> None:
        """Keeps a talkative library from filling the disk."""
        try:
            if os.fstat(self._errors.fileno()).st_size > MAX_ERROR_BYTES:
                self._errors.truncate(0)
        except (OSError, ValueError):
            pass

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                try:
                    entrant, message = load_message(line)
                except ValueError:
                    continue  # the torn last line of a killed process
                if (on_message := self._on_message()) is not None:
                    on_message(self, entrant, message)
                    del on_message  # not to keep the manager alive while waiting for the next line
        finally:
            self.kill()
            code = self.process.wait()
            self.process.stdout.close()
            self._reported = True
            note("worker ended", pid=self.pid, code=code, jobs=len(self.jobs))
            if (on_exit := self._on_exit()) is not None:
                on_exit(self, code)
                del on_exit
            self._errors.close()


class Workers:
    """All processes of one manager, and the spare that has imported torch already. Never more than `limit`
    live at a time, those that are about to end included.
    """

    def __init__(
        self,
        threads: int,
        limit: int,
        spare: bool,
        on_message: Callable[[Worker, int, Message], None],
        on_exit: Callable[[Worker, int], None],
    ) -> None:
        self._arguments = (threads, weakref.WeakMethod(on_message), weakref.WeakMethod(on_exit))
        self._limit, self._wanted = limit, spare
        self._starting = 0  # places of processes that are being started this moment
        self._spare: Worker | None = None
        self._not_before = 0.0
        self._alive: set[Worker] = set()
        self._lock = threading.Lock()
        self._closed = False

    def free(self) -> bool:
        """Whether there is a spare, or room for one more process."""
        with self._lock:
            return self._spare is not None or self._room()

    def alive(self) -> list[Worker]:
        """Every process that has not ended."""
        with self._lock:
            return sorted(self._alive, key=lambda worker: worker.pid)

    def take(self) -> Worker:
        """The spare, or a new process. Raises NoProcess when there are as many as may be, OSError when the
        system gives none.
        """
        with self._lock:
            worker, self._spare = self._spare, None
            self._not_before = time.monotonic() + SPARE_DELAY
        return worker or self._start()

    def keep_spare(self, idle: bool) -> None:
        """Starts a spare when there is none: at once when nothing trains, else when the youngest run has had
        its first seconds.
        """
        with self._lock:
            if (
                not self._wanted
                or self._spare
                or self._closed
                or not self._room()
                or (time.monotonic() < self._not_before and not idle)
            ):
                return
            self._not_before = time.monotonic() + SPARE_DELAY
        try:
            worker = self._start()
        except OSError:
            self._not_before = time.monotonic() + RETRY_DELAY
            return
        with self._lock:
            self._spare = worker if worker.lives() else None

    def ended(self, worker: Worker) -> None:
        """Forgets a process that is gone."""
        with self._lock:
            self._alive.discard(worker)
            if worker is self._spare:
                self._spare = None
            if (
                not worker.jobs and not worker.ready
            ):  # it could not even start: do not try four times a second
                self._not_before = time.monotonic() + RETRY_DELAY

    def trim(self) -> None:
        for worker in self.alive():
            worker.trim_errors()

    def close(self) -> None:
        """Ends every process and waits until they, and their reader threads, are gone."""
        with self._lock:
            self._closed = True
            alive, self._spare = list(self._alive), None
        for worker in alive:
            worker.kill()
        for worker in alive:
            if worker.reader is not threading.current_thread():
                worker.reader.join(timeout=10)

    def _room(self) -> bool:
        """With the lock held."""
        return len(self._alive) + self._starting < self._limit

    def _start(self) -> Worker:
        threads, on_message, on_exit = self._arguments
        message, ended = on_message(), on_exit()
        if message is None or ended is None:
            raise OSError("the manager is gone")
        with self._lock:
            if not self._room():
                raise NoProcess(f"{self._limit} processes live already")
            self._starting += 1
        worker = None
        try:
            worker = Worker(threads, message, ended)
        finally:
            with self._lock:
                self._starting -= 1
                if worker is not None and worker.lives():
                    self._alive.add(worker)
                closed = self._closed
        if closed:
            worker.kill()
            raise OSError("the manager is closed")
        return worker


def describe_exit(code: int, last_words: str = "") -> str:
    """Why a process that said nothing is gone, as a sentence.

    >>> describe_exit(-9)
    'The training process was killed by the system (signal 9), probably for lack of memory.'
    """
    if code == -9:
        return "The training process was killed by the system (signal 9), probably for lack of memory."
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "unknown"
        return f"The training process was ended by signal {-code} ({name})."
    return f"The training process ended unexpectedly (exit code {code})" + (
        f": {last_words}" if last_words else "."
    )


def _environment() -> dict[str, str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    # A thread that waits for the others soon gives its core away: with other programs on two cores, endless
    # spinning once took 3 s a step. On a quiet one (Zen 4, `fast`, ms a step, three interleaved passes) this
    # costs nothing: default 42, 42, 56; 2,000: 43, 45, 48; 20,000: 42, 42, 44; never spinning
    # (OMP_WAIT_POLICY=passive) 74, 76, 77; one thread 69, 70, 71.
    waiting = {"GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", "2000")}
    return {**os.environ, **waiting, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
