"""The Shapes page alone: every view, every source, every step of models of every kind, and what strangers
write into its URL.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint
from engine.config import ModelConfig
from engine.model import build
from engine.tokenizers.char import CharTokenizer
from pages.inside.shapes import sources, walk
from tests.engine.helpers import loud, tiny
from tests.engine.toys import TOYS
from tests.pages.stage import open_page
from ui import models, subject

PAGE = str(Path(__file__).parents[3] / "pages" / "inside" / "shapes" / "page.py")
VIEW, SOURCE = "shapes_view", "shapes_source"


pytestmark = pytest.mark.usefixtures("manager")


FOLDS = {"measure": "true", "hand": "true", "words": "true"}  # all of them open


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), **FOLDS, **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (
            page.error,
            page.warning,
            page.success,
            page.info,
            page.caption,
            page.markdown,
            page.code,
        )
        for e in kind
    )


def formulas(page: AppTest) -> str:
    return " | ".join(str(e.value) for e in page.latex)


@pytest.mark.parametrize("source", [sources.OWN, *sources.EXAMPLES])
def test_every_source_is_traced_and_its_totals_are_said(source):
    page = opened(shapes_source=source, shapes_step="7")
    said = sentences(page)
    assert "parameters ·" in said and "FLOP in products" in said
    assert ("Shapes only" in said) == (source != sources.OWN)
    assert {"gpt2": "124,439,808", "llama2-7b": "6,738,415,616", "llama2-70b": "68,976,648,192"}.get(
        source, ""
    ) in said
    assert len(page.latex) == 1 and "numbers. With twice the text it has" in said


def test_the_page_opens_on_the_first_scores_of_the_own_model():
    page = opened()
    assert page.session_state["shapes_traced"][1] == "blocks.0.scores"
    assert "818,048 parameters" in sentences(page)
    asked = re.sub(r"\[([^\]]*)\]\(#term-[^)]*\)", r"\1", sentences(page))
    assert "is **batch 1 × head 4 × query 61 × key 61**: 14,884 numbers" in asked  # 4 · 61²
    assert "With twice the text it has 4 times as many." in asked
    first = opened(shapes_step="0")
    assert "tokenizer made of the text" in sentences(first) and "has twice as many" in sentences(first)


@pytest.mark.parametrize("step", ["-1", "99999999", "²", "<b>", "", "1e3", "100000"])
def test_a_step_that_is_not_there_is_replaced(step):
    page = opened(shapes_step=step)
    assert len(page.latex) == 1


@pytest.mark.parametrize(
    "query",
    [
        {VIEW: "nothing"},
        {SOURCE: "<img>"},
        {VIEW: "hand", "shapes_example": "x"},
        {VIEW: "wrong", "shapes_mistake": "x"},
    ],
)
def test_names_that_do_not_exist_fall_back(query):
    assert "x" not in opened(**query).query_params.values()


CONFIGS = [
    {"wiring": "post"},
    {"wiring": "parallel"},
    {"wiring": "none"},
    {"norm": "none"},
    {"norm": "rmsnorm"},
    {"mixer": "none"},
    {"mixer": "mean"},
    {"mixer": "similarity"},
    {"mixer": "shared_qk"},
    {"ffn": "none"},
    {"ffn": "geglu"},
    {"output_projection": False},
    {"tie_embeddings": False},
    {"n_kv_heads": 1},
    {"causal": False, "vocab_size": 6},
    {"qk_norm": True, "position": "rope"},
    {"position": "sinusoidal"},
    {"position": "alibi"},
    {"position": "t5"},
    {"position": "none"},
    {"mixer": "none", "ffn": "none"},
    {"attention_bias": True, "ffn_bias": True, "norm_bias": True},
]


def test_a_model_of_other_parts_is_traced_with_them(monkeypatch):
    """The toy's mixer has no W_O and three matrices of its own."""
    model = build(tiny(), parts=TOYS["mixer"]).eval()
    found = Checkpoint(model, model.config, CharTokenizer("abcdefghij "), {})
    monkeypatch.setattr(subject, "model_of", lambda *_: found)
    monkeypatch.setattr(subject, "choose_model", lambda *_: "untrained-of-other-parts")
    monkeypatch.setattr(models, "title_of", lambda *_: "A model")
    page = opened(text="abcabc")
    count = sum(p.numel() for p in model.parameters())
    assert f"**{count:,} parameters" in sentences(page)
    healthy = sources.Source("", "", model.config, 6)
    own = replace(healthy, parts=model.parts)
    assert len(sources.steps_of(own)) != len(sources.steps_of(healthy)) and own != healthy


@pytest.mark.parametrize("fields", CONFIGS, ids=str)
def test_every_step_of_every_kind_of_model_draws(fields, monkeypatch):
    config = ModelConfig(
        **{"vocab_size": 5, "context": 6, "d_model": 8, "n_layers": 2, "n_heads": 2} | fields
    )
    model = loud(config)
    monkeypatch.setattr(
        subject, "model_of", lambda *_: Checkpoint(model, model.config, CharTokenizer("abcd<"), {})
    )
    key = "-".join(f"{a}{b}" for a, b in fields.items())  # a key of its own: the recordings are cached by it
    monkeypatch.setattr(subject, "choose_model", lambda *_: f"untrained-{key}")
    monkeypatch.setattr(models, "title_of", lambda *_: "A model")
    page = opened(text="ab<dcab")
    own = sources.Source("", "", model.config, 6)
    for index, step in enumerate(sources.steps_of(own)):
        if step.block == 0:
            continue  # block 1 is the same, but for where it reads
        page.session_state[walk.WALK] = {"step": index}
        page.run()
        assert not page.exception and len(page.latex) == 1, (fields, index)


def test_walking_is_written_into_the_url_and_another_model_keeps_the_step_by_name():
    page = opened(shapes_step="12")
    steps = sources.steps_of(sources.EXAMPLES["gpt2"])
    name = page.session_state["shapes_traced"][1]
    page.selectbox(key=SOURCE).set_value("gpt2").run()
    assert not page.exception
    assert page.session_state["shapes_traced"][1] == name
    index = next(i for i, step in enumerate(steps) if step.name == name)
    assert str(index) in page.query_params["shapes_step"]


def test_two_heads_by_hand():
    page = opened(shapes_view="hand")
    said = formulas(page)
    assert (
        r"\begin{bmatrix} 17 & 9 \end{bmatrix}" in said and r"\begin{bmatrix} 53 & 11 \end{bmatrix}" in said
    )
    assert r"1 \cdot 5 + 2 \cdot 6 = 17" in said
    page.text_input(key="shapes_q").set_value("2 2 3 4").run()
    assert r"\begin{bmatrix} 22 & 18 \end{bmatrix}" in formulas(page)
    for heads in (1, 4):
        page.get_by_key("shapes_heads").set_value(heads).run()
        assert not page.exception and not page.error
    page.get_by_key("shapes_hide").set_value("k1").run()
    assert r"-\infty" in formulas(page) and "masked" in formulas(page)
    page.text_input(key="shapes_q").set_value("1 2 3").run()
    assert "same number of numbers" in sentences(page)
    page.text_input(key="shapes_q").set_value("<b>x</b>").run()
    assert "is not a number" in sentences(page)


@pytest.mark.parametrize("text", ["", "nan", "inf", "1e99", "1 2 3 4 5 6 7 8 9", "$x$"])
def test_numbers_that_are_none_are_said(text):
    page = opened(shapes_view="hand")
    page.text_input(key="shapes_k1").set_value(text).run()
    assert len(page.error) == 1 and not page.exception
    page = opened(shapes_view="hand", shapes_example="mask")
    page.text_input(key="shapes_scores").set_value(text).run()
    assert len(page.error) == 1 and not page.exception


def test_masking_by_hand():
    page = opened(shapes_view="hand", shapes_example="mask")
    table = page.table[0].value
    assert list(table.loc["weights: mask, then softmax"]) == ["0.16", "0.74", "0.10", "0.00", "1.00"]
    assert table.loc["wrong: softmax, then mask", "sum"] == "0.45" and "**0.45**" in sentences(page)
    page.get_by_key("shapes_hidden").set_value([]).run()
    assert "both ways agree" in sentences(page)
    page.get_by_key("shapes_hidden").set_value(["key 1", "key 2", "key 3", "key 4"]).run()
    assert "every key is hidden" in sentences(page)
    page.text_input(key="shapes_scores").set_value("1 2").run()
    assert not page.exception


def test_wrong_shapes_are_run_and_explained():
    page = opened(shapes_view="wrong")
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
    ("scores", "said"), [("1000,999,0", "0.73"), ("-800,-800,-801,0", "0.42"), ("710,1,5", "1")]
)
def test_huge_scores_overflow_nothing(scores, said):
    page = opened(shapes_view="hand", shapes_example="mask", shapes_scores=scores)
    assert "taken off all of them first" in sentences(page)
    assert (
        formulas(page).rstrip().endswith(f"= {said}\n$$")
        and "inf" not in formulas(page)
        and r"\frac{0}" not in formulas(page)
    )
