"""The run service: trainings in processes of their own, started, watched, paused, continued and cleaned up after.

One RunManager serves a whole server. A run is *active* (queued, starting, running, paused) or has ended (finished, stopped,
failed). A paused run gives up its place, so that nobody waits for it, and keeps its process, so that it goes on exactly;
resumed, it queues like any other. Beyond `max_paused`, the processes paused longest are saved, ended, and started again when wanted.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engine import profiles
from engine.checkpoints import load_state, model_with, pack
from engine.config import ModelConfig
from engine.errors import CheckpointError, ConfigError, RunError
from engine.processes import Worker, Workers, describe_exit
from engine.profiles import GB, MAX_NAME, MAX_PROMPT, Profile
from engine.protocol import decode
from engine.records import Done, Step, TrainState
from engine.run_state import Run, RunSpec, RunView, Status
from engine.snapshots import Saved, Store, clear_partial, thinned
from engine.tokenizers import from_dict

__all__ = ["RunManager", "RunSpec", "RunView", "Status"]

TICK = 0.25  # seconds between rounds of housekeeping
STOP_GRACE = 30.0  # seconds that a worker has for its last look before it is ended by force
UNWATCHED = "Paused because nobody was watching. It goes on by itself as soon as somebody looks."


class RunManager:
    """Thread-safe. Ends its processes and removes its files at `close()`, when it is collected, and when the interpreter ends."""

    def __init__(self, profile: Profile, folder: Path | None = None, *, clock: Callable[[], float] = time.monotonic, spare: bool = True) -> None:
        """`folder` is where managers keep their files, each in one of its own. Raises RunError when none can be made there."""
        self.profile, self._clock = profile, clock
        self._lock = threading.RLock()
        self._runs: dict[str, Run] = {}
        self._queue: list[Run] = []
        self._seen: dict[str, float] = {}  # owner -> when last heard of
        self._closed = False
        self._store = Store(folder)
        self._workers = Workers(profile.threads_per_run, spare, self._on_message, self._on_exit)
        self._workers.keep_spare(idle=True)
        stop = threading.Event()
        keeper = threading.Thread(target=_keep_house, args=(weakref.ref(self), stop), name="runs-housekeeping", daemon=True)
        self._finalizer = weakref.finalize(self, _shut, stop, keeper, self._workers, self._store)
        keeper.start()

    # Asking for a run ------------------------------------------------------------------------------------------------

    def start(self, spec: RunSpec, owner: str) -> str:
        """The id of a new run, which begins as soon as there is a place. Raises ConfigError or RunError for what is not allowed."""
        spec = replace(spec, name=_clean(spec.name), text=spec.text if spec.corpus == "text" else None)
        profiles.check(self.profile, spec)
        with self._lock:
            self._check_open()
            if sum(run.owner == owner for run in self._runs.values()) >= self.profile.max_runs_kept:
                raise RunError(f"You have {self.profile.max_runs_kept} runs, the most that are kept here: remove one first.")
            run = Run(secrets.token_urlsafe(16), owner, spec, self._store.make(), self._clock())
            try:
                self._write_text(run)
                self._enqueue(run)
            except RunError:
                self._store.remove(run.folder)
                raise
            self._runs[run.id] = run
            self._seen[owner] = self._clock()
            return run.id

    def restart(self, run_id: str, owner: str) -> str:
        """The same specification and seed, so the same initial weights and batches, as a new run."""
        return self.start(self._owned(run_id, owner).spec, owner)

    def extend(self, run_id: str, owner: str, steps: int) -> str | None:
        """Lets a run that has ended train `steps` further steps from its last snapshot. The curve after that snapshot is written anew."""
        with self._lock:
            run = self._owned(run_id, owner)
            if run.active:
                raise RunError("This run is still going: stop it, or wait until it ends, before continuing it for longer.")
            if run.newest is None:
                raise RunError("No snapshot of this run was saved, so it cannot be continued: start it again instead.")
            total = run.newest + steps
            if steps < 1 or total > self.profile.max_steps:
                most = self.profile.max_steps - run.newest
                raise ConfigError("steps", steps, f"must be between 1 and {most:,} here, after the {run.newest:,} of the last snapshot")
            before = run.total_steps
            run.total_steps = total
            try:
                self._enqueue(run)
            except RunError:
                run.total_steps = before
                raise
            return run.id

    # Looking at runs -------------------------------------------------------------------------------------------------

    def view(self, run_id: str) -> RunView | None:
        """For anybody who knows the id; None when there is no such run (any more). Cheap while nothing changes."""
        with self._lock:
            run = self._runs.get(run_id)
            return run.view(self._place(run)) if run else None

    def runs(self, owner: str) -> list[RunView]:
        """An owner's runs, oldest first. Asking counts as a sign of life: what has ended is kept for longer."""
        with self._lock:
            self._seen[owner] = self._clock()
            return [run.view(self._place(run)) for run in self._runs.values() if run.owner == owner]

    def may_control(self, run_id: str, owner: str) -> bool:
        """Whether this owner started it."""
        with self._lock:
            run = self._runs.get(run_id)
            return run is not None and secrets.compare_digest(run.owner.encode(), owner.encode())

    def watch(self, run_id: str) -> None:
        """Says that somebody is looking. Lets a run go on that was paused because nobody was; one paused by its owner stays so."""
        with self._lock:
            run = self._runs.get(run_id)
            if run is None or self._closed:
                return
            run.last_watched = self._seen[run.owner] = self._clock()
            if run.status == "paused" and run.by_lease:
                self._go_on(run)

    def snapshot(self, run_id: str, step: int) -> TrainState:
        """The state after a step in `view.snapshots`. Raises RunError when it is not kept (any more), CheckpointError when it is damaged."""
        return self._read_snapshot(run_id, step)[0]

    def checkpoint(self, run_id: str, step: int | None = None) -> bytes:
        """A zip that `engine.checkpoints.unpack` reads: the model after a step (the last snapshot by default). Raises as `snapshot`."""
        state, meta = self._read_snapshot(run_id, step)
        view = self.view(run_id)
        evaluations = [asdict(e) for e in view.history.evaluations if e.step <= state.step] if view else []
        name = view.name if view else ""
        metrics = {"name": name, "corpus": meta["corpus"], "step": state.step, "seconds": state.seconds, "train": meta["train"], "evaluations": evaluations}
        return pack(model_with(ModelConfig.from_dict(meta["model"]), state.weights(), "this snapshot"), from_dict(meta["tokenizer"]), metrics)

    # Steering a run; RunError for somebody who did not start it, or when its state does not allow it -------------------

    def pause(self, run_id: str, owner: str) -> None:
        """Before the next step. It gives up its place, and stays paused whoever watches."""
        with self._lock:
            run = self._owned(run_id, owner, active=True)
            self._hold(run, by_lease=False)

    def resume(self, run_id: str, owner: str) -> None:
        """Goes on exactly where it paused, when there is a place."""
        with self._lock:
            run = self._owned(run_id, owner, active=True)
            if run.status == "paused":
                self._go_on(run)

    def step(self, run_id: str, owner: str) -> None:
        """Does one step, and is paused after it."""
        with self._lock:
            run = self._owned(run_id, owner, active=True)
            if run.parking:
                raise RunError("This run is just being saved: try again in a moment.")
            self._hold(run, by_lease=False)
            if run.worker is None:
                self._launch(run)
            if run.worker is not None:
                run.worker.send("step")

    def stop(self, run_id: str, owner: str) -> None:
        """Ends it after the current step, with a last evaluation, sample and snapshot."""
        with self._lock:
            run = self._owned(run_id, owner, active=True)
            if run in self._queue:
                self._queue.remove(run)
            if run.worker is None:
                run.change(status="stopped", message="", by_lease=False)
            else:
                run.change(parking=False, idle=False, stop_by=self._clock() + STOP_GRACE)
                run.worker.send("stop")

    def set_learning_rate(self, run_id: str, owner: str, learning_rate: float) -> None:
        """A new peak for AdamW from the next step on (Muon's moves in proportion); kept when an ended run is continued."""
        if not (isinstance(learning_rate, int | float) and math.isfinite(learning_rate) and 0 <= learning_rate <= 1e6):
            raise ConfigError("learning_rate", learning_rate, "must be between 0 and 1e+06")
        self._set(run_id, owner, "learning_rate", float(learning_rate))

    def set_prompt(self, run_id: str, owner: str, prompt: str) -> None:
        """What the next samples start from."""
        if len(prompt) > MAX_PROMPT:
            raise ConfigError("prompt", prompt[:20] + "…", f"may have at most {MAX_PROMPT:,} characters")
        self._set(run_id, owner, "prompt", prompt)

    def rename(self, run_id: str, owner: str, name: str) -> None:
        with self._lock:
            self._owned(run_id, owner).change(name=_clean(name))

    def remove(self, run_id: str, owner: str) -> None:
        """Ends it if need be, and frees its memory and its files."""
        with self._lock:
            self._forget(self._owned(run_id, owner))
            self._dispatch()

    def close(self) -> None:
        """Ends every process and thread, and removes every file. May be called twice."""
        with self._lock:
            self._closed = True
            self._queue.clear()
        self._finalizer()

    # Inside: everything below is called with the lock held, except the two callbacks, which take it --------------------

    def _owned(self, run_id: str, owner: str, active: bool = False) -> Run:
        with self._lock:
            self._check_open()
            run = self._runs.get(run_id)
            if run is None:
                raise RunError("There is no such run (any more).")
            if not self.may_control(run_id, owner):
                raise RunError("This run was started in another browser: it can be watched here, but not controlled.")
            if active and not run.active:
                raise RunError(f"This run has {run.status if run.status != 'stopped' else 'been stopped'} already: continue it for longer, or start it again.")
            run.last_watched = self._seen[owner] = self._clock()
            return run

    def _check_open(self) -> None:
        if self._closed:
            raise RunError("The server is shutting down.")

    def _set(self, run_id: str, owner: str, name: str, value: float | str) -> None:
        with self._lock:
            run = self._owned(run_id, owner)
            run.change(**{name: value})
            if run.worker is not None:
                run.worker.send(name, value=value)

    def _write_text(self, run: Run) -> None:
        if run.spec.text is not None:
            run.text_file = run.folder / "text.txt"
            try:
                run.text_file.write_bytes(run.spec.text.encode("utf-8", "surrogatepass"))
            except OSError as error:
                raise RunError(f"The text could not be stored for the training ({error.strerror or error}): free some disk space.") from error

    def _place(self, run: Run) -> int:
        if run.status != "queued":
            return 0
        return self._queue.index(run) + 1 if run in self._queue else len(self._queue) + 1

    def _taken(self) -> int:
        return sum(run.worker is not None and not run.idle for run in self._runs.values())

    def _enqueue(self, run: Run) -> None:
        if len(self._queue) >= self.profile.max_queued:
            raise RunError(f"{len(self._queue)} runs are waiting already, the most allowed here: try again in a while.")
        run.change(status="queued", message="", by_lease=False)
        self._queue.append(run)
        self._dispatch()

    def _dispatch(self) -> None:
        """Gives free places to those who wait, first come, first served."""
        while self._queue and not self._closed and self._taken() < self.profile.max_runs:
            run = self._queue.pop(0)
            if run.worker is None:
                self._launch(run)
            else:
                run.change(status="running", idle=False)
                run.worker.send("resume")

    def _launch(self, run: Run) -> None:
        """Gives a run a process, from the newest snapshot if there is one; a paused run's begins paused."""
        run.history.truncate(-1 if run.newest is None else run.newest)
        run.change(status="paused" if run.status == "paused" else "starting", idle=run.status == "paused", step=run.newest or 0)
        for _ in range(2):  # the spare may have died a moment ago
            try:
                run.worker = self._workers.take()
            except OSError as error:
                self._end(run, "failed", f"No process could be started for the training ({error.strerror or error}).")
                return
            run.worker.run = run
            if run.worker.send("train", **run.order()):
                return
            run.worker.run = None
        self._end(run, "failed", "The process for the training ended before it could begin: start the run again.")

    def _hold(self, run: Run, by_lease: bool) -> None:
        """Pauses a run in whatever active state it is."""
        if run in self._queue:
            self._queue.remove(run)
        if run.worker is not None and not run.idle:
            run.worker.send("pause")
        run.change(status="paused", idle=run.worker is not None, by_lease=by_lease, message=UNWATCHED if by_lease else "", paused_at=self._clock())
        self._park()
        self._dispatch()

    def _go_on(self, run: Run) -> None:
        if run.parking:  # its process is on its way out; it queues when that is done
            run.change(status="queued", message="", by_lease=False)
        else:
            self._enqueue(run)

    def _park(self) -> None:
        """Saves and ends the processes that have been paused longest, when too many are."""
        waiting = [run for run in self._runs.values() if run.status == "paused" and run.worker is not None and run.stop_by is None]
        for run in sorted(waiting, key=lambda run: run.paused_at)[: max(0, len(waiting) - self.profile.max_paused)]:
            if not run.parking and run.worker is not None:
                run.change(parking=True)
                run.worker.send("stop")

    def _end(self, run: Run, status: Status, message: str = "") -> None:
        """Frees a run's process and place."""
        worker, run.worker = run.worker, None
        if worker is not None:
            worker.retire()
        run.change(status=status, message=message, idle=False, parking=False, by_lease=False, stop_by=None)
        self._dispatch()

    def _fail(self, run: Run, sentence: str) -> None:
        kept = f" The curve so far is kept, and the training can be continued from its last snapshot (step {run.newest:,})." if run.newest is not None else ""
        self._end(run, "failed", sentence + (kept or (" The curve so far is kept." if run.step else "")))

    def _forget(self, run: Run) -> None:
        self._runs.pop(run.id, None)
        if run in self._queue:
            self._queue.remove(run)
        worker, run.worker = run.worker, None
        if worker is not None:
            worker.kill()
        self._store.remove(run.folder)

    def _on_message(self, worker: Worker, message: dict[str, Any]) -> None:
        with self._lock:
            run: Run | None = worker.run
            if message["kind"] == "ready":
                worker.ready = True
            if run is None or run.worker is not worker or self._closed:
                return
            match message["kind"]:
                case "started":
                    run.change(precision=message["precision"], status="running" if run.status == "starting" else run.status)
                case "records":
                    for values in message["items"]:
                        self._take_in(run, decode(values))
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
                self._enqueue(run)
        else:
            self._end(run, "finished" if done.reason == "finished" else "stopped")

    def _on_exit(self, worker: Worker, code: int) -> None:
        self._workers.ended(worker)
        with self._lock:
            run: Run | None = worker.run
            if run is None or self._closed:
                return
            if run.id not in self._runs:  # removed while it was writing
                self._store.remove(run.folder)
            elif run.worker is None or run.worker is worker:
                clear_partial(run.folder)
            if run.worker is worker and run.id in self._runs:
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
        """Keeps the whole store within its budget: the largest runs are thinned first, then ended runs forgotten, the longest unwatched first."""
        def size(run: Run) -> int:
            return sum(saved.size for saved in run.snapshots.values())

        while sum(map(size, self._runs.values())) > self.profile.snapshot_bytes_total:
            several = [run for run in self._runs.values() if len(run.snapshots) > 1]
            if several:
                largest = max(several, key=size)
                self._fit(largest, size(largest) // 2)
                continue
            ended = [run for run in self._runs.values() if run.snapshots and not run.active]
            if not ended:
                return
            self._forget(min(ended, key=lambda run: run.last_watched))

    def _tick(self) -> None:
        """One round of housekeeping: leases, late stops, memory, forgetting, the spare."""
        with self._lock:
            if self._closed:
                return
            now = self._clock()
            for run in list(self._runs.values()):
                unwatched = now - run.last_watched
                if run.stop_by is not None:
                    if now > run.stop_by:
                        self._kill(run, "stopped", "The training did not stop in time, and its process was ended.")
                elif run.status in ("queued", "starting", "running"):
                    if unwatched > self.profile.lease_seconds and not run.parking:
                        self._hold(run, by_lease=True)
                elif min(unwatched, now - self._seen.get(run.owner, -math.inf)) > self.profile.forget_seconds:
                    self._forget(run)
                self._check_memory(run)
            owners = {run.owner for run in self._runs.values()}
            self._seen = {owner: when for owner, when in self._seen.items() if owner in owners}
            self._dispatch()
            idle = self._taken() == 0
        self._workers.trim()
        self._workers.keep_spare(idle)

    def _check_memory(self, run: Run) -> None:
        limit = self.profile.max_worker_bytes
        if limit and run.worker is not None and (used := run.worker.resident_bytes()) > limit:
            worker = run.worker
            sentence = f"The training used {used / GB:.1f} GB of memory; {limit / GB:.1f} GB are allowed here."
            self._fail(run, f"{sentence} A smaller batch, context or model needs less.")
            worker.kill()

    def _kill(self, run: Run, status: Status, message: str) -> None:
        if run.worker is not None:
            run.worker.kill()
        self._end(run, status, message)

    def _read_snapshot(self, run_id: str, step: int | None) -> tuple[TrainState, dict[str, Any]]:
        with self._lock:
            run = self._runs.get(run_id)
            if run is None:
                raise RunError("There is no such run (any more).")
            step = run.newest if step is None else step
            saved = run.snapshots.get(step) if step is not None else None
        if saved is None:
            raise RunError("No snapshot of this run was saved yet." if step is None else f"No snapshot of step {step} is kept.")
        try:
            return load_state(saved.path)
        except CheckpointError:
            if not saved.path.exists():  # thinned while it was being read
                raise RunError(f"The snapshot of step {step} is no longer kept.") from None
            raise


def _clean(name: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:MAX_NAME]


def _keep_house(manager: weakref.ref[RunManager], stop: threading.Event) -> None:
    """The housekeeping thread: it does not keep its manager alive."""
    while not stop.wait(TICK):
        alive = manager()
        if alive is None:
            return
        alive._tick()
        del alive


def _shut(stop: threading.Event, keeper: threading.Thread, workers: Workers, store: Store) -> None:
    """Must not know the manager, which may be gone already."""
    stop.set()
    workers.close()
    if keeper is not threading.current_thread():
        keeper.join(timeout=10)
    workers.close()  # a spare that the keeper was just starting
    store.close()
