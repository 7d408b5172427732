"""The six small models under checkpoints/positions: alike but for their positions, and what is recorded of
them is measured again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoints import load
from engine.config import TrainConfig
from engine.measure.extrapolation import (
    TIMES,
    Curve,
    curve,
    farthest_bucket,
    position_losses,
    stopgap,
    window_starts,
)
from engine.measure.schemes import parameters_added
from engine.model import build
from engine.training.batches import Batches
from engine.training.evaluation import measure
from engine.training.pretrain import POSITION_RECIPES
from tests.engine.cases import for_each

ROOT = Path(__file__).resolve().parents[2] / "checkpoints"
NAMES = list(POSITION_RECIPES)


def shipped(name):
    return load(ROOT / name)


def live(model, tokens, windows):
    starts = window_starts(len(tokens), 64, windows)
    return curve(np.concatenate(list(position_losses(model, tokens, starts, TIMES * 64))), starts, 64)


def test_they_differ_in_their_positions_and_in_nothing_else():
    first = POSITION_RECIPES[NAMES[0]]
    for name in NAMES:
        recipe = POSITION_RECIPES[name]
        assert recipe.train == first.train and recipe.corpus == first.corpus and recipe.model.context == 64
        assert replace(recipe.model, position="none") == first.model


@for_each("name", NAMES)
def test_a_model_is_its_recipe_and_has_its_record(name):
    found, recipe = shipped(name), POSITION_RECIPES[name]
    assert found.config == replace(recipe.model, vocab_size=65).resolved()
    assert TrainConfig.from_dict(found.metrics["train"]) == recipe.train
    assert sum(p.numel() for p in found.model.parameters()) == sum(
        p.numel() for p in shipped("positions/none").model.parameters()
    ) + parameters_added(found.config, found.config.position)
    assert found.metrics["validation_loss"] < 1.66 and found.metrics["date"]
    assert min(point["validation_loss"] for point in found.metrics["curve"]) == pytest.approx(
        found.metrics["validation_loss"], abs=0.01
    )
    record = Curve.from_dict(found.metrics["extrapolation"])
    assert record.width == 8 and len(record.mean) == 32 and record.windows == 1739
    assert (
        np.isnan(record.mean[8:]).all() == (name == "positions/learned")
        and np.isfinite(record.mean[:8]).all()
    )
    assert 0.025 < record.tail[1] < 0.032  # over blocks of windows; as if all were independent: 0.017
    assert record.mean[:8].mean() == pytest.approx(
        found.metrics["validation_loss"], abs=0.02
    )  # the same text in the same windows


@pytest.mark.exhaustive
@for_each("name", NAMES)
def test_a_model_reaches_its_loss_and_its_record(name, shakespeare):
    found = shipped(name)
    assert found.tokenizer == shakespeare.tokenizer
    loss = measure(found.model, Batches(shakespeare, found.config, TrainConfig()), shakespeare.validation)
    assert loss.nats == pytest.approx(found.metrics["validation_loss"], abs=0.005)
    again, record = (
        live(found.model, shakespeare.validation, 64),
        Curve.from_dict(found.metrics["extrapolation"]),
    )
    wider = np.sqrt(record.windows / again.windows)  # the errors of so few windows: their own are rough
    assert again.tail[0] == pytest.approx(record.tail[0], abs=4 * wider * record.tail[1])
    if name != "positions/learned":
        assert again.excess[4][0] == pytest.approx(
            record.excess[4][0], abs=4 * wider * record.excess[4][1] + 0.01
        )


def test_what_the_page_tells_of_them():
    """ALiBi holds, the others do not; within the context every scheme is better than none."""
    losses = {name: shipped(name).metrics["validation_loss"] for name in NAMES}
    assert max(losses, key=lambda name: losses[name]) == "positions/none"
    far = {
        name: Curve.from_dict(shipped(name).metrics["extrapolation"]).excess[4][0]
        for name in NAMES
        if name != "positions/learned"
    }
    assert far.pop("positions/alibi") < 0.02 and min(far.values()) > 1.0


def test_t5_buckets_that_training_never_met_are_as_they_began():
    found = shipped("positions/t5")
    start = build(found.config, found.metrics["train"]["seed"]).positions.weight.detach().bfloat16().float()
    last, weight = farthest_bucket(found.config), found.model.positions.weight
    assert torch.allclose(weight[last + 1 :], start[last + 1 :], atol=2e-4)
    assert (weight[: last + 1] - start[: last + 1]).abs().amax(1).min() > 0.1


def test_filling_those_buckets_is_most_of_the_cure(shakespeare):
    model = shipped("positions/t5").model
    bare, filled = (
        live(model, shakespeare.validation, 32),
        live(stopgap(model, "far"), shakespeare.validation, 32),
    )
    assert filled.excess[4][0] < 0.2 * bare.excess[4][0]
