"""A published model by its name: what is checked before anything is allocated, and what is shared."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.errors import PretrainedError
from engine.pretrained import library, load, sources
from tests.engine.pretrained.gguf_files import FACTS, llama_file, written

LETTERS = [*"abcdefghijklmnopqrstuvwxyz .,!?", "ab"]  # as byte-level BPE writes them, but for the blank
WORDS = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": [letter.replace(" ", "Ġ") for letter in LETTERS],
    "tokenizer.ggml.merges": ["a b"],
}


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server's own folder, with a small LLaMA and things that are no models."""
    folder = tmp_path / "models"
    folder.mkdir()
    llama_file(folder / "small.gguf", WORDS)
    (folder / "notes.txt").write_text("nothing")
    (folder / "empty").mkdir()
    written(folder / "with blanks.gguf", FACTS, {})
    monkeypatch.setenv(sources.MODELS, str(folder))
    return folder


def test_a_folder_of_the_server_is_offered_by_name(models: Path) -> None:
    assert [name for name in sources.available() if name not in sources.KNOWN] == ["small"]
    assert sources.find("small") == models / "small.gguf"
    assert sources.find("../small") is None and sources.find("") is None


def test_a_model_with_what_is_known_of_it(models: Path, tmp_path: Path) -> None:
    found = library.load("small", 10**9, keep=tmp_path / "kept")
    assert found.facts is None and found.bits == 32.0  # plain float32, in the file made here
    assert found.path == models / "small.gguf" and found.metrics == {}
    assert found.model(torch.tensor([[1, 2]])).shape == (1, 2, found.config.vocab_size)
    assert found.tokenizer.encode("cab") == [2, LETTERS.index("ab")]
    assert found.tokenizer.vocab_size == len(LETTERS) < found.config.vocab_size == 37


def test_too_large_is_refused_before_it_is_read(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = library.load("small", 10**9, keep=tmp_path / "kept")
    count = sum(p.numel() for p in found.model.parameters())
    monkeypatch.setattr(library.cache, "weights", lambda *_: pytest.fail("its weights were read"))
    with pytest.raises(PretrainedError, match=f"small has {count:,} parameters; .* at most {count - 1:,}"):
        library.load("small", count - 1)


def test_one_that_is_not_here_is_said(models: Path) -> None:
    with pytest.raises(PretrainedError, match="no model 'absent' on this machine"):
        library.load("absent", 10**9)


def test_made_ready_it_is_only_mapped(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    library.make_ready("small", 10**9)
    monkeypatch.setattr(load, "assembled", lambda *_: pytest.fail("its weights were made again"))
    assert library.load("small", 10**9).config.vocab_size == 37
    with pytest.raises(PretrainedError, match="at most 5"):
        library.make_ready("small", 5)
