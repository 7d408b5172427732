"""The machine and its variations: each model of the table comes out of the eight choices to the last parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.errors import ConfigError
from engine.ledger import ledger_of
from engine.ledger.morph import (
    OFFERED,
    Size,
    choices_of,
    costs,
    hidden_width,
    key_heads,
    morphed,
    named,
    nearest,
    three,
    users,
)
from engine.model import Transformer
from engine.presets.variations import MODELS
from engine.seq2seq import build_pair
from tests.engine.cases import for_each


@for_each("name", list(MODELS))
def test_a_model_with_its_own_choices_is_that_model(name):
    preset = MODELS[name]
    made = morphed(preset, choices_of(preset))
    assert made.model.resolved() == preset.model.resolved() or name == "t5-base"
    assert costs(made).parameters == ledger_of(preset).total


def test_t5_differs_in_its_output_s_scale_alone():
    preset = MODELS["t5-base"]
    assert morphed(preset, choices_of(preset)).model == replace(preset.model, n_kv_heads=12, output_bias=True)


@for_each("name", ["llama2-7b", "bert-base", "pythia-70m", "gemma-2b", "t5-base"])
def test_what_is_drawn_can_be_built_and_has_as_many_parameters(name):
    """GPT-2's sizes with the choices of others, built on the meta device."""
    made = morphed(MODELS["gpt2"], choices_of(MODELS[name]))
    if made.pair is not None:
        model = build_pair(made.pair, device="meta")
    else:
        with torch.device("meta"):
            model = Transformer(made.model.resolved())
    assert sum(p.numel() for p in model.parameters()) == costs(made).parameters
    assert choices_of(made) == choices_of(MODELS[name])


def test_choices_as_the_papers_have_them():
    assert choices_of(MODELS["transformer-base"]) == {
        facet: values[0] for facet, values in OFFERED.items()
    } | {"biases": "network"}
    assert choices_of(MODELS["bert-base"])["family"] == "encoder"
    assert choices_of(MODELS["qwen2.5-0.5b"])["biases"] == "qkv"
    assert [choices_of(MODELS[name])["heads"] for name in ("gpt2", "gemma-2b", "mistral-7b")] == [
        "own",
        "one",
        "grouped",
    ]
    assert all(found in OFFERED[facet] for p in MODELS.values() for facet, found in choices_of(p).items())


def test_whose_choices_they_are_and_what_sizes_follow():
    assert named(choices_of(MODELS["gpt2"])) == ("gpt2", "gpt3-175b")
    assert named(choices_of(MODELS["llama3-8b"])) == ("llama2-70b", "mistral-7b", "llama3-8b")
    mixed = choices_of(MODELS["gpt2"]) | {"position": "alibi", "tying": "untied"}
    assert named(mixed) == () and nearest(mixed) == ("gpt2", ("position", "tying"))
    assert users("wiring", "parallel") == ("pythia-70m",) and users("position", "alibi") == ()
    assert users("family", "both") == ("transformer-base", "t5-base")
    gpt2, gemma = MODELS["gpt2"].model, MODELS["gemma-2b"].model
    assert hidden_width(gpt2, "swiglu") == 2048 and hidden_width(gpt2, "relu") == 3072
    assert hidden_width(gemma, "gelu") == 24_576
    assert [key_heads(gpt2, heads) for heads in ("own", "grouped", "one")] == [12, 3, 1]
    assert key_heads(MODELS["mistral-7b"].model, "grouped") == 8
    made = morphed(MODELS["llama2-7b"], choices_of(MODELS["gpt2"]))
    assert made.model.resolved().d_ff == 11_008 * 3 // 2
    assert morphed(MODELS["gpt2"], choices_of(MODELS["llama2-7b"])).model.resolved().d_ff == 2048


def test_costs_by_hand():
    assert costs(MODELS["t5-base"]).cache == 12 * 2 * 768 * 2
    assert costs(MODELS["bert-base"]).cache == 0
    d, layers, vocab, tokens = 768, 12, 50_257, 512
    block = 2 * (4 * d * d + 2 * 4 * d * d + 2 * tokens * d)
    assert costs(MODELS["gpt2"]).flops == layers * block + 2 * vocab * d
    found = three(Size(layers=2, d_model=32, heads=4), vocab=100, context=16)
    block, cross = 12 * 32 * 32 + 2 * 32, 4 * 32 * 32 + 32
    ends = 100 * 32 + 16 * 32 + 32
    assert found["encoder"].total == found["decoder"].total == 2 * block + ends
    assert found["both"].total == 2 * (2 * block + cross) + ends + 16 * 32 + 32


def test_what_does_not_go_together_is_said():
    with pytest.raises(ConfigError, match="cross-attention"):
        morphed(MODELS["pythia-70m"], choices_of(MODELS["pythia-70m"]) | {"family": "both"})
    with pytest.raises(ConfigError, match="window"):
        morphed(MODELS["mistral-7b"], choices_of(MODELS["t5-base"]))
