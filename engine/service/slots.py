"""Slots: the queue, the runs that train, and the processes that a race shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from engine.service.processes import Worker
from engine.service.profiles import Profile
from engine.service.state import Run

Runs = Mapping[str, Run]  # by id, the oldest first


def waiting(queue: Sequence[Run]) -> list[str]:
    """Returns the parties in the queue, in order: a race waits as one."""
    return list(dict.fromkeys(run.party for run in queue))


def place(queue: Sequence[Run], run: Run) -> int:
    """Returns the position in the queue: 1 is next, 0 is not queued."""
    if run.status != "queued":
        return 0
    parties = waiting(queue)
    return parties.index(run.party) + 1 if run.party in parties else len(parties) + 1


def racing(runs: Runs, race: str | None) -> list[Run]:
    """Returns the runs of a race, in order; none for what is no race."""
    return [run for run in runs.values() if race is not None and run.race == race]


def seated(runs: Runs, worker: Worker) -> list[Run]:
    """Returns whose trainings a process does."""
    return [run for run in runs.values() if run.seat is not None and run.seat.worker is worker]


def taken(runs: Runs) -> int:
    """Returns the places in use: one for each process that trains."""
    return len({run.seat.worker for run in runs.values() if run.seat and run.takes_a_place})


def admits(runs: Runs, profile: Profile, run: Run) -> bool:
    """True if there is a slot for a run. A member of a race needs none where a process of the race trains
    already, for it takes turns there. The second of two that are compared needs none while the first
    trains: they are watched together, on one core if need be.
    """
    mates = racing(runs, run.race) if run.seat is None else seated(runs, run.seat.worker)
    mates = [mate for mate in mates if mate is not run and mate.seat and mate.seat.worker.listens()]
    if any(mate.trains for mate in mates):
        return True
    other = runs.get(run.beside) if run.beside else None
    together = other is not None and other.takes_a_place
    return taken(runs) < profile.max_runs + (profile.max_beside if together else 0)


def shares(runs: Runs, profile: Profile, run: Run) -> bool:
    """True if the run that it is compared with trains as well, or is about to be requested; or if its race is
    spread over several processes.
    """
    if run.race is not None:
        return profile.race_workers > 1
    other = runs.get(run.beside) if run.beside else None
    return run.beside is not None and (other is None or other.active)


def process_of(runs: Runs, profile: Profile, run: Run, more: bool) -> Worker | None:
    """Returns the process of a run's race in which it takes turns: the emptiest of those that train, which
    needs no further place, else of those that wait. None where there is none, or where the race may have
    one more, `more` can be had, and a place is free.
    """
    mates = [mate for mate in racing(runs, run.race) if mate.seat and mate.seat.worker.listens()]
    training = [mate.seat.worker for mate in mates if mate.seat and mate.trains]
    workers = Counter(mate.seat.worker for mate in mates if mate.seat)
    room = more and taken(runs) < profile.max_runs
    if not workers or (len(workers) < profile.race_workers and room):
        return None
    return min(training or workers, key=lambda worker: workers[worker])
