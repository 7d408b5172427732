"""Hugging Face folders: the same weights give the same logits as transformers, and damaged folders get a
sentence.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import PretrainedError
from engine.pretrained.load import open_model
from tests.engine.cases import for_each
from tests.engine.helpers import some_tokens

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed (requirements-dev.txt has it)"
)
LLAMA = {
    "vocab_size": 37,
    "hidden_size": 32,
    "intermediate_size": 44,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "tie_word_embeddings": False,
}
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {"vocab_size": 37, "n_positions": 32, "n_embd": 24, "n_layer": 3, "n_head": 4},
    ),
    "gpt2 with an inner width": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {
            "vocab_size": 37,
            "n_positions": 32,
            "n_embd": 24,
            "n_layer": 2,
            "n_head": 2,
            "n_inner": 40,
            "activation_function": "relu",
        },
    ),
    "llama": ("LlamaConfig", "LlamaForCausalLM", LLAMA),
    "llama, tied, heads wider than the stream": (
        "LlamaConfig",
        "LlamaForCausalLM",
        LLAMA | {"tie_word_embeddings": True, "head_dim": 12, "rope_theta": 500.0, "rms_norm_eps": 1e-3},
    ),
    "mistral": ("MistralConfig", "MistralForCausalLM", LLAMA | {"sliding_window": 64}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", LLAMA | {"use_sliding_window": False}),
    "pythia": (
        "GPTNeoXConfig",
        "GPTNeoXForCausalLM",
        {
            "vocab_size": 37,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "max_position_embeddings": 32,
            "rotary_pct": 0.25,
            "hidden_act": "gelu",
        },
    ),
}


def made(name: str, folder: Path, **options: Any) -> torch.nn.Module:
    """A model of a family with random weights, saved in `folder`."""
    config, kind, values = FAMILIES[name]
    torch.manual_seed(0)
    theirs = getattr(transformers, kind)(getattr(transformers, config)(**values)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    theirs.save_pretrained(folder, **options)
    return theirs


@for_each("name", FAMILIES)
@torch.no_grad()
def test_the_same_logits(name: str, tmp_path: Path) -> None:
    theirs = made(name, tmp_path)
    ours = open_model(tmp_path).model()
    tokens = some_tokens(ours.config, batch=2, length=20)
    expected = theirs(tokens).logits
    assert expected.std() > 0.1
    assert torch.allclose(ours(tokens), expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_in_several_files(tmp_path: Path) -> None:
    theirs = made("llama", tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    ours = open_model(tmp_path).model()
    tokens = some_tokens(ours.config, batch=1, length=9)
    assert torch.allclose(ours(tokens), theirs(tokens).logits, atol=1e-4)


@torch.no_grad()
def test_half_precision_becomes_float32(tmp_path: Path) -> None:
    made("llama", tmp_path)
    file = tmp_path / "model.safetensors"
    save_file({name: x.to(torch.bfloat16) for name, x in load_file(file).items()}, file)
    weights = open_model(tmp_path).weights()
    assert {x.dtype for x in weights.values()} == {torch.float32}


def edited(folder: Path, **changes: torch.Tensor | None) -> None:
    """Puts tensors in, or takes them out (None)."""
    file = folder / "model.safetensors"
    tensors = load_file(file) | {name.replace("__", "."): x for name, x in changes.items()}
    save_file({name: x for name, x in tensors.items() if x is not None}, file)


@for_each(
    "changes, says",
    [
        ({"model__norm__weight": None}, "lacks the tensor norm.weight"),
        ({"model__extra": torch.zeros(2)}, "no part takes: extra"),
        ({"model__norm__weight": torch.zeros(31)}, "norm.weight of shape (31,) should make (32,)"),
        (
            {"model__norm__weight": torch.full((32,), torch.nan)},
            "norm.weight holds numbers that are not finite",
        ),
        ({"model__norm__weight": torch.zeros(32, dtype=torch.int64)}, "not floating-point"),
        ({"model__norm__weight": torch.zeros(4, 8)}, "make (4, 8), not (32,)"),
    ],
)
def test_a_wrong_tensor_is_named(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    made("llama", tmp_path)
    edited(tmp_path, **changes)
    with pytest.raises(PretrainedError) as error:
        open_model(tmp_path).weights()
    assert says in str(error.value)


@for_each(
    "facts, says",
    [
        ({"model_type": "mamba"}, "family 'mamba'"),
        ({"model_type": ["llama"]}, "family ['llama']"),
        ({"hidden_size": "many"}, "hidden_size = 'many'"),
        ({"hidden_size": True}, "hidden_size = True"),
        ({"num_attention_heads": 0}, "num_attention_heads = 0"),
        ({"num_key_value_heads": 3}, "cannot be built"),
        ({"hidden_act": "tanh"}, "only 'silu' is built here"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_type is 'yarn'"),
        ({"num_hidden_layers": 4}, "lacks the tensor"),
        ({"num_hidden_layers": 10**9}, "1,000,000,000 layers"),
    ],
)
def test_facts_that_cannot_be(facts: dict[str, Any], says: str, tmp_path: Path) -> None:
    made("llama", tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | facts))
    with pytest.raises(PretrainedError) as error:
        open_model(tmp_path).weights()
    assert says in str(error.value)


@for_each("file", ["config.json", "model.safetensors"])
@for_each("damage", ["missing", "cut", "noise", "empty"])
def test_damaged_files(file: str, damage: str, tmp_path: Path) -> None:
    made("llama", tmp_path)
    path = tmp_path / file
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"cut": data[: len(data) // 2], "noise": b"\xff" * 400, "empty": b""}[damage])
    with pytest.raises(PretrainedError):
        open_model(tmp_path).weights()


def test_an_index_that_leads_outside(tmp_path: Path) -> None:
    made("llama", tmp_path, max_shard_size="20KB")
    index = tmp_path / "model.safetensors.index.json"
    values = json.loads(index.read_text())
    values["weight_map"]["model.norm.weight"] = "../elsewhere.safetensors"
    index.write_text(json.dumps(values))
    with pytest.raises(PretrainedError, match="outside of the folder"):
        open_model(tmp_path)
