"""One run manager for several servers: a process of its own that holds it, and what the servers hold instead.
The rooms that answer a lecturer are there, too: phones may come to another server than the projector.

`python -m engine.service.serve` holds the manager and listens at `GLASSFORMER_RUNS=<host>:<port>`; servers
that have the same variable ask there, so that a run's link works on each of them. Both sides know the same
`GLASSFORMER_SECRET`. Messages are pickled (views, models), so nobody without the secret may speak: each
connection begins with a challenge that is answered with it (multiprocessing.connection).
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge
from multiprocessing.context import AuthenticationError
from typing import Any, cast

from engine.errors import GlassformerError, RunError
from engine.service import cluster
from engine.service.manager import RunManager
from engine.service.profiles import Profile
from engine.service.rooms import Rooms
from engine.service.secret import SECRET, chosen
from engine.service.snapshot_reader import NO_TOWER, Trained, opened
from engine.service.state import RunView
from engine.weights.checkpoints import Checkpoint

log = logging.getLogger(__name__)

VARIABLE = "GLASSFORMER_RUNS"
FAULT = "The service that holds the runs could not do that: its log says why."
GONE = "The service that holds the runs does not answer. Try again in a moment."
ANSWER_SECONDS, ORDER_SECONDS = 10.0, 60.0  # what looks; what does something, or sends weights
GREETING_SECONDS = 5.0  # for each step of a challenge, from a stranger
QUIET_SECONDS = 5.0  # in which nobody else waits for a service that has just kept silent
FAILED_SECONDS = 0.2  # until the next try to take a connection in: without descriptors it fails at once
KEPT_VIEWS = 256  # of a server: a curve that has not changed is not sent again

# What may be asked: methods of the manager. What only looks is asked again when a connection breaks.
LOOKS = frozenset(
    {
        *("view", "runs", "race", "may_control", "watch", "snapshot", "checkpoint"),
        *("processes", "standing", "files", "profile"),
    }
)
ORDERS = frozenset(
    {
        *("start", "start_comparison", "start_race", "start_beside", "restart", "extend", "revive"),
        *("pause", "resume", "step", "stop", "set_learning_rate", "set_prompt", "rename", "remove"),
    }
)

ROOM_LOOKS = frozenset({"mine", "look", "choice"})  # methods of the rooms
ROOM_ORDERS = frozenset({"ask", "close", "end", "choose"})
_ROOM = "room."  # before their names
_QUICK = LOOKS - {"checkpoint", "snapshot"} | {_ROOM + what for what in ROOM_LOOKS | ROOM_ORDERS}
_UNREPEATED = ORDERS | {_ROOM + what for what in ROOM_ORDERS}


@dataclass(frozen=True)
class Request:
    """A method of the manager or, after `room.`, of the rooms, and the network address of whoever looks at
    the page.
    """

    what: str
    arguments: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()
    address: str = ""


class Desk:
    """Holds a manager, and answers whoever knows the secret, a thread for each connection."""

    def __init__(self, where: tuple[str, int], key: bytes, make: Callable[[Callable[[], str]], RunManager]):
        """`make` makes the manager, of what tells the address of whoever asks now."""
        self._asking = threading.local()
        self._listener, self._key, self._closed = Listener(where, backlog=64), key, threading.Event()
        self.manager = make(self._address)
        self.rooms = open_rooms(self.manager, self._address)

    @property
    def where(self) -> tuple[str, int]:
        """Host and port; the port is the one that was given, or the one that was free."""
        return cast(tuple[str, int], self._listener.address)

    def serve(self) -> None:
        """Answers requests until `close`."""
        while not self._closed.is_set():
            try:
                connection = self._listener.accept()
                threading.Thread(target=self._attend, args=(connection,), daemon=True).start()
            except (OSError, RuntimeError):  # no descriptor, or no thread, is left
                self._closed.wait(FAILED_SECONDS)

    def close(self) -> None:
        """Ends every training."""
        self._closed.set()
        with suppress(OSError):
            socket.create_connection(self.where, timeout=1).close()  # wakes `serve`
        self._listener.close()
        self.manager.close()

    def _attend(self, connection: Connection) -> None:
        """In a thread of its own: who does not answer the challenge holds up nobody, and is soon
        let go.
        """
        try:
            _limit(connection, GREETING_SECONDS)
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            _limit(connection, 0)  # a server that asks nothing for an hour is none the worse
        except (AuthenticationError, EOFError, OSError):
            connection.close()
            return
        while True:
            try:
                request: Request = pickle.loads(connection.recv_bytes())
                connection.send_bytes(pickle.dumps(self._answer(request), pickle.HIGHEST_PROTOCOL))
            except (EOFError, OSError):
                return
            except Exception:  # another version's, say: the server that asks is told, and may ask on
                log.exception("a request could not be answered")
                with suppress(OSError):
                    connection.send_bytes(pickle.dumps((False, RunError(FAULT))))

    def _address(self) -> str:
        return getattr(self._asking, "address", "")

    def _answer(self, request: Request) -> tuple[bool, Any]:
        self._asking.address = request.address
        try:
            if request.what == "profile":
                return True, self.manager.profile
            if request.what == "view":
                (run, known) = request.arguments
                view = self.manager.view(run)
                return True, known if view is not None and view.version == known else view
            if request.what == "made_of":
                return True, self.manager._kept(*request.arguments).made_of()
            room = request.what.removeprefix(_ROOM)
            if room != request.what and room in ROOM_LOOKS | ROOM_ORDERS:
                return True, getattr(self.rooms, room)(*request.arguments)
            if request.what not in LOOKS | ORDERS:
                raise RunError(f"nobody may ask for {request.what!r} here")
            return True, getattr(self.manager, request.what)(*request.arguments, **dict(request.named))
        except GlassformerError as error:
            return False, error


class RemoteRuns:
    """A manager's stand-in on another server: asks the `Desk`."""

    def __init__(self, where: tuple[str, int], key: bytes, address: Callable[[], str] = lambda: "") -> None:
        """Raises RunError when nobody listens there, or with another secret."""
        self._where, self._key, self._address = where, key, address
        self._quiet = 0.0  # nobody asks before this moment (of time.monotonic)
        self._mine = threading.local()  # a connection for each thread
        self._views: OrderedDict[str, RunView] = OrderedDict()
        self._lock = threading.Lock()
        self.rooms = cast(Rooms, _RemoteRooms(self._ask, address))
        self.profile: Profile = self._ask(Request("profile"))

    def view(self, run_id: str) -> RunView | None:
        """Returns the manager's view of a run: the same object until something changes."""
        with self._lock:
            known = self._views.get(run_id)
        found = self._ask(Request("view", (run_id, known and known.version)))
        if known is not None and found == known.version:
            return known
        with self._lock:
            self._views.pop(run_id, None)
            if isinstance(found, RunView):
                self._views[run_id] = found
                while len(self._views) > KEPT_VIEWS:
                    self._views.popitem(last=False)
        return cast("RunView | None", found)

    def trained(self, run_id: str, step: int | None = None) -> Trained:
        """Loads a run's model in this process, with the parts of this process."""
        return opened(*self._ask(Request("made_of", (run_id, step))))

    def model(self, run_id: str, step: int | None = None) -> Checkpoint:
        """Loads a run's model, as the manager does."""
        result = self.trained(run_id, step)
        if not isinstance(result, Checkpoint):
            raise RunError(NO_TOWER)
        return result

    def close(self) -> None:
        """Leaves; the runs go on."""

    def __getattr__(self, what: str) -> Callable[..., Any]:
        if what not in LOOKS | ORDERS:
            raise AttributeError(what)

        def ask(*arguments: Any, **named: Any) -> Any:
            return self._ask(Request(what, arguments, tuple(named.items()), self._address()))

        return ask

    def _ask(self, request: Request) -> Any:
        if time.monotonic() < self._quiet:
            raise RunError(GONE)
        for again in (False, True):  # the service may have been started anew since this thread asked last
            connection = getattr(self._mine, "connection", None)
            try:
                if connection is None:
                    connection = self._mine.connection = _called(self._where, self._key)
                connection.send_bytes(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))
                if not connection.poll(ANSWER_SECONDS if request.what in _QUICK else ORDER_SECONDS):
                    raise TimeoutError
                (well, said) = pickle.loads(connection.recv_bytes())
            except AuthenticationError as error:
                raise RunError(f"The service at {VARIABLE} has another {SECRET}.") from error
            except (OSError, EOFError) as error:
                self._mine.connection = None  # an answer that came late would be taken for the next one
                if silent := isinstance(error, TimeoutError | BlockingIOError):
                    self._quiet = time.monotonic() + QUIET_SECONDS
                if silent or again or connection is None or request.what in _UNREPEATED:
                    raise RunError(GONE) from error
                continue
            if not well:
                raise said
            return said
        raise AssertionError("one of the two tries returns or raises")


def _called(where: tuple[str, int], key: bytes) -> Connection:
    """A connection to the service, both challenges answered. Raises OSError, EOFError and
    AuthenticationError.
    """
    made = socket.create_connection(where, timeout=ANSWER_SECONDS)
    made.settimeout(None)
    connection = Connection(made.detach())
    _limit(connection, ANSWER_SECONDS)
    answer_challenge(connection, key)
    deliver_challenge(connection, key)
    return connection


def _limit(connection: Connection, seconds: float) -> None:
    """A read or write that stands still for longer raises BlockingIOError; 0: none does. A connection whose
    other end is gone for good ends by itself.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for which in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            same.setsockopt(socket.SOL_SOCKET, which, struct.pack("ll", int(seconds), int(seconds % 1 * 1e6)))


class _RemoteRooms:
    """The rooms, where all servers see them. Their methods raise RunError, too: when nobody answers."""

    def __init__(self, ask: Callable[[Request], Any], address: Callable[[], str]) -> None:
        self._ask, self._address = ask, address

    def __getattr__(self, what: str) -> Callable[..., Any]:
        if what not in ROOM_LOOKS | ROOM_ORDERS:
            raise AttributeError(what)
        return lambda *arguments: self._ask(Request(_ROOM + what, arguments, address=self._address()))


def place() -> tuple[tuple[str, int], bytes] | None:
    """Returns where the service listens, and the secret, from the environment; None where there is none.
    Raises RunError for an address that is none, or without a secret; SecretError for one that is too
    short.
    """
    if not (said := os.environ.get(VARIABLE, "").strip()):
        return None
    host, _, port = said.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise RunError(f"{VARIABLE} = {said!r} is no address: it is a host and a port, such as 10.0.0.7:7700")
    if not (key := chosen()):
        raise RunError(f"{VARIABLE} needs {SECRET}: the same on every server, and known to nobody else")
    return (host, int(port)), key.encode()


def made(profile: Profile, address: Callable[[], str]) -> RunManager:
    """Returns a manager of this process, on a cluster where $GLASSFORMER_RAY says so. Raises RunError."""
    if where := cluster.address():
        nodes = cluster.Cluster(where)
        return RunManager(nodes.profile(profile), opener=nodes.open, address=address)
    return RunManager(profile, address=address)


def open_manager(profile: Profile, address: Callable[[], str]) -> RunManager:
    """Returns the service's manager where the environment names one, else one of this process. Raises
    RunError.
    """
    if found := place():
        return cast(RunManager, RemoteRuns(*found, address))
    return made(profile, address)


def open_rooms(manager: RunManager, address: Callable[[], str]) -> Rooms:
    """Returns the rooms of servers with this manager: those of the service, else new ones, of
    this process.
    """
    if isinstance(manager, RemoteRuns):
        return manager.rooms
    each = manager.profile
    return Rooms(address=address, rooms_each=each.max_rooms_address, answers_each=each.max_answers_address)
