"""The last views visited, and where the search leads: never to what is no page."""

import pytest
import streamlit as st

from tests.pages import helpers
from tests.pages.helpers import in_address
from tests.pages.stage import StageManager
from ui import session, visited
from ui.page_frame import Page, View
from ui.search import entries as search_entries
from ui.search import panel


def script(page):  # type: ignore[no-untyped-def]
    from ui.page_frame import show

    show(page)


def draw() -> None:
    st.markdown("drawn")


def test_the_last_views_are_newest_first_each_once_and_few(monkeypatch) -> None:
    monkeypatch.setattr(session, "manager", StageManager)
    names = [f"view-{number}" for number in range(visited.MOST + 1)]
    views = tuple(
        View(name, helpers.text_of(name, f"What is {name}?"), draw, needs_model=False) for name in names
    )
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
        ("?home_view=published", "pages/start/home/page.py", {"home_view": "published"}),
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


def sent(address: str) -> None:
    from types import SimpleNamespace

    import streamlit as st

    from ui.search import panel

    panel.mounted = lambda *_, **__: lambda **_: SimpleNamespace(opened=address)
    st.session_state["page_drawn"] = "attention"
    panel.draw_search()


@pytest.mark.parametrize(
    "address, opened",
    [
        ("attention?attention_view=mask", "mask"),
        ("attention?attention_view=seen", "seen"),
        ("attention?attention_view=mask&owner=forged", None),
        ("attention?owner=forged&opened_files=x&measures_as=other&visited=abc", None),
        ([], None),
    ],
)
def test_the_panel_opens_what_it_listed_and_no_forged_address(address, opened, monkeypatch) -> None:
    monkeypatch.setattr(panel, "mounted", panel.mounted)  # put back after the script has replaced it
    monkeypatch.setattr(search_entries, "addresses", lambda: {"attention?attention_view=mask"})
    seen = [{"address": "attention?attention_view=seen"}]
    page = helpers.opened(sent, {"visited": seen}, address)
    state = page.session_state
    assert in_address(page, "attention_view") == opened
    assert state["owner"] == "this-browser" and state["visited"] == seen
    assert "opened_files" not in state and "measures_as" not in state


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
