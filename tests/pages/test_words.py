"""What is said in words on several pages, held against what the engine does."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoints import load
from engine.config import ModelConfig, TrainConfig, gated_width, passes
from engine.corpora import SHAKESPEARE_TRAIN
from engine.ledger import blackboard as worked
from engine.ledger import component_parameters, ledger, ledger_of
from engine.ledger.block import block
from engine.ledger.growth import by_part
from engine.presets import PRESETS
from engine.probe import Recorder
from engine.training.optim import learning_rate_factor
from pages.inside.shapes.sources import EXAMPLES
from tests.engine.helpers import loud, some_tokens, tiny
from tests.pages.helpers import opened, said
from ui import models
from ui.controls import CONTROLS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("manager")


def test_qk_norm_gives_rms_1_which_is_length_sqrt_d_head():
    model = loud(tiny(position="none", qk_norm=True, d_model=64, n_heads=4))
    seen = Recorder()
    model(some_tokens(model.config), seen)
    lengths = torch.as_tensor(seen["blocks.1.q_rot"]).norm(dim=-1)
    assert lengths.mean() == pytest.approx(16**0.5, rel=1e-3)
    assert "RMS 1" in CONTROLS["qk_norm"].help and "length √d_head" in CONTROLS["qk_norm"].help


def test_the_last_rate_is_where_the_schedule_would_end():
    config = TrainConfig(steps=50, warmup_steps=5, schedule="linear", min_lr_fraction=0.2)
    assert learning_rate_factor(config, 49) > 0.2 == pytest.approx(learning_rate_factor(config, 50))
    assert "one step after the last" in CONTROLS["min_lr_fraction"].help


def test_a_gated_network_has_one_rule_for_its_width():
    for d in (96, 128, 512, 768, 1000):
        derived = ModelConfig(d_model=d, n_heads=1, ffn="swiglu").resolved().d_ff
        assert derived == gated_width(4 * d) and derived % 8 == 0
        assert block(d, gated_width(4 * d), "swiglu").feedforward == 3 * d * derived


def test_one_block_has_one_count_wherever_it_is_counted():
    counts = component_parameters(EXAMPLES["block"].config)
    shapes = sum(counts[part] for part in ("attention", "feedforward", "norm1", "norm2"))
    hand = component_parameters(worked.BLOCK)
    by_hand = sum(hand[part] for part in ("attention", "feedforward", "norm1", "norm2"))
    assert shapes == by_hand == block(512, 2048, "gelu").total == 3_147_776


FOLDS = {"measure": "true", "hand": "true"}  # both open
BLOCK_SAID = [  # room, its query, what stands there
    ("inside/shapes", {"shapes_view": "pass", "shapes_source": "block"}, "**3,147,776 parameters"),
    ("models/parameters", {"parameters_view": "byhand"}, "3,147,776"),
    ("inside/feedforward", {"feedforward_view": "parameters"}, "3,147,776"),
]


@pytest.mark.parametrize(("room", "query", "words"), BLOCK_SAID, ids=[room for room, _, _ in BLOCK_SAID])
def test_pages_say_that_count_of_one_block(room, query, words):
    page = opened(room, **FOLDS, **query)
    assert words in said(page, "markdown", "metric")


def test_the_ledger_writes_a_gated_width_as_1_368():
    rows = ledger(ModelConfig(d_model=512, n_heads=8, ffn="swiglu")).rows
    told = {row.name: row.numbers for row in rows if row.component == "feedforward"}
    assert told == {"gate W_G": "512·1,368", "W_1": "512·1,368", "W_2": "1,368·512"}


def test_home_counts_bert_as_parameters_does():
    told = said(opened("start/home", preset="bert-base"), "markdown")
    total = ledger_of(PRESETS["bert-base"]).total
    assert total == 109_482_240 and f"**{total:,} parameters**" in told
    assert f"{768 * 768 + 768:,} of them are outside this map" in told  # the pooler


def test_mistral_s_cache_and_scores_end_at_its_window():
    query = {"parameters_model": "mistral-7b", **FOLDS}  # at its own context of 32,768
    told = said(opened("models/parameters", parameters_view="Memory", **query), "markdown")
    assert "2 · L · H_kv · d_head · 4,096 · batch" in told and "looks back over 4,096 positions" in told
    told = said(opened("models/parameters", parameters_view="FLOPs", **query), "markdown", "success")
    assert "compared with the last 4,096 only" in told
    mistral = ledger_of(PRESETS["mistral-7b"])
    scores = by_part(mistral, np.array([1, 4096, 32_768]))["scores and sums"]
    assert scores[1] == scores[2] == 4096 * scores[0] == mistral.flops().scores


def test_a_score_of_14_leaves_the_zeros_less_than_a_millionth():
    told = said(opened("inside/attention", attention_view="√d_k", measure="true", hand="true"), "caption")
    share = float(torch.tensor([14.0] + [0.0] * 99, dtype=torch.float64).softmax(0)[1])
    assert f"= {share:.1e}" in told and f"{share:.1e}" == "8.3e-07"


@pytest.mark.parametrize("name", ["shakespeare-classic", "shakespeare-modern"])
def test_the_loss_of_a_shipped_model_says_after_how_many_passes(name):
    found = load(ROOT / "checkpoints" / name)
    metrics = json.loads((ROOT / "checkpoints" / name / "metrics.json").read_text("utf-8"))
    read = metrics["step"] * metrics["train"]["batch_size"] * found.config.context / SHAKESPEARE_TRAIN
    told = models.facts_help(found, None)
    assert told is not None and [int(n) for n in re.findall(r"after (\d+) passes", told)] == [round(read), 82]
    assert round(passes(10_000, 64, 128, SHAKESPEARE_TRAIN)) == 82
    assert re.search(r"after 16 and 11 passes", (ROOT / "README.md").read_text("utf-8"))
