"""Trainings in processes of their own: started, watched, paused, continued and cleaned up after.

One RunManager serves a whole server. A run is *active* (queued, starting, running, paused) or has ended
(finished, stopped, failed). A paused run gives up its place, so that nobody waits for it, and keeps its
process, so that it goes on exactly; resumed, it queues like any other. Beyond `max_paused`, the processes
paused longest are saved, ended, and started again when wanted.
"""

from __future__ import annotations

import math
import secrets
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from engine.errors import ConfigError, RunError
from engine.service import admission, profiles, slots
from engine.service.admission import Starts
from engine.service.profiles import MAX_PROMPT, Profile
from engine.service.protocol import Command, SetLearningRate, SetPrompt
from engine.service.run_names import clean_name, free_name
from engine.service.scheduler import Scheduler
from engine.service.server_stats import Standing, standing
from engine.service.snapshot_reader import SavedSnapshot, Trained
from engine.service.state import Process, Run, RunFiles, RunSpec, RunView, Status
from engine.service.transport import Opener, Pipe
from engine.training.records import TrainState
from engine.weights.checkpoints import Checkpoint

__all__ = ["RunManager", "RunSpec", "RunView", "Status"]


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
        """Makes a new folder in `folder` for its files; `opener` starts workers; `address` tells the network
        address of the client, empty where unknown. Raises RunError when no folder can be made.
        """
        self._address, self._starts = address, Starts()
        self._inside = Scheduler(profile, folder, clock, spare, opener)
        self._finalizer = weakref.finalize(self, self._inside.shutter())

    @property
    def profile(self) -> Profile:
        """The limits, which may be changed while it serves: what was allowed before goes on."""
        return self._inside.profile

    @profile.setter
    def profile(self, profile: Profile) -> None:
        with self._inside.lock:
            self._inside.profile = profile

    @property
    def folder(self) -> Path:
        """Where the files of its runs lie."""
        return self._inside.store.folder

    # Asking for a run ---------------------------------------------------------------------------

    def start(self, spec: RunSpec, owner: str) -> str:
        """Returns the id of a new run, which begins when there is a place. Raises ConfigError or RunError."""
        return self._start(spec, owner, secrets.token_urlsafe(16))

    def start_comparison(self, first: RunSpec, second: RunSpec, owner: str) -> tuple[str, str]:
        """Returns the ids of two new runs that train together, the second beside the first even where all
        places are taken, with half the threads each. Both are started, or none. Raises as `start`.
        """
        profiles.check(self.profile, second)
        with self._inside.lock:
            one, other = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
            self._start(first, owner, one, beside=other)
            try:
                return one, self._start(second, owner, other, beside=one)
            except (ConfigError, RunError):
                self.remove(one, owner)
                raise

    def start_race(self, specs: Sequence[RunSpec], owner: str, title: str = "") -> tuple[str, ...]:
        """Returns the ids of new runs that train in turns, in one process: each is an ordinary run, and all
        together take one place, in the queue and among the running. All are started, or none. Raises as
        `start`.
        """
        profiles.check_race(self.profile, specs)
        race, started = secrets.token_urlsafe(16), []
        with self._inside.lock:
            try:
                for spec in specs:
                    name = secrets.token_urlsafe(16)
                    started.append(self._start(spec, owner, name, race=race, title=clean_name(title)))
            except (ConfigError, RunError):
                for run in started:
                    self.remove(run, owner)
                raise
        return tuple(started)

    def start_beside(self, run_id: str, spec: RunSpec, owner: str) -> str:
        """Starts a run to compare with one that has ended, as `start`."""
        with self._inside.lock:
            first = self._owned(run_id, owner)
            first.beside = other = self._start(spec, owner, secrets.token_urlsafe(16), beside=first.id)
            first.changed()
            return other

    def _start(
        self,
        spec: RunSpec,
        owner: str,
        name: str,
        beside: str | None = None,
        race: str | None = None,
        title: str = "",
    ) -> str:
        spec = replace(spec, name=clean_name(spec.name), text=spec.text if spec.corpus == "text" else None)
        profiles.check(self.profile, spec)
        with self._inside.lock:
            self._check_open()
            runs, now, address = self._inside.runs, self._inside.clock(), self._address()
            if admission.check_owner(self.profile, runs, owner, race):
                self._starts.count(address, self.profile.max_starts_address, now)
            text = (spec.text or "").encode("utf-8", "surrogatepass")
            admission.make_room(self.profile, runs, len(text), self._inside.forget, address)
            run = Run(name, owner, spec, self._inside.store.make(), now, address)
            run.beside, run.race, run.race_title = beside, race, title
            if race is None:
                run.given = self._free_name(spec.name, owner)
            else:
                run.listed = self._free_name(
                    clean_name(f"{title}: {spec.name}" if title else spec.name), owner
                )
            self._inside.runs[run.id] = run
            try:
                if spec.text is not None:
                    run.text_file = self._inside.store.write_text(run.folder, text)
                    run.text_bytes = len(text)
                self._inside.enqueue(run)
            except RunError:
                self._inside.forget(run)
                raise
            self._inside.seen[owner] = self._inside.clock()
            return run.id

    def restart(self, run_id: str, owner: str) -> str:
        """Starts a new run with the same specification and seed, so the same first weights and batches."""
        return self.start(self._owned(run_id, owner).spec, owner)

    def extend(self, run_id: str, owner: str, steps: int) -> str | None:
        """Lets a run that has ended train `steps` further steps from its last snapshot. The curve after that
        snapshot is written anew.
        """
        with self._inside.lock:
            run = self._owned(run_id, owner)
            if run.active:
                raise RunError(
                    "This run is still going: stop it, or wait until it ends, before continuing it for"
                    " longer."
                )
            if run.newest is None:
                raise RunError(
                    "No snapshot of this run was saved, so it cannot be continued: start it again instead."
                )
            total = run.newest + steps
            if steps < 1 or total > self.profile.max_steps:
                most = self.profile.max_steps - run.newest
                raise ConfigError(
                    "steps",
                    steps,
                    f"must be between 1 and {most:,} here, after the {run.newest:,} of the last snapshot",
                )
            before = run.total_steps, run.changes
            run.total_steps = total
            run.note("steps", steps)
            try:
                self._inside.enqueue(run)
            except RunError:
                run.total_steps, run.changes = before
                raise
            return run.id

    def revive(self, race_id: str, owner: str) -> None:
        """Lets all runs of a race go on whose process was lost, from their last snapshots to the ends that
        they had. One that has no snapshot begins anew. Raises RunError.
        """
        with self._inside.lock:
            for run in slots.racing(self._inside.runs, race_id):
                if self._owned(run.id, owner).lost and not run.active:
                    self._inside.enqueue(run)

    # Looking at runs ----------------------------------------------------------------------------

    def view(self, run_id: str) -> RunView | None:
        """Returns a run for anybody who knows the id; None when there is no such run (any more). Cheap while
        nothing changes.
        """
        with self._inside.lock:
            run = self._inside.runs.get(run_id)
            return run.view(self._place(run)) if run else None

    def runs(self, owner: str) -> list[RunView]:
        """Returns an owner's runs, oldest first. Asking is a sign of life: what has ended is kept
        for longer.
        """
        with self._inside.lock:
            self._inside.seen[owner] = self._inside.clock()
            return [run.view(self._place(run)) for run in self._inside.runs.values() if run.owner == owner]

    def race(self, race_id: str) -> tuple[RunView, ...]:
        """Returns the runs of a race that are still here, in order, for anybody who knows its id."""
        with self._inside.lock:
            return tuple(run.view(self._place(run)) for run in slots.racing(self._inside.runs, race_id))

    def may_control(self, run_id: str, owner: str) -> bool:
        """True if this owner started the run."""
        with self._inside.lock:
            run = self._inside.runs.get(run_id)
            return run is not None and secrets.compare_digest(run.owner.encode(), owner.encode())

    def watch(self, run_id: str) -> None:
        """Says that somebody is looking: a run goes on that was paused because nobody was. Looking at one run
        of a race counts for all.
        """
        with self._inside.lock:
            run = self._inside.runs.get(run_id)
            if run is None or self._inside.closed:
                return
            self._inside.seen[run.owner] = self._inside.clock()
            for mate in slots.racing(self._inside.runs, run.race) or [run]:
                mate.last_watched = self._inside.seen[run.owner]
                if mate.status == "paused" and mate.by_lease:
                    with suppress(RunError):  # the queue is full: it is tried again at the next look
                        self._inside.go_on(mate)

    def snapshot(self, run_id: str, step: int) -> TrainState:
        """Returns the state after a step in `view.snapshots`: of the newest whole, of the others the weights
        alone.

        Raises RunError when it is not kept (any more), CheckpointError when it is damaged.
        """
        return self._kept(run_id, step).state()

    def model(self, run_id: str, step: int | None = None) -> Checkpoint:
        """Returns the model as it was after a step in `view.snapshots` (the last by default), to look into.
        Raises as `snapshot`, and RunError for a run that learns from pairs or labels.
        """
        return self._kept(run_id, step).model()

    def trained(self, run_id: str, step: int | None = None) -> Trained:
        """Loads the model of a run of any kind, as `model`; an encoder-decoder for a run that learns from
        pairs.
        """
        return self._kept(run_id, step).trained()

    def made_of(
        self, run_id: str, step: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
        """Returns what `snapshot_reader.opened` builds the model from, as `trained`: for another process."""
        return self._kept(run_id, step).made_of()

    def checkpoint(self, run_id: str, step: int | None = None) -> bytes:
        """Returns a zip for `engine.weights.checkpoints.unpack`: the model after a step, as `model`. Raises
        as `snapshot`.
        """
        return self._kept(run_id, step).zipped(self.view(run_id))

    def _kept(self, run_id: str, step: int | None) -> SavedSnapshot:
        with self._inside.lock:
            return SavedSnapshot(self._inside.runs.get(run_id), step)

    # Steering a run; RunError where it is not yours, or its state does not allow it -------------

    def pause(self, run_id: str, owner: str) -> None:
        """Pauses a run before the next step. It gives up its slot, and stays paused whoever watches."""
        with self._inside.lock:
            run = self._owned(run_id, owner, active=True)
            self._inside.hold(run)

    def resume(self, run_id: str, owner: str) -> None:
        """Goes on exactly where it paused, when there is a place."""
        with self._inside.lock:
            run = self._owned(run_id, owner, active=True)
            if run.status == "paused":
                self._inside.go_on(run)

    def step(self, run_id: str, owner: str) -> None:
        """Does one step, and is paused after it."""
        with self._inside.lock:
            run = self._owned(run_id, owner, active=True)
            if run.parking:
                raise RunError("This run is just being saved: try again in a moment.")
            self._inside.step(run)

    def stop(self, run_id: str, owner: str) -> None:
        """Ends it after the current step, with a last evaluation, sample and snapshot."""
        with self._inside.lock:
            run = self._owned(run_id, owner)
            if run.stopping:
                return
            self._inside.stop(self._owned(run_id, owner, active=True))

    def set_learning_rate(self, run_id: str, owner: str, learning_rate: float) -> None:
        """Sets a new peak for AdamW from the next step on (Muon's moves in proportion); kept when an ended
        run is continued.
        """
        rate = learning_rate
        if not (isinstance(rate, int | float) and math.isfinite(rate) and 0 <= rate <= 1e6):
            raise ConfigError("learning_rate", learning_rate, "must be between 0 and 1e+06")
        with self._inside.lock:
            run = self._owned(run_id, owner)
            run.learning_rate = float(learning_rate)
            run.note("learning_rate", run.learning_rate)
            self._tell(run, SetLearningRate(run.learning_rate))

    def set_prompt(self, run_id: str, owner: str, prompt: str) -> None:
        """Sets the prompt of the next samples."""
        if len(prompt) > MAX_PROMPT:
            raise ConfigError("prompt", prompt[:20] + "…", f"may have at most {MAX_PROMPT:,} characters")
        with self._inside.lock:
            run = self._owned(run_id, owner)
            run.prompt = prompt
            self._tell(run, SetPrompt(prompt))

    def rename(self, run_id: str, owner: str, name: str) -> None:
        with self._inside.lock:
            run = self._owned(run_id, owner)
            run.given, run.listed = self._free_name(clean_name(name), owner, run), ""
            run.changed()

    def remove(self, run_id: str, owner: str) -> None:
        """Ends it if need be, and frees its memory and its files."""
        with self._inside.lock:
            self._inside.forget(self._owned(run_id, owner))
            self._inside.dispatch()

    # The house itself ---------------------------------------------------------------------------

    def tick(self) -> None:
        """Does the housekeeping: leases, late stops, memory, forgetting. A thread calls it four times a
        second.
        """
        self._inside.tick()

    def processes(self) -> list[Process]:
        """Returns every process that has not ended, the spare included."""
        alive = self._inside.workers.alive()
        return [Process(w.pid, tuple(job.run for job in w.jobs), w.ready) for w in alive]

    def standing(self) -> Standing:
        """Returns how many of everything there are now."""
        return standing(self._inside)

    def files(self, run_id: str) -> RunFiles | None:
        """Returns where a run's files lie; None when there is no such run (any more)."""
        with self._inside.lock:
            run = self._inside.runs.get(run_id)
            return RunFiles(run.folder, dict(run.snapshots)) if run else None

    def close(self) -> None:
        """Ends every process and thread, and removes every file. May be called twice."""
        with self._inside.lock:
            self._inside.closed = True
            self._inside.queue.clear()
        self._finalizer()

    # Inside -------------------------------------------------------------------------------------

    def _place(self, run: Run) -> int:
        return slots.place(self._inside.queue, run)

    def _free_name(self, name: str, owner: str, own: Run | None = None) -> str:
        """The name, or with a number where another run of this owner has it."""
        others = [run for run in self._inside.runs.values() if run.owner == owner and run is not own]
        return free_name(name, {run.listed or run.given for run in others})

    def _owned(self, run_id: str, owner: str, active: bool = False) -> Run:
        with self._inside.lock:
            self._check_open()
            run = self._inside.runs.get(run_id)
            if run is None:
                raise RunError("There is no such run (any more).")
            if not self.may_control(run_id, owner):
                raise RunError(
                    "This run was started in another browser: it can be watched here, but not controlled."
                )
            if active and not run.active:
                raise RunError(
                    f"This run has {run.status if run.status != 'stopped' else 'been stopped'} already:"
                    " continue it for longer, or start it again."
                )
            if active and run.stopping:
                raise RunError("This run is just being stopped.")
            run.last_watched = self._inside.seen[owner] = self._inside.clock()
            return run

    def _check_open(self) -> None:
        if self._inside.closed:
            raise RunError("The server is shutting down.")

    @staticmethod
    def _tell(run: Run, command: Command) -> None:
        """Something of a run has changed, and its process is to know."""
        run.changed()
        if run.seat is not None:
            run.seat.send(command)
