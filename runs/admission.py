"""Admission of trainings: limits on one owner, on one network address, and on all runs together.

An owner is one browser, and a browser is cheap: who wants more of them asks for another cookie. So what
everybody shares (the queue, the disk, the processor) is limited by address, too. A lecture hall often has one
address for all: what an address may ask for is most of what there is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from engine.errors import RunError
from runs.profiles import Profile
from runs.state import Run

MINUTE = 60.0
MAX_ADDRESSES = 10_000  # remembered at a time


class StartLimiter:
    """Limits the trainings that one address may start within a minute."""

    def __init__(self) -> None:
        self._when: dict[str, deque[float]] = {}

    def count(self, address: str, most: int, now: float) -> None:
        """Notes a start. Raises RunError beyond `most` a minute; 0, or no known address: no limit."""
        if not address or not most:
            return
        self._forget(now)
        when = self._when.setdefault(address, deque())
        if len(when) >= most:
            raise RunError(
                f"Your network has started {most} run{'' if most == 1 else 's'} within a minute, the limit"
                " here. Try again in a minute."
            )
        when.append(now)

    def _forget(self, now: float) -> None:
        for address in [a for a, when in self._when.items() if now - when[-1] > MINUTE]:
            del self._when[address]
        for when in self._when.values():
            while when and now - when[0] > MINUTE:
                when.popleft()
        while len(self._when) >= MAX_ADDRESSES:
            del self._when[next(iter(self._when))]


def check_owner(profile: Profile, runs: Iterable[Run], owner: str, race: str | None) -> bool:
    """Returns True for a new party: a run, or a race's first. Raises RunError if its owner has the most."""
    kept = {run.party for run in runs if run.owner == owner}
    if race is not None and race in kept:
        return False
    if len(kept) >= profile.max_runs_each:
        raise RunError(f"You have {profile.max_runs_each} runs, the limit here. Remove one first.")
    return True


def check_queue(profile: Profile, queue: Sequence[Run], run: Run) -> None:
    """Raises RunError when too many wait already: in all, of this owner, or from this address."""
    waiting = {other.party: other for other in queue}
    if run.party in waiting:
        return
    if len(waiting) >= profile.max_queued:
        raise RunError(f"{len(waiting)} runs are already waiting, the limit here. Try again later.")
    if sum(other.owner == run.owner for other in waiting.values()) >= profile.max_queued_each:
        raise RunError(
            f"{profile.max_queued_each} of your runs are already waiting, the limit per person here. Remove"
            " one, or wait."
        )
    most = profile.max_queued_address
    if run.address and 0 < most <= sum(other.address == run.address for other in waiting.values()):
        raise RunError(f"{most} runs from your network are already waiting, the limit here. Try again later.")


def make_room(
    profile: Profile, runs: Iterable[Run], text_bytes: int, forget: Callable[[Run], None], address: str = ""
) -> None:
    """Makes room for a run from `address` with a text of so many bytes, if need be among the address's own:
    ended runs, longest unwatched first, then those that a lease has paused. Raises RunError where all go on.
    """
    most = profile.max_runs_address
    if address and most:
        own = {run.id: run for run in runs if run.address == address}
        while len(own) >= most:
            if (leaves := _next_to_go(own.values())) is None:
                raise RunError(
                    f"Your network has {most} runs here, the limit, and all are still active. Remove one, or"
                    " try again later."
                )
            del own[leaves.id]
            forget(leaves)
    while True:
        texts = [run for run in runs if run.text_bytes]
        many = len(list(runs)) >= profile.max_runs_total
        full = text_bytes > 0 and sum(r.text_bytes for r in texts) + text_bytes > profile.text_bytes_total
        if not many and not full:
            return
        leaves = _next_to_go(runs if many else texts)
        if leaves is None:
            raise RunError(
                "This server is full, and all its runs are still active. Try again later."
                if many
                else "This server has no room for another text. Try again later, or train on a built-in text."
            )
        forget(leaves)


def _next_to_go(runs: Iterable[Run]) -> Run | None:
    """The run missed least: ended before paused by a lease, then the longest unwatched; None if none."""
    able = [run for run in runs if not run.active or (run.status == "paused" and run.by_lease)]
    return min(able, key=lambda run: (run.active, run.last_watched), default=None)
