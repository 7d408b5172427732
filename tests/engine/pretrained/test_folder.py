"""Damaged and edited Hugging Face folders get a sentence that names what is wrong."""

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
from tests.engine.pretrained.odd import made

LLAMA = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "tie_word_embeddings": False,
}


def saved_llama(folder: Path, **options: Any) -> None:
    made("llama", 0, folder, LLAMA, **options)


def test_half_precision_becomes_float32(tmp_path: Path) -> None:
    saved_llama(tmp_path)
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
    saved_llama(tmp_path)
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
    saved_llama(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | facts))
    with pytest.raises(PretrainedError) as error:
        open_model(tmp_path).weights()
    assert says in str(error.value)


@for_each("file", ["config.json", "model.safetensors"])
@for_each("damage", ["missing", "cut", "noise", "empty"])
def test_damaged_files(file: str, damage: str, tmp_path: Path) -> None:
    saved_llama(tmp_path)
    path = tmp_path / file
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"cut": data[: len(data) // 2], "noise": b"\xff" * 400, "empty": b""}[damage])
    with pytest.raises(PretrainedError):
        open_model(tmp_path).weights()


def test_an_index_that_leads_outside(tmp_path: Path) -> None:
    saved_llama(tmp_path, max_shard_size="20KB")
    index = tmp_path / "model.safetensors.index.json"
    values = json.loads(index.read_text())
    values["weight_map"]["model.norm.weight"] = "../elsewhere.safetensors"
    index.write_text(json.dumps(values))
    with pytest.raises(PretrainedError, match="outside of the folder"):
        open_model(tmp_path)
