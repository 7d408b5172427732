"""The list of all views: what a page draws is in it, with the questions that it may ask."""

import re

import pytest

from tests.pages.helpers import opened
from tests.pages.stage import StageManager
from ui import session, site
from ui.views import views


def test_every_page_is_in_the_list_and_every_view_has_a_question_of_its_own() -> None:
    assert {one.entry.url for one in views()} == {entry.url for entry in site.built()}
    assert len({one.id for one in views()}) == len(views()) >= 70
    for one in views():
        assert one.asks and all(re.search(r"\w.*\?$", ask.question) for ask in one.asks), one.id
        assert not one.asks[0].query, f"{one.id}: it opens with its first question"
        assert len({one.address(ask) for ask in one.asks}) == len(one.asks), one.id


SEVERAL = [(one, ask) for one in views() for ask in one.asks[1:]]


@pytest.mark.parametrize(
    "one, ask", SEVERAL, ids=lambda given: getattr(given, "id", getattr(given, "question", ""))
)
def test_a_question_of_several_is_the_one_on_the_screen_of_its_address(one, ask, monkeypatch) -> None:
    monkeypatch.setattr(session, "manager", StageManager)
    query = ({one.page.key: one.view.id} if one.page.key else {}) | dict(ask.query)
    assert [each.value for each in opened(str(site.ROOT / one.entry.path), **query).header] == [ask.question]
