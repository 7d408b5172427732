"""Every view on a server where Tiny Shakespeare cannot be had: it draws, or a sentence says what is missing."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from engine.data import corpora
from engine.errors import CorpusError
from tests.engine.cases import for_each
from tests.pages.helpers import opened, said
from tests.pages.rooms import ROOMS, page_of
from ui import background_jobs

pytestmark = pytest.mark.usefixtures("manager")

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
        background_jobs.leave_all()
    st.cache_resource.clear()
    st.cache_data.clear()


@for_each("room, view", VIEWS, ids=lambda case: f"{case[0].parent.name} {case[1]}", fast=12)
def test_a_view_does_without(room: Path, view: str, caplog: pytest.LogCaptureFixture) -> None:
    shown = page_of(room)
    query = {shown.key: view} if shown is not None else {}
    with caplog.at_level(logging.ERROR):
        page = opened(str(room), **query)
    assert "the fault is ours" not in said(page), caplog.text[-1500:]


def test_the_doctor_says_what_is_missing() -> None:
    assert "Tiny Shakespeare could not be downloaded" in said(opened("lab/faults", bugs_view="doctor"))
