"""Worker processes as the manager sees them: started, spoken to, listened to, ended; and one warm spare."""

from __future__ import annotations

import signal
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine.errors import without_paths
from runs.events import note
from runs.protocol import Command, Message
from runs.transport import Opener, Pipe

SPARE_DELAY = 5.0  # seconds: importing torch for the next run must not slow down the first of this one
SILENT_SECONDS = 10.0  # without a sign of life: it comes every second, however loaded the machine is
SILENT_START = 90.0  # likewise while it imports torch, perhaps from a slow disk
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
        return self.worker.send(command, self.entrant)


class NoProcess(OSError):
    """The limit of living processes is reached."""


OnMessage = weakref.WeakMethod[Callable[["Worker", int, Message], None]]
OnExit = weakref.WeakMethod[Callable[["Worker", int], None]]


class Worker:
    """One process. Its reader thread calls `on_message` and `on_exit`, which are methods held weakly."""

    def __init__(
        self,
        threads: int,
        on_message: OnMessage,
        on_exit: OnExit,
        opener: Opener = Pipe,
    ) -> None:
        self._on_message, self._on_exit = on_message, on_exit
        self._lock = threading.Lock()
        self._closed = self._reported = False
        self.jobs: list[Job] = []  # by entrant, those that have ended included; none for the spare
        self.ready = False
        self.quiet = 0.0  # seconds since it last said anything, counted by `Workers.silent`
        self.frozen = False  # ended because it said nothing
        self.transport = opener(threads)
        note("worker started", pid=self.pid)
        self.reader = threading.Thread(target=self._read, name=f"worker-{self.pid}", daemon=True)
        self.reader.start()

    @property
    def pid(self) -> int:
        return self.transport.pid

    def lives(self) -> bool:
        """True until its end has been reported."""
        return not self._reported

    def listens(self) -> bool:
        """True until it was asked to end."""
        return not self._closed and not self._reported

    def send(self, command: Command, entrant: int = 0) -> bool:
        """Returns False when the process is gone or does not read; its end is then reported by `on_exit`."""
        with self._lock:
            if self._closed:
                return False
            if self.transport.send(command, entrant):
                return True
        self.transport.kill()
        return False

    def retire(self) -> None:
        """Closes the worker's input, which ends it at once."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self.transport.close()

    def kill(self) -> None:
        self.transport.kill()
        self.retire()

    def _read(self) -> None:
        try:
            for entrant, message in self.transport.messages():
                self.quiet = 0.0
                if (on_message := self._on_message()) is not None:
                    on_message(self, entrant, message)
                    del on_message  # not to keep the manager alive while waiting for the next line
        finally:
            self.kill()
            code = self.transport.wait()
            self._reported = True
            note("worker ended", pid=self.pid, code=code, jobs=len(self.jobs))
            if (on_exit := self._on_exit()) is not None:
                on_exit(self, code)
                del on_exit
            self.transport.release()


class Workers:
    """All processes of a manager, a warm spare and those about to end included: at most `limit` live."""

    def __init__(
        self,
        threads: int,
        limit: int,
        spare: bool,
        on_message: Callable[[Worker, int, Message], None],
        on_exit: Callable[[Worker, int], None],
        opener: Opener = Pipe,
    ) -> None:
        self._arguments = threads, weakref.WeakMethod(on_message), weakref.WeakMethod(on_exit), opener
        self._limit, self._wanted = limit, spare
        self._starting = 0  # places of processes that are being started this moment
        self._spare: Worker | None = None
        self._not_before = 0.0
        self._alive: set[Worker] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._listened = time.monotonic()
        # Linux ends a worker with the *thread* that started it (process_guards.die_with): so with one that
        # lasts as long as the manager, and not that of whoever pressed Train.
        self._starter = ThreadPoolExecutor(1, "worker-starter")

    def free(self) -> bool:
        """True if there is a spare, or room for one more process."""
        with self._lock:
            return self._spare is not None or self._room()

    def alive(self) -> list[Worker]:
        with self._lock:
            return sorted(self._alive, key=lambda worker: worker.pid)

    def take(self) -> Worker:
        """Returns the spare, or a new process. Raises NoProcess beyond the limit, OSError if none starts."""
        with self._lock:
            worker, self._spare = self._spare, None
            self._not_before = time.monotonic() + SPARE_DELAY
        return worker or self._start()

    def keep_spare(self, idle: bool) -> None:
        """Starts a spare if there is none: at once when idle, else after a run's first seconds."""
        with self._lock:
            early = time.monotonic() < self._not_before and not idle
            if early or not self._wanted or self._spare or self._closed or not self._room():
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
            if not worker.jobs and not worker.ready:  # it could not start: do not try four times a second
                self._not_before = time.monotonic() + RETRY_DELAY

    def silent(self) -> list[Worker]:
        """Ends and returns the workers that sent nothing for too long. A round counts as a second at most, so
        nobody is late after a stop of the whole server, nor one that waits for a machine with room.
        """
        now = time.monotonic()
        passed, self._listened = min(1.0, now - self._listened), now
        for worker in (found := [worker for worker in self.alive() if worker.pid]):
            worker.quiet += passed
        late = [w for w in found if w.quiet > (SILENT_SECONDS if w.ready else SILENT_START)]
        for worker in late:
            worker.frozen = True
            worker.kill()
        return late

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
        self._starter.shutdown()

    def _room(self) -> bool:
        """With the lock held."""
        return len(self._alive) + self._starting < self._limit

    def _start(self) -> Worker:
        with self._lock:
            if not self._room():
                raise NoProcess(f"{self._limit} processes live already")
            self._starting += 1
        worker = None
        try:
            worker = self._starter.submit(Worker, *self._arguments).result()
        except RuntimeError as error:  # it takes nothing any more: the server ends
            raise OSError("the manager is closed") from error
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


def describe_exit(code: int, last_error_line: str = "") -> str:
    """Returns why a process that said nothing is gone, as a sentence.

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
        f": {without_paths(last_error_line)}" if last_error_line else "."
    )
