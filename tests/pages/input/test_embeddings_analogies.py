"""Analogies on the page, of letters and of words; and a vocabulary that is too long for a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pages.input.embeddings import analogies, words
from tests.pages.helpers import opened, said, unescaped
from tests.pages.real import REAL, carried
from tests.pages.stage import StageManager
from ui import models, state

PAGE = "input/embeddings"


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "manager", StageManager)


def nearest(matrix: np.ndarray, a: int, b: int, c: int) -> list[int]:
    rows = matrix.astype(np.float64) - matrix.astype(np.float64).mean(0)
    rows /= np.sqrt((rows**2).sum(1, keepdims=True))
    total = rows[b] - rows[a] + rows[c]
    return list(np.argsort(-(rows @ total), kind="stable"))


def test_letters_as_they_come_out(drawn: Any) -> None:
    page = opened(PAGE, embed_view="analogies")
    found = models._shipped("shakespeare-classic")
    a, b, c, d = (found.tokenizer.encode(letter)[0] for letter in ("a", "A", "e", "E"))
    order = nearest(found.model.embedding.detach().numpy(), a, b, c)
    table = drawn["embed_analogy_bars"].table
    assert table["id"] == order[:10]
    place = [i for i in order if i not in (a, b, c)].index(d) + 1
    assert f"“E” comes **{words.ordinal(place)}**" in said(page)
    page.pills(key=analogies.EXAMPLE).set_value("S − s + t").run()
    assert [page.text_input(key=box).value for box in analogies.BOXES] == ["s", "S", "t", "T"]
    page.text_input(key="embed_d").input("s").run()
    assert "one of the three" in said(page) and not page.exception
    for box, typed in zip(analogies.BOXES, ("", "🙂", "ab", "x" * 900), strict=True):
        page.text_input(key=box).input(typed)
    page.run()
    assert not page.exception and "no token" in said(page) and "2 tokens here" in said(page)


@carried
@pytest.mark.exhaustive
def test_words_as_they_come_out(drawn: Any) -> None:
    page = opened(PAGE, model=REAL, embed_view="analogies")
    found = models._pretrained("smollm2-135m", None)
    ids = [found.tokenizer.encode(" " + word) for word in ("man", "king", "woman", "queen")]
    assert all(len(one) == 1 for one in ids)
    a, b, c, d = (one[0] for one in ids)
    order = nearest(found.model.embedding.numpy(), a, b, c)
    assert drawn["embed_analogy_bars"].table["id"] == order[:10] and order[0] == b
    assert "one of the three that went in" in said(page)
    place = [i for i in order if i not in (a, b, c)].index(d) + 1
    assert f"**{words.ordinal(place)}**" in said(page)


@carried
@pytest.mark.exhaustive
def test_a_long_vocabulary_is_typed_from(drawn: Any) -> None:
    page = opened(PAGE, model=REAL, embed_view="map")
    assert page.text_input(key="embed_token").value == "␣Paris"
    assert {"␣London", "␣French", "␣France"} <= set(drawn["embed_near"].table["token"])
    page.text_input(key="embed_token").input("unbelievable").run()
    assert "2 tokens here: “␣unbelie”, “vable”" in unescaped(page)
    page.text_input(key="embed_token").input('"king"').run()
    assert "Nearest to “king”" in said(page)
    page.text_input(key="embed_token").input("king").run()
    assert "Nearest to “␣king”" in unescaped(page)
