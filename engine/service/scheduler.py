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
from engine.service import (
    admission,
    budgets,
    protocol,
    slots,
)
from engine.service.housekeeping import Housekeeping, shut
from engine.service.processes import Job, NoProcess, Seat, Worker, Workers, describe_exit
from engine.service.profiles import GB, Profile
from engine.service.snapshots import Saved, Store, clear_partial
from engine.service.state import End, Run
from engine.service.status_messages import (
    FROZEN,
    LATE,
    MOVED,
    NOT_SAVED,
    REPLACED,
    UNWATCHED,
)
from engine.service.transport import Opener
from engine.training.records import Done

STOP_GRACE = 30.0  # seconds that a worker has for its last look before it is ended by force
MAX_MOVES = 5  # of one run: a training that stops every process that it gets must not go on


class Scheduler:
    """The runs and their processes. Its methods are called with `lock` held; `tick` and the workers' two
    callbacks take it themselves.
    """

    def __init__(
        self, profile: Profile, folder: Path | None, clock: Callable[[], float], spare: bool, opener: Opener
    ) -> None:
        self.profile, self.clock = profile, clock
        self.lock = threading.RLock()
        self.runs: dict[str, Run] = {}
        self.queue: list[Run] = []
        self.seen: dict[str, float] = {}  # owner -> when last heard of
        self.closed = False
        self.store = Store(folder)
        size = profile.threads_per_run, profile.max_workers
        self.workers = Workers(*size, spare, self._on_message, self._on_exit, opener)
        self.workers.keep_spare(idle=True)
        self._housekeeping = Housekeeping(self.tick)

    def shutter(self) -> Callable[[], None]:
        """Returns a function that ends every process and thread and removes every file. It does not know the
        scheduler, which may be gone by then.
        """
        housekeeping, workers, store = self._housekeeping, self.workers, self.store
        return lambda: shut(housekeeping, workers, store)

    # Waiting and training -----------------------------------------------------------------------

    def enqueue(self, run: Run) -> None:
        """Raises RunError when too many wait already."""
        admission.check_queue(self.profile, self.queue, run)
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
            able = [run for run in self.queue if free or run.seat is not None or self._process_of(run)]
            if not (ready := [run for run in able if slots.admits(self.runs, self.profile, run)]):
                return  # until a place is free, or a process has ended
            run = ready[0]
            self.queue.remove(run)
            if run.seat is None:
                self.launch(run)
            else:
                run.go_on()
                run.seat.send(protocol.Resume())

    def unwatched(self, run: Run) -> bool:
        """True if nobody has watched for longer than a run goes on without."""
        return self.clock() - run.last_watched > self.profile.lease_seconds

    def launch(self, run: Run) -> None:
        """Gives a run a process, from the newest snapshot if there is one; a paused run's begins paused. The
        runs of a race share one. Raises NoProcess when there are as many processes as may be.
        """
        joined = self._process_of(run)
        for again in (False, True):  # the spare may have died a moment ago
            try:
                worker = joined or self.workers.take()
            except OSError as error:
                if isinstance(error, NoProcess) and not again:
                    raise
                sentence = f"No process could be started for the training ({error.strerror or error})."
                self.end(run, "failed", sentence)
                return
            run.seat = Seat(worker, len(worker.jobs))
            worker.jobs.append(Job(run.id, run.folder))
            run.begin()
            if run.seat.send(run.order(self.profile.threads(slots.shares(self.runs, self.profile, run)))):
                return
            run.seat = None
            if joined is not None:  # the race's process is gone, as those in it will hear
                break
        sentence = "The process for the training ended before it could begin: start the run again."
        run.lost = joined is not None
        self.end(run, "failed", sentence)

    def _process_of(self, run: Run) -> Worker | None:
        """Returns its race's process, where it is to take turns."""
        return slots.process_of(self.runs, self.profile, run, self.workers.free())

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
        if run.seat is not None and not run.idle:
            run.seat.send(protocol.Pause())

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
        """Does one step of a run, which is paused after it. Raises RunError when it has no process and none
        can be had now.
        """
        self.hold(run)
        if run.seat is None:
            try:
                self.launch(run)
            except NoProcess:
                raise RunError(
                    "All processes of this server are in use: try again when another run has ended."
                ) from None
            self._park(but=run)
        if run.seat is not None:
            run.due = max(run.due, run.step) + 1  # until then its process is not ended for being idle
            run.seat.send(protocol.SingleStep())

    def _park(self, but: Run | None = None) -> None:
        """Saves and ends the processes that have been paused longest, when too many are."""
        processes = {
            run.seat.worker: slots.seated(self.runs, run.seat.worker)
            for run in self.runs.values()
            if run.seat
        }
        waiting = [runs for runs in processes.values() if all(run.waits for run in runs)]
        many = max(0, len(waiting) - self.profile.max_paused)
        for runs in sorted(waiting, key=lambda runs: max(run.paused_at for run in runs))[:many]:
            if but in runs:
                continue
            for run in runs:
                if not run.parking and run.seat is not None:
                    run.park(self.clock() + STOP_GRACE * len(runs))
                    run.seat.send(protocol.Stop())

    def parked(self, run: Run, message: str) -> None:
        """Queues a paused run whose process has ended, where it was to go on meanwhile."""
        again = run.status == "queued"
        self.end(run, "paused", message, by_lease=run.by_lease)
        if again:
            self._enqueue_again(run)

    def _enqueue_again(self, run: Run) -> None:
        try:
            self.enqueue(run)
        except RunError as error:  # it stays paused, and says why
            run.become("paused", str(error))

    # Ending -------------------------------------------------------------------------------------

    def stop(self, run: Run) -> None:
        """Ends a run after the current step, with a last look if it has a process."""
        if run in self.queue:
            self.queue.remove(run)
        if run.seat is None:
            run.become("stopped")
        else:
            # those of its process that were stopped before it take their last looks first
            ahead = sum(other.stopping for other in slots.seated(self.runs, run.seat.worker))
            run.stop(self.clock() + STOP_GRACE * (1 + ahead))
            run.seat.send(protocol.Stop())

    def end(
        self, run: Run, status: End | Literal["paused"], message: str = "", by_lease: bool = False
    ) -> None:
        """Frees a run's process and place."""
        if run in self.queue:
            self.queue.remove(run)
        seat = run.end(status, message, by_lease)
        if seat is not None and not self._vacated(seat):
            seat.worker.retire()
        self.dispatch()

    def _vacated(self, seat: Seat) -> bool:
        """Tells a process that one of its trainings is over. False where it was the last, and the process
        has nothing to do any more.
        """
        return bool(slots.seated(self.runs, seat.worker)) and seat.send(protocol.Leave())

    def fail(self, run: Run, sentence: str, lost: bool = False) -> None:
        """Ends a run with what went wrong, and what is left of it. `lost`: the process did, not the
        training.
        """
        kept = (
            " The curve so far is kept, and the training can be continued from its last snapshot (step"
            f" {run.newest:,})."
            if run.newest is not None
            else ""
        )
        run.lost = lost
        self.end(run, "failed", sentence + (kept or (" The curve so far is kept." if run.step else "")))

    def forget(self, run: Run) -> None:
        """Ends a run's process and removes its files."""
        self.runs.pop(run.id, None)
        if run in self.queue:
            self.queue.remove(run)
        seat, run.seat = run.seat, None
        if seat is not None and not self._vacated(seat):
            seat.worker.kill()
        self.store.remove(run.folder)

    # Housekeeping -------------------------------------------------------------------------------

    def tick(self) -> None:
        """Does one round of housekeeping: leases, late stops, memory, forgetting, the spare."""
        with self.lock:
            if self.closed:
                return
            for run in list(self.runs.values()):
                self._look_after(run)
            self._park()
            owners = {run.owner for run in self.runs.values()}
            self.seen = {owner: when for owner, when in self.seen.items() if owner in owners}
            self.dispatch()
            idle = slots.taken(self.runs) == 0
        self.workers.silent()  # `_on_exit` hears of those
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
        mates = (
            []
            if run.seat is None
            else [mate for mate in slots.seated(self.runs, run.seat.worker) if mate is not run]
        )
        if run.seat is not None:
            run.seat.worker.kill()
        if run.parking:
            self.parked(run, NOT_SAVED)
        else:
            self.end(run, "stopped", LATE)
        for mate in mates:
            if mate.parking:
                self.parked(mate, NOT_SAVED)
            elif mate.seat is not None:
                self.fail(mate, FROZEN, lost=True)

    def _check_memory(self, run: Run) -> None:
        limit = self.profile.max_worker_bytes
        if limit and run.seat is not None and (used := run.seat.worker.resident_bytes()) > limit:
            worker = run.seat.worker
            runs = slots.seated(self.runs, worker)
            what = "The training" if len(runs) == 1 else f"The {len(runs)} trainings of this race together"
            sentence = f"{what} used {used / GB:.1f} GB of memory; {limit / GB:.1f} GB are allowed here."
            for each in runs:
                self.fail(each, f"{sentence} A smaller batch, context or model needs less.")
            worker.kill()

    # What the workers say -----------------------------------------------------------------------

    def _on_message(self, worker: Worker, entrant: int, message: protocol.Message) -> None:
        with self.lock:
            if isinstance(message, protocol.Ready):
                worker.ready = True
            run = self.runs.get(worker.jobs[entrant].run) if 0 <= entrant < len(worker.jobs) else None
            # what a training says that nobody waits for any more, or that has another process now, is late
            if run is not None and run.seat == Seat(worker, entrant) and not self.closed:
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
                    if isinstance(record, Done):
                        self._done(run, record)
                    else:
                        run.take_in(record)
            case protocol.SnapshotSaved(step, path) if step < (run.newest or 0) and step not in run.snapshots:
                Path(path).unlink(missing_ok=True)  # made smaller while it was being thinned out here
            case protocol.SnapshotSaved(step, path, size):
                run.snapshots[step] = Saved(Path(path), size)
                budgets.fit(run, self.profile.snapshot_bytes)
                budgets.fit_all(self.runs, self.profile.snapshot_bytes_total, self.forget)
            case protocol.Warned(text):
                run.warn(text)
            case protocol.Failed(text):
                self.fail(run, text)

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
            for entrant, job in enumerate(worker.jobs):
                self._lost(Seat(worker, entrant), job, code)
            self.dispatch()  # somebody may have waited for a process to end

    def _lost(self, seat: Seat, job: Job, code: int) -> None:
        """Clears up after a process that has ended, and fails a run that it still had."""
        run = self.runs.get(job.run)
        if run is None:  # removed while it was writing
            self.store.remove(job.folder)
        elif run.seat is None or run.seat.worker is seat.worker:
            clear_partial(job.folder)
        if run is not None and run.seat == seat:
            worker = seat.worker
            if not worker.frozen and not worker.vanished:
                self.fail(run, describe_exit(code, worker.last_words()), lost=True)
            elif run.stopping:
                self.end(run, "stopped", LATE)
            elif run.moves < MAX_MOVES:
                self._move(run, MOVED if worker.vanished else REPLACED)
            else:
                self.fail(run, FROZEN, lost=True)

    def _move(self, run: Run, why: str) -> None:
        """Its process is lost and its training is not: it goes on in another one, from its last snapshot, or
        waits for that where it is paused.
        """
        wanted = run.status != "paused"
        run.moves += 1
        run.warn(why.format(step=run.step, newest=run.newest or 0))
        self.end(run, "paused", run.message, by_lease=run.by_lease)
        if wanted:
            self._enqueue_again(run)
