"""Every view on a server where Tiny Shakespeare cannot be had: it draws, or a sentence says what is missing."""

import logging
from pathlib import Path

import pytest

from tests.engine.cases import for_each
from tests.pages.helpers import opened, said
from tests.pages.rooms import ROOMS, page_of

pytestmark = pytest.mark.usefixtures("manager")

VIEWS = [(room, view.id) for room in ROOMS if (page := page_of(room)) is not None for view in page.views] + [
    (room, "") for room in ROOMS if page_of(room) is None
]


@for_each("room, view", VIEWS, ids=lambda case: f"{case[0].parent.name} {case[1]}", fast=12)
def test_a_view_does_without(
    room: Path, view: str, nowhere: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    shown = page_of(room)
    query = {shown.key: view} if shown is not None else {}
    with caplog.at_level(logging.ERROR):
        page = opened(str(room), **query)
    assert "the fault is ours" not in said(page), caplog.text[-1500:]
    tried = len(nowhere)
    page.run()
    assert len(nowhere) == tried, "a click waited for a download that had failed a moment ago"


@pytest.mark.usefixtures("nowhere")
def test_the_doctor_says_what_is_missing() -> None:
    assert "Tiny Shakespeare could not be downloaded" in said(opened("lab/faults", bugs_view="doctor"))
