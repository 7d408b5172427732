"""One run manager for several servers: a named actor of a Ray cluster, and a server's client of it.

`GLASSFORMER_RAY=<address>` (or `auto`) is the one switch; the package comes with requirements-ray.txt. The
first server makes the actor, on the machine that leads the cluster, and the others find it, so that a run's
link works on each of them. The rooms that answer a lecturer are there, too: phones may come to another server
than the projector. A server without the variable has a manager of its own and imports nothing of Ray.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, cast

from engine.checkpoints import Checkpoint
from engine.errors import GlassformerError, RunError
from runs import cluster
from runs.manager import RunManager
from runs.process_guards import ROOT
from runs.profiles import Profile
from runs.repeater import Repeater
from runs.rooms import Rooms
from runs.snapshots import Trained, opened, transformer
from runs.state import RunView
from runs.transport import FOLDERS

log = logging.getLogger(__name__)

NAMESPACE = "glassformer"
FAULT = "The training service could not do that; its log says why."
GONE = "The training service does not respond. Try again in a moment."
ANSWER_SECONDS, SLOW_SECONDS = 10.0, 60.0  # until a call is given up
START_SECONDS = 300.0  # likewise of the first, for which the code is sent and torch imported
SLOW = frozenset({"start", "start_comparison", "start_race", "start_beside", "restart", "extend", "revive"})
SLOW |= {"checkpoint", "made_of"}  # what starts a process, or sends weights
QUIET_SECONDS = 5.0  # in which nobody else waits for a service that has just kept silent
BEAT_SECONDS, ALONE_SECONDS = 10.0, 60.0  # between a server's signs of life; without any, the runs end
CALLS = 64  # answered at a time
KEPT_VIEWS = 256  # of a server: a curve that has not changed is not sent again


class ManagerActor:
    """Holds the manager and the rooms. Ends itself, with every training, when no server is left."""

    def __init__(self, profile: Profile) -> None:
        import torch

        torch.set_num_threads(1)  # a thread that ran a multi-threaded operation would slow the others down
        self._ray = ray = cluster.connect("auto")  # an actor is connected already
        self._asking, self._heard = threading.local(), time.monotonic()
        limits, opener = cluster.limits(ray, profile), lambda threads: cluster.RayWorker(ray, threads)
        self.manager = RunManager(limits, opener=opener, address=self._address)
        self.rooms = open_rooms(self.manager, self._address)
        threading.Thread(target=self._end_when_alone, daemon=True).start()

    def call(self, where: str, name: str, *arguments: Any, **named: Any) -> Any:
        """Returns the result of a method, `manager.` or `rooms.`, or an attribute of theirs."""
        self._asking.address, self._heard = where, time.monotonic()
        target = attrgetter(name)(self)
        return target(*arguments, **named) if callable(target) else target

    def view(self, run_id: str, known: int | None) -> RunView | int | None:
        """Returns a run, or only the version where the client has that one."""
        self._heard = time.monotonic()
        view = self.manager.view(run_id)
        return known if view is not None and view.version == known else view

    def beat(self) -> int:
        """Hears that a server is there. Returns the number of this process."""
        self._heard = time.monotonic()
        return os.getpid()

    def _address(self) -> str:
        return getattr(self._asking, "address", "")

    def _end_when_alone(self) -> None:
        while time.monotonic() - self._heard < ALONE_SECONDS:
            time.sleep(1.0)
        self.manager.close()
        self._ray.kill(self._ray.get_runtime_context().current_actor)


class _Remote:
    """Stands for the actor's manager or rooms: their public methods, which raise RunError, too, when nobody
    answers.
    """

    def __init__(self, call: Callable[..., Any], name: str, kind: type) -> None:
        self._call, self._name, self._kind = call, name, kind

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_") or not hasattr(self._kind, method):
            raise AttributeError(method)
        return partial(self._call, f"{self._name}.{method}")


class SharedRuns(_Remote):
    """A manager's stand-in on a server: asks the actor, which is made where there is none."""

    def __init__(self, where: str, profile: Profile, address: Callable[[], str] = lambda: "") -> None:
        """Raises RunError when the cluster cannot be reached."""
        super().__init__(self.call, "manager", RunManager)
        self._ray, self._profile, self._address = cluster.connect(where), profile, address
        self._actor: Any = None
        self._quiet = 0.0  # nobody asks before this moment (of time.monotonic)
        self._views: OrderedDict[str, RunView] = OrderedDict()
        self._lock = threading.Lock()
        self.rooms = cast(Rooms, _Remote(self.call, "rooms", Rooms))
        self._get(lambda actor: actor.beat.remote(), START_SECONDS)
        self.profile: Profile = self.call("manager.profile")
        self._beats = Repeater(self._beat, BEAT_SECONDS)

    def view(self, run_id: str) -> RunView | None:
        """Returns the manager's view of a run: the same object until something changes."""
        with self._lock:
            known = self._views.get(run_id)
        view = self._get(lambda actor: actor.view.remote(run_id, known and known.version))
        if known is not None and view == known.version:
            return known
        with self._lock:
            self._views.pop(run_id, None)
            if view is not None:
                self._views[run_id] = view
                while len(self._views) > KEPT_VIEWS:
                    self._views.popitem(last=False)
        return cast("RunView | None", view)

    def trained(self, run_id: str, step: int | None = None) -> Trained:
        """Loads a run's model in this process, with the parts of this process."""
        return opened(*self.call("manager.made_of", run_id, step))

    def model(self, run_id: str, step: int | None = None) -> Checkpoint:
        return transformer(self.trained(run_id, step))

    def close(self) -> None:
        """Leaves; the runs go on as long as another server is there."""
        self._beats.stop()

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Returns what a method of the actor's returns (`manager.runs`, say), or raises what it raises;
        RunError where nobody answers. Nothing is asked twice: an order may have been carried out.
        """
        seconds = SLOW_SECONDS if name.rpartition(".")[2] in SLOW else ANSWER_SECONDS
        where = self._address()
        return self._get(lambda actor: actor.call.remote(where, name, *arguments, **named), seconds)

    def _get(self, ask: Callable[[Any], Any], seconds: float = ANSWER_SECONDS) -> Any:
        if time.monotonic() < self._quiet:
            raise RunError(GONE)
        errors = self._ray.exceptions
        try:
            return self._ray.get(ask(self._connected()), timeout=seconds)
        except errors.RayTaskError as error:
            if isinstance(error.cause, GlassformerError):
                raise error.cause from None
            log.exception("a request could not be answered")
            raise RunError(FAULT) from error
        except errors.GetTimeoutError as error:
            self._quiet = time.monotonic() + QUIET_SECONDS
            raise RunError(GONE) from error
        except (errors.RayError, ValueError) as error:
            self._actor = None  # it has ended: the next one who asks finds it, or makes a new one
            raise RunError(GONE) from error

    def _connected(self) -> Any:
        actor = self._actor
        if actor is None:
            made = self._ray.remote(ManagerActor).options(
                name=f"runs-{version()}",
                namespace=NAMESPACE,
                get_if_exists=True,
                lifetime="detached",
                max_restarts=-1,
                max_concurrency=CALLS,
                num_cpus=0,
                resources={"node:__internal_head__": 0.001},  # where Ray keeps its state: one place to lose
            )
            actor = self._actor = made.remote(self._profile)
        return actor

    def _beat(self) -> None:
        try:
            self._get(lambda actor: actor.beat.remote())
        except RunError:
            log.debug("the service that holds the runs does not answer")


def version() -> str:
    """Returns a name for this engine's code: servers of another have a manager of their own."""
    digest = hashlib.sha256()
    for path in sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def open_manager(profile: Profile, address: Callable[[], str]) -> RunManager:
    """Returns the cluster's manager if $GLASSFORMER_RAY is set, else a new one. Raises RunError."""
    if where := cluster.address():
        return cast(RunManager, SharedRuns(where, profile, address))
    return RunManager(profile, address=address)


def open_rooms(manager: RunManager, address: Callable[[], str]) -> Rooms:
    """Returns the rooms of servers with this manager: the cluster's, else new ones, of this process."""
    if isinstance(manager, SharedRuns):
        return manager.rooms
    each = manager.profile
    return Rooms(address=address, rooms_each=each.max_rooms_address, answers_each=each.max_answers_address)
