"""Families that are looked into from a folder: an encoder without an output head, one that guesses hidden
tokens, and a decoder with a norm before its first block. Every view draws, or says why not.
"""

from pathlib import Path

import pytest

from engine.weights.pretrained import sources
from tests.engine.cases import for_each
from tests.engine.pretrained import odd
from tests.engine.pretrained.vocabularies import trained, wordpiece
from tests.pages.helpers import opened

pytestmark = pytest.mark.usefixtures("manager")

VIEWS = {
    "inside/attention": ("heads", "switches"),
    "inside/feedforward": ("neurons",),
    "inside/residual": ("lens", "push", "norms"),
    "inside/shapes": ("pass",),
    "input/embeddings": ("lookup", "map"),
}
SILENT = {"lens", "neurons", "switches"}  # what asks for logits


CASES = [
    (room, view, name)
    for room, views in VIEWS.items()
    for view in views
    for name in ("vectors", "guesses", "bloom")
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import transformers

    root = tmp_path_factory.mktemp("models")
    letters = transformers.PreTrainedTokenizerFast(tokenizer_object=trained(False), eos_token="<|endoftext|>")
    for name, kind, words in (
        ("vectors", "bert", wordpiece()),
        ("guesses", "bert, masked", wordpiece()),
        ("bloom", "bloom", letters),
    ):
        longer = {} if kind == "bloom" else {"max_position_embeddings": 256}
        odd.made(kind, 1, root / name, {"vocab_size": len(words)} | longer)
        words.save_pretrained(root / name)
    return root


@for_each("room, view, name", CASES, fast=5)
def test_a_view_draws_or_says_why_not(
    room: str, view: str, name: str, models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(sources.MODELS, str(models))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    key = f"{room.rpartition('/')[2]}_view"
    page = opened(room, model=f"pretrained-{name}", **{key: view})
    assert not page.error
    assert page.selectbox(key="subject_model").value == f"pretrained-{name}"
    said = any("output head" in info.value or "not a product" in info.value for info in page.info)
    assert said == ((view in SILENT and name == "vectors") or (name, view) == ("guesses", "neurons"))
