"""The run manager and the rooms that several servers share: requests to the process that holds them, and the
way there on one machine, a Unix socket. On a cluster the same service is an actor of Ray (runs.cluster).

Messages over the socket are pickled, as a browser's or a worker's never are: both ends are processes of one
user, and the socket lies in a folder that nobody else may enter. Weights go packed (runs.packing): torch
would put them into shared memory, of which a container has little.
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Listener
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar

from engine.errors import GlassformerError, RunError
from runs.manager import RunManager
from runs.packing import pack
from runs.process_guards import ROOT
from runs.profiles import Profile
from runs.quizzes import Quizzes
from runs.room_table import RoomTable
from runs.rooms import Rooms
from runs.state import RunView
from runs.transport import FOLDERS

VARIABLE = "GLASSFORMER_RUNS"  # the folder of the socket; deploy/servers.py sets it
OPEN_SECONDS = 120.0  # until a server that starts gives up waiting for the socket
STUCK_SECONDS = 10.0  # in which a part of a message has to be taken or sent
IDLE = 32  # connections that a server keeps open
BACKLOG = 128  # connections that wait to be taken


class Silent(Exception):
    """The service did not answer in time: it may still do what it was asked."""


class Lost(Exception):
    """The service is not there, or ended before it answered."""


class RunService:
    """Holds the manager, the rooms and the quizzes of all servers."""

    def __init__(self, profile: Profile, **options: Any) -> None:
        """Takes a manager's options. Raises RunError as it does."""
        self._client, self.heard = threading.local(), time.monotonic()
        self.manager = RunManager(profile, address=self._address, **options)
        self.rooms = limited(Rooms, self.manager, self._address)
        self.quizzes = limited(Quizzes, self.manager, self._address)

    def call(self, where: str, name: str, /, *arguments: Any, **named: Any) -> Any:
        """Returns the result of a method, `manager.`, `rooms.` or `quizzes.`, or an attribute of theirs, for
        a client at the address `where`.
        """
        self._client.address, self.heard = where, time.monotonic()
        target = attrgetter(name)(self)
        return target(*arguments, **named) if callable(target) else target

    def view(self, run_id: str, known: int | None) -> RunView | int | None:
        """Returns a run, or only the version where the server has that one."""
        self.heard = time.monotonic()
        view = self.manager.view(run_id)
        return known if view is not None and view.version == known else view

    def versions(self, name: str, argument: str) -> list[tuple[str, int]]:
        """Returns the id and the version of each run that `manager.runs` or `manager.race` lists."""
        self.heard = time.monotonic()
        return [(view.id, view.version) for view in getattr(self.manager, name)(argument)]

    def made_of(self, run_id: str, step: int | None) -> tuple[dict[str, Any], bytes, dict[str, Any]]:
        """Returns what `manager.made_of` does, the weights packed."""
        meta, weights, rest = self.manager.made_of(run_id, step)
        return meta, pack(weights), rest

    def beat(self) -> int:
        """Hears that a server is there. Returns the number of this process."""
        self.heard = time.monotonic()
        return os.getpid()

    def _address(self) -> str:
        return getattr(self._client, "address", "")


T = TypeVar("T", bound=RoomTable[Any])


def limited(kind: type[T], manager: RunManager, address: Callable[[], str]) -> T:
    """Returns a new table of rooms within the limits of a manager's profile."""
    profile = manager.profile
    return kind(
        address=address, rooms_each=profile.max_rooms_address, answers_each=profile.max_answers_address
    )


def version() -> str:
    """Returns a name for this engine's code: servers of another have a service of their own."""
    digest = hashlib.sha256()
    for path in sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


class Line(Protocol):
    """A server's way to the service."""

    def ask(self, seconds: float, method: str, /, *arguments: Any, **named: Any) -> Any:
        """Returns what a method of RunService returns, or raises what it raises; else Silent or Lost."""


def serve(service: RunService, folder: Path) -> None:
    """Answers servers at the socket in a folder, each connection in a thread, until it is interrupted."""
    path = folder / version()
    path.unlink(missing_ok=True)  # of a service that was killed
    with Listener(str(path), "AF_UNIX", BACKLOG) as listener:
        while True:
            threading.Thread(target=_answer, args=(service, listener.accept()), daemon=True).start()


def _answer(service: RunService, connection: Connection) -> None:
    """Answers one question after the other; a server that was killed has asked its last."""
    with connection, suppress(EOFError, OSError):
        while True:
            method, arguments, named = connection.recv()
            try:
                result = getattr(service, method)(*arguments, **named)
            except GlassformerError as error:
                result = error
            except Exception:
                result = RuntimeError(traceback.format_exc())
            connection.send(result)


class SocketLine:
    """The way to a service on this machine. A thread that asks has a connection to itself meanwhile."""

    def __init__(self, folder: Path) -> None:
        """Waits until the service is there. Raises RunError where it does not come."""
        self._path = str(folder / version())
        self._idle: list[Connection] = []
        until = time.monotonic() + OPEN_SECONDS
        while not self._idle:
            try:
                self._idle.append(self._open())
            except OSError as error:
                if time.monotonic() > until:
                    raise RunError(
                        f"The process that holds the runs of this code is not at {self._path}."
                    ) from error
                time.sleep(0.1)

    def ask(self, seconds: float, method: str, /, *arguments: Any, **named: Any) -> Any:
        try:
            connection = self._connection()
            try:
                connection.send((method, arguments, named))
                if not connection.poll(seconds):
                    raise Silent
                result = connection.recv()
            except BaseException:
                connection.close()  # what comes later must not be taken for the next answer
                raise
        except BlockingIOError as error:  # it has taken, or sent, a part
            raise Silent from error
        except (OSError, EOFError) as error:
            raise Lost from error
        if len(self._idle) < IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        if isinstance(result, Exception):
            raise result
        return result

    def _connection(self) -> Connection:
        with suppress(IndexError):  # none is idle, or another thread was faster
            while (connection := self._idle.pop()).poll():  # what it has to say unasked is that it has ended
                connection.close()
            return connection
        return self._open()

    def _open(self) -> Connection:
        with socket.socket(socket.AF_UNIX) as opened:
            for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                opened.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", int(STUCK_SECONDS), 0))
            opened.connect(self._path)
            return Connection(opened.detach())
