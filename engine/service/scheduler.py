"""Inside the run service: who trains, who waits, who is held because nobody watches, and what the workers
say.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from engine.errors import RunError
from engine.service import budgets, protocol
from engine.service.housekeeping import Housekeeping, shut
from engine.service.processes import Job, NoProcess, Worker, Workers, describe_exit
from engine.service.profiles import GB, Profile
from engine.service.snapshots import Saved, Store, clear_partial
from engine.service.state import End, Run
from engine.training.records import Done, Evaluation, Record, Sample, Step

STOP_GRACE = 30.0  # seconds that a worker has for its last look before it is ended by force
UNWATCHED = "Paused because nobody was watching. It goes on by itself as soon as somebody looks."
NOT_SAVED = "It could not be saved in time, so it goes on from its last snapshot."


class Scheduler:
    """The runs and their processes. Its methods are called with `lock` held; `tick` and the workers' two
    callbacks take it themselves.
    """

    def __init__(
        self, profile: Profile, folder: Path | None, clock: Callable[[], float], spare: bool
    ) -> None:
        self.profile, self.clock = profile, clock
        self.lock = threading.RLock()
        self.runs: dict[str, Run] = {}
        self.queue: list[Run] = []
        self.seen: dict[str, float] = {}  # owner -> when last heard of
        self.closed = False
        self.store = Store(folder)
        self.workers = Workers(
            profile.threads_per_run, profile.max_workers, spare, self._on_message, self._on_exit
        )
        self.workers.keep_spare(idle=True)
        self._housekeeping = Housekeeping(self.tick)

    def shutter(self) -> Callable[[], None]:
        """What ends every process and thread and removes every file. It does not know the scheduler, which
        may be gone by then.
        """
        housekeeping, workers, store = self._housekeeping, self.workers, self.store
        return lambda: shut(housekeeping, workers, store)

    def place(self, run: Run) -> int:
        """In the queue: 1 is next, 0 is not queued."""
        if run.status != "queued":
            return 0
        return self.queue.index(run) + 1 if run in self.queue else len(self.queue) + 1

    # Waiting and training -----------------------------------------------------------------------

    def enqueue(self, run: Run) -> None:
        if len(self.queue) >= self.profile.max_queued:
            raise RunError(
                f"{len(self.queue)} runs are waiting already, the most allowed here: try again in a while."
            )
        if sum(other.owner == run.owner for other in self.queue) >= self.profile.max_queued_each:
            raise RunError(
                f"{self.profile.max_queued_each} of your runs are waiting already, the most for one person"
                " here: remove one, or wait."
            )
        if run.status != "queued":
            run.become("queued")
        self.queue.append(run)
        self.dispatch()

    def dispatch(self) -> None:
        """Gives free places to those who wait, first come, first served. Whom nobody watches any more leaves
        the queue first: they must not be started only to be paused.
        """
        for run in [run for run in self.queue if self.unwatched(run)]:
            self._leave_for_lease(run)
        while self.queue and not self.closed:
            free = self.workers.free()
            ready = [run for run in self.queue if self.admits(run) and (free or run.worker is not None)]
            if not ready:
                return  # until a place is free, or a process has ended
            run = ready[0]
            self.queue.remove(run)
            if run.worker is None:
                self.launch(run)
            else:
                run.go_on()
                run.worker.send(protocol.Resume())

    def admits(self, run: Run) -> bool:
        """Whether there is a place for a run. The second of a pair needs none of its own while the first
        trains: two that are to be compared are watched together, on one core if need be.
        """
        other = self.runs.get(run.beside) if run.beside else None
        together = other is not None and other.takes_a_place
        return self.taken() < self.profile.max_runs + (self.profile.max_beside if together else 0)

    def _shares(self, run: Run) -> bool:
        """Whether the other of its pair trains as well, or is about to be asked for."""
        other = self.runs.get(run.beside) if run.beside else None
        return run.beside is not None and (other is None or other.active)

    def taken(self) -> int:
        """Places in use."""
        return sum(run.takes_a_place for run in self.runs.values())

    def unwatched(self, run: Run) -> bool:
        """Whether nobody has looked for longer than a run goes on without."""
        return self.clock() - run.last_watched > self.profile.lease_seconds

    def launch(self, run: Run) -> None:
        """Gives a run a process, from the newest snapshot if there is one; a paused run's begins paused.
        Raises NoProcess when there are as many processes as may be.
        """
        for _ in range(2):  # the spare may have died a moment ago
            try:
                worker = self.workers.take()
            except NoProcess:
                raise
            except OSError as error:
                sentence = f"No process could be started for the training ({error.strerror or error})."
                self.end(run, "failed", sentence)
                return
            run.worker, worker.job = worker, Job(run.id, run.folder)
            run.begin()
            if worker.send(run.order(self.profile.threads(self._shares(run)))):
                return
            run.worker, worker.job = None, None
        self.end(
            run, "failed", "The process for the training ended before it could begin: start the run again."
        )

    # Pausing and going on -----------------------------------------------------------------------

    def hold(self, run: Run) -> None:
        """Pauses a run in whatever active state it is, until its owner resumes it."""
        self._leave(run)
        run.hold(self.clock())
        self._park()
        self.dispatch()

    def _leave(self, run: Run) -> None:
        if run in self.queue:
            self.queue.remove(run)
        if run.worker is not None and not run.idle:
            run.worker.send(protocol.Pause())

    def _leave_for_lease(self, run: Run) -> None:
        """Pauses a run until somebody looks."""
        self._leave(run)
        run.hold(self.clock(), UNWATCHED, by_lease=True)

    def go_on(self, run: Run) -> None:
        """Queues a paused run."""
        if run.parking:  # its process is on its way out; it queues when that is done
            run.become("queued")
        else:
            self.enqueue(run)

    def step(self, run: Run) -> None:
        """One step of a run, which is paused after it. Raises RunError when it has no process and none can be
        had now.
        """
        self.hold(run)
        if run.worker is None:
            try:
                self.launch(run)
            except NoProcess:
                raise RunError(
                    "All processes of this server are in use: try again when another run has ended."
                ) from None
            self._park(but=run)
        if run.worker is not None:
            run.worker.send(protocol.OneStep())

    def _park(self, but: Run | None = None) -> None:
        """Saves and ends the processes that have been paused longest, when too many are."""
        waiting = [run for run in self.runs.values() if run.idle and run.status == "paused"]
        waiting = [run for run in waiting if run.worker is not None and (run.stop_by is None or run.parking)]
        many = max(0, len(waiting) - self.profile.max_paused)
        for run in sorted(waiting, key=lambda run: run.paused_at)[:many]:
            if not run.parking and run is not but and run.worker is not None:
                run.park(self.clock() + STOP_GRACE)
                run.worker.send(protocol.Stop())

    def parked(self, run: Run, message: str) -> None:
        """The process of a paused run has ended. It queues where it was to go on meanwhile."""
        again = run.status == "queued"
        self.end(run, "paused", message, by_lease=run.by_lease)
        if again:
            try:
                self.enqueue(run)
            except RunError as error:  # it stays paused, and says why
                run.become("paused", str(error))

    # Ending -------------------------------------------------------------------------------------

    def stop(self, run: Run) -> None:
        """Ends a run after the current step, with a last look if it has a process."""
        if run in self.queue:
            self.queue.remove(run)
        if run.worker is None:
            run.become("stopped")
        else:
            run.stop(self.clock() + STOP_GRACE)
            run.worker.send(protocol.Stop())

    def end(
        self, run: Run, status: End | Literal["paused"], message: str = "", by_lease: bool = False
    ) -> None:
        """Frees a run's process and place."""
        if run in self.queue:
            self.queue.remove(run)
        worker = run.end(status, message, by_lease)
        if worker is not None:
            worker.retire()
        self.dispatch()

    def fail(self, run: Run, sentence: str) -> None:
        """Ends a run with what went wrong, and what is left of it."""
        kept = (
            " The curve so far is kept, and the training can be continued from its last snapshot (step"
            f" {run.newest:,})."
            if run.newest is not None
            else ""
        )
        self.end(run, "failed", sentence + (kept or (" The curve so far is kept." if run.step else "")))

    def forget(self, run: Run) -> None:
        """Ends a run's process and removes its files."""
        self.runs.pop(run.id, None)
        if run in self.queue:
            self.queue.remove(run)
        worker, run.worker = run.worker, None
        if worker is not None:
            worker.kill()
        self.store.remove(run.folder)

    # Housekeeping -------------------------------------------------------------------------------

    def tick(self) -> None:
        """One round of housekeeping: leases, late stops, memory, forgetting, the spare."""
        with self.lock:
            if self.closed:
                return
            for run in list(self.runs.values()):
                self._look_after(run)
            self._park()
            owners = {run.owner for run in self.runs.values()}
            self.seen = {owner: when for owner, when in self.seen.items() if owner in owners}
            self.dispatch()
            idle = self.taken() == 0
        self.workers.trim()
        self.workers.keep_spare(idle)

    def _look_after(self, run: Run) -> None:
        now = self.clock()
        if run.stop_by is not None:
            if now > run.stop_by:
                self._lose_patience(run)
        elif run.status in ("queued", "starting", "running"):
            if self.unwatched(run):
                self._leave_for_lease(run)
        else:
            heard = max(run.last_watched, self.seen.get(run.owner, -math.inf))
            if now - heard > self.profile.forget_seconds:
                self.forget(run)
        self._check_memory(run)

    def _lose_patience(self, run: Run) -> None:
        """Its process was asked to end, and has not."""
        if run.worker is not None:
            run.worker.kill()
        if run.parking:
            self.parked(run, NOT_SAVED)
        else:
            self.end(run, "stopped", "The training did not stop in time, and its process was ended.")

    def _check_memory(self, run: Run) -> None:
        limit = self.profile.max_worker_bytes
        if limit and run.worker is not None and (used := run.worker.resident_bytes()) > limit:
            worker = run.worker
            sentence = (
                f"The training used {used / GB:.1f} GB of memory; {limit / GB:.1f} GB are allowed here."
            )
            self.fail(run, f"{sentence} A smaller batch, context or model needs less.")
            worker.kill()

    # What the workers say -----------------------------------------------------------------------

    def _on_message(self, worker: Worker, message: protocol.Message) -> None:
        with self.lock:
            if isinstance(message, protocol.Ready):
                worker.ready = True
            run = self.runs.get(worker.job.run) if worker.job is not None else None
            if run is not None and run.worker is worker and not self.closed:
                self._hear(run, message)

    def _hear(self, run: Run, message: protocol.Message) -> None:
        match message:
            case protocol.Started(precision):
                run.precision = precision
                if run.status == "starting":
                    run.become("running")
                run.changed()
            case protocol.Records(items):
                for record in items:
                    self._take_in(run, record)
            case protocol.Kept(step, path) if step < (run.newest or 0) and step not in run.snapshots:
                Path(path).unlink(missing_ok=True)  # made smaller while it was being thinned out here
            case protocol.Kept(step, path, size):
                run.snapshots[step] = Saved(Path(path), size)
                budgets.fit(run, self.profile.snapshot_bytes)
                budgets.fit_all(self.runs, self.profile.snapshot_bytes_total, self.forget)
            case protocol.Warned(text):
                run.warn(text)
            case protocol.Failed(text):
                self.fail(run, text)

    def _take_in(self, run: Run, record: Record) -> None:
        match record:
            case Done():
                self._done(run, record)
            case Step() | Evaluation() | Sample():
                run.history.add(record)
                if isinstance(record, Step):
                    run.step, run.seconds = record.step, record.seconds
                run.changed()

    def _done(self, run: Run, done: Done) -> None:
        run.step, run.seconds = done.step, done.seconds
        if done.reason == "diverged":
            self.fail(run, done.message[:1].upper() + done.message[1:] + ".")
        elif run.parking and done.reason == "stopped":
            self.parked(run, run.message)
        else:
            self.end(run, done.reason)

    def _on_exit(self, worker: Worker, code: int) -> None:
        self.workers.ended(worker)
        with self.lock:
            if self.closed:
                return
            if worker.job is not None:
                self._lost(worker, worker.job, code)
            self.dispatch()  # somebody may have waited for a process to end

    def _lost(self, worker: Worker, job: Job, code: int) -> None:
        """What is left of a process that has ended is cleared away, and the run that it still had fails."""
        run = self.runs.get(job.run)
        if run is None:  # removed while it was writing
            self.store.remove(job.folder)
        elif run.worker is None or run.worker is worker:
            clear_partial(job.folder)
        if run is not None and run.worker is worker:
            self.fail(run, describe_exit(code, worker.last_words()))
