"""The models that come with the app, opened once, and texts that are worth reading with them."""

from functools import cache
from typing import Any

from engine import checkpoints
from studies.weights.pretrained import library, sources
from tests.conftest import ROOT

SHIPPED = ["shakespeare-classic", "shakespeare-modern"]
REAL = ["smollm2-135m"] if sources.find("smollm2-135m") else []  # requirements-models.txt carries it
TEXTS = ["O", "The capital of France is", "the moon and the moon and the moon and"]


@cache
def opened(name: str) -> tuple[Any, Any]:
    kept = (
        checkpoints.load(ROOT / "checkpoints" / name) if name in SHIPPED else library.load(name, 10**10, None)
    )
    return kept.model, kept.tokenizer
