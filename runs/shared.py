"""One run manager for several servers: a server's client of the service that holds the runs (runs.service).

`GLASSFORMER_RAY=<address>` (or `auto`) has it on a Ray cluster (runs.cluster); `GLASSFORMER_RUNS`, which
deploy/servers.py sets, in a process of this machine. So a run's link works on each server. The rooms that
answer a lecturer are there, too: phones may come to another server than the projector. A server without the
variables has a manager of its own.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.errors import GlassformerError, RunError
from runs import cluster, service
from runs.manager import RunManager
from runs.packing import unpack
from runs.profiles import Profile
from runs.quizzes import Quizzes
from runs.repeater import Repeater
from runs.rooms import Rooms
from runs.service import Line, Lost, Silent, SocketLine, limited
from runs.snapshots import Trained, opened, transformer
from runs.state import RunView

log = logging.getLogger(__name__)

FAULT = "The training service could not do that; its log says why."
GONE = "The training service does not respond. Try again in a moment."
ANSWER_SECONDS, SLOW_SECONDS = 10.0, 60.0  # until a call is given up
START_SECONDS = 300.0  # likewise of the first, for which a cluster is sent the code, and imports torch
SLOW = frozenset({"start", "start_comparison", "start_race", "start_beside", "restart", "extend", "revive"})
SLOW |= {"checkpoint"}  # what starts a process, or sends weights
QUIET_SECONDS = 5.0  # in which nobody else waits for a service that has just kept silent
BEAT_SECONDS = 10.0  # between a server's signs of life
KEPT_VIEWS = 256  # of a server: a curve that has not changed is not sent again


class _Remote:
    """Stands for the service's manager, rooms or quizzes: their public methods, which raise RunError, too,
    when nobody answers.
    """

    def __init__(self, call: Callable[..., Any], name: str, kind: type) -> None:
        self._call, self._name, self._kind = call, name, kind

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_") or not hasattr(self._kind, method):
            raise AttributeError(method)
        return partial(self._call, f"{self._name}.{method}")


class SharedRuns(_Remote):
    """A manager's stand-in on a server: asks the service."""

    def __init__(self, line: Line, address: Callable[[], str] = lambda: "") -> None:
        """Raises RunError when the service does not answer."""
        super().__init__(self.call, "manager", RunManager)
        self._line, self._address = line, address
        self._quiet = 0.0  # nobody asks before this moment (of time.monotonic)
        self._views: OrderedDict[str, RunView] = OrderedDict()
        self._lock = threading.Lock()
        self.rooms = cast(Rooms, _Remote(self.call, "rooms", Rooms))
        self.quizzes = cast(Quizzes, _Remote(self.call, "quizzes", Quizzes))
        self._ask(START_SECONDS, "beat")
        self.profile: Profile = self.call("manager.profile")
        self._beats = Repeater(self._beat, BEAT_SECONDS)

    def view(self, run_id: str) -> RunView | None:
        """Returns the manager's view of a run: the same object until something changes."""
        with self._lock:
            known = self._views.get(run_id)
        view = self._ask(ANSWER_SECONDS, "view", run_id, known and known.version)
        if known is not None and view == known.version:
            return known
        with self._lock:
            self._views.pop(run_id, None)
            if view is not None:
                self._views[run_id] = view
                while len(self._views) > KEPT_VIEWS:
                    self._views.popitem(last=False)
        return cast("RunView | None", view)

    def runs(self, owner: str) -> list[RunView]:
        return self._current("runs", owner)

    def race(self, race_id: str) -> tuple[RunView, ...]:
        return tuple(self._current("race", race_id))

    def _current(self, name: str, argument: str) -> list[RunView]:
        """Returns the views that a method of the manager lists; asks for those alone that have changed."""
        listed = self._ask(ANSWER_SECONDS, "versions", name, argument)
        with self._lock:
            known = [self._views.get(run_id) for run_id, _ in listed]
        views = (
            view if view is not None and view.version == version else self.view(run_id)
            for (run_id, version), view in zip(listed, known, strict=True)
        )
        return [view for view in views if view is not None]

    def trained(self, run_id: str, step: int | None = None) -> Trained:
        """Loads a run's model in this process, with the parts of this process."""
        return opened(*self.made_of(run_id, step))

    def model(self, run_id: str, step: int | None = None) -> Checkpoint:
        return transformer(self.trained(run_id, step))

    def made_of(
        self, run_id: str, step: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
        meta, weights, rest = self._ask(SLOW_SECONDS, "made_of", run_id, step)
        return meta, unpack(weights), rest

    def close(self) -> None:
        """Leaves; the runs go on as long as another server is there."""
        self._beats.stop()

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Returns what a method of the service's manager or rooms returns (`manager.runs`, say), or raises
        what it raises; RunError where nobody answers. Nothing is asked twice: an order may have been carried
        out.
        """
        seconds = SLOW_SECONDS if name.rpartition(".")[2] in SLOW else ANSWER_SECONDS
        return self._ask(seconds, "call", self._address(), name, *arguments, **named)

    def _ask(self, seconds: float, method: str, *arguments: Any, **named: Any) -> Any:
        if time.monotonic() < self._quiet:
            raise RunError(GONE)
        try:
            return self._line.ask(seconds, method, *arguments, **named)
        except GlassformerError:
            raise
        except (Silent, Lost) as error:
            if isinstance(error, Silent):
                self._quiet = time.monotonic() + QUIET_SECONDS
            raise RunError(GONE) from error
        except Exception as error:
            log.exception("a request could not be answered")
            raise RunError(FAULT) from error

    def _beat(self) -> None:
        try:
            self._ask(ANSWER_SECONDS, "beat")
        except RunError:
            log.debug("the service that holds the runs does not answer")


def open_manager(profile: Profile, address: Callable[[], str]) -> RunManager:
    """Returns a client of the service that $GLASSFORMER_RAY or $GLASSFORMER_RUNS names, else a new manager.
    Raises RunError.
    """
    if where := cluster.address():
        return cast(RunManager, SharedRuns(cluster.RayLine(where, profile), address))
    if folder := os.environ.get(service.VARIABLE):
        return cast(RunManager, SharedRuns(SocketLine(Path(folder)), address))
    return RunManager(profile, address=address)


def open_rooms(manager: RunManager, address: Callable[[], str]) -> Rooms:
    """Returns the rooms of servers with this manager: the service's, else new ones, of this process."""
    return manager.rooms if isinstance(manager, SharedRuns) else limited(Rooms, manager, address)


def open_quizzes(manager: RunManager, address: Callable[[], str]) -> Quizzes:
    """Returns the quizzes of servers with this manager, likewise."""
    return manager.quizzes if isinstance(manager, SharedRuns) else limited(Quizzes, manager, address)
