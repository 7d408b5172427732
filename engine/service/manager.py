"""Trainings in processes of their own: started, watched, paused, continued and cleaned up after.

One RunManager serves a whole server. A run is *active* (queued, starting, running, paused) or has ended
(finished, stopped, failed). A paused run gives up its slot, so that nobody waits for it, and keeps its
process, so that it goes on exactly; resumed, it queues like any other. Beyond `max_paused`, the processes
paused longest are saved, ended, and started again when wanted.

Three objects: the manager is what visitors may ask for and within which limits, the table
(engine.service.run_table) keeps the runs, and the scheduler (engine.service.scheduler) gives them processes.
"""

from __future__ import annotations

import math
import secrets
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from torch import Tensor

from engine.errors import ConfigError, RunError
from engine.service import admission, profiles
from engine.service.admission import StartLimiter
from engine.service.profiles import MAX_PROMPT, Profile
from engine.service.protocol import Command, SetLearningRate, SetPrompt
from engine.service.run_table import RunTable, clean_name
from engine.service.scheduler import Scheduler
from engine.service.snapshot_reader import SavedSnapshot, Trained
from engine.service.state import Process, Run, RunSpec, RunView, Standing, Status
from engine.service.transport import Opener, Pipe
from engine.training.records import TrainState
from engine.weights.checkpoints import Checkpoint

__all__ = ["RunManager", "RunSpec", "RunView", "Status"]

P = ParamSpec("P")
T = TypeVar("T")


def locked(method: Callable[Concatenate[RunManager, P], T]) -> Callable[Concatenate[RunManager, P], T]:
    """Holds the lock of the table while a method runs."""

    @wraps(method)
    def call(self: RunManager, /, *arguments: P.args, **named: P.kwargs) -> T:
        with self.table.lock:
            return method(self, *arguments, **named)

    return call


class RunManager:
    """Thread-safe. Ends its processes and removes its files at `close()`, when collected, and at exit."""

    def __init__(
        self,
        profile: Profile,
        folder: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        spare: bool = True,
        opener: Opener = Pipe,
        address: Callable[[], str] = lambda: "",
    ) -> None:
        """Makes a folder in `folder`; `address` tells the client's network address. Raises RunError."""
        self._address, self._starts = address, StartLimiter()
        self.table = RunTable(profile, folder, clock)
        self.scheduler = Scheduler(self.table, spare, opener)
        self._finalizer = weakref.finalize(self, self.scheduler.shutter())

    @property
    def profile(self) -> Profile:
        return self.table.profile

    # Asking for a run ---------------------------------------------------------------------------

    def start(self, spec: RunSpec, owner: str) -> str:
        """Returns the id of a new run, which begins when there is a slot. Raises ConfigError or RunError."""
        return self._start(spec, owner)

    def start_comparison(self, first: RunSpec, second: RunSpec, owner: str) -> tuple[str, str]:
        """Returns the ids of two new runs that train together, the second beside the first even where all
        slots are taken, with half the threads each. Both are started, or none. Raises as `start`.
        """
        profiles.check(self.profile, second)
        one, other = _new_id(), _new_id()
        self._start_all(
            owner, [(first, {"run_id": one, "beside": other}), (second, {"run_id": other, "beside": one})]
        )
        return one, other

    def start_race(self, specs: Sequence[RunSpec], owner: str, title: str = "") -> tuple[str, ...]:
        """Returns the ids of new runs that train in turns, in one process: ordinary runs, which take one slot
        together. All are started, or none. Raises as `start`.
        """
        profiles.check_race(self.profile, specs)
        race = {"race": _new_id(), "title": clean_name(title)}
        return self._start_all(owner, [(spec, race) for spec in specs])

    @locked
    def start_beside(self, run_id: str, spec: RunSpec, owner: str) -> str:
        """Starts a run to compare with one that has ended, as `start`."""
        first = self.table.owned(run_id, owner)
        first.beside = other = self._start(spec, owner, beside=first.id)
        first.changed()
        return other

    def restart(self, run_id: str, owner: str) -> str:
        """Starts a new run with the same specification and seed, so the same first weights and batches."""
        with self.table.lock:
            spec = self.table.owned(run_id, owner).spec
        return self.start(spec, owner)

    @locked
    def _start_all(self, owner: str, starts: Sequence[tuple[RunSpec, dict[str, str]]]) -> tuple[str, ...]:
        started: list[str] = []
        try:
            for spec, rest in starts:
                started.append(self._start(spec, owner, **rest))
        except (ConfigError, RunError):
            for run in started:
                self.remove(run, owner)
            raise
        return tuple(started)

    def _start(
        self,
        spec: RunSpec,
        owner: str,
        run_id: str = "",
        beside: str | None = None,
        race: str | None = None,
        title: str = "",
    ) -> str:
        spec = replace(spec, name=clean_name(spec.name), text=spec.text if spec.corpus == "text" else None)
        profiles.check(self.profile, spec)
        with self.table.lock:
            self.table.check_open()
            now, address = self.table.clock(), self._address()
            if admission.check_owner(self.profile, self.table, owner, race):
                self._starts.count(address, self.profile.max_starts_address, now)
            text = (spec.text or "").encode("utf-8", "surrogatepass")
            admission.make_room(self.profile, self.table, len(text), self.scheduler.forget, address)
            run = Run(run_id or _new_id(), owner, spec, self.table.store.make(), now, address)
            run.beside, run.race, run.race_title = beside, race, title
            if race is None:
                run.given = self.table.name_for(spec.name, owner)
            else:
                whole = clean_name(f"{title}: {spec.name}" if title else spec.name)
                run.listed = self.table.name_for(whole, owner)
            self.table.add(run)
            try:
                if spec.text is not None:
                    run.text_file = self.table.store.write_text(run.folder, text)
                    run.text_bytes = len(text)
                self.scheduler.enqueue(run)
            except RunError:
                self.scheduler.forget(run)
                raise
            return run.id

    @locked
    def extend(self, run_id: str, owner: str, steps: int) -> str | None:
        """Lets an ended run train `steps` further steps from its last snapshot, and its curve with it."""
        run = self.table.owned(run_id, owner)
        if run.active:
            raise RunError(
                "This run is still active. Stop it, or wait until it ends, before you continue it."
            )
        if run.newest is None:
            raise RunError(
                "No snapshot of this run was saved, so it cannot be continued. Start it again instead."
            )
        most = self.profile.max_steps - run.newest
        if not 1 <= steps <= most:
            why = f"must be between 1 and {most:,} here: the last snapshot is at step {run.newest:,}"
            raise ConfigError("steps", steps, why)
        before = run.total_steps, run.changes
        run.total_steps = run.newest + steps
        run.note("steps", steps)
        try:
            self.scheduler.enqueue(run)
        except RunError:
            run.total_steps, run.changes = before
            raise
        return run.id

    @locked
    def revive(self, race_id: str, owner: str) -> None:
        """Lets all runs of a race go on whose process was lost, from their last snapshots to the ends that
        they had. One that has no snapshot begins anew. Raises RunError.
        """
        for run in self.table.race(race_id):
            if self.table.owned(run.id, owner).lost and not run.active:
                self.scheduler.enqueue(run)

    # Looking at runs ----------------------------------------------------------------------------

    @locked
    def view(self, run_id: str) -> RunView | None:
        """Returns a run for anybody who knows the id; None for none. Cheap while nothing changes."""
        run = self.table.get(run_id)
        return run.view(self.scheduler.queue_position(run)) if run else None

    @locked
    def runs(self, owner: str) -> list[RunView]:
        """Returns an owner's runs, oldest first. Asking is a sign of life, which keeps ended ones longer."""
        self.table.hear(owner)
        return [run.view(self.scheduler.queue_position(run)) for run in self.table if run.owner == owner]

    @locked
    def race(self, race_id: str) -> tuple[RunView, ...]:
        """Returns the runs of a race that are still here, in order, for anybody who knows its id."""
        return tuple(run.view(self.scheduler.queue_position(run)) for run in self.table.race(race_id))

    @locked
    def may_control(self, run_id: str, owner: str) -> bool:
        return self.table.may_control(run_id, owner)

    @locked
    def watch(self, run_id: str) -> None:
        """Says that somebody looks: a run, or its whole race, goes on that was paused for want of it."""
        run = self.table.get(run_id)
        if run is None or self.table.closed:
            return
        now = self.table.hear(run.owner)
        for mate in self.table.race(run.race) or [run]:
            mate.last_watched = now
            if mate.status == "paused" and mate.by_lease:
                with suppress(RunError):  # the queue is full: it is tried again at the next look
                    self.scheduler.go_on(mate)

    def snapshot(self, run_id: str, step: int) -> TrainState:
        """Returns the state after a step, of the newest whole, of others the weights alone. Raises RunError
        when it is not kept (any more), CheckpointError when it is damaged.
        """
        return self._saved(run_id, step).state()

    def model(self, run_id: str, step: int | None = None) -> Checkpoint:
        """Loads the model after a step (None: the last). Raises as `snapshot`, RunError for another kind."""
        return self._saved(run_id, step).model()

    def trained(self, run_id: str, step: int | None = None) -> Trained:
        """Loads the model of a run of any kind, as `model` loads a Transformer."""
        return self._saved(run_id, step).trained()

    def made_of(
        self, run_id: str, step: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
        """Returns what `snapshot_reader.opened` builds the model from, as `trained`: for another process."""
        return self._saved(run_id, step).made_of()

    def checkpoint(self, run_id: str, step: int | None = None) -> bytes:
        """Returns a zip for `checkpoints.unpack`: the model, as `model`. Raises as `snapshot`."""
        return self._saved(run_id, step).zipped(self.view(run_id))

    @locked
    def _saved(self, run_id: str, step: int | None) -> SavedSnapshot:
        return SavedSnapshot(self.table.get(run_id), step)

    # Steering a run; RunError where it is not yours, or its state does not allow it -------------

    @locked
    def pause(self, run_id: str, owner: str) -> None:
        """Pauses a run before the next step. It gives up its slot, and stays paused whoever watches."""
        self.scheduler.hold(self.table.owned(run_id, owner, active=True))

    @locked
    def resume(self, run_id: str, owner: str) -> None:
        """Goes on exactly where it paused, when there is a slot."""
        run = self.table.owned(run_id, owner, active=True)
        if run.status == "paused":
            self.scheduler.go_on(run)

    @locked
    def step(self, run_id: str, owner: str) -> None:
        """Does one step, and is paused after it."""
        run = self.table.owned(run_id, owner, active=True)
        if run.parking:
            raise RunError("This run is being saved. Try again in a moment.")
        self.scheduler.step(run)

    @locked
    def stop(self, run_id: str, owner: str) -> None:
        """Ends it after the current step, with a last evaluation, sample and snapshot."""
        if not self.table.owned(run_id, owner).stopping:
            self.scheduler.stop(self.table.owned(run_id, owner, active=True))

    @locked
    def set_learning_rate(self, run_id: str, owner: str, learning_rate: float) -> None:
        """Sets AdamW's peak from the next step on, Muon's in proportion; kept when a run is continued."""
        rate = learning_rate
        if not (isinstance(rate, int | float) and math.isfinite(rate) and 0 <= rate <= 1e6):
            raise ConfigError("learning_rate", learning_rate, "must be between 0 and 1e+06")
        run = self.table.owned(run_id, owner)
        run.learning_rate = float(learning_rate)
        run.note("learning_rate", run.learning_rate)
        _tell(run, SetLearningRate(run.learning_rate))

    @locked
    def set_prompt(self, run_id: str, owner: str, prompt: str) -> None:
        if len(prompt) > MAX_PROMPT:
            raise ConfigError("prompt", prompt[:20] + "…", f"may have at most {MAX_PROMPT:,} characters")
        run = self.table.owned(run_id, owner)
        run.prompt = prompt
        _tell(run, SetPrompt(prompt))

    @locked
    def rename(self, run_id: str, owner: str, name: str) -> None:
        run = self.table.owned(run_id, owner)
        run.given, run.listed = self.table.name_for(clean_name(name), owner, run), ""
        run.changed()

    @locked
    def remove(self, run_id: str, owner: str) -> None:
        """Ends it if need be, and frees its memory and its files."""
        self.scheduler.forget(self.table.owned(run_id, owner))
        self.scheduler.dispatch()

    # Maintenance --------------------------------------------------------------------------------

    def processes(self) -> list[Process]:
        """Returns every process that has not ended, the spare included."""
        return self.scheduler.processes()

    def standing(self) -> Standing:
        return self.scheduler.standing()

    def close(self) -> None:
        """Ends every process and thread, and removes every file. May be called twice."""
        with self.table.lock:
            self.table.closed = True
            self.scheduler.queue.clear()
        self._finalizer()


def _new_id() -> str:
    return secrets.token_urlsafe(16)


def _tell(run: Run, command: Command) -> None:
    """Something of a run has changed, and its process is to know."""
    run.changed()
    if run.seat is not None:
        run.seat.send(command)
