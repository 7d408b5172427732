"""Presets are legal, differ in what their names promise, and give reasons for fields that exist."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from engine.config import ModelConfig, TrainConfig
from engine.model import build
from engine.presets import PRESETS
from engine.records import Done
from engine.train import train
from tests.engine.helpers import verse

TRAINABLE = [name for name, preset in PRESETS.items() if preset.trainable]
FIELDS = {field.name for kind in (ModelConfig, TrainConfig) for field in dataclasses.fields(kind)}


def test_the_promised_names() -> None:
    assert TRAINABLE == ["fast", "classic", "modern", "mini"]
    assert {"gpt2", "bert-base", "llama2-7b", "llama2-70b"} <= set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_legal_and_explained(name: str) -> None:
    preset = PRESETS[name]
    preset.model.validate()
    build(preset.model, device="meta")
    if preset.train is not None:
        preset.train.validate()
    else:
        assert preset.source, "published figures need their source"
    assert preset.title and preset.summary
    assert set(preset.why) <= FIELDS


@pytest.mark.parametrize("name", TRAINABLE)
def test_trainable_presets_train(name: str) -> None:
    """Three steps of each, on another text: nothing in them depends on the corpus they were chosen for."""
    preset, corpus = PRESETS[name], verse()
    assert preset.train is not None
    model = dataclasses.replace(preset.model, vocab_size=corpus.vocab_size)
    config = dataclasses.replace(preset.train, steps=3, batch_size=2, eval_tokens=256, sample_length=4)
    last = list(train(model, config, corpus, device="cpu"))[-1]
    assert isinstance(last, Done) and last.reason == "finished"


def test_mini_has_the_blackboard_s_sizes() -> None:
    model = PRESETS["mini"].model.resolved()
    assert (model.n_layers, model.n_heads, model.d_model, model.context, model.d_ff) == (4, 4, 128, 128, 512)


def test_nothing_looks_at_a_preset_s_name() -> None:
    """Rule 2: a configuration says all there is to say. Only the file of presets knows the published names."""
    engine = Path(__file__).resolve().parents[2] / "engine"
    for path in engine.rglob("*.py"):
        if path.name != "presets.py":
            assert not re.search(r"""["'](llama2-7b|llama2-70b|bert-base|gpt2)["']""", path.read_text("utf-8")) or path.parent.name == "tokenizers", path
