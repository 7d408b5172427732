"""Families that are looked into from a folder: an encoder without an output head, one that guesses hidden
tokens, and a decoder with a norm before its first block. Every view draws, or says why not.
"""

from pathlib import Path

import pytest
import torch

from studies.weights.pretrained import sources
from tests.engine.cases import for_each
from tests.pages.helpers import FOLDS, opened, unescaped
from tests.pages.rooms import views
from tests.studies.pretrained import odd
from tests.studies.pretrained.vocabularies import trained, wordpiece

pytestmark = pytest.mark.usefixtures("manager")

CHAT = (
    "{% if 'please' not in messages[0].content %}{{ raise_exception('say please') }}{% endif %}"
    "<|im_start|>{{ messages[0].content }}<|im_end|><|im_start|>"
)
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
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    # a table with more rows than tokens, of which those without are the likeliest; its chat has a rule
    letters.chat_template = CHAT
    theirs = odd.made(
        "llama", 1, root / "padded", {"vocab_size": 2 * len(letters), "tie_word_embeddings": False}
    )
    with torch.no_grad():
        theirs.get_output_embeddings().weight[len(letters) :] *= 9
    theirs.save_pretrained(root / "padded")
    letters.save_pretrained(root / "padded")
    return root


@pytest.fixture(autouse=True)
def models(made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The bar offers them; what is made of them is kept for one test."""
    monkeypatch.setenv(sources.MODELS, str(made))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


OUTPUT = [
    *(("output/generation", "generation_view", view) for view in ("tokens", "beam", "cache")),
    *(("output/sampling", "sampling_view", view) for view in ("stages", "temperatures", "likelihood")),
    *(("input/embeddings", "embed_view", view) for view in ("lookup", "map")),
    ("inside/residual", "residual_view", "lens"),
    ("inside/circuits", "circuits_view", "fact"),
    ("models/reference", "reference_view", "export"),
]


@for_each("room, key, view", OUTPUT, fast=4)
def test_rows_without_tokens_are_no_crash(room: str, key: str, view: str) -> None:
    page = opened(room, model="pretrained-padded", text="the cat", **FOLDS, **{key: view})
    assert not page.error and page.selectbox(key="subject_model").value == "pretrained-padded"


@for_each("view", ["tokens", "beam", "cache"])
def test_what_a_chat_template_refuses_is_said_and_the_text_is_continued(view: str) -> None:
    link = {"model": "pretrained-padded", "generation_view": view, "generation_chat": "true"}
    page = opened("output/generation", **link, text="Hi")
    assert not page.error and "say please. So the model continues the text as it is" in unescaped(page)
    asked = unescaped(opened("output/generation", **link, text="Hi please"))
    assert "chat template adds 3 tokens around your" in asked.replace("*", ""), asked


@for_each(
    "name, text, says",
    [
        (
            "vectors",
            "the cat 語 🙂",
            "vocabulary of {} word pieces does not have 語 🙂: it reads [UNK] there",
        ),
        ("vectors", " ", "vocabulary has none of these characters"),
        ("padded", "the cat", None),
    ],
)
def test_what_becomes_the_unknown_token_is_said(name: str, text: str, says: str | None) -> None:
    page = opened("inside/attention", model=f"pretrained-{name}", text=text, attention_view="heads")
    said = unescaped(page, "caption")
    assert not page.error and "alphabet of" not in said
    if says is None:
        assert "does not have" not in said and "none of these" not in said
    else:
        assert says.format(len(wordpiece())) in said


@for_each("room, view, name", CASES, fast=5)
def test_a_view_draws_or_says_why_not(room: str, view: str, name: str) -> None:
    key, _ = views(room.rpartition("/")[2])
    page = opened(room, model=f"pretrained-{name}", **{key: view})
    assert not page.error
    assert page.selectbox(key="subject_model").value == f"pretrained-{name}"
    said = any("output head" in info.value or "not a product" in info.value for info in page.info)
    assert said == ((view in SILENT and name == "vectors") or (name, view) == ("guesses", "neurons"))
