"""Workers on the machines of a Ray cluster: the other transport (engine.service.transport).

`GLASSFORMER_RAY=<address>` (or `auto`) chooses it; the package comes with requirements-ray.txt. Records,
commands, snapshots, leases, limits and crashes are the same to whoever looks: orders take the files that they
name along, snapshots come back and lie where the manager keeps all of them. When a machine is lost, its
trainings go on elsewhere, from their last snapshots.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.errors import RunError
from engine.service.node import Node, Output
from engine.service.profiles import Profile
from engine.service.protocol import Command, Message, SnapshotSaved, Train, Warned, dump, load_message
from engine.service.transport import ROOT

VARIABLE = "GLASSFORMER_RAY"
GRACE = 3.0  # seconds for a worker that was told to end, before its actor is ended under it
LOST = -9  # the exit code of a process whose machine is gone


def address() -> str:
    """Returns the address of the cluster that trains, from $GLASSFORMER_RAY; empty where this
    machine does.
    """
    return os.environ.get(VARIABLE, "").strip()


class Cluster:
    """A connection to a Ray cluster. One for each server process."""

    def __init__(self, where: str) -> None:
        """Raises RunError when Ray is not installed, or the cluster does not answer."""
        try:
            import ray
        except ImportError as error:
            raise RunError(
                f"{VARIABLE} is set, and Ray is not installed: pip install -r requirements-ray.txt"
            ) from error
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        try:
            if self._ours:
                ray.init(
                    address=where,
                    namespace="glassformer",
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                    runtime_env={"py_modules": [str(ROOT / "engine")], "excludes": ["__pycache__"]},
                )
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise RunError(
                f"The cluster at {where} cannot be reached ({str(error).splitlines()[0][:200]})."
            ) from error

    def profile(self, profile: Profile) -> Profile:
        """Returns the limits, with as many trainings at once as the cluster has cores for.

        One of its places (cores by threads a run) is the spare's, and a quarter may be held by the paused.
        """
        places = int(self._ray.cluster_resources().get("CPU", 1)) // profile.threads_per_run
        paused = min(profile.max_paused, places // 4)
        return replace(profile, max_paused=paused, max_beside=0, max_runs=max(1, places - 1 - paused))

    def open(self, threads: int) -> RemoteNode:
        """Returns one more worker, wherever there is room."""
        return RemoteNode(self._ray, threads)

    def close(self) -> None:
        """Takes leave of the cluster, which ends every worker that was started here."""
        if self._ours:
            self._ray.shutdown()


class RemoteNode:
    """A worker on a machine of the cluster, as a Transport."""

    def __init__(self, ray: Any, threads: int) -> None:
        self._ray = ray
        self._last = Output((), 0, 0, None)
        self._folders: dict[int, Path] = {}  # of its runs, here; by entrant
        self._ending = 0.0  # when it was told to end; 0: not yet
        self._lock = threading.Lock()
        self.vanished = False
        # what is told arrives in order, and is not held up by who listens
        actor = ray.remote(
            num_cpus=threads,
            max_restarts=0,
            scheduling_strategy="SPREAD",
            concurrency_groups={"tell": 1, "hear": 1},
        )(Node)
        try:
            self._node = actor.remote(threads)
        except ray.exceptions.RayError as error:
            raise OSError(f"the cluster gives no worker: {str(error).splitlines()[0][:200]}") from error

    @property
    def pid(self) -> int:
        return self._last.pid

    def send(self, command: Command, entrant: int) -> bool:
        files = {}
        if isinstance(command, Train):
            self._folders[entrant] = Path(command.folder)
            try:
                files = {
                    path: Path(path).read_bytes()
                    for path in (command.text, command.resume)
                    if path is not None
                }
            except OSError:
                return False
        return self._call("tell", dump(command, entrant), files)

    def messages(self) -> Iterator[tuple[int, Message]]:
        while self._last.end is None:
            try:
                # not for ever: an actor for which there is no room yet does not answer
                (ready, _) = self._ray.wait([asked := self._ask()], timeout=GRACE)
                while not ready and not self._late():
                    (ready, _) = self._ray.wait([asked], timeout=GRACE)
                if not ready:
                    self._ray.kill(self._node)
                self._last = self._ray.get(asked)
            except self._ray.exceptions.RayError:
                self.vanished = not self._ending
                return
            for line, snapshot in self._last.lines:
                yield self._here(*load_message(line), snapshot)

    def close(self) -> None:
        self._tell_to_end("close")

    def kill(self) -> None:
        self._tell_to_end("kill")

    def wait(self) -> int:
        if self._last.end:
            return self._last.end[0]
        return LOST if self.vanished else 0

    def resident_bytes(self) -> int:
        return self._last.resident_bytes

    def last_words(self) -> str:
        return self._last.end[1] if self._last.end else ""

    def trim_errors(self) -> None:
        """Does nothing: its machine keeps them, as long as it lives."""

    def release(self) -> None:
        with suppress(self._ray.exceptions.RayError):
            cleared = self._node.clear.options(concurrency_group="tell").remote()
            self._ray.wait([cleared], timeout=GRACE)
            self._ray.kill(self._node)  # its cores are free again only then

    def _ask(self) -> Any:
        return self._node.hear.options(concurrency_group="hear").remote()

    def _call(self, what: str, *arguments: Any) -> bool:
        """Asks for something whose answer nobody waits for."""
        try:
            getattr(self._node, what).options(concurrency_group="tell").remote(*arguments)
        except self._ray.exceptions.RayError:
            return False
        return True

    def _tell_to_end(self, how: str) -> None:
        with self._lock:
            self._ending = self._ending or time.monotonic()
        self._call(how)

    def _late(self) -> bool:
        """True if it was asked to end and has not."""
        return bool(self._ending) and time.monotonic() - self._ending > GRACE

    def _here(self, entrant: int, message: Message, snapshot: bytes | None) -> tuple[int, Message]:
        """A message as if it came from this machine: a snapshot lies in its run's folder."""
        if not isinstance(message, SnapshotSaved):
            return entrant, message
        folder = self._folders[entrant]
        path = folder / Path(message.path).name
        if snapshot is None:  # gone there before it could be read
            return entrant, Warned(f"The snapshot after step {message.step:,} was lost on its way.")
        try:
            partial = folder / f".{path.name}"
            partial.write_bytes(snapshot)
            os.replace(partial, path)
        except OSError as error:
            return entrant, Warned(
                f"A snapshot could not be saved ({error.strerror or error}). Training goes on without it."
            )
        return entrant, SnapshotSaved(message.step, str(path), len(snapshot))
