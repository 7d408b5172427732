"""Fetching a model: from a hub on this machine, by the code that fetches from the true one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import PretrainedError
from engine.pretrained import sources
from engine.pretrained.download import download
from engine.progress import Progress, finish
from tests.engine.pretrained.hub import COMMIT, Hub, served

FILES = {
    "config.json": b'{"model_type": "gpt2"}',
    "tokenizer.json": b"{}",
    "model.safetensors": bytes(range(256)) * 4096,
    "pytorch_model.bin": b"never asked for",
}
ALL = 1 << 30
Use = Callable[[str], None]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Use:
    """Makes an address the hub, and an empty folder its cache."""
    import huggingface_hub.constants as said
    from huggingface_hub import file_download, hf_api

    def turn(address: str) -> None:
        for module in (said, file_download, hf_api):
            for name, value in (
                ("ENDPOINT", address),
                ("HF_HUB_CACHE", str(tmp_path / "hub")),
                ("HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"),
            ):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, value)

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv(sources.MODELS, raising=False)
    return turn


def test_what_is_needed_is_fetched_and_found(use: Use) -> None:
    hub = Hub(FILES)
    with served(hub) as address:
        use(address)
        steps, told = download("gpt2", ALL), []
        while True:
            try:
                told.append(next(steps))
            except StopIteration as end:
                folder = end.value
                break
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert folder.name == COMMIT and sources.find("gpt2") == folder
    total = sum(len(FILES[name]) for name in ("config.json", "tokenizer.json", "model.safetensors"))
    assert told[-1] == Progress(total, total)
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert not any("pytorch_model.bin" in path for path in hub.asked), "a pickle was fetched"


def test_a_wrong_checksum_is_refused_and_leaves_nothing(use: Use) -> None:
    with served(Hub(FILES, {"model.safetensors": "0" * 64})) as address:
        use(address)
        with pytest.raises(PretrainedError, match="checksum"):
            finish(download("gpt2", ALL))
    assert sources.find("gpt2") is None


def test_no_way_to_the_hub_is_a_sentence(use: Use) -> None:
    use("http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(PretrainedError, match=r"could not be fetched.*GLASSFORMER_MODELS"):
        finish(download("gpt2", ALL))


def test_a_repository_without_safe_weights_is_refused(use: Use) -> None:
    with served(Hub({name: FILES[name] for name in ("config.json", "pytorch_model.bin")})) as address:
        use(address)
        with pytest.raises(PretrainedError, match=r"has no tokenizer\.json, model\.safetensors"):
            finish(download("gpt2", ALL))


def test_no_more_than_the_server_allows(use: Use) -> None:
    hub = Hub(FILES)
    with served(hub) as address:
        use(address)
        with pytest.raises(PretrainedError, match="at most 0 MB"):
            finish(download("gpt2", 1000))
    assert not any(path.startswith("GET /openai") for path in hub.asked)


def test_only_known_models() -> None:
    with pytest.raises(PretrainedError, match="not a model that is fetched"):
        finish(download("../../etc", ALL))
