"""The view "Learned" of the Positions page: a table that was trained, one that was not, and models that have
none.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.config import ModelConfig, TrainConfig
from engine.service.state import RunSpec
from pages.input.positions import learned_figures as figures
from tests.pages.stage import StageManager, open_page, view_of
from ui import course as embeddings_course
from ui import state, subject

PAGE = str(Path(__file__).parents[2] / "pages" / "input" / "positions" / "page.py")
SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 2, "context": 32}


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    stage = StageManager()
    monkeypatch.setattr(state, "manager", lambda: stage)
    subject.st.cache_resource.clear()
    return stage


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), positions_view="Learned", **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def test_the_shipped_table_has_learned_what_near_is(manager):
    page = opened()
    learned, sinusoidal = (float(metric.value) for metric in page.metric[:2])
    assert learned > 0.9 and 0.8 < sinusoidal < 0.9
    assert "128 × 128 = 16,384 parameters" in sentences(page) and "have found each other" in sentences(page)


def test_an_untrained_table_has_not(manager):
    page = opened(model="untrained-classic")
    assert abs(float(page.metric[0].value)) < 0.1 and "hardly more alike" in sentences(page)


@pytest.mark.parametrize("position", ["none", "sinusoidal", "rope", "alibi", "t5"])
def test_a_model_without_a_table_offers_one_that_has(manager, monkeypatch, position):
    preset = replace(presets.PRESETS["classic"], model=ModelConfig(**SMALL, position=position))
    monkeypatch.setattr(subject, "PRESETS", {"classic": preset})
    monkeypatch.setattr(subject, "TRAINABLE", {"classic": preset})
    page = opened(model="untrained-classic")
    assert "no learned table" in sentences(page) and not page.metric
    page.get_by_key("learned_switch").click().run()
    assert (
        not page.exception
        and page.selectbox(key="subject_model").value == "shakespeare-classic"
        and page.metric
    )


def test_the_course_over_a_run(manager, monkeypatch):
    monkeypatch.setattr(embeddings_course, "SLICE_SECONDS", 0.0)
    spec = RunSpec(
        ModelConfig(**SMALL, vocab_size=30, position="learned"),
        TrainConfig(steps=40),
        corpus="python",
        name="mine",
    )
    manager.views["r"] = view_of(spec, "r", "done", snapshots=(0, 20, 40))
    page = opened(model="run-r", step="20")
    assert "2 more snapshots are still to be measured" in sentences(page) and "32 × 16" in sentences(page)
    for _ in range(3):
        page.run()
        assert not page.exception
    assert "still to be measured" not in sentences(page)


@pytest.mark.parametrize("context", [1, 2, 3])
def test_tables_of_very_few_positions(manager, monkeypatch, context):
    preset = replace(presets.PRESETS["classic"], model=ModelConfig(**{**SMALL, "context": context}))
    monkeypatch.setattr(subject, "PRESETS", {"classic": preset})
    monkeypatch.setattr(subject, "TRAINABLE", {"classic": preset})
    page = opened(model="untrained-classic")
    assert not page.error and ("too few" in sentences(page)) == (context < 3)


def test_names_stand_beside_the_path_and_not_on_each_other():
    angle = np.linspace(0, np.pi, 65)
    arch = figures.path(np.stack((-np.cos(angle), np.sin(angle)), axis=1), np.array([0.6, 0.3])).data[0]
    assert [arch.textposition[i] for i in (1, 32, 63)] == ["middle left", "top center", "middle right"]
    assert [t for t in arch.text if t] == ["0", "8", "16", "24", "32", "40", "48", "56", "64"]
    knot = figures.path(np.concatenate((np.zeros((64, 2)), np.ones((1, 2)))), np.array([1.0, 0.0])).data[0]
    assert [t for t in knot.text if t] == ["0", "64"]


def test_on_a_phone_the_two_tables_follow_each_other(manager):
    texts = [m.value for m in opened().markdown]
    starts = ("**Learned: ", "**Sinusoidal", "Learned: path", "Sinusoidal: path")
    titles = [next(i for i, text in enumerate(texts) if text.startswith(start)) for start in starts]
    assert titles == sorted(titles)
