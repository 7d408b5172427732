"""The pages on sizes, shapes and positions, with the real model: each view opens, and what it says is true of
its weights.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.probe import Recorder
from pages.input.positions import rope_arrows
from tests.pages.real import REAL, carried
from tests.pages.stage import StageManager, open_page
from ui import models, state

PAGES = Path(__file__).parents[2] / "pages"
pytestmark = carried


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "manager", StageManager)


def opened(room: str, **query: str) -> AppTest:
    return open_page(AppTest.from_file(str(PAGES / room / "page.py"), default_timeout=90), **query)


def said(page: AppTest) -> str:
    kinds = (page.error, page.info, page.caption, page.markdown)
    return " | ".join(str(one.value) for kind in kinds for one in kind)


@pytest.mark.parametrize("view", ["where", "two", "flops", "memory", "byhand"])
def test_parameters(view: str) -> None:
    page = opened("models/parameters", parameters_model=REAL, parameters_view=view)
    assert "Counted from its own file" in said(page) and not page.error
    if view == "where":
        count = sum(p.numel() for p in models._pretrained("smollm2-135m", None).model.parameters())
        assert f"**{count:,} parameters**" in said(page)


def test_parameters_follow_a_link_that_names_a_model_for_all_pages() -> None:
    assert "**134,515,008 parameters**" in said(opened("models/parameters", model=REAL))
    assert "**124,439,808 parameters**" in said(opened("models/parameters", model="nonsense"))


@pytest.mark.parametrize("view", ["pass", "hand", "wrong"])
def test_shapes(view: str) -> None:
    page = opened("inside/shapes", model=REAL, shapes_view=view)
    assert bool(page.error) is (view == "wrong")  # there the fault is what is shown
    if view == "pass":
        assert "134,515,008 parameters" in said(page)


@pytest.mark.parametrize("view", ["why", "sinusoidal", "learned", "rope", "alibi", "t5", "bench"])
def test_positions(view: str) -> None:
    page = opened("input/positions", model=REAL, positions_view=view)
    assert not page.error


def test_the_turned_arrows_are_the_models_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before turning; and their product after it, times 1 / sqrt(d_head), is the score that attention computes."""
    sent: dict[str, Any] = {}
    monkeypatch.setattr(rope_arrows, "mounted", lambda name: lambda **rest: sent.update(rest))
    page = opened("input/positions", model=REAL, positions_view="rope", rope_query="4", rope_key="1")
    found = models._pretrained("smollm2-135m", None)
    ids = found.tokenizer.encode("The capital of France is")
    recorder = Recorder()
    with torch.inference_mode():
        found.model(torch.tensor([ids]), recorder)
    assert sent["data"]["q"] == pytest.approx(recorder["blocks.0.q"][0, 0, 4].tolist(), abs=1e-5)
    product = float(recorder["blocks.0.q_rot"][0, 0, 4] @ recorder["blocks.0.k_rot"][0, 0, 1])
    said_so = re.search(r"its scaling is \*\*(\S+)\*\*", said(page))
    assert said_so and float(said_so[1].replace("−", "-")) == pytest.approx(product, abs=1e-3)
