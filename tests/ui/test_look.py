"""The frame of a page: a view that fails leaves the rest alive, words come after the view, links name views."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine.parts.norms import RMSNorm
from tests.pages.stage import StageManager, open_page
from ui import look, state
from ui.look import Page, View, Words

WORDS = Words("What is seen.", "Why it matters.", "What to try.")


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "manager", StageManager)


def good(*subject: Any) -> None:
    st.markdown("good: " + (subject[0].text[:5] if subject else "no model"))


def bad(*subject: Any, **_: Any) -> None:
    st.markdown("begun")
    raise KeyError("a fault of ours")


def stops(*subject: Any) -> None:
    st.markdown("stopped on purpose")
    st.stop()


def opened(*views: View, **query: str) -> AppTest:
    def script(page):  # type: ignore[no-untyped-def]
        from ui.look import show

        show(page)

    page = AppTest.from_function(script, args=(Page("A title", "view", views),), default_timeout=60)
    return open_page(page, **query)


def folds(page: AppTest) -> list[str]:
    """The bar has one of its own."""
    return [box.label for box in page.expander if not box.label.startswith("More models")]


def said(page: AppTest) -> list[str]:
    return [str(element.value) for element in page.markdown]


def url(page: AppTest, key: str = "view") -> str | None:
    found = page.query_params.get(key)
    return found[0] if isinstance(found, list) else found


# The boundary -----------------------------------------------------------------------------------


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


def test_every_fault_has_a_number_of_its_own(caplog) -> None:
    numbers = {opened(View("bad", "Bad", bad, needs_model=False)).error[0].value for _ in range(3)}
    assert len(numbers) == 3


@pytest.mark.parametrize("needs_model", [True, False])
def test_words_that_raise_leave_the_picture(needs_model, caplog) -> None:
    page = opened(View("good", "Good", good, bad, (RMSNorm,), needs_model))
    assert any(text.startswith("good") for text in said(page)) and len(page.error) == 1


def test_a_bar_that_raises_leaves_the_title(monkeypatch, caplog) -> None:
    monkeypatch.setattr(look, "choose_subject", bad)
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


# Words and code ---------------------------------------------------------------------------------


@pytest.mark.parametrize("needs_model", [True, False])
def test_words_and_code_come_after_the_view(needs_model) -> None:
    page = opened(View("good", "Good", good, WORDS, (RMSNorm, look.show), needs_model), words="true")
    texts = said(page)
    at = next(i for i, text in enumerate(texts) if text.startswith("good"))
    assert texts[at + 1 :] == [
        "**What you see**\n\nWhat is seen.",
        "**Why it matters**\n\nWhy it matters.",
        "**What to try**\n\nWhat to try.",
    ]
    assert page.expander[-1].label == "Show the code" and not page.code  # it is sent when it is opened
    captions = " ".join(str(caption.value) for caption in page.caption)
    assert "RMSNorm" not in captions


def test_what_is_said_may_depend_on_what_is_shown() -> None:
    def words(subject: Any) -> Words | None:
        return Words(f"{subject.config.d_model} wide.", "", "") if subject.config.d_model == 128 else None

    def code(subject: Any) -> tuple[Any, ...]:
        return (RMSNorm,) if subject.config.norm == "rmsnorm" else ()

    page = opened(View("good", "Good", good, words, code), model="shakespeare-classic", words="true")
    assert "**What you see**\n\n128 wide." in said(page) and folds(page) == ["In words"]
    assert not folds(opened(View("good", "Good", good)))


def test_a_view_that_draws_nothing_more_has_neither() -> None:
    page = opened(View("good", "Good", good, needs_model=False))
    assert said(page) == ["good: no model"] and not page.expander


# Which view -------------------------------------------------------------------------------------

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
        ("Two, a title?", "two", "two"),  # an old link
        ("one", "one", None),
        ("One, a title?", "one", None),
        ("Two", "one", None),
        ("four", "one", None),
        ("<script>", "one", None),
        ("", "one", None),
    ],
)
def test_a_link_names_a_view_by_its_id_and_an_old_one_by_its_title(named, shown, kept) -> None:
    page = opened(*THREE, **({} if named is None else {"view": named}))
    assert said(page) == [f"view {shown}"] and url(page) == kept
    assert page.get_by_key("view").options == [view.title for view in THREE]


def test_a_button_chooses_a_view_and_is_in_the_link() -> None:
    page = opened(*THREE)
    for name in ("three", "two"):
        page.get_by_key("view").set_value(name).run()
        assert said(page)[-1] == f"view {name}" and url(page) == name
    page.get_by_key("view").set_value(None).run()  # deselected
    assert not page.exception and said(page)[-1] == "view one"


def test_one_view_has_no_buttons() -> None:
    page = opened(THREE[0])
    assert not page.button_group and said(page)[-1] == "view one"


# Pages of which some views read a model ---------------------------------------------------------


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


def test_a_page_about_a_model_keeps_the_bar_while_views_change() -> None:
    page = opened(View("a", "A", good), View("b", "B", bad))
    page.text_area(key="text").set_value("ROMEO:").run()
    assert "good: ROMEO" in said(page)
    page.get_by_key("view").set_value("b").run()
    assert page.text_area(key="text").value == "ROMEO:" and len(page.error) == 1


def test_a_number_without_an_end_in_the_link_is_dropped() -> None:
    page = opened(*THREE, view="two", something="1e400")
    assert "something" not in page.query_params and said(page)[-1] == "view two"


# What a model reads -----------------------------------------------------------------------------


def test_a_view_with_its_own_text_has_no_box_and_loses_nobody_elses() -> None:
    page = opened(View("reads", "Reads", good), View("own", "Own", good, own_text=True))
    page.text_area[0].set_value("ROMEO:\nMine").run()
    page.get_by_key("view").set_value("own").run()
    assert not page.text_area and [box.label for box in page.selectbox] == ["Model"]
    assert "good: First" in said(page), "something is read all the same"
    page.get_by_key("view").set_value("reads").run()
    assert page.text_area[0].value == "ROMEO:\nMine" and "good: ROMEO" in said(page)


def test_of_its_own_text_alone_a_page_has_the_bar_without_the_box() -> None:
    page = opened(View("own", "Own", good, own_text=True))
    assert (
        page.selectbox[0].label == "Model"
        and not page.text_area
        and not page.caption[0].value.startswith(":")
    )


def test_a_page_names_the_model_that_it_begins_with() -> None:
    def script(page):  # type: ignore[no-untyped-def]
        from ui.look import show

        show(page)

    first = Page("A title", "view", (View("good", "Good", good),), model="shakespeare-modern")
    page = open_page(AppTest.from_function(script, args=(first,), default_timeout=60))
    assert page.selectbox[0].value == "shakespeare-modern"
    gone = Page("A title", "view", (View("good", "Good", good),), model="pretrained-nowhere")
    page = open_page(AppTest.from_function(script, args=(gone,), default_timeout=60))
    assert page.selectbox[0].value == "shakespeare-classic" and not page.error


# The question -----------------------------------------------------------------------------------


def test_the_question_stands_above_the_view_and_may_depend_on_what_is_shown() -> None:
    plain = View("good", "Good", good, needs_model=False, question="Is it good?")
    assert [header.value for header in opened(plain).header] == ["Is it good?"]
    asked = View("good", "Good", good, question=lambda subject: f"What follows {subject.text[:5]}?")
    assert [header.value for header in opened(asked).header] == ["What follows First?"]
    assert [header.value for header in opened(View("good", "Good", good)).header] == ["Good"]


def test_what_was_open_is_folded_in_another_view() -> None:
    page = opened(View("a", "A", good, WORDS), View("b", "B", good, WORDS), words="true")
    assert len([text for text in said(page) if text.startswith("**What you see")]) == 1
    page.get_by_key("view").set_value("b").run()
    assert not [text for text in said(page) if text.startswith("**What")]
    assert "words" not in page.query_params
    page.session_state["words"] = True
    page.run()
    assert len([text for text in said(page) if text.startswith("**What")]) == 2
