"""The attention page with the real model: 270 heads, words for tokens, three key-value heads."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.measure.recording import Recording, record
from engine.model import Transformer
from pages.inside.attention import shared
from tests.pages.conftest import Drawn
from tests.pages.helpers import opened, said
from tests.pages.real import REAL, carried
from tests.pages.stage import StageManager
from ui import models, state

pytestmark = [carried, pytest.mark.exhaustive]
PAGE = "inside/attention"
TEXT = "When Mary and John went to the store, John gave a drink to"
LAYERS, HEADS = 30, 9


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "manager", StageManager)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What the players of this page got last, by name."""
    found: dict[str, dict[str, Any]] = {}
    monkeypatch.setattr(shared, "mounted", lambda name: lambda **rest: found.update({name: rest["data"]}))
    return found


def attention(view: str, text: str = TEXT, **query: str) -> AppTest:
    page = opened(PAGE, model=REAL, text=text, attention_view=view, measure="true", words="true", **query)
    assert not page.error
    return page


@pytest.fixture(scope="module")
def model() -> Transformer:
    return models._pretrained("smollm2-135m", None).model


@pytest.fixture(scope="module")
def recording(model: Transformer) -> Recording:
    return record(model, models._pretrained("smollm2-135m", None).tokenizer.encode(TEXT))


def test_all_heads_are_sent_small_and_say_what_they_do(sent, recording: Recording) -> None:
    page = attention("heads", attention_sort="layer")
    grid = sent["headgrid"]
    assert (grid["layers"], grid["heads"], grid["order"], grid["size"]) == (LAYERS, HEADS, None, 14)
    assert len(json.dumps(grid)) < 100_000 and len(grid["hints"]) == len(grid["habits"]) == 270
    pixels = np.frombuffer(base64.b64decode(grid["pixels"]), np.uint8).reshape(LAYERS, HEADS, -1)
    wanted = recording["blocks.16.pattern"][0][np.tril_indices(14)]
    np.testing.assert_allclose(pixels[16, 0] / 255, wanted, atol=0.5 / 255 + 1e-6)
    # By arithmetic of its own: the head that reads the token before, and those that rest on the first.
    patterns = recording.stacked("pattern")
    before = np.array([patterns[..., i, i - 1] for i in range(1, 14)]).mean(0)
    layer, head = divmod(int(before.argmax()), HEADS)
    assert (layer, head) == (16, 0) and grid["habits"][16 * HEADS] == "previous"
    assert grid["hints"][16 * HEADS] == f"Layer 16, head 0: previous token, {before[16, 0]:.0%}"
    counts = {name: int(words.rsplit(" ", 1)[1]) for name, _, words in grid["legend"]}
    assert counts == {name: grid["habits"].count(name) for name in counts}
    assert f"**{counts['first']}** rest on the first token" in said(page)


def test_long_words_and_pieces_of_characters_are_named_in_full(drawn: dict[str, Drawn]) -> None:
    attention("heads", text="An unbelievable misunderstanding 東", attention_sort="previous")
    figure = drawn["attention_pattern"]
    names = figure.traces[0]["meta"]
    assert names["rows"][1] == "query ␣unbelie at 1" and names["columns"][3] == "key ␣misunderstanding at 3"
    assert names["columns"][-1].startswith("key ") and "⟨" in names["columns"][-1]
    assert "␣misunder…" in figure.layout["xaxis"]["ticktext"]
