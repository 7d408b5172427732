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
MAX_PASSAGE, MAX_ALPHABET = 600, 256  # characters: before the next, and to choose it from
MAX_PAST = MAX_PASSAGE  # characters of a room whose answers are remembered, of all passages together


@dataclass(frozen=True)
class Question:
    """A question as the room sees it: `counts` are the choices of each answer."""

    room: str
    number: int  # 1 for a room's first
    text: str
    answers: tuple[str, ...]
    counts: tuple[int, ...]
    open: bool
    before: tuple[int, ...] = ()  # the counts of the first vote, where this is the second
    letters: bool = False  # True if the answers are the characters that may follow the text


@dataclass
class _Passage:
    """The answers to a text: `counts` for each character after its first `lead`; `text` ends before the last
    of these.
    """

    alphabet: tuple[str, ...]
    text: str
    counts: list[tuple[int, ...]]

    @property
    def lead(self) -> int:
        return len(self.text) - len(self.counts) + 1

    def answered(self, text: str, alphabet: tuple[str, ...]) -> int | None:
        """Returns how many answers lead to a text of this passage; None where it is of another."""
        count = len(text) - self.lead
        if alphabet != self.alphabet or not 0 <= count <= len(self.counts):
            return None
        longer = count == len(self.counts)
        return count if self.text.startswith(text[:-1] if longer else text) else None

    def rows(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple((self.text[: self.lead + i], counts) for i, counts in enumerate(self.counts))


@dataclass
class _Room(Room):
    number: int = 0
    text: str = ""
    answers: tuple[str, ...] = ()
    before: tuple[int, ...] = ()
    letters: bool = False
    passages: list[_Passage] = field(default_factory=list)  # the one asked about last is the last
    open: bool = True
    changes: dict[bytes, int] = field(default_factory=dict)

    def shown(self) -> Question:
        chosen = list(self.chosen.values())
        counts = tuple(chosen.count(answer) for answer in range(len(self.answers)))
        known = (self.id, self.number, self.text, self.answers, counts, self.open)
        return Question(*known, self.before, self.letters)

    def passage_of(self, text: str, alphabet: tuple[str, ...]) -> _Passage | None:
        """Returns the passage that holds a text or goes on with it; None where nothing of it is answered."""
        matching = [one for one in self.passages if one.answered(text, alphabet) is not None]
        return min(matching, key=lambda one: one.lead, default=None)

    def remember(self) -> None:
        """Adds the answers of the last question, where it is of a passage, to those before; the oldest
        passages give way.
        """
        counts = self.shown().counts
        passage = self.passage_of(self.text, self.answers)
        if passage is None:
            passage = _Passage(self.answers, self.text, [counts])
        else:
            self.passages.remove(passage)
            before = passage.counts[: passage.answered(self.text, self.answers)]
            passage = _Passage(self.answers, self.text, [*before, counts])
        self.passages.append(passage)
        while sum(len(one.counts) for one in self.passages) > MAX_PAST:
            del self.passages[0]

    def put(self, now: float) -> None:
        """Opens the question to answers; those of the last one are dropped."""
        self.number, self.open, self.used = self.number + 1, True, now
        for held in (self.chosen, self.changes, self.voters):
            held.clear()


class Rooms(RoomTable[_Room]):
    """All rooms of a server in which questions are answered."""

    most, seconds, subject = MAX_ROOMS, MAX_SECONDS, "question"

    def ask(self, owner: str, text: object, answers: object) -> Question:
        """Puts a question to the owner's room, made where there is none, and drops the last one's answers.
        Raises RoomError for no question, and for too many rooms of the server or the network.
        """
        return self._ask(owner, *_question(text, answers))

    def ask_next(self, owner: str, text: object, alphabet: object) -> Question:
        """Asks the owner's room which character of an alphabet follows a text, as `ask` does. Answers stay in
        `past`, whatever is asked between; those of a vote that is broken off do not.
        """
        return self._ask(owner, *_passage(text, alphabet), letters=True)

    def past(
        self, owner: str, text: str, alphabet: tuple[str, ...]
    ) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Returns (text, counts of the characters that may follow) of all that was answered, before the
        owner's last question, of a passage that begins with `text`.
        """
        with self._lock:
            room = self._of(owner)
            passage = room.passage_of(text, alphabet) if room is not None else None
            if room is None or passage is None or passage.lead != len(text):
                return ()
            last = passage.answered(room.text, room.answers) if room.letters else None
            return passage.rows()[:last]

    def _ask(self, owner: str, text: str, answers: tuple[str, ...], letters: bool = False) -> Question:
        with self._lock:
            self._forget()
            room = self._of(owner) or self._new(_Room, owner)
            goes_on = letters and answers == room.answers and text[:-1] == room.text
            if room.letters and (goes_on or (not room.open and room.chosen)):
                room.remember()
            room.text, room.answers, room.before, room.letters = text, answers, (), letters
            room.put(self._clock())
            return room.shown()

    def ask_again(self, owner: str) -> Question:
        """Puts the owner's question a second time (peer instruction, Crouch and Mazur 2001): the first vote's
        counts stay beside it. Raises RoomError unless it is closed, and was put once.
        """
        with self._lock:
            self._forget()
            room = self._of(owner)
            if room is None or room.open or room.before:
                raise RoomError("A question is put a second time once it is closed, and no third time.")
            room.before = room.shown().counts
            room.put(self._clock())
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


def _passage(text: object, alphabet: object) -> tuple[str, tuple[str, ...]]:
    """(text, characters) as they are. Raises RoomError with what would be right."""
    if not isinstance(text, str) or not 0 < len(text) <= MAX_PASSAGE:
        raise RoomError(f"A text to go on with has 1 to {MAX_PASSAGE} characters.")
    given = alphabet if isinstance(alphabet, Sequence) and len(alphabet) <= MAX_ALPHABET else ()
    letters = [one for one in given if isinstance(one, str) and len(one) == 1]
    if not FEWEST <= len(set(letters)) == len(given):
        raise RoomError(f"An alphabet has {FEWEST} to {MAX_ALPHABET} characters, each once.")
    return text, tuple(letters)
