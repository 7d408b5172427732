"""The encoder-decoders, the classifier and the encoder that come with the repository are what their metrics say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import corpora
from engine.checkpoints import load
from engine.checkpoints_paired import load_labels, load_pair
from engine.config import TrainConfig
from engine.measure.alignment import model_alignment
from engine.measure.labelling import by_size, counting_right, labelled_right, share
from engine.sample.pairs import write_pair
from engine.tasks.paired import PAIR_TASKS, pairs
from engine.training.batches import Batches
from engine.training.evaluation import guessed_right, measure
from engine.training.paired import label_recipe, pair_recipe
from engine.training.pretrain import ENCODER_RECIPES
from engine.training.pretrain_paired import ALIGNED, FOLDER, SHIPPED, SPEAKERS
from engine.training.train_pairs import exact
from tests.engine.cases import for_each

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
PAIRS = [name for name in SHIPPED if name != SPEAKERS]
ENOUGH = 0.95  # of the held-out sources


@pytest.mark.exhaustive
@for_each("name", PAIRS)
def test_a_shipped_encoder_decoder_reaches_its_score(name: str) -> None:
    """All held-out sources, written anew; and its recipe is that of the app."""
    checkpoint, recipe = load_pair(CHECKPOINTS / FOLDER / name), pair_recipe(name)
    metrics = checkpoint.metrics
    assert checkpoint.model.config == recipe.model.resolved()
    assert checkpoint.tokenizer == recipe.text.tokenizer
    assert TrainConfig.from_dict(metrics["train"]) == recipe.train
    right = exact(checkpoint.model, recipe.text.rows["validation"])
    assert len(right) == 1000
    assert sum(right) / 1000 == pytest.approx(metrics["exact"], abs=0.003) and metrics["exact"] >= ENOUGH
    curve = metrics["curve"]
    assert curve[0]["right"] == 0.0 and curve[-1]["right"] >= ENOUGH - 0.03  # of a hundred
    assert [point["step"] for point in curve] == sorted({point["step"] for point in curve})


@pytest.mark.exhaustive
@for_each("name", PAIRS)
def test_its_attention_is_aligned_as_its_metrics_say(name: str) -> None:
    checkpoint = load_pair(CHECKPOINTS / FOLDER / name)
    held = pairs(PAIR_TASKS[name], 20_000, 1_000)[1][:ALIGNED]
    found = model_alignment(checkpoint.model, checkpoint.tokenizer, held)
    said = checkpoint.metrics["alignment"]
    assert found is not None and said["pairs"] == len(held)
    assert found.heads == pytest.approx(np.array(said["heads"]), abs=0.01)
    assert found.together == pytest.approx(said["together"], abs=0.01)
    assert found.chance == pytest.approx(said["chance"], abs=1e-4)
    assert found.best.value > 2 * found.chance


@for_each("name", PAIRS)
def test_it_answers_the_examples_of_its_rules(name: str) -> None:
    """Whatever stands beside a rule on a page, the model should say too: all of them but perhaps one."""
    checkpoint = load_pair(CHECKPOINTS / FOLDER / name)
    rules = PAIR_TASKS[name].rules
    wrong = [r for r in rules if write_pair(checkpoint.model, checkpoint.tokenizer, r.source) != r.target]
    assert len(wrong) <= 1


@pytest.mark.exhaustive
def test_the_classifier_reaches_its_share(shakespeare: corpora.Corpus) -> None:
    checkpoint, recipe = load_labels(CHECKPOINTS / FOLDER / SPEAKERS), label_recipe()
    metrics = checkpoint.metrics
    assert checkpoint.model.config == recipe.model.resolved()
    assert checkpoint.labels == recipe.text.labels and checkpoint.tokenizer == recipe.text.tokenizer
    assert TrainConfig.from_dict(metrics["train"]) == recipe.train
    right = labelled_right(checkpoint.model, recipe.text.rows["validation"])
    assert share(right) == pytest.approx(metrics["right"], abs=0.003)
    assert metrics["majority"] == pytest.approx(recipe.majority, abs=1e-4)
    assert share(right) > 2 * metrics["majority"]
    counted = counting_right(recipe.text)
    assert share(counted) == pytest.approx(metrics["counting_words"], abs=1e-4)
    said = metrics["by_lines"]
    assert [one["right"] for one in said.values()] == pytest.approx(
        list(by_size(right, recipe.lines).values()), abs=0.02
    )
    assert [one["counting_words"] for one in said.values()] == pytest.approx(
        list(by_size(counted, recipe.lines).values()), abs=1e-4
    )


@pytest.mark.exhaustive
@for_each("name", ENCODER_RECIPES)
def test_the_encoder_fills_as_many_blanks(name: str, shakespeare: corpora.Corpus) -> None:
    checkpoint, recipe = load(CHECKPOINTS / name), ENCODER_RECIPES[name]
    assert checkpoint.config == replace(recipe.model, vocab_size=66).resolved()
    assert TrainConfig.from_dict(checkpoint.metrics["train"]) == recipe.train
    batches = Batches(shakespeare, checkpoint.config, recipe.train)
    loss = measure(checkpoint.model, batches, shakespeare.validation)
    assert loss.nats == pytest.approx(checkpoint.metrics["validation_loss"], abs=0.01)
    with torch.inference_mode():
        right = guessed_right(checkpoint.model, batches, shakespeare.validation)
    assert right == pytest.approx(checkpoint.metrics["guessed_right"], abs=0.003) and right > 0.4
