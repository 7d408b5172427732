"""The lens where it is slow: with a bar first, and then as at once; and on the real model."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.measure import lens
from tests.pages.real import REAL, carried
from tests.pages.stage import StageManager, open_page
from ui import models, state

PAGE = str(Path(__file__).parents[3] / "pages" / "inside" / "residual" / "page.py")


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "manager", StageManager)


def drawn_lens(page: AppTest) -> str:
    """What the page says once the lens is there; until then a bar stands in its place."""
    for _ in range(300):
        assert not page.exception and not page.error
        said = " | ".join(str(one.value) for kind in (page.caption, page.markdown) for one in kind)
        if "Bottom row: the embedding alone." in said:
            return said
        time.sleep(0.1)
        page.run()
    raise AssertionError("the lens was never drawn")


def opened(**query: str) -> AppTest:
    return open_page(
        AppTest.from_file(PAGE, default_timeout=90), residual_view="Logit lens", measure="true", **query
    )


def test_a_lens_with_a_bar_says_what_one_at_once_says(monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"residual_cell": "2-3", "text": "ROMEO:\nBut, soft! what light"}
    at_once = drawn_lens(opened(**query))
    monkeypatch.setattr(lens, "AT_ONCE", 1)  # a position a step
    assert drawn_lens(opened(**query)) == at_once


@carried
def test_the_real_model_finds_paris_on_the_way() -> None:
    found = models._pretrained("smollm2-135m", None)
    ids = found.tokenizer.encode("The capital of France is")
    said = drawn_lens(opened(model=REAL, text="The capital of France is", residual_cell=f"30-{len(ids) - 1}"))
    assert "the model would guess “␣Paris”" in said or "the model would guess “ Paris”" in said
    assert "this is **0.000 nats** from its final distribution" in said
