"""The pages on sizes, shapes and positions, with the real model: each view opens, and what it says is true of
its weights.
"""

import re
from typing import Any

import pytest
import torch

from engine.probe import Recorder
from pages.input.positions import rope_arrows
from tests.engine.cases import for_each
from tests.pages.helpers import opened, said
from tests.pages.real import REAL, carried
from ui import models

pytestmark = [carried, pytest.mark.usefixtures("manager")]


VIEWS = [
    *(
        ("models/parameters", "parameters_view", view)
        for view in ("where", "two", "flops", "memory", "byhand")
    ),
    *(("inside/shapes", "shapes_view", view) for view in ("pass", "hand", "wrong")),
    *(
        ("input/positions", "positions_view", view)
        for view in ("why", "sinusoidal", "learned", "rope", "alibi", "t5", "bench")
    ),
]


@for_each("room, key, view", VIEWS, fast=2)
def test_a_view_opens_and_counts_its_own_weights(room: str, key: str, view: str) -> None:
    page = opened(room, model=REAL, parameters_model=REAL, **{key: view})
    assert bool(page.error) is (view == "wrong")  # there the fault is what is shown
    if room == "models/parameters":
        assert "Counted from its own file" in said(page)
    if view == "pass":
        assert "134,515,008 parameters" in said(page)


def test_parameters_follow_a_link_that_names_a_model_for_all_pages() -> None:
    assert "**134,515,008 parameters**" in said(opened("models/parameters", model=REAL))
    assert "**124,439,808 parameters**" in said(opened("models/parameters", model="nonsense"))


def test_the_turned_arrows_are_the_models_own(monkeypatch: pytest.MonkeyPatch) -> None:
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
