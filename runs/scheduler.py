"""The runs that are kept, and which of them train in which process: leases, the queue, slots, pauses, ends,
and what the workers report.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, ValuesView
from pathlib import Path
from typing import Literal

from engine.errors import RunError
from engine.training.records import Done
from runs import admission, protocol
from runs.processes import Job, NoProcess, Seat, Worker, Workers, describe_exit
from runs.profiles import GB, Profile
from runs.repeater import Repeater
from runs.snapshots import Saved, Store, clear_partial, thinned
from runs.state import End, Process, Run, Standing
from runs.transport import Opener

TICK = 0.25  # seconds between rounds of housekeeping
STOP_GRACE = 30.0  # seconds that a worker has for its last look before it is ended by force
MAX_MOVES = 5  # of one run: a training that stops every process that it gets must not go on
# Why a run is as it is, where nobody decided that
UNWATCHED = "Paused because nobody was watching. It resumes by itself as soon as somebody looks."
FROZEN = "The training process stopped responding and was ended."
LATE = "The training did not stop in time, so its process was ended."
REPLACED = "At step {step:,} its process stopped responding; another one continued from step {newest:,}."
MOVED = "At step {step:,} its machine was lost; it continued from step {newest:,} on another one."
NOT_SAVED = "It could not be saved in time, so it continues from its last snapshot."


class Scheduler:
    """All runs of a server, and their processes. `lock` is held by callers who read or change a run; `tick`,
    `standing` and the two callbacks take it.
    """

    def __init__(
        self, profile: Profile, folder: Path | None, clock: Callable[[], float], spare: bool, opener: Opener
    ) -> None:
        """Makes a new folder in `folder` for files. Raises RunError when none can be made."""
        self.profile, self.clock = profile, clock
        self.lock = threading.RLock()
        self.store = Store(folder)
        self.closed = False
        self.queue: list[Run] = []
        self._runs: dict[str, Run] = {}
        self._heard: dict[str, float] = {}  # owner -> when last heard of
        size = profile.threads_per_run, profile.max_workers
        self.workers = Workers(*size, spare, self._on_message, self._on_exit, opener)
        self.workers.keep_spare(idle=True)
        self._housekeeping = Repeater(self.tick, TICK)

    def shutter(self) -> Callable[[], None]:
        """Returns a function that ends and removes everything, and does not keep the scheduler alive."""
        housekeeping, workers, store = self._housekeeping, self.workers, self.store

        def shut() -> None:
            housekeeping.stop()  # nothing starts any more
            workers.close()
            housekeeping.join()
            workers.close()  # a spare that was just being started
            store.close()

        return shut

    # The runs that are kept ---------------------------------------------------------------------

    @property
    def runs(self) -> ValuesView[Run]:
        """The runs as they are now, the oldest first. To remove some on the way, go through a copy."""
        return self._runs.values()

    def get(self, run_id: str | None) -> Run | None:
        return self._runs.get(run_id) if run_id is not None else None

    def race(self, race_id: str | None) -> list[Run]:
        """Returns the runs of a race, in order; none for what is no race."""
        return [run for run in self.runs if race_id is not None and run.race == race_id]

    def add(self, run: Run) -> None:
        self._runs[run.id] = run
        self.hear(run.owner)

    def forget(self, run: Run) -> None:
        """Removes a run with its process and its files."""
        self._unqueue(run)
        seat, run.seat = run.seat, None
        if seat is not None and not self._vacated(seat):
            seat.worker.kill()
        self._runs.pop(run.id, None)
        self.store.remove(run.folder)

    def hear(self, owner: str) -> float:
        """Notes a sign of life of an owner. Returns the time."""
        self._heard[owner] = now = self.clock()
        return now

    def _unwatched(self, run: Run) -> bool:
        """True if nobody has watched for longer than a run goes on without."""
        return self.clock() - run.last_watched > self.profile.lease_seconds

    def _abandoned(self, run: Run) -> bool:
        """True if neither the run nor its owner was heard of for so long that it is forgotten."""
        last = max(run.last_watched, self._heard.get(run.owner, -math.inf))
        return self.clock() - last > self.profile.forget_seconds

    # Slots --------------------------------------------------------------------------------------

    def queue_position(self, run: Run) -> int:
        """Returns the position in the queue, in which a race waits as one: 1 is next, 0 is not queued."""
        if run.status != "queued":
            return 0
        parties = self._waiting()
        return parties.index(run.party) + 1 if run.party in parties else len(parties) + 1

    def _waiting(self) -> list[str]:
        return list(dict.fromkeys(run.party for run in self.queue))

    def _seated(self, worker: Worker) -> list[Run]:
        return [run for run in self.runs if run.seat is not None and run.seat.worker is worker]

    def _taken(self) -> int:
        """The slots in use: one for each process that trains."""
        return len({run.seat.worker for run in self.runs if run.seat and run.occupies_slot})

    def _listening(self, runs: list[Run]) -> list[tuple[Run, Worker]]:
        return [(run, run.seat.worker) for run in runs if run.seat and run.seat.worker.listens()]

    def _admits(self, run: Run) -> bool:
        """True if there is a slot for a run, or it needs none: beside a mate of its race that trains, for it
        takes turns there, and beside the run it is compared with.
        """
        mates = self.race(run.race) if run.seat is None else self._seated(run.seat.worker)
        if any(mate.trains for mate, _ in self._listening(mates) if mate is not run):
            return True
        other = self.get(run.beside)
        together = other is not None and other.occupies_slot
        return self._taken() < self.profile.max_runs + (self.profile.max_beside if together else 0)

    def threads(self, run: Run) -> int:
        """Returns a run's threads: fewer beside the run it is compared with, or in a spread race."""
        shares = self.profile.race_workers > 1
        if run.race is None:
            other = self.get(run.beside)
            shares = run.beside is not None and (other is None or other.active)
        return self.profile.threads(shares)

    def _process_of(self, run: Run, free: bool) -> Worker | None:
        """The process of a run's race that it joins: the emptiest of those that train, else of those that
        wait. None where there is none, or the race may have one more, and one is `free`, and a slot.
        """
        mates = self._listening(self.race(run.race))
        workers = Counter(worker for _, worker in mates)
        room = free and self._taken() < self.profile.max_runs
        if not workers or (len(workers) < self.profile.race_workers and room):
            return None
        training = [worker for mate, worker in mates if mate.trains]
        return min(training or workers, key=lambda worker: workers[worker])

    # Waiting and training -----------------------------------------------------------------------

    def enqueue(self, run: Run) -> None:
        """Raises RunError when too many wait already."""
        admission.check_queue(self.profile, self.queue, run)
        if run.status != "queued":
            run.become("queued")
        self.queue.append(run)
        self.dispatch()

    def _unqueue(self, run: Run) -> None:
        if run in self.queue:
            self.queue.remove(run)

    def dispatch(self) -> None:
        """Gives free slots to those who wait, in order. The unwatched are paused first, not started."""
        for run in [run for run in self.queue if self._unwatched(run)]:
            self._leave_for_lease(run)
        while self.queue and not self.closed:
            free = self.workers.free()
            able = [run for run in self.queue if free or run.seat is not None or self._process_of(run, free)]
            if not (ready := list(filter(self._admits, able))):
                return  # until a slot is free, or a process has ended
            run = ready[0]
            self.queue.remove(run)
            if run.seat is None:
                self.launch(run)
            else:
                run.go_on()
                run.seat.send(protocol.Resume())

    def launch(self, run: Run) -> None:
        """Gives a run a process, from the newest snapshot if there is one; a paused run's begins paused. The
        runs of a race share one. Raises NoProcess when there are as many processes as may be.
        """
        joined = self._process_of(run, self.workers.free())
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
            if run.seat.send(run.order(self.threads(run))):
                return
            run.seat = None
            if joined is not None:  # the race's process is gone, as those in it will hear
                break
        sentence = "The training process ended before the run could begin. Start the run again."
        run.lost = joined is not None
        self.end(run, "failed", sentence)

    # Pausing and going on -----------------------------------------------------------------------

    def hold(self, run: Run) -> None:
        """Pauses a run in whatever active state it is, until its owner resumes it."""
        self._leave(run)
        run.hold(self.clock())
        self._park()
        self.dispatch()

    def _leave(self, run: Run) -> None:
        self._unqueue(run)
        if run.seat is not None and not run.idle:
            run.seat.send(protocol.Pause())

    def _leave_for_lease(self, run: Run) -> None:
        """Pauses a run until somebody looks."""
        self._leave(run)
        run.hold(self.clock(), UNWATCHED, by_lease=True)

    def go_on(self, run: Run) -> None:
        if run.parking:  # its process is on its way out; it queues when that is done
            run.become("queued")
        else:
            self.enqueue(run)

    def step(self, run: Run) -> None:
        """Does one step of a run, then pauses it. Raises RunError when no process can be had for it."""
        self.hold(run)
        if run.seat is None:
            try:
                self.launch(run)
            except NoProcess:
                raise RunError(
                    "All processes of this server are busy. Try again when another run has ended."
                ) from None
            self._park(but=run)
        if run.seat is not None:
            run.due = max(run.due, run.step) + 1  # until then its process is not ended for being idle
            run.seat.send(protocol.SingleStep())

    def _park(self, but: Run | None = None) -> None:
        """Saves and ends the processes that have been paused longest, when too many are."""
        processes = {run.seat.worker: self._seated(run.seat.worker) for run in self.runs if run.seat}
        waiting = [runs for runs in processes.values() if all(run.waits for run in runs)]
        many = max(0, len(waiting) - self.profile.max_paused)
        for runs in sorted(waiting, key=lambda runs: max(run.paused_at for run in runs))[:many]:
            if but in runs:
                continue
            for run in runs:
                if not run.parking and run.seat is not None:
                    run.park(self.clock() + STOP_GRACE * len(runs))
                    run.seat.send(protocol.Stop())

    def _vacate(self, run: Run, message: str) -> None:
        """Takes the process of a run away that is lost, or has ended for being idle. A run that is to train
        queues for another one; it stays paused where that cannot be, and says why.
        """
        wanted = run.status != "paused"
        self.end(run, "paused", message, by_lease=run.by_lease)
        if wanted:
            try:
                self.enqueue(run)
            except RunError as error:
                run.become("paused", str(error))

    # Ending -------------------------------------------------------------------------------------

    def stop(self, run: Run) -> None:
        """Ends a run after the current step, with a last look if it has a process."""
        self._unqueue(run)
        if run.seat is None:
            run.become("stopped")
        else:
            # those of its process that were stopped before it take their last looks first
            ahead = sum(other.stopping for other in self._seated(run.seat.worker))
            run.stop(self.clock() + STOP_GRACE * (1 + ahead))
            run.seat.send(protocol.Stop())

    def end(
        self, run: Run, status: End | Literal["paused"], message: str = "", by_lease: bool = False
    ) -> None:
        self._unqueue(run)
        seat = run.end(status, message, by_lease)
        if seat is not None and not self._vacated(seat):
            seat.worker.retire()
        self.dispatch()

    def _vacated(self, seat: Seat) -> bool:
        """Tells a process that a training of it is over; False where it was the last."""
        return bool(self._seated(seat.worker)) and seat.send(protocol.Leave())

    def fail(self, run: Run, sentence: str, lost: bool = False) -> None:
        """Ends a run with what went wrong and what is left; `lost`: its process did, not the training."""
        kept = (
            " The curve so far is kept, and the training can be continued from its last snapshot (step"
            f" {run.newest:,})."
            if run.newest is not None
            else ""
        )
        run.lost = lost
        self.end(run, "failed", sentence + (kept or (" The curve so far is kept." if run.step else "")))

    # Housekeeping -------------------------------------------------------------------------------

    def tick(self) -> None:
        """Does one round of housekeeping: leases, late stops, memory, forgetting, the spare."""
        with self.lock:
            if self.closed:
                return
            for run in list(self.runs):
                self._look_after(run)
            self._park()
            owners = {run.owner for run in self.runs}
            self._heard = {owner: when for owner, when in self._heard.items() if owner in owners}
            self.dispatch()
            idle = self._taken() == 0
        self.workers.silent()  # `_on_exit` hears of those
        for worker in self.workers.alive():
            worker.transport.trim_errors()
        self.workers.keep_spare(idle)

    def _look_after(self, run: Run) -> None:
        if run.stop_by is not None:
            if self.clock() > run.stop_by:
                self._lose_patience(run)
        elif run.status in ("queued", "starting", "running"):
            if self._unwatched(run):
                self._leave_for_lease(run)
        elif self._abandoned(run):
            self.forget(run)
        self._check_memory(run)

    def _lose_patience(self, run: Run) -> None:
        """Its process was asked to end, and has not."""
        mates = []
        if run.seat is not None:
            mates = [mate for mate in self._seated(run.seat.worker) if mate is not run]
            run.seat.worker.kill()
        if run.parking:
            self._vacate(run, NOT_SAVED)
        else:
            self.end(run, "stopped", LATE)
        for mate in mates:
            if mate.parking:
                self._vacate(mate, NOT_SAVED)
            elif mate.seat is not None:
                self.fail(mate, FROZEN, lost=True)

    def _check_memory(self, run: Run) -> None:
        limit = self.profile.max_worker_bytes
        if limit and run.seat is not None and (used := run.seat.worker.transport.resident_bytes()) > limit:
            worker = run.seat.worker
            runs = self._seated(worker)
            what = "The run" if len(runs) == 1 else f"The {len(runs)} runs of this race together"
            sentence = f"{what} used {used / GB:.1f} GB of memory; {limit / GB:.1f} GB are allowed here."
            for each in runs:
                self.fail(each, f"{sentence} A smaller batch, context or model needs less.")
            worker.kill()

    def standing(self) -> Standing:
        """Counts everything there is; processes' memory is read outside of the lock."""
        with self.lock:
            runs, queued = list(self.runs), len(self._waiting())
            kept = sum(_snapshot_bytes(run) for run in runs)
            statuses, steps = tuple(run.status for run in runs), sum(run.step for run in runs)
        return Standing(statuses, queued, tuple(self.processes()), kept, steps)

    def processes(self) -> list[Process]:
        return [
            Process(w.pid, tuple(job.run for job in w.jobs), w.ready, w.transport.resident_bytes())
            for w in self.workers.alive()
        ]

    # What the workers report -----------------------------------------------------------------------

    def _on_message(self, worker: Worker, entrant: int, message: protocol.Message) -> None:
        with self.lock:
            if isinstance(message, protocol.Ready):
                worker.ready = True
            run = self.get(worker.jobs[entrant].run) if 0 <= entrant < len(worker.jobs) else None
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
                _thin(run, self.profile.snapshot_bytes)
                self._thin_all()
            case protocol.Warned(text):
                run.warn(text)
            case protocol.Failed(text):
                self.fail(run, text)

    def _thin_all(self) -> None:
        """Keeps within the budget of all: thins the largest runs, then forgets ended ones, the longest
        unwatched first.
        """
        while sum(map(_size, self.runs)) > self.profile.snapshot_bytes_total:
            several = [run for run in self.runs if len(run.snapshots) > 1]
            ended = [run for run in self.runs if _size(run) and not run.active]
            if several:
                largest = max(several, key=_snapshot_bytes)
                _thin(largest, _snapshot_bytes(largest) // 2)
            elif ended:
                self.forget(min(ended, key=lambda run: run.last_watched))
            else:
                return

    def _done(self, run: Run, done: Done) -> None:
        run.step, run.seconds = done.step, done.seconds
        if done.reason == "diverged":
            self.fail(run, done.message[:1].upper() + done.message[1:] + ".")
        elif run.parking and done.reason == "stopped":
            self._vacate(run, run.message)
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
        """Clears up after a process that has ended. A run that it still had goes on in another one, from its
        last snapshot, where the process was lost and not the training; else it fails.
        """
        run = self.get(job.run)
        if run is None:  # removed while it was writing
            self.store.remove(job.folder)
        elif run.seat is None or run.seat.worker is seat.worker:
            clear_partial(job.folder)
        if run is not None and run.seat == seat:
            worker = seat.worker
            if not worker.frozen and not worker.transport.vanished:
                self.fail(run, describe_exit(code, worker.transport.last_error_line()), lost=True)
            elif run.stopping:
                self.end(run, "stopped", LATE)
            elif run.moves < MAX_MOVES:
                run.moves += 1
                why = MOVED if worker.transport.vanished else REPLACED
                run.warn(why.format(step=run.step, newest=run.newest or 0))
                self._vacate(run, run.message)
            else:
                self.fail(run, FROZEN, lost=True)


def _thin(run: Run, budget: int) -> None:
    """Thins a run's snapshots until they fit into a budget of bytes."""
    keep = set(thinned({step: saved.size for step, saved in run.snapshots.items()}, budget))
    for step in run.snapshots.keys() - keep:
        run.snapshots.pop(step).path.unlink(missing_ok=True)
    run.changed()


def _size(run: Run) -> int:
    """Returns the bytes that a run keeps on disk: its snapshots, and the text that somebody gave it."""
    return _snapshot_bytes(run) + run.text_bytes


def _snapshot_bytes(run: Run) -> int:
    return sum(saved.size for saved in run.snapshots.values())
