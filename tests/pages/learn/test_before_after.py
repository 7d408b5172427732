"""The view "Before and after": what a browser is sent of the test and when, a class's room, and the phones in it."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.learn.exercises import with_a_class
from pages.stage.room import room as phone
from runs.quizzes import FIRST, SECOND, Counts, Quiz, Quizzes
from studies.inventory.gain import gain
from tests.pages import helpers
from tests.pages.conftest import Drawn
from tests.pages.rooms import views
from ui import inventory, session, site

pytestmark = pytest.mark.usefixtures("manager")
LECTURER, PHONES = "this-browser", ("a", "b", "c", "d")


@pytest.fixture
def quizzes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Quizzes]:
    made = Quizzes()
    monkeypatch.setattr(session, "quizzes", lambda: made)
    yield made


def alone(**query: str) -> AppTest:
    return helpers.opened("learn/exercises", exercises_view="before", **query)


def in_class(**query: str) -> AppTest:
    return alone(before_for="class", **query)


def on_phone(room: str, owner: str) -> AppTest:
    page = AppTest.from_file(helpers.path_of("stage/room"), default_timeout=helpers.PATIENCE)
    page.session_state["owner"] = owner
    page.query_params[inventory.QUERY] = room
    return helpers.ran(page)


def test_somebody_alone_gets_both_forms_of_the_seed_with_their_key() -> None:
    page = alone(before_seed="3")
    data = helpers.sent(page, "inventory")
    assert data["who"] == "alone/3" and data["room"] is None
    for shown, made in zip(data["forms"], inventory.forms(3), strict=True):
        assert [each["text"] for each in shown] == [each.text for each in made]
        assert [each["right"] for each in shown] == [each.right for each in made]
        for each, question in zip(shown, made, strict=True):
            assert [o["text"] for o in each["options"]] == [o.text for o in question.options]
            assert [o["belief"] for o in each["options"]] == [o.misconception for o in question.options]
            assert [i for i, o in enumerate(each["options"]) if not o["belief"]] == [each["right"]]
    assert data["sizes"] == [[len(each["options"]) for each in form] for form in data["forms"]]
    assert "Each of the **14** questions has wrong options that many people believe" in helpers.said(page)
    assert "14 questions, about 8 minutes." in data["words"]["start"]


def test_every_misconception_leads_to_a_view() -> None:
    for question in inventory.forms(1)[1]:
        entry = site.entry_of(question.page)
        assert entry is not None
        key, ids = views(question.page)
        assert question.query[key] in ids, question.id
        page = helpers.opened(entry.file.removesuffix("/page.py"), **question.query)
        assert not page.error and not page.warning, question.id
        for name in ("text", "attention_off", "model"):
            if name in question.query:
                assert helpers.in_address(page, name) == question.query[name], (question.id, name)
        if "why_sentence" in question.query:
            assert page.text_input(key="why_sentence").value == question.query["why_sentence"]


def payload(quiz: Quiz | None) -> dict[str, Any]:
    return inventory.payload("x", inventory.forms(1), {}, quiz, ())


def holds_key(data: Mapping[str, Any]) -> bool:
    return any(word in json.dumps(data) for word in ('"right"', '"belief"', '"reason"', '"address"'))


def test_a_room_tells_no_answer_until_the_second_form_is_closed(quizzes: Quizzes) -> None:
    sizes = inventory.sizes(inventory.forms(1))
    quiz = quizzes.start(LECTURER, 1, sizes)
    first, second = ([each.text for each in form] for form in inventory.forms(1))
    seen = []
    for act in (
        lambda: quizzes.hand_out(LECTURER, FIRST),
        lambda: quizzes.close(LECTURER),
        lambda: quizzes.hand_out(LECTURER, SECOND),
    ):
        seen.append(payload(quiz))
        act()
        quiz = quizzes.look(quiz.room)
    seen.append(payload(quiz))
    assert not any(map(holds_key, seen))
    told = [[[each["text"] for each in form] for form in data["forms"]] for data in seen]
    assert told == [[[], []], [first, []], [[], []], [[], second]]
    quizzes.close(LECTURER)
    after = payload(quizzes.look(quiz.room))
    assert holds_key(after) and [[each["text"] for each in f] for f in after["forms"]] == [first, second]
    assert holds_key(payload(None))


def test_a_lecturer_leads_a_class_through_both_forms(quizzes: Quizzes, drawn: dict[str, Drawn]) -> None:
    page = in_class(before_seed="2")
    assert "A room collects counts for each question, before and after, and no names." in helpers.said(page)
    page = helpers.clicked(page, "quiz_start")
    quiz = quizzes.mine(LECTURER)
    assert quiz is not None and quiz.seed == 2
    assert helpers.in_address(page, inventory.QUERY) == quiz.room
    before, after = inventory.forms(2)
    wrong = [(question.right + 1) % len(question.options) for question in after]
    names = [option.name for option in before[-1].options]
    earlier = names.index(after[-1].options[wrong[-1]].name)

    page = helpers.clicked(page, "quiz_first")
    for person in PHONES:
        quizzes.answer(quiz.room, person, FIRST, [before[0].right, None, *[0] * 11, earlier])
    page = helpers.ran(page)
    metrics = [("Answering the first form", "4"), ("With every answer", "0")]
    assert [(metric.label, metric.value) for metric in page.metric] == metrics
    page = helpers.clicked(page, "quiz_close")
    assert "The first form is closed, and its counts are safe while the room is open." in helpers.said(page)
    assert not drawn, "no share is shown before the second form"

    page = helpers.clicked(page, "quiz_second")
    for person in PHONES[:3]:
        quizzes.answer(quiz.room, person, SECOND, [question.right for question in after])
    quizzes.answer(quiz.room, PHONES[3], SECOND, [*[question.right for question in after[:-1]], wrong[-1]])
    page = helpers.clicked(page, "quiz_close")
    right = sum(question.right == 0 for question in before[2:-1]) + 1
    belief = after[-1].options[wrong[-1]].misconception
    said = helpers.unescaped(page)
    assert f"The class went from **{right:.1f}** to **13.8** of 14. What stayed most: “{belief}”" in said
    g = (13.75 - right) / (14 - right)
    assert [(metric.label, metric.value) for metric in page.metric] == [("Hake's gain", f"g = {g:.2f}")]
    assert f"[{belief}](/" in said and "**25%**" in said
    figure = drawn["quiz_gain"]
    assert figure.table is not None and figure.table["question"] == [question.title for question in after]
    assert figure.table["before"][:2] == [1, 0] and figure.table["after"] == [1] * 13 + [0.75]
    dots = {trace["name"]: trace for trace in figure.traces if trace["mode"] == "markers"}
    order = sorted(range(14), key=lambda i: figure.table["before"][i] - figure.table["after"][i])  # type: ignore[index]
    assert dots["before"]["x"] == [figure.table["before"][i] for i in order]
    assert dots["after"]["x"] == [figure.table["after"][i] for i in order]
    assert "14 questions" in figure.alt
    rows = helpers.opened("learn/exercises", exercises_view="before", before_for="class", measure="true")
    options = rows.dataframe[0].value
    last = options[options["Question"] == after[-1].title]
    assert dict(zip(last["Misconception"], last["after"], strict=True))[belief] == 0.25
    assert [text for text in options["Option in the second form"] if text.startswith("✓ ")] == [
        f"✓ {question.options[question.right].text}" for question in after
    ]
    page = helpers.clicked(page, "quiz_end")
    assert quizzes.mine(LECTURER) is None and helpers.in_address(page, inventory.QUERY) is None
    assert page.button(key="quiz_start")


def shown(*answers: Counts) -> str:
    both = inventory.forms(1)
    return with_a_class._answer(gain(*both, answers))  # type: ignore[arg-type]


def test_the_claim_says_what_there_is() -> None:
    first, second = inventory.forms(1)
    nobody = [Counts(0, tuple((0,) * len(q.options) for q in form)) for form in (first, second)]
    everybody = [
        Counts(1, tuple(tuple(int(i == q.right) for i in range(len(q.options))) for q in form))
        for form in (first, second)
    ]
    assert "Nobody took the second form" in shown(*nobody) and "Nobody took" in shown(everybody[0], nobody[1])
    assert "The class has **14.0** of 14 right. Nobody took the first form here" in shown(
        nobody[0], everybody[1]
    )
    assert "from **14.0** to **14.0** of 14, and no misconception stayed" in shown(*everybody)
    alone_ = gain(first, second, (nobody[0], everybody[1]))
    assert [t["name"] for t in with_a_class.figure(alone_).traces] == ["after"]
    assert with_a_class.figure(alone_).checked


def test_the_csv_holds_both_forms_and_nobody(quizzes: Quizzes, monkeypatch: pytest.MonkeyPatch) -> None:
    both = inventory.forms(1)
    quiz = quizzes.start("lecturer", 1, inventory.sizes(both))
    quizzes.hand_out("lecturer", FIRST)
    quizzes.answer(quiz.room, "a-secret-key", FIRST, [1] * 14)
    offered: list[Any] = []
    take = lambda _, data, name, *rest, **named: offered.append((data, name))  # noqa: E731
    monkeypatch.setattr(with_a_class, "st", SimpleNamespace(download_button=take))
    with_a_class._save(quizzes.look(quiz.room))
    ((data, name),) = offered
    rows = list(csv.DictReader(io.StringIO(data())))
    assert name == "before-and-after-1.csv" and "a-secret-key" not in data()
    its = [row for row in rows if row["form"] == "before" and row["question"] == both[0][0].id]
    assert [row["chosen"] for row in its] == ["0", "1", "0", "0", "0"] and its[0]["people"] == "1"
    assert its[1]["option"] == both[0][0].options[1].text and its[-1]["option"] == ""
    assert sum(int(row["chosen"]) for row in rows if row["form"] == "after") == 0


def test_a_stage_s_code_leads_phones_from_the_view_to_the_room(quizzes: Quizzes) -> None:
    room = quizzes.start("somebody else", 1, inventory.sizes(inventory.forms(1))).room
    page = in_class(quiz=room)
    (link,) = page.get("link_button")
    assert link.proto.url == f"room?quiz={room}"
    assert "This is the screen of a lecturer's room" in helpers.said(page)
    assert not page.button
    page = in_class(quiz="x" * 16)  # one that has ended: a room may be opened
    assert helpers.in_address(page, inventory.QUERY) is None and page.button(key="quiz_start")


def test_a_phone_answers_and_comes_back_to_its_answers(quizzes: Quizzes) -> None:
    both = inventory.forms(1)
    room = quizzes.start("lecturer", 1, inventory.sizes(both)).room
    page = on_phone(room, "a")
    data = helpers.sent(page, "inventory")
    assert data["room"] == {"form": None, "open": False, "held": []} and data["who"] == room
    assert "The test has not begun yet" in data["words"]["wait"]
    quizzes.hand_out("lecturer", FIRST)
    quizzes.answer(room, "a", FIRST, [2, None, *[1] * 12])
    data = helpers.sent(on_phone(room, "a"), "inventory")
    assert data["room"] == {"form": FIRST, "open": True, "held": [2, None, *[1] * 12]}
    assert helpers.sent(on_phone(room, "b"), "inventory")["room"]["held"] == []
    quizzes.end("lecturer")
    page = helpers.ran(page)
    assert "There is no such room" in helpers.said(page, "info")


MESSAGES: list[Any] = [
    None,
    7,
    "x",
    {},
    {"form": 0},
    {"form": 0, "answers": "00"},
]


def test_what_a_phone_sends_is_checked(quizzes: Quizzes, monkeypatch: pytest.MonkeyPatch) -> None:
    room = quizzes.start("lecturer", 1, inventory.sizes(inventory.forms(1))).room
    quizzes.hand_out("lecturer", FIRST)
    toasts: list[str] = []
    held: dict[str, Any] = {}
    screen = SimpleNamespace(toast=lambda text, **_: toasts.append(text))
    monkeypatch.setattr(phone, "st", screen)
    monkeypatch.setattr(phone.widgets, "picked", lambda key, name: held.get(name))
    for message in MESSAGES:
        held["answered"] = message
        phone._answer(room, "a")
        assert quizzes.look(room).counts[FIRST].people == 0
    assert len(toasts) == sum(isinstance(message, dict) for message in MESSAGES)
    held["answered"] = {"form": 0, "answers": [0] * 14}
    phone._answer(room, "a")
    assert quizzes.look(room).counts[FIRST].people == 1
    phone._answer("gone", "a")
    assert "There is no such room" in toasts[-1]


def test_rooms_have_the_limits_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_QUIZZES", [])
    made = session.quizzes()
    assert made is session.quizzes() and isinstance(made, Quizzes)
    profile = session.manager().profile
    assert (made._rooms_each, made._answers_each) == (profile.max_rooms_address, profile.max_answers_address)
