"""The runs that are kept: by id, with their owners, names, leases and files."""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from engine.errors import RunError
from engine.service.profiles import MAX_NAME, Profile
from engine.service.snapshots import Store
from engine.service.state import Run


class RunTable:
    """All runs of a server, the oldest first, and `lock`, which is held by whoever reads or changes them."""

    def __init__(self, profile: Profile, folder: Path | None, clock: Callable[[], float]) -> None:
        """Makes a new folder in `folder` for files. Raises RunError when none can be made."""
        self.profile, self.clock = profile, clock
        self.lock = threading.RLock()
        self.store = Store(folder)
        self.closed = False
        self._runs: dict[str, Run] = {}
        self._heard: dict[str, float] = {}  # owner -> when last heard of

    def __iter__(self) -> Iterator[Run]:
        """Returns a copy: runs may be removed on the way."""
        return iter(list(self._runs.values()))

    def get(self, run_id: str | None) -> Run | None:
        return self._runs.get(run_id) if run_id is not None else None

    def add(self, run: Run) -> None:
        self._runs[run.id] = run
        self.hear(run.owner)

    def remove(self, run: Run) -> None:
        self._runs.pop(run.id, None)
        self.store.remove(run.folder)

    def race(self, race_id: str | None) -> list[Run]:
        """Returns the runs of a race, in order; none for what is no race."""
        return [run for run in self if race_id is not None and run.race == race_id]

    def name_for(self, name: str, owner: str, run: Run | None = None) -> str:
        """Returns a name, or with a number where another run of this owner has it."""
        others = [other for other in self if other.owner == owner and other is not run]
        return free_name(name, {other.listed or other.given for other in others})

    # Owners -------------------------------------------------------------------------------------

    def hear(self, owner: str) -> float:
        """Notes a sign of life of an owner. Returns the time."""
        self._heard[owner] = now = self.clock()
        return now

    def may_control(self, run_id: str, owner: str) -> bool:
        run = self.get(run_id)
        return run is not None and secrets.compare_digest(run.owner.encode(), owner.encode())

    def owned(self, run_id: str, owner: str, active: bool = False) -> Run:
        """Returns a run that its owner wants to control, which is a sign of life. Raises RunError where it is
        not theirs, or has ended and `active` is wanted.
        """
        self.check_open()
        run = self.get(run_id)
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
        run.last_watched = self.hear(owner)
        return run

    def check_open(self) -> None:
        """Raises RunError while the server ends."""
        if self.closed:
            raise RunError("The server is shutting down.")

    # Leases -------------------------------------------------------------------------------------

    def unwatched(self, run: Run) -> bool:
        """True if nobody has watched for longer than a run goes on without."""
        return self.clock() - run.last_watched > self.profile.lease_seconds

    def abandoned(self, run: Run) -> bool:
        """True if neither the run nor its owner was heard of for so long that it is forgotten."""
        last = max(run.last_watched, self._heard.get(run.owner, -math.inf))
        return self.clock() - last > self.profile.forget_seconds

    def forget_owners(self) -> None:
        owners = {run.owner for run in self}
        self._heard = {owner: when for owner, when in self._heard.items() if owner in owners}


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
