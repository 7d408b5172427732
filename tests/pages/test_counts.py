"""One of something is no several: no view says "1 tokens" of a text of one token, or of a model of one block and head."""

import re
from pathlib import Path

import pytest

from studies.weights.pretrained import sources
from tests.engine.cases import for_each
from tests.pages.helpers import DRAWN, FOLDS, KINDS, opened, without_escapes
from tests.pages.rooms import ROOMS, page_of
from tests.studies.pretrained import odd
from tests.studies.pretrained.vocabularies import HAS_TRANSFORMERS, trained

transformers = pytest.importorskip("transformers", reason=HAS_TRANSFORMERS)
pytestmark = pytest.mark.usefixtures("manager")
NOUNS = (
    "tokens|characters|letters|bytes|words|pieces|symbols|heads|blocks|layers|positions|places|neurons|steps|rows|runs"
    "|others|lines|queries|keys|numbers|parameters|dimensions|answers|guesses|branches|windows|samples|texts|times"
    "|seeds|draws|pairs|merges|entries|columns|units|models|problems|directions|vectors|logits|candidates|passes"
)
ONE = re.compile(
    rf"(?<![\w.,/:×·−–=-])(?<![×·=→] )1(?:\*\*)? (?:(?!of |in |and |to |from )[a-z-]+ )?(?:{NOUNS})\b"
)
CASES = [
    (str(room.parent.relative_to(room.parents[2])), page.key, view.id, model)
    for room in ROOMS
    if (page := page_of(room)) is not None
    for view in page.views
    if view.needs_model
    for model in ("", "pretrained-one")
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=trained(False))
    odd.made(
        "llama", 1, root / "one",
        {"vocab_size": len(words), "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
         "head_dim": 8, "hidden_size": 8},
    )  # fmt: skip
    words.save_pretrained(root / "one")
    return root


def plurals(room: str, **query: str) -> list[str]:
    """What a view says of one as if it were several."""
    DRAWN.clear()
    page = opened(room, **FOLDS, **query)
    texts = [str(one.value) for kind in (*KINDS, "header", "title") for one in getattr(page, kind)]
    texts += [one.proto.json for one in page.get("bidi_component")]
    texts += [figure.to_json() for figure in DRAWN.values() if hasattr(figure, "to_json")]
    whole = without_escapes(" | ".join(texts))
    return [whole[max(0, found.start() - 60) : found.end() + 30] for found in ONE.finditer(whole)]


@for_each("room, key, view, model", CASES, fast=6)
def test_one_is_not_several(
    room: str, key: str, view: str, model: str, models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(sources.MODELS, str(models))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    query = {key: view} if key else {}
    assert not plurals(room, text="a", **query, **({"model": model} if model else {}))
