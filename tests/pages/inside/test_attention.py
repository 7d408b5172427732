"""The attention page alone: every view, its options, every kind of model, and what a link may leave out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.engine.helpers import loud, tiny
from tests.pages.helpers import FOLDS, opened, said
from tests.pages.inside.models import KINDS, of_letters, only_this
from tests.pages.stage import StageManager

PAGE = "inside/attention"


@pytest.fixture
def variant(
    monkeypatch: pytest.MonkeyPatch, manager: StageManager, request: pytest.FixtureRequest
) -> dict[str, Any]:
    """The model on the page is a tiny one with these fields."""
    fields: dict[str, Any] = request.param
    values = {"vocab_size": 11 + (fields.get("causal") is False)} | fields
    made = loud(tiny(**values), factor=4.0).requires_grad_(False)
    only_this(monkeypatch, of_letters(made), str(fields))
    return fields


@pytest.mark.parametrize("variant", KINDS, ids=str, indirect=True)
def test_every_view_takes_every_kind_of_model(variant):
    page = opened(PAGE, attention_view="heads", text="abc abca bc", **FOLDS)
    for view in ("heads", "steps", "switches", "mask", "numbers", "shared-keys"):
        page.get_by_key("attention_view").set_value(view).run()
        for fold in FOLDS:
            page.session_state[fold] = True
        page.run()
        assert not page.exception and not page.error, view
        if variant.get("mixer") == "none" and view != "shared-keys":
            assert "has no mixer" in said(page) and "What you see" not in said(page)
        else:
            assert "What you see" in said(page)


def test_the_switches_say_what_changed(manager):
    page = opened(PAGE, attention_view="switches", measure="true")
    assert page.session_state["attention_off"] == ["0.0", "0.1", "0.2", "0.3"], "something is off at first"
    assert "Without the heads of layer 0, the loss on this text goes from" in said(page)
    assert "As an example the heads of layer 0 are off" in said(page)
    page.button(key="attention_off_none").click().run()
    assert "nothing has changed yet" in said(page) and "Everything is on" in said(page)
    assert "As an example" not in said(page)
    assert [m.value for m in page.metric][1:] == ["0.000 nats", "0.000 nats"]
    page.button(key="attention_off_all").click().run()
    assert not page.exception and "Every head is off" in said(page) and "b_O" in said(page)
    assert page.session_state["attention_off"] == [f"{i}.{h}" for i in range(4) for h in range(4)]
    assert float(page.metric[1].value.split()[0]) > 0.1
    page.button(key="attention_off_1").click().run()
    assert page.session_state["attention_off"] == ["1.0", "1.1", "1.2", "1.3"]
    for view in ("shared-keys", "switches"):
        page.get_by_key("attention_view").set_value(view).run()
        assert not page.exception
    assert page.session_state["attention_off"] == ["1.0", "1.1", "1.2", "1.3"], "kept by another view"


def answer_of(page: AppTest) -> str:
    """The sentence of a view: the one with bold numbers that its questions and folds have not."""
    return next(m.value for m in page.markdown if "**" in m.value and "%**" in m.value)


@pytest.mark.parametrize(("asked", "width"), [("8", 8), ("400", 512), ("x", 64)])
def test_the_answer_about_the_square_root_is_what_the_bars_show(drawn, asked, width):
    """A width in a link is brought to the nearest power of two."""
    told = answer_of(opened(PAGE, attention_view="scaling", attention_dk=asked))
    keys = ("attention_scaling_example", "attention_scaling_divided")
    plain, scaled = (np.array(drawn[key].traces[0]["y"]) for key in keys)
    assert plain.sum() == pytest.approx(1) == scaled.sum()
    # Of softmax(s) the logarithm is s up to a constant: divided by the square root, the other softmax.
    logs = np.log(plain) / np.sqrt(width)
    assert np.allclose(np.exp(logs) / np.exp(logs).sum(), scaled, atol=1e-5)
    assert f"one key takes **{plain.max():.1%}** of the weight" in told
    assert f"at any width, and it takes **{scaled.max():.1%}**" in told
    assert f"A score adds up {width} products" in told and f"√{width} = {np.sqrt(width):.1f}" in told
    assert f"a factor e^{np.sqrt(width):.1f}:" in told
