"""The models that come with the repository (those that write, encoder-decoders, the classifier, the encoder, and six
that differ in their positions alone) are what their metrics say.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoints import load
from engine.config import TrainConfig
from engine.data.corpus import Corpus
from engine.model import build
from engine.sample import complete
from engine.training.batches import Batches, guessed_right, measure
from studies.experiments.__main__ import EXPERIMENTS, main
from studies.experiments.shipped import ENCODER_RECIPES, POSITION_RECIPES, RECIPES
from studies.experiments.shipped_pairs import ALIGNED, FOLDER, SHIPPED, SPEAKERS
from studies.families.classifier import by_size, counting_right, labelled_right, share
from studies.families.cross_attention import model_alignment
from studies.pairs.checkpoints import load_labels, load_pair
from studies.pairs.corpora import pair_text, speakers
from studies.pairs.encoders import ENCODERS
from studies.pairs.generate import write_pair
from studies.pairs.paired import PAIR_TASKS, pairs
from studies.pairs.presets import PAIRED
from studies.pairs.train import exact
from studies.positions.extrapolation import (
    TIMES,
    Curve,
    curve,
    farthest_bucket,
    position_losses,
    stopgap,
    window_starts,
)
from studies.positions.schemes import parameters_added
from tests.engine.cases import for_each

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
NAMES = sorted(RECIPES)


@for_each("name", EXPERIMENTS)
def test_every_experiment_says_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0 and "usage" in capsys.readouterr().out


@for_each("name", NAMES)
def test_a_shipped_checkpoint_is_its_recipe_and_writes_text(name: str) -> None:
    checkpoint = load(CHECKPOINTS / name)
    assert checkpoint.config == replace(RECIPES[name].model, vocab_size=65).resolved()
    assert TrainConfig.from_dict(checkpoint.metrics["train"]) == RECIPES[name].train
    assert checkpoint.metrics["validation_loss"] <= 1.52
    curve = checkpoint.metrics["curve"]
    assert [point["step"] for point in curve] == sorted({0, *(point["step"] for point in curve)})
    assert min(point["validation_loss"] for point in curve) == pytest.approx(
        checkpoint.metrics["validation_loss"], abs=0.01
    )
    text = complete(checkpoint.model, checkpoint.tokenizer, "KING RICHARD II:\n", 120, 0.5, seed=0)
    words = (" the ", " and ", " of ", " to ", " i ", " my ")
    assert len(text) == 120 and sum(word in text.lower() for word in words) >= 2


@pytest.mark.exhaustive
@for_each("name", NAMES)
def test_a_shipped_checkpoint_reaches_its_loss(name: str, shakespeare: Corpus) -> None:
    checkpoint = load(CHECKPOINTS / name)
    assert shakespeare.tokenizer == checkpoint.tokenizer
    with torch.inference_mode():
        batches = Batches(shakespeare, checkpoint.config, TrainConfig())
        loss = measure(checkpoint.model, batches, shakespeare.validation)
    assert loss.nats == pytest.approx(checkpoint.metrics["validation_loss"], abs=0.01)


PAIRS = [name for name in SHIPPED if name != SPEAKERS]
ENOUGH = 0.95  # of the held-out sources


@pytest.mark.exhaustive
@for_each("name", PAIRS)
def test_a_shipped_encoder_decoder_reaches_its_score_and_is_aligned(name: str) -> None:
    checkpoint, preset, text = load_pair(CHECKPOINTS / FOLDER / name), PAIRED[name], pair_text(name)
    metrics = checkpoint.metrics
    assert checkpoint.model.config == text.fitted(preset.model).resolved()
    assert checkpoint.tokenizer == text.tokenizer
    assert TrainConfig.from_dict(metrics["train"]) == preset.train
    right = exact(checkpoint.model, text.rows["validation"])
    assert len(right) == 1000
    assert sum(right) / 1000 == pytest.approx(metrics["exact"], abs=0.003) and metrics["exact"] >= ENOUGH
    curve = metrics["curve"]
    assert curve[0]["right"] == 0.0 and curve[-1]["right"] >= ENOUGH - 0.03  # of a hundred
    assert [point["step"] for point in curve] == sorted({point["step"] for point in curve})
    held = pairs(PAIR_TASKS[name], 20_000, 1_000)[1][:ALIGNED]
    found = model_alignment(checkpoint.model, checkpoint.tokenizer, held)
    said = metrics["alignment"]
    assert found is not None and said["pairs"] == len(held)
    assert found.heads == pytest.approx(np.array(said["heads"]), abs=0.01)
    assert found.together == pytest.approx(said["together"], abs=0.01)
    assert found.chance == pytest.approx(said["chance"], abs=1e-4)
    assert found.best.value > 2 * found.chance


@for_each("name", PAIRS)
def test_it_answers_the_examples_of_its_rules(name: str) -> None:
    checkpoint = load_pair(CHECKPOINTS / FOLDER / name)
    rules = PAIR_TASKS[name].rules
    wrong = [r for r in rules if write_pair(checkpoint.model, checkpoint.tokenizer, r.source) != r.target]
    assert len(wrong) <= 1


@pytest.mark.exhaustive
def test_the_classifier_reaches_its_share(shakespeare: Corpus) -> None:
    checkpoint, preset, data = load_labels(CHECKPOINTS / FOLDER / SPEAKERS), ENCODERS[SPEAKERS], speakers()
    metrics, text = checkpoint.metrics, data.text
    assert checkpoint.model.config == text.fitted(preset.model).resolved()
    assert checkpoint.labels == text.labels and checkpoint.tokenizer == text.tokenizer
    assert TrainConfig.from_dict(metrics["train"]) == preset.train
    right = labelled_right(checkpoint.model, text.rows["validation"])
    assert share(right) == pytest.approx(metrics["right"], abs=0.003)
    assert metrics["majority"] == pytest.approx(data.majority, abs=1e-4)
    assert share(right) > 2 * metrics["majority"]
    counted = counting_right(text)
    assert share(counted) == pytest.approx(metrics["counting_words"], abs=1e-4)
    said = metrics["by_lines"]
    assert [one["right"] for one in said.values()] == pytest.approx(
        list(by_size(right, data.lines).values()), abs=0.02
    )
    assert [one["counting_words"] for one in said.values()] == pytest.approx(
        list(by_size(counted, data.lines).values()), abs=1e-4
    )


@pytest.mark.exhaustive
@for_each("name", ENCODER_RECIPES)
def test_the_encoder_fills_as_many_blanks(name: str, shakespeare: Corpus) -> None:
    checkpoint, recipe = load(CHECKPOINTS / name), ENCODER_RECIPES[name]
    assert checkpoint.config == replace(recipe.model, vocab_size=66).resolved()
    assert TrainConfig.from_dict(checkpoint.metrics["train"]) == recipe.train
    batches = Batches(shakespeare, checkpoint.config, recipe.train)
    loss = measure(checkpoint.model, batches, shakespeare.validation)
    assert loss.nats == pytest.approx(checkpoint.metrics["validation_loss"], abs=0.01)
    with torch.inference_mode():
        right = guessed_right(checkpoint.model, batches, shakespeare.validation)
    assert right == pytest.approx(checkpoint.metrics["guessed_right"], abs=0.003) and right > 0.4


POSITIONS = list(POSITION_RECIPES)


def shipped(name):
    return load(CHECKPOINTS / name)


def live(model, tokens, windows):
    starts = window_starts(len(tokens), 64, windows)
    return curve(np.concatenate(list(position_losses(model, tokens, starts, TIMES * 64))), starts, 64)


def test_what_the_page_tells_of_six_that_differ_in_their_positions_alone():
    first = POSITION_RECIPES[POSITIONS[0]]
    for name in POSITIONS:
        recipe = POSITION_RECIPES[name]
        assert recipe.train == first.train and recipe.corpus == first.corpus and recipe.model.context == 64
        assert replace(recipe.model, position="none") == first.model
    losses = {name: shipped(name).metrics["validation_loss"] for name in POSITIONS}
    assert max(losses, key=lambda name: losses[name]) == "positions/none"
    relative = [name for name in POSITIONS if name != "positions/learned"]
    records = {name: Curve.from_dict(shipped(name).metrics["extrapolation"]) for name in relative}
    far = {name: record.excess[4][0] for name, record in records.items()}
    assert far.pop("positions/alibi") < 0.02 and min(far.values()) > 1.0


@for_each("name", POSITIONS)
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
    assert np.isnan(record.mean[8:]).all() == (name == "positions/learned")
    assert np.isfinite(record.mean[:8]).all()
    assert 0.025 < record.tail[1] < 0.032  # over blocks of windows; as if all were independent: 0.017
    assert record.mean[:8].mean() == pytest.approx(
        found.metrics["validation_loss"], abs=0.02
    )  # the same text in the same windows


@pytest.mark.exhaustive
@for_each("name", POSITIONS)
def test_a_model_reaches_its_loss_and_its_record(name, shakespeare):
    found = shipped(name)
    assert found.tokenizer == shakespeare.tokenizer
    loss = measure(found.model, Batches(shakespeare, found.config, TrainConfig()), shakespeare.validation)
    assert loss.nats == pytest.approx(found.metrics["validation_loss"], abs=0.005)
    again = live(found.model, shakespeare.validation, 64)
    record = Curve.from_dict(found.metrics["extrapolation"])
    wider = np.sqrt(record.windows / again.windows)  # the errors of so few windows: their own are rough
    assert again.tail[0] == pytest.approx(record.tail[0], abs=4 * wider * record.tail[1])
    if name != "positions/learned":
        assert again.excess[4][0] == pytest.approx(
            record.excess[4][0], abs=4 * wider * record.excess[4][1] + 0.01
        )


def test_t5_buckets_that_training_never_met_are_as_they_began():
    found = shipped("positions/t5")
    start = build(found.config, found.metrics["train"]["seed"]).positions.weight.detach().bfloat16().float()
    last, weight = farthest_bucket(found.config), found.model.positions.weight
    assert torch.allclose(weight[last + 1 :], start[last + 1 :], atol=2e-4)
    assert (weight[: last + 1] - start[: last + 1]).abs().amax(1).min() > 0.1


def test_filling_those_buckets_is_most_of_the_cure(shakespeare):
    model = shipped("positions/t5").model
    held = shakespeare.validation
    bare, filled = live(model, held, 32), live(stopgap(model, "far"), held, 32)
    assert filled.excess[4][0] < 0.2 * bare.excess[4][0]
