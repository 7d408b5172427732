"""The lens where it is slow: with a bar first, and then as at once; and on the real model."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from engine.measure import lens
from tests.pages.helpers import opened, said
from tests.pages.real import REAL, carried
from tests.pages.stage import StageManager
from ui import models, state


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "manager", StageManager)


def lens_page(**query: str) -> AppTest:
    return opened("inside/residual", residual_view="lens", measure="true", **query)


def test_a_lens_with_a_bar_says_what_one_at_once_says(monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"residual_cell": "2-3", "text": "ROMEO:\nBut, soft! what light"}
    at_once = said(lens_page(**query))
    monkeypatch.setattr(lens, "AT_ONCE", 1)  # a position a step
    assert said(lens_page(**query)) == at_once


@carried
@pytest.mark.exhaustive
def test_the_real_model_finds_paris_on_the_way() -> None:
    found = models._pretrained("smollm2-135m", None)
    ids = found.tokenizer.encode("The capital of France is")
    told = said(lens_page(model=REAL, text="The capital of France is", residual_cell=f"30-{len(ids) - 1}"))
    assert "the model would guess “␣Paris”" in told or "the model would guess “ Paris”" in told
    assert "this is **0.000 nats** from its final distribution" in told
