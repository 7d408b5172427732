"""What is said in words on several pages, held against what the engine does."""

import json
import re

import numpy as np
import pytest
import torch

from engine.config import ModelConfig, passes
from engine.data.corpora import SHAKESPEARE_TRAIN
from engine.ledger import ledger, ledger_of
from engine.ledger.growth import by_part
from engine.presets import PRESETS
from engine.weights.checkpoints import load
from tests.pages.helpers import opened, said
from ui import models
from ui.site import ROOT
from ui.text.numbers import scientific

pytestmark = pytest.mark.usefixtures("manager")


FOLDS = {"measure": "true", "hand": "true"}  # both open
BLOCK_SAID = [  # room, its query, what stands there
    ("inside/shapes", {"shapes_view": "pass", "shapes_source": "block"}, "**3,147,776 parameters"),
    ("models/parameters", {"parameters_scope": "block", "parameters_model": "block-512"}, "3,147,776"),
]


@pytest.mark.parametrize(("room", "query", "words"), BLOCK_SAID, ids=[room for room, _, _ in BLOCK_SAID])
def test_pages_say_that_count_of_one_block(room, query, words):
    page = opened(room, **FOLDS, **query)
    assert words in said(page, "markdown", "metric")


def test_the_ledger_writes_a_gated_width_as_1_368():
    rows = ledger(ModelConfig(d_model=512, n_heads=8, ffn="swiglu")).rows
    told = {row.name: row.numbers for row in rows if row.component == "feedforward"}
    assert told == {"gate W_G": "512·1,368", "W_1": "512·1,368", "W_2": "1,368·512"}


def test_mistral_s_cache_and_scores_end_at_its_window():
    query = {"parameters_model": "mistral-7b", **FOLDS}  # at its own context of 32,768
    told = said(opened("models/parameters", parameters_view="memory", **query), "markdown")
    assert (
        "2 · L · H_kv · d_head · 4,096 · batch" in told and "reaches back over only 4,096 positions" in told
    )
    told = said(opened("models/parameters", parameters_view="flops", **query), "markdown", "success")
    assert "compared with only the last 4,096" in told
    mistral = ledger_of(PRESETS["mistral-7b"])
    scores = by_part(mistral, np.array([1, 4096, 32_768]))["scores and weighted sums"]
    assert scores[1] == scores[2] == 4096 * scores[0] == mistral.flops().scores


def test_a_score_of_14_leaves_the_zeros_less_than_a_millionth():
    told = said(opened("inside/attention", attention_view="scores", measure="true", hand="true"), "caption")
    share = float(torch.tensor([14.0] + [0.0] * 99, dtype=torch.float64).softmax(0)[1])
    assert f"= {scientific(share)}" in told and scientific(share) == "8.3 × 10⁻⁷"


@pytest.mark.parametrize("name", ["shakespeare-classic", "shakespeare-modern"])
def test_the_loss_of_a_shipped_model_says_after_how_many_passes(name):
    found = load(ROOT / "checkpoints" / name)
    metrics = json.loads((ROOT / "checkpoints" / name / "metrics.json").read_text("utf-8"))
    read = metrics["step"] * metrics["train"]["batch_size"] * found.config.context / SHAKESPEARE_TRAIN
    told = models.facts_help(found, None)
    assert told is not None and [int(n) for n in re.findall(r"after (\d+) epochs", told)] == [round(read), 82]
    assert round(passes(10_000, 64, 128, SHAKESPEARE_TRAIN)) == 82
    assert re.search(r"after 16 and 11 passes", (ROOT / "docs" / "checkpoints.md").read_text("utf-8"))
