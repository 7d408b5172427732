"""Sums, shares and ends that pages say in passing, against sums done here."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import ModelConfig, TrainConfig
from engine.errors import ShapeError
from engine.model import build
from engine.slices import extent
from runs.state import RunSpec
from studies.costs.fits import needs, totals, uses
from studies.costs.ledger import ledger
from studies.costs.model_choices import Size, three
from studies.costs.shares import part_share
from studies.embeddings.table import held_by
from studies.experiments.why_decoders import (
    TwoForms,
    at_work,
    interface,
    lessons,
    pair_writing,
    stored_forms,
    writing,
)
from studies.generation.branches import Written
from studies.generation.scoring import score
from studies.generation.surprise import odds, surprise
from studies.shapes.attention_by_hand import masking
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny
from tests.pages.stage import view_of

SMALL = ModelConfig(vocab_size=65, context=16, d_model=32, n_layers=3, n_heads=4)


def test_parameters_of_a_part_and_of_all_blocks():
    config = SMALL.resolved()
    model = build(SMALL)
    attention = sum(p.numel() for name, p in model.blocks[0].named_parameters() if name.startswith("mixer"))
    one = sum(p.numel() for p in model.blocks[0].parameters())
    whole = sum(p.numel() for p in model.parameters())
    found = part_share(config, "attention")
    assert (found.each, found.all, found.model) == (attention, 3 * attention, whole)
    assert found.share == 3 * attention / whole
    block = part_share(config, "block")
    assert (block.each, block.all) == (one, 3 * one)
    embedding = part_share(config, "embedding")
    assert embedding.each == embedding.all == 65 * 32


def test_sums_places_odds_and_ends():
    example = masking([1.0, 2.5, 0.5, 3.0], [3, 0])
    weights, unmasked, late = example.sums
    assert weights == pytest.approx(1) and unmasked == pytest.approx(1) and late == example.late_sum < 1
    assert held_by(np.array([0.5, 0.3, 0.2]), 2) == pytest.approx(0.8)
    assert extent(np.array([[3.0, -2.0], [np.nan, np.inf]])) == (-2.0, 3.0)
    assert extent(np.array([])) == (0.0, 0.0)
    found = surprise([written(-1.0, False), written(-2.0, True), written(-3.0, True)], 65)
    assert found.picks == 2 and found.depth.tolist() == [1, 2, 3]
    assert found.positions(10).tolist() == [10, 11, 12]
    assert odds(math.log(1 / 8)) == pytest.approx((0.125, 8))
    assert odds(-700.0)[1] == pytest.approx(1.014e304, rel=1e-3) and math.isinf(odds(-701.0)[1])


def test_what_memory_is_enough_for():
    small = ledger(SMALL)
    memory = small.memory("float32", 2, 16)
    found = needs(small, "float32", 2, 16)
    assert found == {name: getattr(memory, name) for name in ("weights", "inference", "training")}
    assert list(needs(small, "int8", 2, 16)) == ["weights", "inference"]
    both = {"to write": memory.inference, "to train": memory.training}
    assert totals(uses(small, "float32", 2, 16)) == both


def written(log_p: float, picked: bool) -> Written:
    rest = {"drawn": 3, "begin": 0, "log_p": log_p, "q": 1.0, "alternatives": ((3, 0.5, 0.5),)}
    return Written(0, None, 1, token=2 if picked else 3, **rest)


@for_each("status, steps, share, left", [
    ("running", 40, 0.4, 0.02 * 60),
    ("running", 0, 0.0, None),
    ("running", 100, 1.0, None),
    ("finished", 40, 0.4, None),
])  # fmt: skip
def test_what_is_left_of_a_run(status: str, steps: int, share: float, left: float | None):
    view = view_of(RunSpec(SMALL, TrainConfig(steps=100), "python"), "run", status, steps)
    assert view.share == pytest.approx(share)
    assert view.seconds_left == (left if left is None else pytest.approx(left))


def test_the_mean_is_torchs_loss() -> None:
    config = tiny()
    ids = some_tokens(config, batch=1, length=8)
    with torch.inference_mode():
        logits = loud(config)(ids)[0].double()
    found = score(logits.numpy(), ids[0].tolist())
    loss = float(F.cross_entropy(logits[:-1], ids[0, 1:]))
    assert found.likelihood.nats == pytest.approx(loss, abs=1e-9) and found.likelihood.tokens == 7
    assert found.likelihood.perplexity == pytest.approx(math.exp(loss))
    assert found.nats == pytest.approx(-np.log(found.p)) and found.guessing == pytest.approx(math.log(11))
    assert found.finite and found.nats[found.worst] == found.nats.max()


def test_the_product_of_a_long_text_has_a_power_that_no_float_holds() -> None:
    found = score(np.zeros((3001, 2)), [0] * 3001)
    mantissa, power = found.product
    exact = 10**1000 // 2**3000  # 8.1... · 10^96
    assert power == -904 and mantissa == pytest.approx(float(str(exact)[:8]) / 1e7, rel=1e-6)
    assert found.likelihood.perplexity == pytest.approx(2.0)
    with pytest.raises(ShapeError, match="one token"):
        score(np.zeros((1, 3)), [0])
    with pytest.raises(ShapeError, match="do not belong"):
        score(np.zeros((3, 3)), [0, 1])
    broken = score(np.full((2, 3), np.nan), [0, 1])
    assert not broken.finite


def test_both_forms_of_a_task_are_read_from_their_files(tmp_path):
    assert stored_forms(tmp_path) == {}
    (tmp_path / "paired" / "sort").mkdir(parents=True)
    (tmp_path / "paired" / "sort" / "metrics.json").write_text(json.dumps({"exact": 0.75}))
    stored = {"right": 0.5, "parameters": 7, "paired_parameters": 8}
    (tmp_path / "cast.json").write_text(json.dumps({"tasks": {"sort": stored}}))
    assert stored_forms(tmp_path) == {"sort": TwoForms(0.75, 0.5, (8, 7))}
    assert all(form.parameters[0] == form.parameters[1] for form in stored_forms().values())


def test_why_decoders_won(tmp_path):
    found = lessons(64, 0.15)
    assert (found.decoder, found.both) == (64, 32)
    assert found.encoder == pytest.approx(9.6, abs=0.2) and found.times == pytest.approx(64 / found.encoder)
    assert lessons(33, 0.5).both == 17 and lessons(33, 0.5).encoder == pytest.approx(16.5, abs=0.3)
    made = three(Size(2, 16, 2), vocab=50, context=8)["both"]
    encoder = 2 * (12 * 256 + 2 * 16) + 8 * 16 + 16
    assert at_work(made) == 1 - encoder / made.total
    assert at_work(three(Size(2, 16, 2))["decoder"]) == 1
    for name, share in (("copy", 0.75), ("sort", 0.5), ("parity_aloud", 0.25)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.json").write_text(
            json.dumps({"solved": {"train": 1, "validation": share}})
        )
    assert (interface(tmp_path).tasks, interface(tmp_path).least) == (2, 0.5)
    assert interface().tasks == 9 and interface().least == 0.991


def test_work_of_writing_by_hand():
    """One layer, 8 wide: 24 d² a token in products, 4 n d for scores and sums, 2 V d at the end."""
    made = three(Size(1, 8, 2), vocab=10, context=16)["decoder"]

    def token(n):
        return 24 * 64 + 4 * n * 8 + 2 * 10 * 8

    found = writing(made, 3, 2)
    assert found.cached == 3 * token(3) + token(4) and found.recomputed == 3 * token(3) + 4 * token(4)
    assert found.times == found.recomputed / found.cached > 1
    made = three(Size(1, 8, 2), vocab=10, context=16)["both"]
    source, d = 3, 8
    reading = source * (24 * d * d + 4 * source * d)
    keys_and_values = source * 4 * d * d
    written = sum(
        24 * d * d + 4 * n * d + (4 * d * d + 4 * source * d) + 2 * 10 * d for n in range(1, source + 1)
    )
    assert pair_writing(made, source) == reading + keys_and_values + written
