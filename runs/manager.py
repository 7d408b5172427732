"""Trainings in processes of their own: started, watched, paused, continued and cleaned up after.

One RunManager serves a whole server. A run is *active* (queued, starting, running, paused) or has ended
(finished, stopped, failed). A paused run gives up its slot, so that nobody waits for it, and keeps its
process, so that it goes on exactly; resumed, it queues like any other. Beyond `max_paused`, the processes
paused longest are saved, ended, and started again when wanted.

Two objects: the manager is what visitors may ask for and within which limits; the scheduler
(runs.scheduler) keeps the runs and gives them processes.
"""

from __future__ import annotations

import math
import secrets
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from torch import Tensor

from engine.checkpoints import Checkpoint, load_state, load_weights
from engine.errors import CheckpointError, ConfigError, RunError
from runs import admission, profiles
from runs.admission import StartLimiter
from runs.profiles import MAX_NAME, MAX_PROMPT, Profile
from runs.protocol import Command, SetLearningRate, SetPrompt
from runs.scheduler import Scheduler
from runs.snapshots import Reader, Trained, opened, transformer, zipped
from runs.state import Process, Run, RunSpec, RunView, Standing, Status
from runs.transport import Opener, Pipe

__all__ = ["RunManager", "RunSpec", "RunView", "Status"]

P = ParamSpec("P")
T = TypeVar("T")


def locked(method: Callable[Concatenate[RunManager, P], T]) -> Callable[Concatenate[RunManager, P], T]:
    """Holds the lock of the runs while a method runs."""

    @wraps(method)
    def call(self: RunManager, /, *arguments: P.args, **named: P.kwargs) -> T:
        with self.scheduler.lock:
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
        self.scheduler = Scheduler(profile, folder, clock, spare, opener)
        self._finalizer = weakref.finalize(self, self.scheduler.shutter())

    @property
    def profile(self) -> Profile:
        return self.scheduler.profile

    # Asking for a run ---------------------------------------------------------------------------

    def start(
        self,
        spec: RunSpec,
        owner: str,
        *,
        run_id: str = "",
        beside: str | None = None,
        race: str | None = None,
        title: str = "",
    ) -> str:
        """Returns the id of a new run, which begins when there is a slot. Raises ConfigError or RunError."""
        spec = replace(spec, name=clean_name(spec.name), text=spec.text if spec.corpus == "text" else None)
        profiles.check(self.profile, spec)
        with self.scheduler.lock:
            self._check_open()
            now, address = self.scheduler.clock(), self._address()
            if admission.check_owner(self.profile, self.scheduler.runs, owner, race):
                self._starts.count(address, self.profile.max_starts_address, now)
            text = (spec.text or "").encode("utf-8", "surrogatepass")
            admission.make_room(self.profile, self.scheduler.runs, len(text), self.scheduler.forget, address)
            run = Run(run_id or _new_id(), owner, spec, self.scheduler.store.make(), now, address)
            run.beside, run.race, run.race_title = beside, race, title
            if race is None:
                run.given = self._name_for(spec.name, owner)
            else:
                whole = clean_name(f"{title}: {spec.name}" if title else spec.name)
                run.listed = self._name_for(whole, owner)
            self.scheduler.add(run)
            try:
                if spec.text is not None:
                    run.text_file = self.scheduler.store.write_text(run.folder, text)
                    run.text_bytes = len(text)
                self.scheduler.enqueue(run)
            except RunError:
                self.scheduler.forget(run)
                raise
            return run.id

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
        first = self._owned(run_id, owner)
        first.beside = other = self.start(spec, owner, beside=first.id)
        first.changed()
        return other

    def restart(self, run_id: str, owner: str) -> str:
        """Starts a new run with the same specification and seed, so the same first weights and batches."""
        with self.scheduler.lock:
            spec = self._owned(run_id, owner).spec
        return self.start(spec, owner)

    @locked
    def _start_all(self, owner: str, starts: Sequence[tuple[RunSpec, dict[str, str]]]) -> tuple[str, ...]:
        started: list[str] = []
        try:
            for spec, rest in starts:
                started.append(self.start(spec, owner, **rest))
        except (ConfigError, RunError):
            for run in started:
                self.remove(run, owner)
            raise
        return tuple(started)

    @locked
    def extend(self, run_id: str, owner: str, steps: int) -> str | None:
        """Lets an ended run train `steps` further steps from its last snapshot, and its curve with it."""
        run = self._owned(run_id, owner)
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
        admission.check_queue(self.profile, self.scheduler.queue, run)
        run.total_steps = run.newest + steps
        run.note("steps", steps)
        self.scheduler.enqueue(run)
        return run.id

    @locked
    def revive(self, race_id: str, owner: str) -> None:
        """Lets all runs of a race go on whose process was lost, from their last snapshots to the ends that
        they had. One that has no snapshot begins anew. Raises RunError.
        """
        for run in self.scheduler.race(race_id):
            if self._owned(run.id, owner).lost and not run.active:
                self.scheduler.enqueue(run)

    # Looking at runs ----------------------------------------------------------------------------

    @locked
    def view(self, run_id: str) -> RunView | None:
        """Returns a run for anybody who knows the id; None for none. Cheap while nothing changes."""
        run = self.scheduler.get(run_id)
        return run.view(self.scheduler.queue_position(run)) if run else None

    @locked
    def runs(self, owner: str) -> list[RunView]:
        """Returns an owner's runs, oldest first. Asking is a sign of life, which keeps ended ones longer."""
        self.scheduler.hear(owner)
        return self._views(run for run in self.scheduler.runs if run.owner == owner)

    @locked
    def race(self, race_id: str) -> tuple[RunView, ...]:
        """Returns the runs of a race that are still here, in order, for anybody who knows its id."""
        return tuple(self._views(self.scheduler.race(race_id)))

    def _views(self, runs: Iterable[Run]) -> list[RunView]:
        return [run.view(self.scheduler.queue_position(run)) for run in runs]

    @locked
    def may_control(self, run_id: str, owner: str) -> bool:
        run = self.scheduler.get(run_id)
        return run is not None and secrets.compare_digest(run.owner.encode(), owner.encode())

    @locked
    def watch(self, run_id: str) -> None:
        """Says that somebody looks: a run, or its whole race, goes on that was paused for want of it."""
        run = self.scheduler.get(run_id)
        if run is None or self.scheduler.closed:
            return
        now = self.scheduler.hear(run.owner)
        for mate in self.scheduler.race(run.race) or [run]:
            mate.last_watched = now
            if mate.status == "paused" and mate.by_lease:
                with suppress(RunError):  # the queue is full: it is tried again at the next look
                    self.scheduler.go_on(mate)

    def model(self, run_id: str, step: int | None = None) -> Checkpoint:
        """Loads the model after a step (None: the last). Raises RunError when it is not kept (any more) or no
        Transformer, CheckpointError when it is damaged.
        """
        return transformer(self.trained(run_id, step))

    def trained(self, run_id: str, step: int | None = None) -> Trained:
        """Loads the model of a run of any kind, as `model` loads a Transformer."""
        return opened(*self.made_of(run_id, step))

    def made_of(
        self, run_id: str, step: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
        """Returns what `snapshots.opened` builds the model from, as `trained`: for another process."""
        weights, meta = self._read(run_id, step, load_weights)
        return meta, weights, {"corpus": meta["corpus"], "step": step, "train": meta["train"]}

    def checkpoint(self, run_id: str, step: int | None = None) -> bytes:
        """Returns a zip for `checkpoints.unpack`: the model, with the measurements so far."""
        state, meta = self._read(run_id, step, load_state)
        view = self.view(run_id)
        return zipped(state, meta, view.name if view else "", view.history.evaluations if view else ())

    def _read(self, run_id: str, step: int | None, read: Reader[T]) -> tuple[T, dict[str, Any]]:
        """Reads the snapshot after a step, None: the newest."""
        with self.scheduler.lock:
            run = self.scheduler.get(run_id)
            if run is None:
                raise RunError("This run no longer exists.")
            if step is None and (step := run.newest) is None:
                raise RunError("This run has no snapshot yet.")
            if (saved := run.snapshots.get(step)) is None:
                raise RunError(f"There is no snapshot of step {step}.")
        try:
            return read(saved.path)
        except CheckpointError:
            if not saved.path.exists():  # thinned while it was being read
                raise RunError(f"The snapshot of step {step} is no longer kept.") from None
            raise

    # Owners -------------------------------------------------------------------------------------

    def _owned(self, run_id: str, owner: str, active: bool = False) -> Run:
        """Returns a run that its owner wants to control, which is a sign of life. Raises RunError where it is
        not theirs, or has ended and `active` is wanted.
        """
        self._check_open()
        run = self.scheduler.get(run_id)
        if run is None:
            raise RunError("This run no longer exists.")
        if not self.may_control(run_id, owner):
            raise RunError(
                "This run was started in another browser: you can watch it here, but not control it."
            )
        if active and not run.active:
            raise RunError(
                f"This run has already {run.status if run.status != 'stopped' else 'been stopped'}. Continue"
                " it, or start it again."
            )
        if active and run.stopping:
            raise RunError("This run is being stopped.")
        run.last_watched = self.scheduler.hear(owner)
        return run

    def _check_open(self) -> None:
        """Raises RunError while the server ends."""
        if self.scheduler.closed:
            raise RunError("The server is shutting down.")

    def _name_for(self, name: str, owner: str, run: Run | None = None) -> str:
        """Returns a name, or with a number where another run of this owner has it."""
        others = [other for other in self.scheduler.runs if other.owner == owner and other is not run]
        return free_name(name, {other.listed or other.given for other in others})

    # Steering a run; RunError where it is not yours, or its state does not allow it -------------

    @locked
    def pause(self, run_id: str, owner: str) -> None:
        """Pauses a run before the next step. It gives up its slot, and stays paused whoever watches."""
        self.scheduler.hold(self._owned(run_id, owner, active=True))

    @locked
    def resume(self, run_id: str, owner: str) -> None:
        """Goes on exactly where it paused, when there is a slot."""
        run = self._owned(run_id, owner, active=True)
        if run.status == "paused":
            self.scheduler.go_on(run)

    @locked
    def step(self, run_id: str, owner: str) -> None:
        """Does one step, and is paused after it."""
        run = self._owned(run_id, owner, active=True)
        if run.parking:
            raise RunError("This run is being saved. Try again in a moment.")
        self.scheduler.step(run)

    @locked
    def stop(self, run_id: str, owner: str) -> None:
        """Ends it after the current step, with a last evaluation, sample and snapshot."""
        if not self._owned(run_id, owner).stopping:
            self.scheduler.stop(self._owned(run_id, owner, active=True))

    @locked
    def set_learning_rate(self, run_id: str, owner: str, learning_rate: float) -> None:
        """Sets AdamW's peak from the next step on, Muon's in proportion; kept when a run is continued."""
        rate = learning_rate
        if not (isinstance(rate, int | float) and math.isfinite(rate) and 0 <= rate <= 1e6):
            raise ConfigError("learning_rate", learning_rate, "must be between 0 and 1e+06")
        run = self._owned(run_id, owner)
        run.learning_rate = float(learning_rate)
        run.note("learning_rate", run.learning_rate)
        _tell(run, SetLearningRate(run.learning_rate))

    @locked
    def set_prompt(self, run_id: str, owner: str, prompt: str) -> None:
        if len(prompt) > MAX_PROMPT:
            raise ConfigError("prompt", prompt[:20] + "…", f"may have at most {MAX_PROMPT:,} characters")
        run = self._owned(run_id, owner)
        run.prompt = prompt
        _tell(run, SetPrompt(prompt))

    @locked
    def rename(self, run_id: str, owner: str, name: str) -> None:
        run = self._owned(run_id, owner)
        run.given, run.listed = self._name_for(clean_name(name), owner, run), ""
        run.changed()

    @locked
    def remove(self, run_id: str, owner: str) -> None:
        """Ends it if need be, and frees its memory and its files."""
        self.scheduler.forget(self._owned(run_id, owner))
        self.scheduler.dispatch()

    # Maintenance --------------------------------------------------------------------------------

    def processes(self) -> list[Process]:
        """Returns every process that has not ended, the spare included."""
        return self.scheduler.processes()

    def standing(self) -> Standing:
        return self.scheduler.standing()

    def close(self) -> None:
        """Ends every process and thread, and removes every file. May be called twice."""
        with self.scheduler.lock:
            self.scheduler.closed = True
            self.scheduler.queue.clear()
        self._finalizer()


def _new_id() -> str:
    return secrets.token_hex(16)  # part of widgets' keys: Streamlit takes none with two underscores


def _tell(run: Run, command: Command) -> None:
    """Something of a run has changed, and its process is to know."""
    run.changed()
    if run.seat is not None:
        run.seat.send(command)


def clean_name(name: str) -> str:
    """Returns a name in one line, not longer than names may be.

    >>> clean_name("  two\\nlines ")
    'two lines'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:MAX_NAME]


def free_name(name: str, taken: Collection[str]) -> str:
    """Returns the name, or with a number where it is taken: a list of names tells the runs apart.

    >>> free_name("fast", {"fast", "fast (2)"})
    'fast (3)'
    """
    if not name or name not in taken:
        return name
    numbered = (f"{name[: MAX_NAME - 6]} ({i})" for i in range(2, len(taken) + 3))
    return next(other for other in numbered if other not in taken)
