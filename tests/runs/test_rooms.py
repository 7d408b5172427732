"""The room's answers: counted once a browser, changeable, bounded, and without names."""

from __future__ import annotations

import threading

import pytest

from runs.profiles import PROFILES
from runs.room_table import MAX_VOTERS, QUIET_SECONDS, RoomError
from runs.rooms import MAX_ALPHABET, MAX_CHANGES, MAX_PASSAGE, MAX_PAST, MAX_ROOMS, MAX_SECONDS, Rooms
from tests.runs.running import HERE, THERE, Asker, Clock

THREE = ["the future", "the past", "nothing"]


@pytest.fixture
def found(clock: Clock) -> Rooms:
    return Rooms(clock)


def test_each_browser_counts_once_and_may_change(found: Rooms) -> None:
    asked = found.ask("lecturer", " What does\nthe mask hide? ", THREE)
    assert (asked.text, asked.answers) == ("What does the mask hide?", tuple(THREE))
    assert asked.counts == (0, 0, 0) and asked.open
    for person, answer in (("a", 0), ("b", 0), ("c", 1), ("a", 2), ("a", 2)):
        last = found.choose(asked.room, person, 1, answer)
    assert last.counts == (1, 1, 1)
    assert (found.choice(asked.room, "a"), found.choice(asked.room, "d")) == (2, None)
    assert found.mine("lecturer") == last and found.mine("a") is None


def test_what_is_closed_counts_no_more_and_the_next_question_starts_at_nothing(found: Rooms) -> None:
    asked = found.ask("lecturer", "One?", THREE)
    found.choose(asked.room, "a", 1, 1)
    found.close("somebody else")
    assert found.look(asked.room).open
    found.close("lecturer")
    with pytest.raises(RoomError, match="closed"):
        found.choose(asked.room, "a", 1, 0)
    assert found.look(asked.room).counts == (0, 1, 0)
    again = found.ask("lecturer", "Two?", THREE[:2])
    assert (again.room, again.number, again.counts, again.open) == (asked.room, 2, (0, 0), True)
    assert found.choice(asked.room, "a") is None
    with pytest.raises(RoomError, match="has changed"):  # a phone that still shows the first
        found.choose(asked.room, "a", 1, 0)
    found.end("somebody else")
    assert found.look(asked.room)
    found.end("lecturer")
    with pytest.raises(RoomError, match="no such room"):
        found.look(asked.room)


def test_a_question_is_put_a_second_time_with_the_first_vote_beside_it_and_no_third(found: Rooms) -> None:
    def refused(owner: str = "lecturer") -> None:
        with pytest.raises(RoomError, match="a second time once it is closed, and no third time"):
            found.ask_again(owner)

    refused()  # before there is one
    first = found.ask("lecturer", "One?", THREE)
    for person, answer in (("a", 0), ("b", 0), ("c", 2)):
        found.choose(first.room, person, 1, answer)
    refused()  # while it is open
    found.close("lecturer")
    refused("somebody else")
    second = found.ask_again("lecturer")
    assert (second.before, second.counts, second.open) == ((2, 0, 1), (0, 0, 0), True)
    assert (second.text, second.answers, second.number) == (first.text, first.answers, 2)
    assert found.choice(first.room, "a") is None, "each chooses again"
    with pytest.raises(RoomError, match="has changed"):  # a phone that still shows the first vote
        found.choose(first.room, "a", 1, 0)
    for person in "abcd":
        found.choose(first.room, person, 2, 2)
    found.close("lecturer")
    refused()
    assert found.look(first.room).before == (2, 0, 1) and found.look(first.room).counts == (0, 0, 4)
    assert found.ask("lecturer", "Two?", THREE).before == ()


LETTERS = ("a", "b", " ", "e")


def answered(rooms: Rooms, text: str, answer: int, people: str = "a") -> None:
    """Asks what follows a text, lets people answer alike, and closes the vote."""
    question = rooms.ask_next("lecturer", text, LETTERS)
    for person in people:
        rooms.choose(question.room, person, question.number, answer)
    rooms.close("lecturer")


def test_a_text_goes_on_character_by_character_and_what_was_answered_stays(found: Rooms) -> None:
    first = found.ask_next("lecturer", "to b", "ab e")
    assert (first.letters, first.text, first.answers) == (True, "to b", LETTERS)
    for person, answer in (("a", 3), ("b", 3), ("c", 2)):
        found.choose(first.room, person, 1, answer)
    second = found.ask_next("lecturer", "to be", "ab e")
    assert (second.room, second.number, second.counts) == (first.room, 2, (0, 0, 0, 0))
    found.choose(first.room, "a", 2, 2)
    found.ask_next("lecturer", "to be ", "ab e")
    wanted = (("to b", (0, 0, 1, 2)), ("to be", (0, 0, 1, 0)))
    assert found.past("lecturer", "to b", LETTERS) == wanted
    assert found.past("somebody else", "to b", LETTERS) == ()
    assert found.past("lecturer", "to be", LETTERS) == (), "no passage begins there"
    assert found.past("lecturer", "to b", tuple("abe ")) == (), "in another order it is another alphabet"


def test_a_question_or_another_passage_between_leaves_what_was_answered(found: Rooms) -> None:
    answered(found, "to b", 3)
    answered(found, "to be", 2)
    wanted = (("to b", (0, 0, 0, 1)), ("to be", (0, 0, 1, 0)))
    assert not found.ask("lecturer", "Why?", THREE).letters
    assert found.past("lecturer", "to b", LETTERS) == wanted
    answered(found, "a bab", 1)
    found.ask_next("lecturer", "to be ", LETTERS)  # goes on
    assert found.past("lecturer", "to b", LETTERS) == wanted
    assert found.past("lecturer", "a bab", LETTERS) == (("a bab", (0, 1, 0, 0)),)
    found.ask("lecturer", "Why?", THREE)  # breaks the vote off, of which nothing stays
    assert found.past("lecturer", "to b", LETTERS) == wanted
    answered(found, "to be", 0)  # once more: what came after it is no longer right
    assert found.past("lecturer", "to b", LETTERS) == wanted[:1]
    answered(found, "to be ", 0)
    found.ask("lecturer", "Why?", THREE)
    again = (wanted[0], ("to be", (1, 0, 0, 0)), ("to be ", (1, 0, 0, 0)))
    assert found.past("lecturer", "to b", LETTERS) == again


def test_of_many_passages_the_oldest_are_forgotten(found: Rooms) -> None:
    for text in ("e", "a", "b"):
        for count in range(MAX_PAST // 2 - 10):
            answered(found, text + count * " ", 1, "")
    found.ask_next("lecturer", "b" + (MAX_PAST // 2 - 10) * " ", LETTERS)
    known = [len(found.past("lecturer", text, LETTERS)) for text in "eab"]
    assert known == [0, MAX_PAST // 2 - 11, MAX_PAST // 2 - 10], "of a vote without answers nothing stays"


def test_what_is_no_passage_and_no_alphabet(found: Rooms) -> None:
    for text in ("", "x" * (MAX_PASSAGE + 1), None, 7, ["a"]):
        with pytest.raises(RoomError, match="1 to 600 characters"):
            found.ask_next("lecturer", text, "ab")
    many = [chr(300 + i) for i in range(MAX_ALPHABET + 1)]
    for alphabet in ("a", "aa", "aba", many, ["a", "bc"], ["a", ""], ["a", 1], None, 7, {"a": 1, "b": 2}):
        with pytest.raises(RoomError, match="2 to 256 characters, each once"):
            found.ask_next("lecturer", "to be", alphabet)
    assert found.mine("lecturer") is None
    assert len(found.ask_next("lecturer", " \n", many[1:]).answers) == MAX_ALPHABET


def test_no_name_is_kept_and_no_two_rooms_know_the_same_person(found: Rooms) -> None:
    one, two = found.ask("x", "One?", THREE), found.ask("y", "Two?", THREE)
    for asked in (one, two):
        found.choose(asked.room, "a-secret-key", 1, 0)
    held = [set(found._rooms[asked.room].chosen) for asked in (one, two)]
    assert not held[0] & held[1] and "a-secret-key" not in repr(found._rooms)
    assert one.room != two.room and len(one.room) == 16


NO_QUESTIONS: list[tuple[object, object, str]] = [
    ("", THREE, "1 to 200 characters"),
    ("x" * 201, THREE, "1 to 200 characters"),
    (None, THREE, "1 to 200 characters"),
    ("Yes?", ["only one", " "], "2 to 5 answers, one per line; you gave 1"),
    ("Yes?", list("abcdef"), "you gave 6"),
    ("Yes?", ["a"] * 1000, "2 to 5 answers"),
    ("Yes?", "ab", "you gave 0"),
    ("Yes?", [1, {}], "you gave 0"),
    ("Yes?", ["a", "b" * 81], "at most 80 characters"),
    ("Yes?", ["a", " a "], "the same"),
]


def test_what_is_no_question_no_room_and_no_answer(found: Rooms) -> None:
    for text, answers, words in NO_QUESTIONS:
        with pytest.raises(RoomError, match=words):
            found.ask("lecturer", text, answers)
        assert found.mine("lecturer") is None
    for room in (None, "", 7, "x" * 16, "../../etc/passwd", "é" * 16, "a" * 10**6):
        with pytest.raises(RoomError, match="Scan the code again"):
            found.look(room)
    asked = found.ask("lecturer", "One?", THREE)
    for answer in (-1, 3, 1.0, "0", None, True, 10**30):
        with pytest.raises(RoomError, match="no such answer"):
            found.choose(asked.room, "a", 1, answer)
    assert found.look(asked.room).counts == (0, 0, 0)


def test_floods_end_at_the_limits(found: Rooms) -> None:
    asked = found.ask("lecturer", "One?", THREE)
    for person in range(MAX_VOTERS):
        found.choose(asked.room, str(person), 1, 0)
    with pytest.raises(RoomError, match="1,000 people have answered, the limit for one question"):
        found.choose(asked.room, "one more", 1, 0)
    with pytest.raises(RoomError, match=f"changed your answer {MAX_CHANGES} times"):
        for turn in range(MAX_CHANGES + 2):
            found.choose(asked.room, "0", 1, (turn + 1) % 2)
    assert sum(found.look(asked.room).counts) == MAX_VOTERS
    for owner in range(MAX_ROOMS - 1):
        found.ask(f"owner {owner}", "One?", THREE)
    with pytest.raises(RoomError, match=f"{MAX_ROOMS} rooms"):
        found.ask("one more", "One?", THREE)
    assert found.ask("lecturer", "Two?", THREE).number == 2  # who has a room keeps it


def test_one_address_opens_a_handful_of_rooms(clock: Clock) -> None:
    asker = Asker()
    rooms = Rooms(clock, asker, rooms_each=3)
    first = [rooms.ask(f"cookie{n}", "One?", THREE) for n in range(3)]
    with pytest.raises(RoomError, match="Your network has 3 rooms open, the limit here"):
        rooms.ask("cookie3", "One?", THREE)
    assert rooms.mine("cookie3") is None
    assert rooms.ask("cookie0", "Two?", THREE).number == 2  # who has a room keeps it
    asker.address = THERE
    lecturer = rooms.ask("lecturer", "One?", THREE)
    asker.address = ""  # not known: nobody's share
    for n in range(MAX_ROOMS - 4):
        rooms.ask(f"unknown{n}", "One?", THREE)
    with pytest.raises(RoomError, match=f"{MAX_ROOMS} rooms open"):
        rooms.ask("one more", "One?", THREE)
    asker.address = HERE
    rooms.end("cookie1")
    assert rooms.ask("cookie3", "One?", THREE).number == 1
    assert [rooms.look(room).number for room in (first[0].room, first[2].room, lecturer.room)] == [2, 1, 1]


def test_of_a_full_address_a_quiet_room_that_was_never_answered_gives_way(clock: Clock) -> None:
    rooms = Rooms(clock, lambda: HERE, rooms_each=3)
    asked = rooms.ask("lecturer", "One?", THREE)
    rooms.choose(asked.room, "a", 1, 0)
    rooms.ask("lecturer", "Two?", THREE)  # nobody has answered this one: he talks
    quiet = []
    for n in range(2):
        clock.now += 1
        quiet.append(rooms.ask(f"student{n}", "One?", THREE).room)
    clock.now += QUIET_SECONDS - 1.5
    with pytest.raises(RoomError, match="Your network has 3 rooms open"):
        rooms.ask("late", "One?", THREE)
    clock.now += 0.5
    rooms.ask("late", "One?", THREE)
    with pytest.raises(RoomError, match="no such room"):
        rooms.look(quiet[0])
    assert rooms.look(quiet[1]) and rooms.look(asked.room).number == 2


def test_one_address_answers_as_often_as_a_hall_and_no_more(clock: Clock) -> None:
    asker = Asker()
    rooms = Rooms(clock, asker, answers_each=300)
    asked = rooms.ask("lecturer", "One?", THREE)
    for person in range(300):
        rooms.choose(asked.room, str(person), 1, 0)
    with pytest.raises(
        RoomError, match="300 people on your network have answered, the limit for one question"
    ):
        rooms.choose(asked.room, "one more", 1, 0)
    assert rooms.choose(asked.room, "7", 1, 1).counts == (299, 1, 0), "a mind may be changed"
    asker.address = THERE
    assert rooms.choose(asked.room, "another hall", 1, 1).counts == (299, 2, 0)
    asker.address = ""
    for person in range(400):
        rooms.choose(asked.room, f"unknown{person}", 1, 2)
    asker.address = HERE
    rooms.ask("lecturer", "Two?", THREE)
    assert rooms.choose(asked.room, "one more", 2, 0).counts == (1, 0, 0)
    assert HERE not in repr(rooms._rooms), "no address is kept in the clear"


def test_a_hall_behind_one_address_has_its_places_and_a_stranger_not_all() -> None:
    for here in PROFILES.values():
        if here.public:
            assert 4 <= here.max_rooms_address <= MAX_ROOMS // 5
            assert 200 <= here.max_answers_address <= MAX_VOTERS // 2
        else:
            assert here.max_rooms_address == here.max_answers_address == 0, "at home nothing is limited so"


def test_a_room_that_nobody_uses_is_forgotten(found: Rooms, clock: Clock) -> None:
    asked = found.ask("lecturer", "One?", THREE)
    clock.now += MAX_SECONDS
    found.choose(asked.room, "a", 1, 0)
    clock.now += MAX_SECONDS
    assert found.look(asked.room).counts == (1, 0, 0)
    clock.now += 1
    with pytest.raises(RoomError, match="no such room"):
        found.look(asked.room)


def test_many_phones_at_once(found: Rooms) -> None:
    asked = found.ask("lecturer", "One?", THREE)

    def phone(first: int) -> None:
        for person in range(first, first + 50):
            found.choose(asked.room, str(person), 1, person % 3)

    threads = [threading.Thread(target=phone, args=(first,)) for first in range(0, 300, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.look(asked.room).counts == (100, 100, 100)
