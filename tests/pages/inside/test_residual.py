"""The residual stream's page alone: every view with every option, every kind of model, and URLs written by
strangers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.config import ModelConfig
from pages.inside.residual import figures, wirings
from pages.inside.residual import lens as residual
from tests.pages.stage import StageManager, open_page
from ui import models, state, subject

PAGE = str(Path(__file__).parents[3] / "pages" / "inside" / "residual" / "page.py")
LENS, PUSH, NORMS, ROAD = "Logit lens", "Who pushed the logit", "Norms", "The gradient highway"

VARIANTS = {
    "post": {"wiring": "post", "norm_bias": True},
    "parallel": {"wiring": "parallel"},
    "none": {"wiring": "none"},
    "no norm": {"norm": "none"},
    "post, no norm": {"wiring": "post", "norm": "none"},
    "no mixer": {"mixer": "none"},
    "mean": {"mixer": "mean"},
    "similarity": {"mixer": "similarity"},
    "shared": {"mixer": "shared_qk"},
    "no ffn": {"ffn": "none"},
    "nothing": {"mixer": "none", "ffn": "none", "position": "none"},
    "nothing, none": {"mixer": "none", "ffn": "none", "wiring": "none"},
    "no projection": {"output_projection": False},
    "untied": {"tie_embeddings": False},
    "grouped": {"n_kv_heads": 2, "attention_bias": True},
    "masked": {"causal": False},
    "qk-norm": {"qk_norm": True, "position": "rope"},
    "alibi": {"position": "alibi"},
    "t5": {"position": "t5"},
    "sinusoidal": {"position": "sinusoidal"},
    "deep": {"n_layers": 12, "n_heads": 8},
}


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    stage = StageManager()
    monkeypatch.setattr(state, "manager", lambda: stage)
    monkeypatch.setattr(wirings, "FIRST_SECONDS", 60.0)
    monkeypatch.setattr(wirings, "DEPTHS", {"24": (2, 3), "48": (2, 4), "96": (2, 5)})
    return stage


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def test_the_lens_is_first_and_its_cell_is_in_the_url(manager):
    page = opened(residual_cell="4-3", measure="true")
    assert "after block 3 = output" in sentences(page) and "**0.000 nats**" in sentences(page)
    assert page.query_params["residual_cell"] in ("4-3", ["4-3"])
    page.get_by_key("residual_shade").set_value("KL to the output").run()
    assert not page.exception and "settled by" in sentences(page)


def test_the_parts_of_the_logit_sum_to_it(manager):
    page = opened(residual_view=PUSH, measure="true")
    for target, versus in (("top guess", "nothing"), ("e", "mean of all"), ("e", "␣")):
        page.selectbox(key="residual_target").select(target)
        page.selectbox(key="residual_versus").select(versus).run()
        assert not page.exception
        total, logit, difference = (metric.value for metric in page.metric[:3])
        assert abs(float(total) - float(logit)) < 1e-3 and abs(float(difference)) < 1e-3


def test_norms_say_that_shares_sum_to_one(manager):
    page = opened(residual_view=NORMS, measure="true", hand="true")
    assert "1.000000" in sentences(page) and "Worked out" in sentences(page)
    assert "BERT base" in sentences(page) and "LLaMA-2 7B" in sentences(page)


def test_the_highway_measures_and_says_what_it_saw(manager):
    page = opened(residual_view=ROAD, residual_seeds="1", measure="true")
    for key, options in (
        ("residual_deepest", ["24", "96"]),
        ("residual_norm", ["none", "RMSNorm"]),
        ("residual_init", ["writes not scaled", "1/√inputs"]),
        ("residual_gradient", ["each block's weights"]),
        ("residual_blocks", ["2"]),
    ):
        for option in options:
            page.get_by_key(key).set_value(option).run()
            assert not page.exception and not page.error, (key, option)
            assert "seen here" in sentences(page) and "fresh models" in sentences(page)


def test_the_highway_goes_on_where_it_was_until_all_is_measured(manager, monkeypatch):
    monkeypatch.setattr(wirings, "FIRST_SECONDS", 1e-9)
    monkeypatch.setattr(wirings, "SLICE_SECONDS", 1e-9)
    page = opened(
        residual_view=ROAD, residual_seeds="1", residual_norm="RMSNorm", measure="true"
    )  # one model in each run of the script
    for _ in range(5):
        assert "fresh models" not in sentences(page) and "seen here" not in sentences(page)
        page.run()
        assert not page.exception
    page.run()
    assert "6 fresh models" in sentences(page) and "seen here" in sentences(page)


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_every_kind_of_model_is_drawn_or_explained(manager, monkeypatch, fields):
    values = {"d_model": 32, "n_layers": 2, "n_heads": 4, "context": 64} | fields
    preset = replace(presets.PRESETS["classic"], model=ModelConfig(**values))
    monkeypatch.setattr(models, "PRESETS", {"classic": preset})
    monkeypatch.setattr(models, "TRAINABLE", {"classic": preset})
    subject.st.cache_resource.clear()
    page = opened(model="untrained-classic", measure="true")
    for view in ("lens", "push", "norms"):
        page.get_by_key("residual_view").set_value(view).run()
        page.session_state["measure"] = True
        page.run()
        assert not page.exception and not page.error, view
        said = sentences(page)
        if values.get("wiring") == "none":
            assert "no residual stream" in said or "Nothing is added here" in said
        elif values.get("wiring") == "post" and values.get("norm") != "none" and view != "lens":
            assert "post-norm" in said
    subject.st.cache_resource.clear()


@pytest.mark.parametrize(
    "query",
    [
        {"residual_view": "<script>"},
        {"residual_cell": "99999-99999"},
        {"residual_cell": "-1--1"},
        {"residual_cell": "²-³"},
        {"residual_cell": "x" * 500},
        {"residual_shade": "nothing"},
        {"residual_view": PUSH, "residual_target": "<b>no such</b>", "residual_versus": "nobody"},
        {"residual_view": PUSH, "residual_position": "-5"},
        {"residual_view": NORMS, "residual_position": "4000"},
        {
            "residual_view": ROAD,
            "residual_deepest": "1000000",
            "residual_norm": "x",
            "residual_init": "y",
            "residual_seeds": "-1",
            "residual_blocks": "7",
        },
    ],
)
def test_a_url_written_by_a_stranger_does_no_harm(manager, query):
    page = opened(**query)
    assert not page.error and "no such" not in sentences(page)


def test_a_click_names_a_cell_of_the_table():
    assert residual.place_of("0", (3, 5)) == (0, 0) and residual.place_of("14", (3, 5)) == (2, 4)
    for wrong in ("15", "-1", "[1]", "", "9" * 30, "²"):
        assert residual.place_of(wrong, (3, 5)) is None


def test_logarithmic_axes_leave_out_what_has_no_logarithm():
    import numpy as np

    figure = figures.roads({"none": (np.arange(4), np.array([0.0, np.nan, np.inf, 1e-3]))}, x="", y="")
    assert np.isnan(figure.data[0].y[:3]).all() and np.isfinite(figure.layout.yaxis.range).all()
