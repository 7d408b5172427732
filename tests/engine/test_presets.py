"""Presets are legal, differ in what their names promise, and give reasons for fields that exist."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from engine.config import ModelConfig, TrainConfig
from engine.model import build
from engine.presets import ENCODER_DECODERS, PRESETS
from engine.training.records import Done
from engine.training.train import train
from tests.engine.cases import for_each
from tests.engine.helpers import verse

TRAINABLE = [name for name, preset in PRESETS.items() if preset.trainable]
FIELDS = {field.name for kind in (ModelConfig, TrainConfig) for field in dataclasses.fields(kind)}


def test_the_promised_names() -> None:
    assert TRAINABLE == ["fast", "classic", "modern", "mini", "induction", "task", "grokking"]
    assert {
        "gpt2",
        "gpt2-medium",
        "gpt2-large",
        "gpt2-xl",
        "gpt3-175b",
        "bert-base",
        "llama2-7b",
        "llama2-13b",
        "llama2-70b",
    } <= set(PRESETS)
    assert {"mistral-7b", "llama3-8b", "qwen2.5-0.5b", "gemma-2b", "pythia-70m"} <= set(PRESETS) and set(
        ENCODER_DECODERS
    ) == {"t5-base", "transformer-base"}


@for_each("name", PRESETS)
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


@for_each("name", TRAINABLE)
def test_trainable_presets_train(name: str) -> None:
    """Three steps of each, on another text: nothing in them depends on the corpus they were chosen for."""
    preset, corpus = PRESETS[name], verse()
    assert preset.train is not None
    model = dataclasses.replace(preset.model, vocab_size=corpus.vocab_size)
    config = dataclasses.replace(preset.train, steps=3, batch_size=2, eval_tokens=256, sample_length=4)
    last = list(train(model, config, corpus, device="cpu"))[-1]
    assert isinstance(last, Done) and last.reason == "finished"


@for_each("name", [name for name, preset in (PRESETS | ENCODER_DECODERS).items() if not preset.trainable])
def test_published_models_say_where_from_and_how_large(name: str) -> None:
    preset = (PRESETS | ENCODER_DECODERS)[name]
    assert preset.source and re.search(r"(19|20)\d\d", preset.source), "a year tells papers apart"
    assert preset.published and preset.title.endswith("(published)")


def test_new_ones_are_what_they_are_known_for() -> None:
    gemma, qwen, pythia, mistral = (
        PRESETS[name].model.resolved() for name in ("gemma-2b", "qwen2.5-0.5b", "pythia-70m", "mistral-7b")
    )
    assert (
        gemma.n_heads * (gemma.d_head or 0) == gemma.d_model
        and gemma.d_head == 256
        and gemma.ffn == "geglu_tanh"
        and gemma.embedding_scale
        and gemma.n_kv_heads == 1
    )
    assert qwen.attention_bias and not qwen.output_bias and not qwen.ffn_bias and qwen.tie_embeddings
    assert (pythia.wiring, pythia.d_rotary, pythia.d_head, pythia.tie_embeddings) == (
        "parallel",
        16,
        64,
        False,
    )
    assert (mistral.n_heads, mistral.n_kv_heads) == (32, 8)
    t5 = ENCODER_DECODERS["t5-base"]
    assert t5.encoder is not None and not t5.encoder.causal and t5.model.causal


def test_mini_has_the_blackboard_s_sizes() -> None:
    model = PRESETS["mini"].model.resolved()
    assert (model.n_layers, model.n_heads, model.d_model, model.context, model.d_ff) == (4, 4, 128, 128, 512)


def test_nothing_looks_at_a_preset_s_name() -> None:
    """Rule 2: a configuration says all there is to say. Only the file of presets knows the published
    names.
    """
    names = "|".join(
        re.escape(name) for name, preset in (PRESETS | ENCODER_DECODERS).items() if not preset.trainable
    )
    engine = Path(__file__).resolve().parents[2] / "engine"
    for path in engine.rglob("*.py"):
        if path.parent.name != "presets":
            assert (
                not re.search(rf"""["']({names})["']""", path.read_text("utf-8"))
                or path.parent.name
                # whose families have such names; exercises ask about models by name
                in ("tokenizers", "pretrained", "export", "reference", "sets")
            ), path
