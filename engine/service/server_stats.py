"""How a run manager stands at one moment, for who runs the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.service import slots
from engine.service.processes import Worker
from engine.service.scheduler import Scheduler
from engine.service.state import Status


@dataclass(frozen=True)
class WorkerStanding:
    """A process: it trains (or holds a paused run), waits warm, or is not warm yet. Resident bytes."""

    kind: Literal["training", "spare", "starting"]
    bytes: int


@dataclass(frozen=True)
class Standing:
    """The statuses of all runs that are kept; who waits, a race as one; the processes; bytes of snapshots on
    disk; the steps that these runs have done.
    """

    statuses: tuple[Status, ...]
    queued: int
    workers: tuple[WorkerStanding, ...]
    snapshot_bytes: int
    steps: int


def standing(inside: Scheduler) -> Standing:
    """Counts runs and processes. Reads the memory of each process from the system, outside of the lock."""
    with inside.lock:
        statuses = tuple(run.status for run in inside.runs.values())
        queued = len(slots.waiting(inside.queue))
        steps = sum(run.step for run in inside.runs.values())
        kept = sum(saved.size for run in inside.runs.values() for saved in run.snapshots.values())
    workers = tuple(_worker(worker) for worker in inside.workers.alive())
    return Standing(statuses, queued, workers, kept, steps)


def _worker(worker: Worker) -> WorkerStanding:
    kind: Literal["training", "spare", "starting"] = (
        "training" if worker.jobs else "spare" if worker.ready else "starting"
    )
    return WorkerStanding(kind, worker.resident_bytes())
