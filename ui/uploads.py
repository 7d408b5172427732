"""Limits on uploads: shares of places and of memory, so that nobody takes what everybody needs.

A file is held in memory while it comes in, and until its tab is closed. One tab sends one at a time; an
address has half of the places, and half of the memory, whatever tabs and cookies it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

AT_ONCE = 4  # files that come in
HELD = 8  # times the largest file: what all sessions together may have sent up
SHARE = 2  # one address has a part of both: the half


@dataclass(frozen=True)
class Coming:
    """A file that comes in: of which session, from which address (empty: not known, and not limited), and how
    many bytes it says it has.
    """

    session: str
    address: str
    length: int


class Uploads:
    """Uploads under way, and the addresses that the files held came from. For one thread."""

    def __init__(self) -> None:
        self._coming: list[Coming] = []
        self._addresses: dict[str, str] = {}  # of sessions that hold files

    def refusal(self, file: Coming, held: Mapping[str, int], most: int) -> tuple[int, str] | None:
        """Returns (HTTP status, sentence) for a file that may not come now; None where it may. `held` are the
        bytes of each session, `most` those of the largest file.
        """
        here = [other for other in self._coming if file.address and other.address == file.address]
        theirs = sum(
            size for session, size in held.items() if file.address and self._of(session) == file.address
        )
        if file.length > most:
            return 413, "File too large"
        if held.get(file.session, 0) + file.length > most:
            return 413, "Too many files: remove one first"
        if any(other.session == file.session for other in self._coming):
            return 429, "One file at a time: another of yours is still uploading"
        if len(here) >= AT_ONCE // SHARE:
            return 429, "Others in your network are uploading files: try again in a moment"
        if theirs + _bytes(here) + file.length > HELD * most // SHARE:
            return 429, "Your network has reached its upload limit: remove a file, or close a tab with one"
        all_bytes = sum(held.values()) + _bytes(self._coming) + file.length
        if len(self._coming) >= AT_ONCE or all_bytes > HELD * most:
            return 503, "Others are uploading files: try again in a moment"
        return None

    @contextmanager
    def coming(self, file: Coming, held: Mapping[str, int]) -> Iterator[None]:
        """Counts a file while it comes in, and remembers its address as long as something of it is `held`."""
        known = {*held, *(other.session for other in self._coming)}
        self._addresses = {session: where for session, where in self._addresses.items() if session in known}
        self._addresses[file.session] = file.address
        self._coming.append(file)
        try:
            yield
        finally:
            self._coming.remove(file)

    def _of(self, session: str) -> str:
        return self._addresses.get(session, "")


def _bytes(files: list[Coming]) -> int:
    return sum(file.length for file in files)
