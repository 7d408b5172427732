"""Runs on the machines of a Ray cluster. The service that servers share is a named actor on the machine that
leads it. Workers are actors that start the same process as everywhere (runs.worker), wherever there is room,
and pass commands, messages and files on. When a machine is lost, its trainings go on elsewhere, from their
last snapshots.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.checkpoints import write_whole
from engine.errors import GlassformerError, RunError
from runs.process_guards import ROOT
from runs.profiles import Profile
from runs.protocol import Command, Message, SnapshotSaved, Train, Warned
from runs.service import Lost, RunService, Silent, version
from runs.transport import FOLDERS, Pipe

VARIABLE, NAMESPACE = "GLASSFORMER_RAY", "glassformer"
ALONE_SECONDS = 60.0  # without a sign of life from any server, after which the runs end
CALLS = 64  # answered at a time
GRACE = 3.0  # seconds for a worker that was told to end, before its actor is ended under it
LOST = -9  # the exit code of a process whose machine is gone


def address() -> str:
    """Returns the address of the Ray cluster from $GLASSFORMER_RAY; empty where there is none."""
    return os.environ.get(VARIABLE, "").strip()


def connect(where: str) -> Any:
    """Returns `ray`, connected to a cluster. Raises RunError where it is missing, or nobody answers."""
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")  # a late call must not begin a cluster of its own
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it tells its makers about this cluster
    try:
        import ray
    except ImportError as error:
        raise RunError(
            f"{VARIABLE} is set, and Ray is not installed: pip install -r requirements-ray.txt"
        ) from error
    try:
        if not ray.is_initialized():
            ray.init(
                address=where,
                namespace=NAMESPACE,
                logging_level=logging.ERROR,
                log_to_driver=False,
                runtime_env={
                    "py_modules": [str(ROOT / name) for name in FOLDERS],
                    "excludes": ["__pycache__"],
                },
            )
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise RunError(
            f"The cluster at {where} cannot be reached ({str(error).splitlines()[0][:200]})."
        ) from error
    return ray


def limits(ray: Any, profile: Profile) -> Profile:
    """Returns a profile with as many trainings at once as the cluster has cores for, but for the spare's slot
    and a quarter for the paused.
    """
    count = int(ray.cluster_resources().get("CPU", 1)) // profile.threads_per_run
    paused = min(profile.max_paused, count // 4)
    return replace(profile, max_paused=paused, max_beside=0, max_runs=max(1, count - 1 - paused))


class ManagerActor(RunService):
    """Ends itself, with every training, when no server is left."""

    def __init__(self, profile: Profile) -> None:
        import torch

        torch.set_num_threads(1)  # a thread that ran a multi-threaded operation would slow the others down
        self._ray = ray = connect("auto")  # an actor is connected already
        super().__init__(limits(ray, profile), opener=lambda threads: RayWorker(ray, threads))
        threading.Thread(target=self._end_when_alone, daemon=True).start()

    def _end_when_alone(self) -> None:
        while time.monotonic() - self.heard < ALONE_SECONDS:
            time.sleep(1.0)
        self.manager.close()
        self._ray.kill(self._ray.get_runtime_context().current_actor)


class RayLine:
    """A server's way to the actor, which is made where there is none."""

    def __init__(self, where: str, profile: Profile) -> None:
        """Raises RunError when the cluster cannot be reached."""
        self._ray, self._profile = connect(where), profile
        self._actor: Any = None

    def ask(self, seconds: float, method: str, /, *arguments: Any, **named: Any) -> Any:
        errors = self._ray.exceptions
        try:
            promise = getattr(self._connected(), method).remote(*arguments, **named)
            return self._ray.get(promise, timeout=seconds)
        except errors.RayTaskError as error:
            if isinstance(error.cause, GlassformerError):
                raise error.cause from None
            raise
        except errors.GetTimeoutError as error:
            raise Silent from error
        except (errors.RayError, ValueError) as error:
            self._actor = None  # it has ended: the next one who asks finds it, or makes a new one
            raise Lost from error

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


@dataclass(frozen=True)
class Output:
    """A message of a worker process, or its end, and the state of the process."""

    pid: int
    resident_bytes: int
    entrant: int = 0
    message: Message | None = None
    snapshot: bytes | None = None  # the file that the message names
    end: tuple[int, str] | None = None  # exit code and last words, instead of a message


class WorkerActor(Pipe):
    """A worker process on this machine and a folder for its files, both gone with the actor."""

    def __init__(self, threads: int) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="glassformer-worker-"))
        super().__init__(threads)

    def pass_on(self, command: Command, entrant: int, files: Mapping[str, bytes]) -> None:
        """Passes a command on. `files` holds what lies behind the paths that an order names."""
        if isinstance(command, Train):
            folder = self._folder / str(entrant)
            folder.mkdir(exist_ok=True)
            copies = {path: folder / Path(path).name for path in files}
            for path, copy in copies.items():
                copy.write_bytes(files[path])
            text, resume = (str(copies[path]) if path else None for path in (command.text, command.resume))
            command = replace(command, folder=str(folder), text=text, resume=resume)
        if not self.send(command, entrant):
            self.kill()

    def outputs(self) -> Iterator[Output]:
        """Returns the worker's messages as they come, and then its end."""
        for entrant, message in self.messages():
            snapshot = None
            if isinstance(message, SnapshotSaved):
                with suppress(OSError):  # thinned out meanwhile
                    snapshot = Path(message.path).read_bytes()
            yield Output(self.pid, self.resident_bytes(), entrant, message, snapshot)
        self.kill()
        yield Output(self.pid, 0, end=(self.wait(), self.last_error_line()))
        self.release()

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class RayWorker:
    """A worker process on a machine of the cluster, as a Transport."""

    def __init__(self, ray: Any, threads: int) -> None:
        """Starts an actor, wherever there is room for its threads. Raises OSError where that fails."""
        self._ray = ray
        self._last = Output(0, 0)
        self._folders: dict[int, Path] = {}  # of its runs, here; by entrant
        self._ending = 0.0  # when it was told to end; 0: not yet
        self.vanished = False
        options = {"num_cpus": threads, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        # commands arrive in order, and are not held up by the outputs
        actor = ray.remote(**options, concurrency_groups={"commands": 1})(WorkerActor)
        try:
            self._actor = actor.remote(threads)
            self._outputs = self._actor.outputs.options(num_returns="streaming").remote()
        except ray.exceptions.RayError as error:
            raise OSError(f"the cluster cannot start a worker: {str(error).splitlines()[0][:200]}") from error

    @property
    def pid(self) -> int:
        return self._last.pid

    def send(self, command: Command, entrant: int) -> bool:
        files = {}
        if isinstance(command, Train):
            self._folders[entrant] = Path(command.folder)
            paths = filter(None, (command.text, command.resume))
            try:
                files = {path: Path(path).read_bytes() for path in paths}
            except OSError:
                return False
        return self._call("pass_on", command, entrant, files) is not None

    def messages(self) -> Iterator[tuple[int, Message]]:
        try:
            while self._last.end is None:
                # not for ever: an actor for which there is no room yet does not answer
                if not self._ray.wait([self._outputs], timeout=GRACE)[0]:
                    if self._ending and time.monotonic() - self._ending > GRACE:
                        self._ray.kill(self._actor)
                    continue
                self._last = self._ray.get(next(self._outputs))
                if self._last.message is not None:
                    yield self._last.entrant, self._stored(self._last.message)
        except self._ray.exceptions.RayError:
            self.vanished = not self._ending

    def close(self) -> None:
        self._end("close")

    def kill(self) -> None:
        self._end("kill")

    def wait(self) -> int:
        if self._last.end:
            return self._last.end[0]
        return LOST if self.vanished else 0

    def resident_bytes(self) -> int:
        return self._last.resident_bytes

    def last_error_line(self) -> str:
        return self._last.end[1] if self._last.end else ""

    def trim_errors(self) -> None:
        """Does nothing: its machine keeps them, as long as it lives."""

    def release(self) -> None:
        with suppress(self._ray.exceptions.RayError):
            if (cleared := self._call("clear")) is not None:
                self._ray.wait([cleared], timeout=GRACE)
            self._ray.kill(self._actor)  # its cores are free again only then

    def _call(self, method: str, *arguments: Any) -> Any:
        """Returns the promise of an answer, which nobody has to wait for; None where the actor is gone."""
        try:
            return getattr(self._actor, method).options(concurrency_group="commands").remote(*arguments)
        except self._ray.exceptions.RayError:
            return None

    def _end(self, how: str) -> None:
        self._ending = self._ending or time.monotonic()
        self._call(how)

    def _stored(self, message: Message) -> Message:
        """A message as if it came from this machine: a snapshot lies in its run's folder."""
        if not isinstance(message, SnapshotSaved):
            return message
        if self._last.snapshot is None:
            return Warned(f"The snapshot after step {message.step:,} was lost in transfer.")
        path = self._folders[self._last.entrant] / Path(message.path).name
        try:
            write_whole(path, self._last.snapshot)
        except OSError as error:
            return Warned(
                f"A snapshot could not be saved ({error.strerror or error}). Training continues without it."
            )
        return SnapshotSaved(message.step, str(path), len(self._last.snapshot))
