"""A quiz in a room: counted once a browser, in two forms that nothing joins, bounded, and without names."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from runs.quizzes import FIRST, MAX_QUIZZES, MAX_SECONDS, MAX_SENT, SECOND, Quiz, Quizzes
from runs.room_table import MAX_VOTERS, RoomError
from tests.runs.running import Clock

SIZES = ((4, 3), (4, 3))  # two questions, of four options and of three
HOUR = 3600


@pytest.fixture
def quizzes(clock: Clock) -> Quizzes:
    return Quizzes(clock)


def opened(quizzes: Quizzes, form: int = FIRST) -> Quiz:
    quizzes.start("lecturer", 7, SIZES)
    return quizzes.hand_out("lecturer", form)


def test_each_browser_counts_once_and_its_last_answers_hold(quizzes: Quizzes) -> None:
    quiz = opened(quizzes)
    assert (quiz.seed, quiz.form, quiz.open, quiz.finished) == (7, FIRST, True, False)
    for person, answers in (("a", [0, None]), ("b", [0, 2]), ("a", [3, 2]), ("c", [None, 1])):
        quiz = quizzes.answer(quiz.room, person, FIRST, answers)
    assert quiz.counts[FIRST].people == 3 and quiz.complete == 2
    assert quiz.counts[FIRST].counts == ((1, 0, 0, 1), (0, 1, 2))
    assert quiz.counts[SECOND].people == 0 and quiz.counts[SECOND].counts == ((0, 0, 0, 0), (0, 0, 0))
    assert quizzes.answers(quiz.room, "a") == (3, 2) and quizzes.answers(quiz.room, "d") == ()
    assert quizzes.mine("lecturer") == quiz and quizzes.mine("a") is None


def test_a_browser_that_has_answered_nothing_is_nobody(quizzes: Quizzes) -> None:
    quiz = opened(quizzes)
    assert quizzes.answer(quiz.room, "a", FIRST, [None, None]).counts[FIRST].people == 0
    quizzes.answer(quiz.room, "a", FIRST, [1, None])
    quiz = quizzes.answer(quiz.room, "a", FIRST, [None, None])  # taken back: still somebody who was asked
    assert quiz.counts[FIRST].people == 1 and quiz.counts[FIRST].counts == ((0, 0, 0, 0), (0, 0, 0))


def test_a_closed_form_counts_nothing_and_may_be_opened_again(quizzes: Quizzes) -> None:
    quiz = opened(quizzes)
    quizzes.answer(quiz.room, "a", FIRST, [1, 1])
    quizzes.close("somebody else")
    assert quizzes.look(quiz.room).open
    quizzes.close("lecturer")
    with pytest.raises(RoomError, match="closed"):
        quizzes.answer(quiz.room, "b", FIRST, [1, 1])
    quizzes.hand_out("lecturer", FIRST)
    quiz = quizzes.answer(quiz.room, "a", FIRST, [2, 1])
    assert quiz.counts[FIRST].people == 1 and quiz.counts[FIRST].counts[0] == (0, 0, 1, 0)


def test_nothing_joins_the_second_form_to_the_first(quizzes: Quizzes) -> None:
    quiz = opened(quizzes)
    quizzes.answer(quiz.room, "a-secret-key", FIRST, [1, 2])
    quizzes.close("lecturer")
    quiz = quizzes.hand_out("lecturer", SECOND)
    held = quizzes._rooms[quiz.room]
    assert not held.chosen and not held.sent and not held.voters, "whose the first answers were is forgotten"
    assert quiz.counts[FIRST].counts == ((0, 1, 0, 0), (0, 0, 1)) and quiz.counts[FIRST].people == 1
    quiz = quizzes.answer(quiz.room, "a-secret-key", SECOND, [0, 0])
    assert quiz.counts[FIRST].counts == ((0, 1, 0, 0), (0, 0, 1))
    assert quiz.counts[SECOND].counts == ((1, 0, 0, 0), (1, 0, 0))
    assert "a-secret-key" not in repr(quizzes._rooms)
    with pytest.raises(RoomError, match="has changed"):  # a phone that still shows the first
        quizzes.answer(quiz.room, "b", FIRST, [0, 0])
    with pytest.raises(RoomError, match="cannot be opened after the second"):
        quizzes.hand_out("lecturer", FIRST)
    quizzes.close("lecturer")
    assert quizzes.look(quiz.room).finished


def test_the_second_form_may_be_taken_alone(quizzes: Quizzes) -> None:
    quiz = opened(quizzes, SECOND)
    quiz = quizzes.answer(quiz.room, "a", SECOND, [1, None])
    assert [each.people for each in quiz.counts] == [0, 1]


def test_no_form_is_open_before_the_lecturer_opens_it(quizzes: Quizzes) -> None:
    quiz = quizzes.start("lecturer", 1, SIZES)
    assert quiz.form is None and not quiz.open and not quiz.finished
    with pytest.raises(RoomError, match="has changed"):
        quizzes.answer(quiz.room, "a", FIRST, [0, 0])
    with pytest.raises(RoomError, match="Your room has ended"):
        quizzes.hand_out("nobody", FIRST)
    for form in (2, -1, None, "0"):
        with pytest.raises(RoomError):
            quizzes.hand_out("lecturer", form)  # type: ignore[arg-type]
        assert quizzes.look(quiz.room).form is None


FORGED: list[Any] = [
    None,
    7,
    "00",
    {},
    [0],
    [0, 0, 0],
    [0, 3],
    [4, 0],
    [-1, 0],
    [0.0, 0],
    [True, 0],
    ["0", 0],
    [[0], 0],
    [10**30, 0],
    [0] * 10**6,
]


def test_what_is_no_answer_counts_nothing(quizzes: Quizzes) -> None:
    quiz = opened(quizzes)
    for answers in FORGED:
        with pytest.raises(RoomError, match="no answers to this form"):
            quizzes.answer(quiz.room, "a", FIRST, answers)
    for form in (None, "0", 0.0, False, SECOND, 10**30, []):
        with pytest.raises(RoomError, match="has changed"):
            quizzes.answer(quiz.room, "a", form, [0, 0])
    for room in (None, "", 7, "x" * 16, "../../etc/passwd", "a" * 10**6):
        with pytest.raises(RoomError, match="no such room"):
            quizzes.answer(room, "a", FIRST, [0, 0])
    counts = quizzes.look(quiz.room).counts[FIRST]
    assert counts.people == 0 and counts.counts == ((0, 0, 0, 0), (0, 0, 0))
    for sizes in ((), ((4,),), ((4,), ()), ((1,), (4,)), ((4,) * 41, (4,)), ((9,), (4,))):
        with pytest.raises(RoomError, match="two forms"):
            quizzes.start("other", 1, sizes)
    assert quizzes.mine("other") is None


def test_floods_end_at_the_limits(quizzes: Quizzes) -> None:
    quiz = opened(quizzes)
    for person in range(MAX_VOTERS):
        quizzes.answer(quiz.room, str(person), FIRST, [0, 0])
    with pytest.raises(RoomError, match="1,000 people have answered, the limit for one form"):
        quizzes.answer(quiz.room, "one more", FIRST, [0, 0])
    with pytest.raises(RoomError, match=f"changed your answers {MAX_SENT} times"):
        for turn in range(MAX_SENT + 1):
            quizzes.answer(quiz.room, "0", FIRST, [turn % 2, 0])
    assert quizzes.look(quiz.room).counts[FIRST].people == MAX_VOTERS
    for owner in range(MAX_QUIZZES - 1):
        quizzes.start(f"owner {owner}", 1, SIZES)
    with pytest.raises(RoomError, match=f"{MAX_QUIZZES} rooms"):
        quizzes.start("one more", 1, SIZES)
    assert quizzes.start("lecturer", 2, SIZES).seed == 2, "who has a room gets another in its stead"


def test_a_room_waits_through_a_lecture_and_is_forgotten_after_a_day(quizzes: Quizzes, clock: Clock) -> None:
    quiz = opened(quizzes)
    quizzes.answer(quiz.room, "a", FIRST, [1, 1])
    quizzes.close("lecturer")
    clock.now += 4 * HOUR
    assert quizzes.hand_out("lecturer", SECOND).counts[FIRST].people == 1
    clock.now += MAX_SECONDS
    quizzes.answer(quiz.room, "a", SECOND, [0, 0])
    clock.now += MAX_SECONDS + 1
    with pytest.raises(RoomError, match="no such room"):
        quizzes.look(quiz.room)
    assert 4 * HOUR < MAX_SECONDS <= 24 * HOUR


def test_many_phones_at_once(quizzes: Quizzes) -> None:
    quiz = opened(quizzes)

    def phone(first: int) -> None:
        for person in range(first, first + 50):
            for answers in ([0, None], [person % 4, None], [person % 4, person % 3]):
                quizzes.answer(quiz.room, str(person), FIRST, answers)

    threads = [threading.Thread(target=phone, args=(first,)) for first in range(0, 300, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert quizzes.look(quiz.room).counts[FIRST].counts == ((75, 75, 75, 75), (100, 100, 100))
