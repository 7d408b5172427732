"""Inside the run service: who trains, who waits, what the workers say, and what is cleaned up."""

from __future__ import annotations

import logging
import math
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.errors import RunError
from engine.service.processes import Worker, Workers, describe_exit
from engine.service.profiles import GB, Profile
from engine.service.protocol import decode
from engine.service.snapshots import Saved, Store, clear_partial, thinned
from engine.service.state import Run, Status
from engine.training.records import Done, Step

LOG = logging.getLogger(__name__)
TICK = 0.25  # seconds between rounds of housekeeping
STOP_GRACE = 30.0  # seconds that a worker has for its last look before it is ended by force
UNWATCHED = "Paused because nobody was watching. It goes on by itself as soon as somebody looks."


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
        self.workers = Workers(profile.threads_per_run, spare, self._on_message, self._on_exit)
        self.workers.keep_spare(idle=True)
        self._stop = threading.Event()
        self._keeper = threading.Thread(
            target=_keep_house, args=(weakref.ref(self), self._stop), name="runs-housekeeping", daemon=True
        )
        self._keeper.start()

    def shutter(self) -> Callable[[], None]:
        """What ends every process and thread and removes every file. It does not know the scheduler, which
        may be gone by then.
        """
        stop, keeper, workers, store = self._stop, self._keeper, self.workers, self.store
        return lambda: _shut(stop, keeper, workers, store)

    def write_text(self, run: Run) -> None:
        if run.spec.text is not None:
            run.text_file = run.folder / "text.txt"
            try:
                run.text_file.write_bytes(run.spec.text.encode("utf-8", "surrogatepass"))
            except OSError as error:
                raise RunError(
                    f"The text could not be stored for the training ({error.strerror or error}): free some"
                    " disk space."
                ) from error

    def place(self, run: Run) -> int:
        if run.status != "queued":
            return 0
        return self.queue.index(run) + 1 if run in self.queue else len(self.queue) + 1

    def _taken(self) -> int:
        return sum(run.worker is not None and not run.idle for run in self.runs.values())

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
        run.change(status="queued", message="", by_lease=False)
        self.queue.append(run)
        self.dispatch()

    def dispatch(self) -> None:
        """Gives free places to those who wait, first come, first served."""
        while self.queue and not self.closed and self._taken() < self.profile.max_runs:
            run = self.queue.pop(0)
            if run.worker is None:
                self.launch(run)
            else:
                run.change(status="running", idle=False)
                run.worker.send("resume")

    def launch(self, run: Run) -> None:
        """Gives a run a process, from the newest snapshot if there is one; a paused run's begins paused."""
        run.history.truncate(-1 if run.newest is None else run.newest)
        run.change(
            status="paused" if run.status == "paused" else "starting",
            idle=run.status == "paused",
            step=run.newest or 0,
        )
        for _ in range(2):  # the spare may have died a moment ago
            try:
                run.worker = self.workers.take()
            except OSError as error:
                self._end(
                    run,
                    "failed",
                    f"No process could be started for the training ({error.strerror or error}).",
                )
                return
            run.worker.run = run
            if run.worker.send("train", **run.order()):
                return
            run.worker.run = None
        self._end(
            run, "failed", "The process for the training ended before it could begin: start the run again."
        )

    def hold(self, run: Run, by_lease: bool) -> None:
        """Pauses a run in whatever active state it is."""
        if run in self.queue:
            self.queue.remove(run)
        if run.worker is not None and not run.idle:
            run.worker.send("pause")
        run.change(
            status="paused",
            idle=run.worker is not None,
            by_lease=by_lease,
            message=UNWATCHED if by_lease else "",
            paused_at=self.clock(),
        )
        self._park()
        self.dispatch()

    def go_on(self, run: Run) -> None:
        if run.parking:  # its process is on its way out; it queues when that is done
            run.change(status="queued", message="", by_lease=False)
        else:
            self.enqueue(run)

    def _park(self) -> None:
        """Saves and ends the processes that have been paused longest, when too many are."""
        waiting = [
            run
            for run in self.runs.values()
            if run.status == "paused" and run.worker is not None and run.stop_by is None
        ]
        for run in sorted(waiting, key=lambda run: run.paused_at)[
            : max(0, len(waiting) - self.profile.max_paused)
        ]:
            if not run.parking and run.worker is not None:
                run.change(parking=True)
                run.worker.send("stop")

    def _end(self, run: Run, status: Status, message: str = "") -> None:
        """Frees a run's process and place."""
        worker, run.worker = run.worker, None
        if worker is not None:
            worker.retire()
        run.change(status=status, message=message, idle=False, parking=False, by_lease=False, stop_by=None)
        self.dispatch()

    def _fail(self, run: Run, sentence: str) -> None:
        kept = (
            " The curve so far is kept, and the training can be continued from its last snapshot (step"
            f" {run.newest:,})."
            if run.newest is not None
            else ""
        )
        self._end(run, "failed", sentence + (kept or (" The curve so far is kept." if run.step else "")))

    def forget(self, run: Run) -> None:
        self.runs.pop(run.id, None)
        if run in self.queue:
            self.queue.remove(run)
        worker, run.worker = run.worker, None
        if worker is not None:
            worker.kill()
        self.store.remove(run.folder)

    def _on_message(self, worker: Worker, message: dict[str, Any]) -> None:
        with self.lock:
            run: Run | None = worker.run
            if message["kind"] == "ready":
                worker.ready = True
            if run is None or run.worker is not worker or self.closed:
                return
            match message["kind"]:
                case "started":
                    run.change(
                        precision=message["precision"],
                        status="running" if run.status == "starting" else run.status,
                    )
                case "records":
                    for values in message["items"]:
                        self._take_in(run, decode(values))
                case "snapshot" if (
                    message["step"] < (run.newest or 0) and message["step"] not in run.snapshots
                ):
                    Path(message["path"]).unlink(
                        missing_ok=True
                    )  # made smaller while it was being thinned out here
                case "snapshot":
                    run.snapshots[message["step"]] = Saved(Path(message["path"]), message["bytes"])
                    self._fit(run, self.profile.snapshot_bytes)
                    self._fit_all()
                case "warning":
                    run.warn(message["text"])
                case "failed":
                    self._fail(run, message["text"])

    def _take_in(self, run: Run, record: Any) -> None:
        if isinstance(record, Done):
            self._done(run, record)
            return
        run.history.add(record)
        if isinstance(record, Step):
            run.step, run.seconds = record.step, record.seconds
        run.version += 1

    def _done(self, run: Run, done: Done) -> None:
        run.change(step=done.step, seconds=done.seconds)
        if done.reason == "diverged":
            self._fail(run, done.message[:1].upper() + done.message[1:] + ".")
        elif run.parking and done.reason == "stopped":
            again = run.status == "queued"
            self._end(run, "paused", run.message)
            if again:
                self.enqueue(run)
        else:
            self._end(run, "finished" if done.reason == "finished" else "stopped")

    def _on_exit(self, worker: Worker, code: int) -> None:
        self.workers.ended(worker)
        with self.lock:
            run: Run | None = worker.run
            if run is None or self.closed:
                return
            if run.id not in self.runs:  # removed while it was writing
                self.store.remove(run.folder)
            elif run.worker is None or run.worker is worker:
                clear_partial(run.folder)
            if run.worker is worker and run.id in self.runs:
                self._fail(run, describe_exit(code, worker.last_words()))

    def _fit(self, run: Run, budget: int) -> bool:
        """Thins a run's snapshots to a budget; whether any was dropped."""
        keep = set(thinned({step: saved.size for step, saved in run.snapshots.items()}, budget))
        dropped = run.snapshots.keys() - keep
        for step in dropped:
            run.snapshots.pop(step).path.unlink(missing_ok=True)
        run.version += 1
        return bool(dropped)

    def _fit_all(self) -> None:
        """Keeps the whole store within its budget: the largest runs are thinned first, then ended runs
        forgotten, the longest unwatched first.
        """

        def size(run: Run) -> int:
            return sum(saved.size for saved in run.snapshots.values())

        while sum(map(size, self.runs.values())) > self.profile.snapshot_bytes_total:
            several = [run for run in self.runs.values() if len(run.snapshots) > 1]
            if several:
                largest = max(several, key=size)
                self._fit(largest, size(largest) // 2)
                continue
            ended = [run for run in self.runs.values() if run.snapshots and not run.active]
            if not ended:
                return
            self.forget(min(ended, key=lambda run: run.last_watched))

    def tick(self) -> None:
        """One round of housekeeping: leases, late stops, memory, forgetting, the spare."""
        with self.lock:
            if self.closed:
                return
            now = self.clock()
            for run in list(self.runs.values()):
                unwatched = now - run.last_watched
                if run.stop_by is not None:
                    if now > run.stop_by:
                        self._kill(
                            run, "stopped", "The training did not stop in time, and its process was ended."
                        )
                elif run.status in ("queued", "starting", "running"):
                    if unwatched > self.profile.lease_seconds and not run.parking:
                        self.hold(run, by_lease=True)
                elif min(unwatched, now - self.seen.get(run.owner, -math.inf)) > self.profile.forget_seconds:
                    self.forget(run)
                self._check_memory(run)
            owners = {run.owner for run in self.runs.values()}
            self.seen = {owner: when for owner, when in self.seen.items() if owner in owners}
            self.dispatch()
            idle = self._taken() == 0
        self.workers.trim()
        self.workers.keep_spare(idle)

    def _check_memory(self, run: Run) -> None:
        limit = self.profile.max_worker_bytes
        if limit and run.worker is not None and (used := run.worker.resident_bytes()) > limit:
            worker = run.worker
            sentence = (
                f"The training used {used / GB:.1f} GB of memory; {limit / GB:.1f} GB are allowed here."
            )
            self._fail(run, f"{sentence} A smaller batch, context or model needs less.")
            worker.kill()

    def _kill(self, run: Run, status: Status, message: str) -> None:
        if run.worker is not None:
            run.worker.kill()
        self._end(run, status, message)


def _keep_house(scheduler: weakref.ref[Scheduler], stop: threading.Event) -> None:
    """The housekeeping thread: it does not keep its scheduler alive."""
    while not stop.wait(TICK):
        alive = scheduler()
        if alive is None:
            return
        try:
            alive.tick()
        except Exception:  # leases and limits must go on being kept whatever happened to one run
            LOG.exception("a round of housekeeping failed")
        del alive


def _shut(stop: threading.Event, keeper: threading.Thread, workers: Workers, store: Store) -> None:
    """In this order: nothing starts any more, everything has ended, and then the files go."""
    stop.set()
    workers.close()
    if keeper is not threading.current_thread():
        keeper.join(timeout=10)
    workers.close()  # a spare that the keeper was just starting
    store.close()
