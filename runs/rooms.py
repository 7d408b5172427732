"""Answers of a room: a lecturer puts a question, phones choose, counts come back. In memory, with limits: one
changeable answer a browser (runs.room_table).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from runs.room_table import Room, RoomError, RoomTable

MAX_ROOMS = 50  # of a server
MAX_CHANGES = 20  # of one browser's answer to one question
MAX_SECONDS = 2 * 3600  # without a question or an answer, after which a room is forgotten
MAX_TEXT, MAX_ANSWER = 200, 80  # characters
FEWEST, MOST = 2, 5  # answers to choose from


@dataclass(frozen=True)
class Question:
    """A question as the room sees it: `counts` are the choices of each answer."""

    room: str
    number: int  # 1 for a room's first
    text: str
    answers: tuple[str, ...]
    counts: tuple[int, ...]
    open: bool


@dataclass
class _Room(Room):
    number: int = 0
    text: str = ""
    answers: tuple[str, ...] = ()
    open: bool = True
    changes: dict[bytes, int] = field(default_factory=dict)

    def shown(self) -> Question:
        chosen = list(self.chosen.values())
        counts = tuple(chosen.count(answer) for answer in range(len(self.answers)))
        return Question(self.id, self.number, self.text, self.answers, counts, self.open)


class Rooms(RoomTable[_Room]):
    """All rooms of a server in which questions are answered."""

    most, seconds, subject = MAX_ROOMS, MAX_SECONDS, "question"

    def ask(self, owner: str, text: object, answers: object) -> Question:
        """Puts a question to the owner's room, made where there is none, and drops the last one's answers.
        Raises RoomError for no question, and for too many rooms of the server or the network.
        """
        asked, choices = _question(text, answers)
        with self._lock:
            self._forget()
            room = self._of(owner) or self._new(_Room, owner)
            room.number += 1
            room.text, room.answers, room.open = asked, choices, True
            room.chosen.clear()
            room.changes.clear()
            room.voters.clear()
            room.used = self._clock()
            return room.shown()

    def mine(self, owner: str) -> Question | None:
        """Returns the last question of the owner's room; None where there is no room."""
        with self._lock:
            self._forget()
            room = self._of(owner)
            return None if room is None else room.shown()

    def close(self, owner: str) -> None:
        """Ends the answering; the counts stay."""
        with self._lock:
            if room := self._of(owner):
                room.open = False

    def look(self, room: object) -> Question:
        """Returns a room's question. Raises RoomError for an id that is invalid or forgotten."""
        with self._lock:
            return self._find(room).shown()

    def choice(self, room: object, person: str) -> int | None:
        """Returns the answer that this browser has chosen; None before it has."""
        with self._lock:
            found = self._find(room)
            return found.chosen.get(found.hashed(person))

    def choose(self, room: object, person: str, number: object, answer: object) -> Question:
        """Counts a browser's answer to question `number`. Raises RoomError if closed, wrong or too many."""
        with self._lock:
            found = self._find(room)
            if number != found.number:
                raise RoomError("The question has changed: choose among the answers you see now.")
            if not found.open:
                raise RoomError("The question is closed: answers no longer count.")
            if type(answer) is not int or not 0 <= answer < len(found.answers):
                raise RoomError("There is no such answer: choose one of those shown.")
            who = found.hashed(person)
            if who not in found.chosen:
                self._enter(found)
            if found.changes.get(who, 0) > MAX_CHANGES:
                raise RoomError(f"You have changed your answer {MAX_CHANGES} times: the last one counts.")
            if found.chosen.get(who) != answer:
                found.changes[who] = found.changes.get(who, 0) + 1
                found.chosen[who] = answer
                found.answered = True
                found.used = self._clock()
            return found.shown()


def _question(text: object, answers: object) -> tuple[str, tuple[str, ...]]:
    """(question, answers) without blanks around them. Raises RoomError with what would be right."""
    asked = " ".join(text.split()) if isinstance(text, str) else ""
    if not asked or len(asked) > MAX_TEXT:
        raise RoomError(f"A question has 1 to {MAX_TEXT} characters.")
    given = answers if isinstance(answers, Sequence) and not isinstance(answers, str | bytes) else ()
    if len(given) > 10 * MOST:
        raise RoomError(f"A question has {FEWEST} to {MOST} answers, one per line.")
    choices = [" ".join(one.split()) for one in given if isinstance(one, str) and one.strip()]
    if not FEWEST <= len(choices) <= MOST:
        raise RoomError(f"A question has {FEWEST} to {MOST} answers, one per line; you gave {len(choices)}.")
    if any(len(one) > MAX_ANSWER for one in choices):
        raise RoomError(f"An answer has at most {MAX_ANSWER} characters.")
    if len(set(choices)) < len(choices):
        raise RoomError("Two of the answers are the same.")
    return asked, tuple(choices)
