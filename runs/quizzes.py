"""A quiz in a room: a form of questions, taken twice from phones; counts come back. In memory, with limits.

A browser's answers to the open form are kept beside its hash, so that it may change them; when the second
form is opened those of the first are dropped, and only their counts stay. So nothing joins what somebody
answered before to what they answered after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from runs.room_table import Room, RoomError, RoomTable

MAX_QUIZZES = 20  # of a server
MAX_SECONDS = (
    12 * 3600
)  # unused, after which it is forgotten: a lecture may have its second form in the evening
MAX_SENT = 200  # of one browser's messages to one form: a few for each question
MAX_QUESTIONS, MAX_OPTIONS = 40, 8
FIRST, SECOND = 0, 1  # forms
Choice = int | None  # the index of an option; None for a question that is left out


@dataclass(frozen=True)
class Counts:
    """How often each option of each question was chosen in a form, and by how many people."""

    people: int
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Quiz:
    """A quiz as its room sees it. `seed` names its questions; `form` is the one that is open, or was last
    (None before the first), and `counts` are those of both; `complete` people have answered all of its
    questions.
    """

    room: str
    seed: int
    form: int | None
    open: bool
    counts: tuple[Counts, Counts]
    complete: int

    @property
    def finished(self) -> bool:
        """True once the second form is closed: right answers may be shown."""
        return self.form == SECOND and not self.open


@dataclass
class _Quiz(Room):
    seed: int = 0
    sizes: tuple[tuple[int, ...], ...] = ()  # options of each question, of each form
    form: int | None = None
    open: bool = False
    sent: dict[bytes, int] = field(default_factory=dict)
    held: list[list[list[int]]] = field(default_factory=list)  # counts: form, question, option
    people: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, answers: Sequence[Choice], by: int) -> None:
        """Counts answers to the open form, or takes them back."""
        assert self.form is not None
        for row, choice in zip(self.held[self.form], answers, strict=True):
            if choice is not None:
                row[choice] += by

    def shown(self) -> Quiz:
        first, second = (
            Counts(people, tuple(map(tuple, rows)))
            for people, rows in zip(self.people, self.held, strict=True)
        )
        complete = sum(None not in choices for choices in self.chosen.values())
        return Quiz(self.id, self.seed, self.form, self.open, (first, second), complete)


class Quizzes(RoomTable[_Quiz]):
    """All quizzes of a server."""

    most, seconds, subject = MAX_QUIZZES, MAX_SECONDS, "form"

    def start(self, owner: str, seed: int, sizes: Sequence[Sequence[int]]) -> Quiz:
        """Opens a room for a quiz in place of the owner's last one; `sizes` are the numbers of options of
        each question, in the first form and in the second. Raises RoomError for too many rooms of the server
        or the network, and for sizes that no quiz has.
        """
        forms = tuple(tuple(form) for form in sizes)
        if len(forms) != 2 or not all(
            0 < len(form) <= MAX_QUESTIONS and all(1 < size <= MAX_OPTIONS for size in form) for form in forms
        ):
            raise RoomError(f"A quiz has two forms of up to {MAX_QUESTIONS} questions each.")
        with self._lock:
            self._forget()
            if old := self._of(owner):
                del self._rooms[old.id]
            room = self._new(_Quiz, owner)
            room.seed, room.sizes = seed, forms
            room.held = [[[0] * size for size in form] for form in forms]
            return room.shown()

    def mine(self, owner: str) -> Quiz | None:
        """Returns the owner's quiz; None where there is none."""
        with self._lock:
            self._forget()
            room = self._of(owner)
            return None if room is None else room.shown()

    def hand_out(self, owner: str, form: int) -> Quiz:
        """Opens a form to answers: the first, the second, or again the one that was closed last. Raises
        RoomError for the first after the second, and without a room.
        """
        with self._lock:
            self._forget()
            room = self._of(owner)
            if room is None:
                raise RoomError("Your room has ended: open another one.")
            if form not in (FIRST, SECOND) or (room.form == SECOND and form == FIRST):
                raise RoomError("The first form cannot be opened after the second: open another room.")
            if room.form != form:
                for answers in (room.chosen, room.sent, room.voters):
                    answers.clear()
            room.form, room.open, room.used = form, True, self._clock()
            return room.shown()

    def close(self, owner: str) -> None:
        """Ends the answering of the open form; the counts stay."""
        with self._lock:
            if room := self._of(owner):
                room.open, room.used = False, self._clock()

    def look(self, room: object) -> Quiz:
        """Returns a room's quiz. Raises RoomError for an id that is invalid or forgotten."""
        with self._lock:
            return self._find(room).shown()

    def answers(self, room: object, person: str) -> tuple[Choice, ...]:
        """Returns this browser's answers to the form that is open, or was last; () where there are none."""
        with self._lock:
            found = self._find(room)
            return tuple(found.chosen.get(found.hashed(person), ()))

    def answer(self, room: object, person: str, form: object, answers: object) -> Quiz:
        """Counts a browser's answers to a form, one for each question, in place of its last ones. Raises
        RoomError if the form is closed or another, for answers that it has not, and for too many people or
        messages.
        """
        with self._lock:
            found = self._find(room)
            if type(form) is not int or form != found.form:
                raise RoomError("The form has changed: answer the questions that you see now.")
            if not found.open:
                raise RoomError("The form is closed: answers no longer count.")
            choices = _choices(answers, found.sizes[form])
            who = found.hashed(person)
            if found.sent.get(who, 0) >= MAX_SENT:
                raise RoomError(f"You have changed your answers {MAX_SENT} times: the last ones count.")
            if who not in found.chosen:
                if all(choice is None for choice in choices):
                    return found.shown()
                self._enter(found)
                found.people[form] += 1
            else:
                found.add(found.chosen[who], -1)
            found.add(choices, 1)
            found.chosen[who] = choices
            found.sent[who] = found.sent.get(who, 0) + 1
            found.answered, found.used = True, self._clock()
            return found.shown()


def _choices(answers: object, sizes: Sequence[int]) -> tuple[Choice, ...]:
    """Returns a browser's answers. Raises RoomError for anything else."""
    given: Sequence[Any] = answers if isinstance(answers, list | tuple) else ()
    if len(given) != len(sizes) or not all(
        choice is None or (type(choice) is int and 0 <= choice < size)
        for choice, size in zip(given, sizes, strict=True)
    ):
        raise RoomError("These are no answers to this form: choose among the options shown.")
    return tuple(given)
