"""A table of rooms: ids, owners, browsers as hashes, and limits on how many there are.

Browsers that have answered are kept as a hash with the room's secret: nothing says whose an answer is. A
browser is cheap (another cookie makes another one), so a network address has a share of a server's rooms and
of the answers in one, as of its trainings (runs.admission).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from engine.errors import GlassformerError

MAX_VOTERS = 1000  # of a question
QUIET_SECONDS = (
    300  # without a question or an answer, after which a room in which nobody ever answered gives way
)
_ID = re.compile(r"[A-Za-z0-9_-]{16}")  # what secrets.token_urlsafe(12) makes


class RoomError(GlassformerError):
    """A request about a room that cannot be met; the message is for the person who made it."""


@dataclass
class Room:
    """A room: its owner, the network that it was opened from (empty where unknown) and those who have
    answered, all hashed, and when it was used last. `chosen` and `voters` are of what is asked now: the
    answer of each browser, and how many of each network have one.
    """

    id: str
    secret: bytes
    owner: bytes
    used: float
    network: bytes = b""
    chosen: dict[bytes, Any] = field(default_factory=dict)
    voters: dict[bytes, int] = field(default_factory=dict)
    answered: bool = False  # what is asked now, or something before it

    def hashed(self, person: str) -> bytes:
        return hmac.new(self.secret, person.encode("utf-8", "replace"), hashlib.sha256).digest()

    def placed(self, address: str) -> bytes:
        """Returns an address as this room stores it, hashed; empty for none."""
        return self.hashed(f"address {address}") if address else b""


R = TypeVar("R", bound=Room)


class RoomTable(Generic[R]):
    """All rooms of one kind of a server, for any thread. `address` tells the network address of whoever asks
    now, empty where unknown: at most `rooms_each` rooms and `answers_each` people in one come from one; 0: no
    limit.
    """

    most: ClassVar[int]  # rooms of a server
    seconds: ClassVar[float]  # without a question or an answer, after which a room is forgotten
    subject: ClassVar[str]  # what people answer

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        address: Callable[[], str] = lambda: "",
        *,
        rooms_each: int = 0,
        answers_each: int = 0,
    ) -> None:
        self._clock, self._address = clock, address
        self._rooms_each, self._answers_each = rooms_each, answers_each
        self._lock = threading.Lock()
        self._rooms: dict[str, R] = {}

    def end(self, owner: str) -> None:
        """Forgets the owner's room and all that was answered."""
        with self._lock:
            if room := self._of(owner):
                del self._rooms[room.id]

    def _new(self, kind: Callable[[str, bytes, bytes, float], R], owner: str) -> R:
        """Makes a room of somebody who has none. Raises RoomError where there is no place for it."""
        address = self._address()
        self._make_place(address)
        room = kind(secrets.token_urlsafe(12), secrets.token_bytes(16), b"", self._clock())
        room.owner, room.network = room.hashed(owner), room.placed(address)
        self._rooms[room.id] = room
        return room

    def _make_place(self, address: str) -> None:
        """Makes place for a room. Raises RoomError where there is none. Students who try out what their
        lecturer does share his address: what they leave without an answer gives way to him.
        """
        theirs = [room for room in self._rooms.values() if address and room.network == room.placed(address)]
        if 0 < self._rooms_each <= len(theirs):
            since = self._clock() - QUIET_SECONDS
            quiet = [room for room in theirs if not room.answered and room.used <= since]
            if not quiet:
                raise RoomError(
                    f"Your network has {self._rooms_each} rooms open, the limit here. End one, or try again"
                    " later."
                )
            del self._rooms[min(quiet, key=lambda room: room.used).id]
        if len(self._rooms) >= self.most:
            raise RoomError(f"This server has {self.most} rooms open, its limit. Try again later.")

    def _enter(self, room: R) -> None:
        """Counts somebody who has not answered yet. Raises RoomError beyond the limits."""
        if len(room.chosen) >= MAX_VOTERS:
            raise RoomError(f"{MAX_VOTERS:,} people have answered, the limit for one {self.subject}.")
        if network := room.placed(self._address()):
            if 0 < self._answers_each <= room.voters.get(network, 0):
                raise RoomError(
                    f"{self._answers_each} people on your network have answered, the limit for one"
                    f" {self.subject}."
                )
            room.voters[network] = room.voters.get(network, 0) + 1

    def _of(self, owner: str) -> R | None:
        rooms = self._rooms.values()
        return next((room for room in rooms if hmac.compare_digest(room.owner, room.hashed(owner))), None)

    def _find(self, room: object) -> R:
        self._forget()
        if not isinstance(room, str) or not _ID.fullmatch(room) or room not in self._rooms:
            raise RoomError(
                "There is no such room: it has ended, or the link is incomplete. Scan the code again."
            )
        return self._rooms[room]

    def _forget(self) -> None:
        since = self._clock() - self.seconds
        for old in [room.id for room in self._rooms.values() if room.used < since]:
            del self._rooms[old]
