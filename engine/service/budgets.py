"""Disk budgets: of one run's snapshots, and of all runs together."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.service.snapshots import thinned
from engine.service.state import Run


def fit(run: Run, budget: int) -> None:
    """Thins a run's snapshots until they fit into a budget of bytes."""
    keep = set(thinned({step: saved.size for step, saved in run.snapshots.items()}, budget))
    for step in run.snapshots.keys() - keep:
        run.snapshots.pop(step).path.unlink(missing_ok=True)
    run.changed()


def fit_all(runs: Iterable[Run], budget: int, forget: Callable[[Run], None]) -> None:
    """Keeps all runs within a budget: the largest are thinned first, then ended runs forgotten, the longest
    unwatched first.
    """
    while sum(map(size, runs)) > budget:
        several = [run for run in runs if len(run.snapshots) > 1]
        ended = [run for run in runs if size(run) and not run.active]
        if several:
            largest = max(several, key=snapshot_bytes)
            fit(largest, snapshot_bytes(largest) // 2)
        elif ended:
            forget(min(ended, key=lambda run: run.last_watched))
        else:
            return


def size(run: Run) -> int:
    """Returns the bytes that a run keeps on disk: its snapshots, and the text that somebody gave it."""
    return snapshot_bytes(run) + run.text_bytes


def snapshot_bytes(run: Run) -> int:
    return sum(saved.size for saved in run.snapshots.values())
