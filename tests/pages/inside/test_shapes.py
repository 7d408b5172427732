"""The Shapes page alone: every view, every source, every step of models of every kind."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig
from pages.inside.shapes import sources, walk
from tests.engine.helpers import loud
from tests.pages.helpers import FOLDS, KINDS, opened, said
from tests.pages.inside import models

PAGE = "inside/shapes"
VIEW, SOURCE = "shapes_view", "shapes_source"

pytestmark = pytest.mark.usefixtures("manager")


def shapes(**query: str) -> AppTest:
    return opened(PAGE, **FOLDS, **query)


def sentences(page: AppTest) -> str:
    return said(page, *KINDS, "code")


def formulas(page: AppTest) -> str:
    return said(page, "latex")


@pytest.mark.parametrize("source", [sources.OWN, *sources.EXAMPLES])
def test_every_source_is_traced_and_its_totals_are_said(source):
    page = shapes(shapes_source=source, shapes_step="7")
    told = sentences(page)
    assert "parameters ·" in told and "FLOP in products" in told
    assert ("Shapes only" in told) == (source != sources.OWN)
    assert {"gpt2": "124,439,808", "llama2-7b": "6,738,415,616", "llama2-70b": "68,976,648,192"}.get(
        source, ""
    ) in told
    assert len(page.latex) == 1 and "numbers. With twice the text it has" in told


def test_the_page_opens_on_the_first_scores_of_the_own_model():
    page = shapes()
    assert page.session_state["shapes_traced"][1] == "blocks.0.scores"
    assert "818,048 parameters" in sentences(page)
    asked = re.sub(r"\[([^\]]*)\]\(#term-[^)]*\)", r"\1", sentences(page))
    assert "is **batch 1 × head 4 × query 61 × key 61**: 14,884 numbers" in asked  # 4 · 61²
    assert "With twice the text it has 4 times as many." in asked
    assert len(shapes(shapes_step="99999999").latex) == 1, "there is no such step"
    first = shapes(shapes_step="0")
    assert "tokenizer made of the text" in sentences(first) and "has twice as many" in sentences(first)


@pytest.mark.parametrize("fields", models.KINDS, ids=str)
def test_every_step_of_every_kind_of_model_draws(fields, monkeypatch):
    vocabulary = 5 + (fields.get("causal") is False)
    sizes = {"vocab_size": vocabulary, "context": 6, "d_model": 8, "n_layers": 2, "n_heads": 2}
    model = loud(ModelConfig(**sizes | fields))
    models.only_this(monkeypatch, models.of_letters(model, "abcd<"), str(fields))
    page = shapes(text="ab<dcab")
    for index, step in enumerate(sources.steps_of(sources.Source("", "", model.config, 6))):
        if step.block == 0 and model.config.n_layers > 1:
            continue  # block 1 is the same, but for where it reads
        page.session_state[walk.WALK] = {"step": index}
        page.run()
        assert not page.exception and len(page.latex) == 1, index


def test_walking_is_written_into_the_url_and_another_model_keeps_the_step_by_name():
    page = shapes(shapes_step="12")
    steps = sources.steps_of(sources.EXAMPLES["gpt2"])
    name = page.session_state["shapes_traced"][1]
    page.selectbox(key=SOURCE).set_value("gpt2").run()
    assert not page.exception
    assert page.session_state["shapes_traced"][1] == name
    index = next(i for i, step in enumerate(steps) if step.name == name)
    assert str(index) in page.query_params["shapes_step"]


def test_two_heads_by_hand():
    page = shapes(shapes_view="hand")
    for heads in (1, 4):
        page.get_by_key("shapes_heads").set_value(heads).run()
        assert not page.exception and not page.error
    page.get_by_key("shapes_hide").set_value("k1").run()
    assert r"-\infty" in formulas(page) and "masked" in formulas(page)
    page.text_input(key="shapes_q").set_value("1 2 3").run()
    assert "same number of numbers" in sentences(page)
    page.text_input(key="shapes_q").set_value("<b>x</b>").run()
    assert "is not a number" in sentences(page)


def test_masking_by_hand():
    page = shapes(shapes_view="hand", shapes_example="mask")
    page.get_by_key("shapes_hidden").set_value([]).run()
    assert "both ways agree" in sentences(page)
    page.get_by_key("shapes_hidden").set_value(["key 1", "key 2", "key 3", "key 4"]).run()
    assert "every key is hidden" in sentences(page)
    page.text_input(key="shapes_scores").set_value("1 2").run()
    assert not page.exception


def test_wrong_shapes_are_run_and_explained():
    page = shapes(shapes_view="wrong")
    assert "must divide d_model (128)" in sentences(page) and "**2 numbers are left over**" in sentences(page)
    page.get_by_key("shapes_n_heads").set_value(4).run()
    assert "every head gets 32" in sentences(page) and not page.error
    page.get_by_key("shapes_mistake").set_value("unembedding").run()
    assert "cannot be multiplied (6x128 and 65x128)" in sentences(page)
    page.get_by_key("shapes_vocab").set_value(128).run()
    assert "No error, and still wrong" in sentences(page)
    page.get_by_key("shapes_mistake").set_value("mask").run()
    assert "must match the size of tensor b (5)" in sentences(page)
    page.get_by_key("shapes_mask_size").set_value(1).run()
    assert "83% of its attention on the future" in sentences(page)
    page.get_by_key("shapes_mask_size").set_value(6).run()
    assert page.success and not page.exception


@pytest.mark.parametrize(
    ("scores", "result"), [("1000,999,0", "0.73"), ("-800,-800,-801,0", "0.42"), ("710,1,5", "1")]
)
def test_huge_scores_overflow_nothing(scores, result):
    page = shapes(shapes_view="hand", shapes_example="mask", shapes_scores=scores)
    assert "taken off all of them first" in sentences(page)
    assert formulas(page).rstrip().endswith(f"= {result}\n$$")
    assert "inf" not in formulas(page)
    assert r"\frac{0}" not in formulas(page)
