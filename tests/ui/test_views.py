"""The list of all views: what a page draws is in it, with the questions that it may ask."""

import re
from typing import Any

import pytest

from tests.pages.helpers import opened
from tests.pages.stage import StageManager
from ui import page_frame, session, site
from ui.page_frame import View
from ui.site import ROOT
from ui.views import Listed, views

LINK = re.compile(r'([a-z]+_view)(?:="|": "|=)([a-z-]+)(?=["&\s])')  # in a call, a mapping or an address


def test_every_page_is_in_the_list_and_every_view_has_a_question_of_its_own() -> None:
    assert {one.entry.url for one in views()} == {entry.url for entry in site.built()}
    assert len({one.id for one in views()}) == len(views()) >= 70
    for one in views():
        assert one.asks and all(re.search(r"\w.*\?$", ask.question) for ask in one.asks), one.id
        assert len({one.address(ask) for ask in one.asks}) == len(one.asks), one.id


SEVERAL = [(one, ask) for one in views() for ask in one.asks[1:]]


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view writes its question and draws nothing below it."""

    def ask(view: View, question: Any, *about: Any) -> None:
        if view.asks_late:
            view.ask(question, *about)

    monkeypatch.setattr(page_frame, "_within", ask)
    monkeypatch.setattr(session, "manager", StageManager)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "one, ask", SEVERAL, ids=lambda given: getattr(given, "id", getattr(given, "question", ""))
)
def test_a_question_of_several_is_the_one_on_the_screen_of_its_address(one, ask) -> None:
    assert questions(one, **dict(ask.query)) == [ask.question]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("one", dict.fromkeys(one for one, _ in SEVERAL), ids=lambda one: one.id)
def test_a_view_of_several_questions_opens_with_its_first(one) -> None:
    later = {ask.question for ask in one.asks} - {one.question}
    (shown,) = questions(one)
    assert shown not in later  # the first may name the model that is shown


def questions(one: Listed, **query: str) -> list[str]:
    query |= {one.page.key: one.view.id} if one.page.key else {}
    return [each.value for each in opened(str(site.ROOT / one.entry.path), **query).header]


def test_every_link_in_the_source_names_a_view_of_its_page() -> None:
    ids: dict[str, set[str]] = {}
    for one in views():
        ids.setdefault(one.page.key, set()).add(one.view.id)
    links = [
        (f"{path.relative_to(ROOT)}:{number}", key, view)
        for folder in ("engine", "studies", "runs", "pages", "ui")
        for path in (ROOT / folder).rglob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for key, view in LINK.findall(line)
    ]
    assert len(links) > 50
    assert [link for link in links if link[1] in ids and link[2] not in ids[link[1]]] == []
