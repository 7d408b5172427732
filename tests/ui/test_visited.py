"""The last views visited, and where the search leads: never to what is no page."""

import pytest
import streamlit as st

from tests.pages import helpers
from tests.pages.helpers import in_address
from tests.pages.stage import StageManager
from ui import session, visited
from ui.page_frame import Page, View
from ui.search import panel


def script(page):  # type: ignore[no-untyped-def]
    from ui.page_frame import show

    show(page)


def draw() -> None:
    st.markdown("drawn")


def test_the_last_views_are_newest_first_each_once_and_few(monkeypatch) -> None:
    monkeypatch.setattr(session, "manager", StageManager)
    names = [f"view-{number}" for number in range(visited.MOST + 1)]
    views = tuple(View(name, name, draw, needs_model=False, question=f"What is {name}?") for name in names)
    page = helpers.opened(script, None, Page("Home", "home_view", views))
    for name in (*names[1:], names[3], names[3]):
        page.get_by_key("home_view").set_value(name).run()
    rows = page.session_state["visited"]
    expected = [names[3], *(name for name in reversed(names) if name != names[3])][: visited.MOST]
    assert [row["address"] for row in rows] == [f"?home_view={name}" for name in expected]
    assert rows[0]["title"] == "Home > view-3" and rows[0]["detail"] == "What is view-3?"
    assert {row["first"] for row in rows} == {"view-0"}


def opening(address: str, drawn: str) -> None:
    import streamlit as st

    from ui.search.panel import open_address

    st.session_state["page_drawn"] = drawn
    open_address(address)


@pytest.mark.parametrize(
    "address, path, query",
    [
        ("sampling?sampling_view=stages", "pages/output/sampling/page.py", {"sampling_view": "stages"}),
        ("?home_view=both", "pages/start/home/page.py", {"home_view": "both"}),
        ("attention?attention_view=mask", "", {}),
        ("https://example.org/", "", {}),
        ("../secret", "", {}),
    ],
)
def test_an_address_opens_its_page_and_what_is_no_page_opens_nothing(
    address, path, query, monkeypatch
) -> None:
    gone: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(
        panel.st, "switch_page", lambda to, query_params: gone.append((to, dict(query_params)))
    )
    helpers.opened(opening, None, address, "attention", attention_view="heads", model="m")
    assert gone == ([(path, query)] if path else [])


def test_a_view_of_the_same_page_leaves_all_else_of_its_address() -> None:
    page = helpers.opened(
        opening,
        None,
        "attention?attention_view=mask",
        "attention",
        attention_view="heads",
        attention_layer="1",
    )
    assert in_address(page, "attention_view") == page.session_state["attention_view"] == "mask"
    assert in_address(page, "attention_layer") == "1"
