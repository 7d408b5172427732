"""The frame of a page: a view that fails leaves the rest alive, words come after the view, links name views."""

import logging
import re
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine.parts.norms import RMSNorm
from tests.pages import helpers
from tests.pages.helpers import in_address
from tests.pages.stage import StageManager, open_page
from ui import page_frame, session
from ui.page_frame import Page, View, Words

WORDS = Words("What is seen.", "Why it matters.", "What to try.")


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "manager", StageManager)


def good(*subject: Any) -> None:
    st.markdown("good: " + (subject[0].text[:5] if subject else "no model"))


def bad(*subject: Any, **_: Any) -> None:
    st.markdown("begun")
    raise KeyError("a fault of ours")


def stops(*subject: Any) -> None:
    st.markdown("stopped on purpose")
    st.stop()


def script(page):  # type: ignore[no-untyped-def]
    from ui.page_frame import show

    show(page)


def opened(*views: View, model: str = "", **query: str) -> AppTest:
    shown = Page("A title", "view", views, **({"model": model} if model else {}))
    return open_page(AppTest.from_function(script, args=(shown,), default_timeout=60), **query)


def said(page: AppTest) -> list[str]:
    return [str(element.value) for element in page.markdown]


@pytest.mark.parametrize("needs_model", [True, False])
def test_a_view_that_raises_leaves_the_rest_of_the_page_alive(needs_model, caplog) -> None:
    views = (
        View("bad", "Bad", bad, WORDS, (RMSNorm,), needs_model),
        View("good", "Good", good, WORDS, (), needs_model),
    )
    page = opened(*views, words="true")
    assert page.title[0].value == "A title" and "begun" in said(page)
    assert "**What you see**\n\nWhat is seen." in said(page) and page.expander[-1].label == "Show the code"
    assert bool(page.text_area) == needs_model
    assert len(page.error) == 1 and "the fault is ours" in page.error[0].value
    number = re.search(r"\*\*([0-9a-f]{8})\*\*", page.error[0].value)
    assert number is not None
    records = [record for record in caplog.records if number[1] in record.getMessage()]
    assert len(records) == 1 and records[0].levelno == logging.ERROR and records[0].exc_info is not None
    assert isinstance(records[0].exc_info[1], KeyError) and "a fault of ours" in caplog.text
    assert "a fault of ours" not in page.error[0].value and "KeyError" not in page.error[0].value
    page.get_by_key("view").set_value("good").run()
    assert not page.exception and not page.error and any(text.startswith("good") for text in said(page))


def test_a_bar_that_raises_leaves_the_title(monkeypatch, caplog) -> None:
    monkeypatch.setattr(page_frame, "choose_subject", bad)
    page = opened(View("good", "Good", good))
    assert page.title[0].value == "A title" and len(page.error) == 1 and "a fault of ours" in caplog.text
    assert page.header[0].value == "Good"


def test_stopping_and_running_again_are_no_faults(caplog) -> None:
    page = opened(View("stops", "Stops", stops, WORDS, needs_model=False))
    assert "stopped on purpose" in said(page) and not page.error and "could not be drawn" not in caplog.text

    def again() -> None:
        st.session_state["runs"] = st.session_state.get("runs", 0) + 1
        if st.session_state["runs"] < 3:
            st.rerun()
        st.markdown(f"run {st.session_state['runs']}")

    page = opened(View("again", "Again", again, needs_model=False))
    assert "run 3" in said(page) and not page.error


@pytest.mark.parametrize("needs_model", [True, False])
def test_words_and_code_come_after_the_view(needs_model) -> None:
    page = opened(View("good", "Good", good, WORDS, (RMSNorm, page_frame.show), needs_model), words="true")
    texts = said(page)
    at = next(i for i, text in enumerate(texts) if text.startswith("good"))
    heads = [text.split("**")[1] for text in texts[at + 1 :]]
    assert heads == ["What you see", "Why it matters", "What to try"]
    assert page.expander[-1].label == "Show the code" and not page.code  # it is sent when it is opened
    assert "RMSNorm" not in helpers.said(page, "caption")
    page.session_state["code"] = True
    page.run()
    assert [code.value.splitlines()[0] for code in page.code] == [
        "class RMSNorm(nn.Module):",
        "def show(page: Page) -> None:",
    ]


THREE = tuple(
    View(
        name,
        f"{name.title()}, a title?",
        lambda *subject, name=name: st.markdown(f"view {name}"),
        needs_model=False,
    )
    for name in ("one", "two", "three")
)


@pytest.mark.parametrize(
    ("named", "shown", "kept"),
    [
        (None, "one", None),
        ("two", "two", "two"),
        ("Two, a title?", "two", "two"),
        ("One, a title?", "one", None),
        ("four", "one", None),
        ("<script>", "one", None),
    ],
)
def test_a_link_names_a_view_by_its_id_or_its_title(named, shown, kept) -> None:
    page = opened(*THREE, **({} if named is None else {"view": named}))
    assert said(page) == [f"view {shown}"] and in_address(page, "view") == kept
    assert page.get_by_key("view").options == [view.title for view in THREE]


def test_a_mixed_page_has_the_bar_where_a_view_needs_it() -> None:
    views = (View("plain", "Plain", good, needs_model=False), View("inside", "Inside", good, WORDS))
    page = opened(*views)
    assert not page.text_area and "good: no model" in said(page)
    page.get_by_key("view").set_value("inside").run()
    page.session_state["words"] = True
    page.run()
    assert not page.exception and page.text_area(key="text").value.startswith("First")
    assert "good: First" in said(page) and "**What you see**\n\nWhat is seen." in said(page)
    page.get_by_key("view").set_value("plain").run()
    assert not page.text_area and "good: no model" in said(page)
    assert "good: KING" in said(opened(*views, view="inside", text="KING RICHARD"))


def test_a_view_with_its_own_text_has_no_box_and_loses_nobody_elses() -> None:
    page = opened(View("reads", "Reads", good), View("own", "Own", good, brings_text=True))
    page.text_area[0].set_value("ROMEO:\nMine").run()
    page.get_by_key("view").set_value("own").run()
    assert not page.text_area and [box.label for box in page.selectbox] == ["Model"]
    assert "good: First" in said(page), "something is read all the same"
    page.get_by_key("view").set_value("reads").run()
    assert page.text_area[0].value == "ROMEO:\nMine" and "good: ROMEO" in said(page)
