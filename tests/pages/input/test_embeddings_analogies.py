"""Analogies of letters and of words, their figures, and a vocabulary too long for a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.measure.analogies import Analogy
from pages.input.embeddings import analogies, words
from tests.pages.helpers import opened, said
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


@pytest.mark.parametrize(
    ("rank", "near_c", "verdict"),
    [(2, 9, "so the sum brings it nearer"), (3, 3, "not needed"), (7, 4, "so the sum takes it farther away")],
)
def test_an_analogy_is_told_with_both_places(rank: int, near_c: int, verdict: str) -> None:
    found = Analogy((0, 1, 2), 3, np.array([1, 4, 3]), np.array([0.9, 0.5, 0.4]), rank, rank + 1, near_c)
    said = words.answered(found, ["man", "king", "woman", "queen"], ["king", "prince", "queen"])
    assert said.startswith(
        "**“king” − “man” + “woman” lands nearest to “king”, one of the three that went in.** Without the"
        " three, “queen” comes "
    )
    assert f"**{words.ordinal(rank)}**; among the neighbours of “woman” alone it is" in said
    assert f"it is {words.ordinal(near_c)}, " in said and verdict in said
