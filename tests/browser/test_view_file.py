"""A view saved without a browser has what the browser that shows it saves."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from tests.browser.test_saved import saved as saved_by_browser
from tests.browser.test_saved import visitor as visitor
from tests.pages.stage import StageManager
from ui import background_jobs, session, view_file
from ui.operate import patches

VIEWS = (  # a player, a chart with the steps of its training, texts in place of a figure, a fold that is open
    "attention?attention_view=heads",
    "residual?residual_view=norms&model=timelapse",
    "?model=timelapse",
    "tokens?tokens_view=compare",
    "residual?residual_view=lens&hand=true&measure=true&residual_depths=8",
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "manager", StageManager)
    monkeypatch.setattr(background_jobs, "GLANCE", 300.0)
    monkeypatch.setattr(patches, "holds", lambda name: True)


def words(block: dict[str, Any]) -> dict[str, Any]:
    """A block with the words of its HTML: the browser has it from Streamlit, which marks it up in its own way."""
    if "html" not in block:
        return block
    text = html.unescape(re.sub(r"<[^>]*>", " ", block["html"]))
    return block | {"html": re.sub(r"\s+", "", text)}


def without_tokens(saved: dict[str, Any]) -> dict[str, Any]:
    """A saved view without what each process names in its own way: a text that was read, a view at other steps."""
    text = json.dumps(saved)
    for data in (part["data"] for part in saved["parts"] if "text_id" in part["data"]):
        for token in filter(None, (data["text_id"], data["course"]["frames"])):
            text = text.replace(token, "")
    cleaned: dict[str, Any] = json.loads(text)
    return cleaned


@pytest.mark.parametrize("address", VIEWS)
def test_it_is_what_the_browser_saves(address: str, visitor, app_url, tmp_path) -> None:
    file = saved_by_browser(visitor, f"{app_url}/{address}", tmp_path)
    text = view_file.file_of(address, app_url)
    (frame, held, after), theirs = (
        re.split(r'(?<=id="gf-saved">)(.*?)(?=</script>)', text, maxsplit=1, flags=re.DOTALL),
        file.path.read_text("utf-8"),
    )
    assert theirs.startswith(frame) and theirs.endswith(after)
    here, there = without_tokens(json.loads(held)), without_tokens(file.saved)
    for saved in (here, there):
        saved["blocks"] = [words(block) for block in saved["blocks"]]
        if saved["frames"]:
            saved["frames"]["answers"] = [words({"html": answer}) for answer in saved["frames"]["answers"]]
    assert list(here) == list(there)
    for name in there:
        assert here[name] == there[name], name
