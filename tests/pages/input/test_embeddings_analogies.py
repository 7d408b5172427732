"""Analogies of letters and of words, their figures, and a vocabulary too long for a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.measure.analogies import Analogy, analogy, directions_of
from pages.input.embeddings import analogies, words
from pages.input.embeddings.analogy_figure import nearest_bars
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


def planted() -> Analogy:
    """Five tokens: 1 - 0 + 2 lies on 3, though 4 is expected."""
    rows = np.array([[1, 0, 1], [1, 1, 0], [-1, 0, 1], [-1, 1, 0], [0, -2, -2]], dtype=np.float64)
    return analogy(directions_of(rows - rows.mean(0)), (0, 1, 2), 4, 5)


def test_bars_are_the_nearest_best_on_top_and_say_what_was_put_in() -> None:
    found = planted()
    figure = nearest_bars([f"w{i}" for i in found.ids], found)
    (bars,) = figure.traces
    assert bars["x"] == pytest.approx(found.cosine) and bars["y"].tolist() == [0, -1, -2, -3, -4]
    assert (np.diff(bars["x"]) <= 0).all()
    notes = dict(zip(found.ids.tolist(), bars["text"], strict=True))
    assert notes == {0: "put in", 1: "put in", 2: "put in", 3: "", 4: "expected"}
    shades = dict(zip(found.ids.tolist(), bars["marker"]["color"], strict=True))
    assert shades[0] == shades[1] == shades[2] != shades[3] != shades[4] != shades[0]
    assert figure.arrangement["yaxis"]["ticktext"] == [f"w{i}" for i in found.ids]


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
