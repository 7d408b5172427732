"""Every view on a server where Tiny Shakespeare cannot be had: it draws, or a sentence says what is missing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import corpora
from engine.errors import CorpusError
from tests.pages.stage import StageManager, open_page
from tests.pages.test_families import ROOMS, page_of, said
from ui import slow, state

VIEWS = [(room, view.id) for room in ROOMS if (page := page_of(room)) is not None for view in page.views] + [
    (room, "") for room in ROOMS if page_of(room) is None
]


@pytest.fixture(scope="module", autouse=True)
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What other tests have read is forgotten, before and after."""

    def refuse(progress: object) -> Path:
        raise CorpusError("Tiny Shakespeare could not be downloaded (ConnectionError)")

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GLASSFORMER_DATA", raising=False)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("empty")))
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setattr(corpora, "_download", refuse)
        st.cache_resource.clear()
        st.cache_data.clear()
        assert corpora.shakespeare_path() is None
        yield
        slow.leave_all()
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.mark.parametrize(
    "room, view", VIEWS, ids=lambda one: one if isinstance(one, str) else one.parent.name
)
def test_a_view_does_without(
    room: Path, view: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    manager = StageManager()
    monkeypatch.setattr(state, "manager", lambda: manager)
    shown = page_of(room)
    query = {shown.key: view} if shown is not None else {}
    with caplog.at_level(logging.ERROR):
        page = open_page(AppTest.from_file(str(room), default_timeout=90), **query)
    assert not page.exception
    assert "the fault is ours" not in said(page), caplog.text[-1500:]


def test_the_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = StageManager()
    monkeypatch.setattr(state, "manager", lambda: manager)
    (room,) = [room for room in ROOMS if room.parent.name == "faults"]
    page = open_page(AppTest.from_file(str(room), default_timeout=90), bugs_view="doctor")
    assert "Tiny Shakespeare could not be downloaded" in said(page)
