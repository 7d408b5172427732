"""What a phone sees that follows a room's code: one question and its answers, and a sentence where there is none."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.stage.room import room as phone
from runs.rooms import Question, Rooms
from tests.pages import helpers
from ui import widgets

ANSWERS = ["the future", "the *past*", "nothing"]


def opened(room: str | None, owner: str = "a") -> AppTest:
    page = AppTest.from_file(helpers.path_of("stage/room"), default_timeout=helpers.PATIENCE)
    page.session_state["owner"] = owner
    if room is not None:
        page.query_params["id"] = room
    return helpers.ran(page)


def said(page: AppTest) -> str:
    return helpers.said(page, "caption")


def asked(rooms: Rooms) -> Question:
    return rooms.ask("lecturer", "What does the mask hide?", ANSWERS)


def test_an_answer_is_chosen_changed_and_counted_once(rooms: Rooms) -> None:
    room = asked(rooms).room
    page = opened(room)
    assert [header.value for header in page.header] == ["What does the mask hide?"]
    assert [button.label for button in page.button] == ["the future", "the \\*past\\*", "nothing"]
    assert "Choose one. Your name is not recorded." in said(page)
    page.button[1].click().run()
    assert rooms.look(room).counts == (0, 1, 0) and "You chose “the \\*past\\*”" in said(page)
    page.button[0].click().run()
    assert rooms.look(room).counts == (1, 0, 0) and "You chose “the future”" in said(page)
    opened(room, "b").button[2].click().run()
    assert rooms.look(room).counts == (1, 0, 1)
    again = opened(room)  # the same phone, a reload later
    assert "You chose “the future”" in said(again)
    assert [button.proto.type for button in again.button] == ["primary", "secondary", "secondary"]


def test_a_closed_question_says_how_many_answered(rooms: Rooms) -> None:
    room = asked(rooms).room
    page = opened(room)
    page.button[0].click().run()
    rooms.close("lecturer")
    page.run()
    assert all(button.disabled for button in page.button)
    assert "The question is closed. One person answered." in said(page)
    other = rooms.ask("lecturer", "And what else?", ANSWERS[:2])
    rooms.choose(room, "c", other.number, 0)
    rooms.choose(room, "d", other.number, 1)
    rooms.close("lecturer")
    page.run()
    assert [header.value for header in page.header] == ["And what else?"] and len(page.button) == 2
    assert "The question is closed. 2 people answered." in said(page)


def test_a_phone_is_told_that_it_is_the_second_vote_and_chooses_anew(rooms: Rooms) -> None:
    room, notice = asked(rooms).room, "The second vote on this question: discuss it first"
    page = opened(room)
    assert notice not in said(page)
    page.button[0].click().run()
    rooms.close("lecturer")
    rooms.ask_again("lecturer")
    page.run()
    assert notice in said(page) and "Choose one." in said(page)
    page.button[1].click().run()
    assert rooms.look(room).counts == (0, 1, 0) and rooms.look(room).before == (1, 0, 0)
    rooms.close("lecturer")
    page.run()
    assert notice not in said(page)


def test_a_phone_gets_the_text_so_far_and_a_keyboard_where_the_next_character_is_asked_for(
    rooms: Rooms,
) -> None:
    question = rooms.ask_next("lecturer", "to be, ", [*"abo ", "\n"])
    page = opened(question.room)
    assert helpers.sent(page, "letters") == {
        "text": "to be, ", "alphabet": ["a", "b", "o", " ", "\n"], "chosen": None, "open": True,
    }  # fmt: skip
    assert not page.button and "What comes next? Choose a character." in said(page)
    rooms.choose(question.room, "a", 1, 4)
    page.run()
    assert helpers.sent(page, "letters")["chosen"] == 4 and "You chose “⏎”" in said(page)
    rooms.close("lecturer")
    page.run()
    assert not helpers.sent(page, "letters")["open"] and "The question is closed." in said(page)


@pytest.mark.parametrize("sent", [2, -1, 5, "2", None, True, {"a": 1}, 10**30])
def test_a_key_that_is_none_of_the_keyboard_counts_nothing(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch, sent: object
) -> None:
    question = rooms.ask_next("lecturer", "to be, ", [*"abo ", "\n"])
    monkeypatch.setattr(widgets, "picked", lambda key, name: sent)
    monkeypatch.setattr("streamlit.toast", lambda *_, **__: None)
    phone._choose_letter(question, "a")
    assert sum(rooms.look(question.room).counts) == (sent == 2)


def test_a_button_of_the_last_question_counts_nothing(rooms: Rooms) -> None:
    room = asked(rooms).room
    page = opened(room)
    rooms.ask("lecturer", "And what else?", ANSWERS[:2])
    page.button[0].click().run()
    assert rooms.look(room).counts == (0, 0)
    assert any("The question has changed" in toast.value for toast in page.toast)
