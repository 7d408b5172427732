"""The Sampling page alone: every view, every kind of model, and links written by strangers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.checkpoints import Checkpoint
from engine.config import ModelConfig, SampleConfig
from engine.service.state import RunSpec
from pages.output.sampling import figures
from pages.output.sampling import stages as sampling
from tests.pages.stage import StageManager, open_page
from ui import state, subject
from ui.players import sampler

PAGE = str(Path(__file__).parents[2] / "pages" / "output" / "sampling" / "page.py")
VIEWS = ("Stage by stage", "A thousand draws", "Temperatures")


@pytest.fixture(autouse=True)
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    stage = StageManager()
    torch.set_num_threads(
        1
    )  # as ui.state.manager does in the app: thousands of tiny operations wait for each other's threads
    monkeypatch.setattr(state, "manager", lambda: stage)
    return stage


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def engine_rows(page: AppTest):
    return page.dataframe[0].value.set_index("stage")


def test_the_first_view_reads_king_richard_and_shows_each_stage():
    page = opened()
    assert page.text_area(key="text").value == "KING RICHARD II:\n"
    rows = engine_rows(page)
    assert list(rows.index) == ["logits", "repetition penalty", "temperature", "top-k", "top-p", "min-p"]
    assert rows["tokens left"]["logits"] == 65 > rows["tokens left"]["top-p"] > 0
    assert rows["mass kept"]["top-p"] >= 0.95 and rows["choices"]["min-p"] == pytest.approx(
        math.exp(rows["entropy (nats)"]["min-p"])
    )


def test_the_link_holds_every_setting():
    page = opened(
        sampling_temperature="1.5",
        sampling_top_k="7",
        sampling_top_p="0.9",
        sampling_min_p="0.1",
        sampling_repetition_penalty="1.3",
        sampling_penalty_last="1",
        sampling_seed="5",
        sampling_position="3",
    )
    rows = engine_rows(page)
    assert list(rows.index)[-1] == "repetition penalty" and rows["tokens left"]["top-k"] == 7
    assert (
        page.query_params["sampling_top_k"] in ("7", ["7"])
        and page.number_input(key="sampling_seed").value == 5
    )


def test_temperature_zero_leaves_one_token_whatever_the_seed():
    drawn = {
        sentences(opened(sampling_temperature="0", sampling_seed=str(seed))).partition("it draws “")[2][:1]
        for seed in range(3)
    }
    assert len(drawn) == 1
    many = {
        sentences(opened(sampling_temperature="1.5", sampling_top_p="1", sampling_seed=str(seed))).partition(
            "it draws “"
        )[2][:1]
        for seed in range(6)
    }
    assert len(many) > 1


@pytest.mark.parametrize("value", ["", "x", "-1", "nan", "inf", "1e400", "10000000000", "0x1", "1;2", "½"])
def test_a_strangers_link_is_no_error(value: str):
    rows = engine_rows(opened(**{f"sampling_{name}": value for name in sampler.NAMES}))
    assert (rows["tokens left"] >= 1).all() and np.isfinite(rows["entropy (nats)"]).all()


@pytest.mark.parametrize(
    "query",
    [
        {"sampling_view": "Nothing"},
        {"sampling_seed": "-1"},
        {"sampling_seed": "99999999999999"},
        {"sampling_position": "999"},
        {"sampling_position": "-2"},
        {"text": ""},
        {"text": "🙂"},
        {"text": "x" * 5000},
        {"text": "KING☃"},
    ],
)
def test_other_strangers_links_neither(query):
    opened(**query)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"causal": False},
        {"position": "rope", "wiring": "parallel"},
        {"mixer": "none", "ffn": "none"},
        {"wiring": "post", "norm_bias": True},
        {"context": 8},
    ],
    ids=["plain", "masked", "rope", "nothing", "post", "short"],
)
def test_every_view_of_every_kind_of_model(view: str, fields, monkeypatch: pytest.MonkeyPatch):
    small = ModelConfig(
        **{
            **presets.PRESETS["classic"].model.to_dict(),
            "n_layers": 1,
            "d_model": 16,
            "n_heads": 2,
            "d_ff": 32,
            **fields,
        }
    )
    monkeypatch.setitem(presets.PRESETS, "classic", replace(presets.PRESETS["classic"], model=small))
    from ui import subject

    subject._untrained.clear()
    page = opened(model="untrained-classic", sampling_view=view)
    subject._untrained.clear()
    if view == "Temperatures":
        assert ("no samples" in sentences(page)) == (not small.causal)
        assert len(page.code) >= (5 if small.causal else 0)


def test_a_thousand_draws_are_counted_by_the_engine():
    words = sentences(opened(sampling_view="A thousand draws", sampling_temperature="0"))
    assert "came 1000 times; expected were 1000" in words and "0.0% away" in words


def test_temperatures_write_two_hundred_characters_each_and_the_seed_changes_them():
    page = opened(sampling_view="Temperatures")
    texts = [c.value for c in page.code[:5]]
    assert [len(t) for t in texts] == [200] * 5 and len(set(texts)) == 5
    other = page.number_input(key="sampling_seed").set_value(1).run()
    assert not other.exception and [c.value for c in other.code[:5]] != texts
    assert sentences(page).count(" choices") >= 5 and "**τ = 0.2** :small[1." in sentences(page)


def test_settings_that_cannot_be_used_fall_back_alone():
    config = sampler.valid(
        {"temperature": 1e9, "top_k": 3.0, "min_p": True, "penalty_last": "yes", "repetition_penalty": [1]}, 4
    )
    assert config == SampleConfig(
        temperature=sampler.START.temperature, top_k=3, top_p=sampler.START.top_p, seed=4
    )


def test_the_figures_hold_the_numbers():
    values = np.arange(15, dtype=np.float32).reshape(5, 3) / 15
    made = figures.temperatures(["a", "b", "c"], values, [f"τ = {t}" for t in sampling.TEMPERATURES])
    assert [list(trace.x) for trace in made.data] == values.tolist() and len(
        {trace.xaxis for trace in made.data}
    ) == 5
    for note, axis in zip(
        made.layout.annotations, [made.layout[f"xaxis{i or ''}"] for i in (0, 2, 3, 4, 5)], strict=True
    ):  # a title over the middle of each
        assert note.xanchor == "center" and note.x == pytest.approx(sum(axis.domain) / 2, abs=0.01)
    assert np.array_equal(figures.stage_map(["a", "b", "c"], values, list("vwxyz")).data[0].z, values)


@pytest.mark.parametrize("scale", [1e19, 1e30])
@pytest.mark.parametrize("view", ["Stage by stage", "A thousand draws", "Temperatures"])
def test_a_model_whose_numbers_have_run_away_is_a_sentence(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch, view: str, scale: float
):
    """A diverged run's last snapshot: its weights are numbers, what the model makes of them is none."""
    subject.st.cache_resource.clear()
    real = manager.model

    def model(run: str, step: int | None = None) -> Checkpoint:
        found = real(run, step)
        for parameter in found.model.parameters():
            parameter.mul_(scale)
        return found

    monkeypatch.setattr(manager, "model", model)
    preset = presets.PRESETS["fast"]
    assert preset.train is not None
    run = manager.start(RunSpec(preset.model, preset.train, "python"), "this-browser")
    manager.change(run, status="failed")
    page = opened(model=f"run-{run}", sampling_view=view)
    assert [w.value[:27] for w in page.warning] == ["No logit is a finite number"]
    assert not page.error
