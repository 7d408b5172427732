"""The frame of a page: a view that fails leaves the rest alive, words come after the view, links name views."""

import logging
import re
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine.errors import PretrainedError, TokenizerError
from engine.parts.norms import RMSNorm
from tests.pages import helpers
from tests.pages.helpers import in_address, text_of
from tests.pages.rooms import ROOMS, page_of
from tests.pages.stage import StageManager
from ui import model_bar, model_needs, models, page_frame, session
from ui.models import LAPSES, SHIPPED
from ui.page_frame import Page, View
from ui.text.markdown import sentence
from ui.training_step import NEWEST

WORDS = {"see": "What is seen.", "why": "Why it matters.", "try": "What to try."}


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


def opened(*views: View, **query: str) -> AppTest:
    return helpers.opened(script, None, Page("A title", "view", views), **query)


def said(page: AppTest) -> list[str]:
    return [str(element.value) for element in page.markdown]


@pytest.mark.parametrize("needs_model", [True, False])
def test_a_view_that_raises_leaves_the_rest_of_the_page_alive(needs_model, caplog) -> None:
    views = (
        View("bad", text_of("Bad", **WORDS), bad, (RMSNorm,), needs_model),
        View("good", text_of("Good", **WORDS), good, (), needs_model),
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


@pytest.mark.parametrize("error", [TokenizerError, PretrainedError])
def test_a_text_or_a_file_that_is_refused_is_said_and_is_no_fault_of_ours(error, caplog) -> None:
    def refuses() -> None:
        raise error("this text cannot be cut: it is too long")

    page = opened(View("refuses", text_of("Refuses", **WORDS), refuses, needs_model=False))
    said = sentence(error("this text cannot be cut: it is too long"))
    assert not page.error and [info.value for info in page.info] == [said]
    assert "too long" in caplog.text and "could not be drawn" not in caplog.text


def test_a_bar_that_raises_leaves_the_title(monkeypatch, caplog) -> None:
    monkeypatch.setattr(page_frame, "choose_subject", bad)
    page = opened(View("good", text_of("Good"), good))
    assert page.title[0].value == "A title" and len(page.error) == 1 and "a fault of ours" in caplog.text
    assert page.header[0].value == "Good"


def test_stopping_and_running_again_are_no_faults(caplog) -> None:
    page = opened(View("stops", text_of("Stops", **WORDS), stops, needs_model=False))
    assert "stopped on purpose" in said(page) and not page.error and "could not be drawn" not in caplog.text

    def again() -> None:
        st.session_state["runs"] = st.session_state.get("runs", 0) + 1
        if st.session_state["runs"] < 3:
            st.rerun()
        st.markdown(f"run {st.session_state['runs']}")

    page = opened(View("again", text_of("Again"), again, needs_model=False))
    assert "run 3" in said(page) and not page.error


@pytest.mark.parametrize("needs_model", [True, False])
def test_words_and_code_come_after_the_view(needs_model) -> None:
    text = text_of("Good", **WORDS, texts="A lab prints 1.")
    page = opened(View("good", text, good, (RMSNorm, page_frame.show), needs_model), words="true")
    texts = said(page)
    at = next(i for i, text in enumerate(texts) if text.startswith("good"))
    heads = [text.split("**")[1] for text in texts[at + 1 :]]
    assert heads == ["What you see", "Why it matters", "What to try", "If your textbook says otherwise."]
    assert texts[-1].endswith("A lab prints 1.")
    assert page.expander[-1].label == "Show the code" and not page.code  # it is sent when it is opened
    assert "RMSNorm" not in helpers.said(page, "caption")
    page.session_state["code"] = True
    page.run()
    assert [code.value.splitlines()[0] for code in page.code] == [
        "class RMSNorm(nn.Module):",
        "def show(page: Page, draw: Callable[[], object] | None = None) -> None:",
    ]


THREE = tuple(
    View(
        name,
        text_of(f"{name.title()}, a title?"),
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
        ("Two, a title?", "one", None),
        ("four", "one", None),
        ("<script>", "one", None),
    ],
)
def test_a_link_names_a_view_by_its_id(named, shown, kept) -> None:
    page = opened(*THREE, **({} if named is None else {"view": named}))
    assert said(page) == [f"view {shown}"] and in_address(page, "view") == kept
    assert page.get_by_key("view").options == [view.title for view in THREE]


def test_a_mixed_page_has_the_bar_where_a_view_needs_it() -> None:
    views = (
        View("plain", text_of("Plain"), good, needs_model=False),
        View("inside", text_of("Inside", **WORDS), good),
    )
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
    page = opened(View("reads", text_of("Reads"), good), View("own", text_of("Own"), good, brings_text=True))
    page.text_area[0].set_value("ROMEO:\nMine").run()
    page.get_by_key("view").set_value("own").run()
    assert not page.text_area and [box.label for box in page.selectbox] == ["Model"]
    assert "good: First" in said(page), "something is read all the same"
    page.get_by_key("view").set_value("reads").run()
    assert page.text_area[0].value == "ROMEO:\nMine" and "good: ROMEO" in said(page)


PLAIN, LOOKED = "shakespeare-classic", "shakespeare-modern"


def told_model(*subject: Any) -> None:
    st.markdown(f"drawn of {subject[0].key[0]}")


def offers(page: AppTest) -> list[str]:
    return [str(button.key) for button in page.button if str(button.key).startswith("look_into_")]


POINTS = (
    View("any", text_of("Any"), told_model),
    View("best", text_of("Best"), told_model, best=("nowhere", LOOKED)),
    View("good", text_of("Good"), told_model, best=(PLAIN, LOOKED)),
)


def test_a_view_opens_with_the_model_that_shows_its_point_and_offers_the_visitors_own() -> None:
    page = opened(*POINTS, model=PLAIN)
    page.selectbox(key="subject_model").select("untrained-fast").run()
    page.get_by_key("view").set_value("best").run()
    assert f"drawn of {LOOKED}" in said(page), "the first that is here"
    assert (in_address(page, "model"), in_address(page, "yours")) == (LOOKED, "untrained-fast")
    again = opened(*POINTS, view="best", model=LOOKED, yours="untrained-fast")
    own = "look_into_untrained-fast"
    for shown in (again, page):  # a reload of the address shows, and does, the same
        shown.button(key=own).click().run()
        assert "drawn of untrained-fast" in said(shown) and not offers(shown)
        assert in_address(shown, "yours") is None
        shown.get_by_key("view").set_value("any").run()
        assert "drawn of untrained-fast" in said(shown)
        shown.get_by_key("view").set_value("best").run()
        assert "drawn of untrained-fast" in said(shown), "whoever chose his own here keeps it"


def test_the_visitors_model_comes_back_and_one_of_the_best_stays() -> None:
    page = opened(*POINTS, model="untrained-fast")
    for view, shown in (("good", PLAIN), ("any", "untrained-fast"), ("best", LOOKED)):
        page.get_by_key("view").set_value(view).run()
        assert f"drawn of {shown}" in said(page)
    page.selectbox(key="subject_model").select(LOOKED).run()  # as shown: nothing is chosen by that
    page.get_by_key("view").set_value("any").run()
    page.selectbox(key="subject_model").select(LOOKED).run()
    page.get_by_key("view").set_value("good").run()
    assert f"drawn of {LOOKED}" in said(page) and not offers(page)
    named = opened(*POINTS, view="best", model="untrained-fast")
    assert "drawn of untrained-fast" in said(named), "a link shows what it names"


def test_a_model_that_a_view_does_not_take_gets_a_sentence_and_one_click_to_one_that_it_takes() -> None:
    need = model_needs.Need(lambda subject: subject.key[0] == PLAIN, "It lacks something.")
    page = opened(View("v", text_of("View", "Why?", **WORDS), told_model, takes=(need,)), model=LOOKED)
    page.selectbox(key="subject_model").select(LOOKED).run()
    assert [info.value for info in page.info] == ["It lacks something."] and page.header[0].value == "Why?"
    assert not any("drawn of" in text or "What you see" in text for text in said(page))
    page.button(key=f"look_into_{PLAIN}").click().run()
    assert f"drawn of {PLAIN}" in said(page) and not page.info and in_address(page, "model") == PLAIN


def test_every_view_takes_the_model_that_it_opens_with() -> None:
    for room in ROOMS:
        page = page_of(room)
        for view in page.views if page is not None else ():
            for name in (view.best or (page.model,)) if view.takes else ():
                if name in SHIPPED or name in LAPSES:
                    steps = models.lapse_of(name).steps if name in LAPSES else ()
                    found = models.model_of(name, NEWEST, steps)
                    subject = model_bar.Subject(
                        (name, NEWEST), "", found.model, found.tokenizer, "", (), None
                    )
                    assert model_needs.lacking(view.takes, subject) is None, (page.title, view.id, name)
