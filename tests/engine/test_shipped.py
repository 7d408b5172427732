"""The checkpoints that come with the repository are what their metrics say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import corpora
from engine.checkpoints import load
from engine.config import TrainConfig
from engine.sample import complete
from engine.training.batches import Batches
from engine.training.evaluation import measure
from engine.training.pretrain import RECIPES
from tests.engine.cases import for_each

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(RECIPES)


@for_each("name", NAMES)
def test_a_shipped_checkpoint_is_its_recipe_and_writes_text(name: str) -> None:
    checkpoint = load(ROOT / "checkpoints" / name)
    assert checkpoint.config == replace(RECIPES[name].model, vocab_size=65).resolved()
    assert TrainConfig.from_dict(checkpoint.metrics["train"]) == RECIPES[name].train
    assert checkpoint.metrics["validation_loss"] <= 1.52
    curve = checkpoint.metrics["curve"]
    assert [point["step"] for point in curve] == sorted({point["step"] for point in curve}) and curve[0][
        "step"
    ] == 0
    assert min(point["validation_loss"] for point in curve) == pytest.approx(
        checkpoint.metrics["validation_loss"], abs=0.01
    )
    text = complete(checkpoint.model, checkpoint.tokenizer, "KING RICHARD II:\n", 120, 0.5, seed=0)
    assert (
        len(text) == 120
        and sum(word in text.lower() for word in (" the ", " and ", " of ", " to ", " i ", " my ")) >= 2
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_checkpoint_reaches_its_loss(name: str) -> None:
    """Over the whole validation split, in windows of the model's context."""
    if corpora.shakespeare_path() is None:
        pytest.skip(
            "Tiny Shakespeare is not on this machine: set GLASSFORMER_DATA to the folder that holds"
            " tinyshakespeare.txt"
        )
    checkpoint = load(ROOT / "checkpoints" / name)
    corpus = corpora.load("shakespeare")
    assert corpus.tokenizer == checkpoint.tokenizer
    with torch.inference_mode():
        batches = Batches(corpus, checkpoint.config, TrainConfig())
        loss = measure(checkpoint.model, batches, corpus.validation)
    assert loss.nats == pytest.approx(checkpoint.metrics["validation_loss"], abs=0.01)
