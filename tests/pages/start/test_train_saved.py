"""A model that was downloaded earlier, uploaded again: used, refused, or edited by somebody."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, TrainConfig
from tests.pages.start.training import clicked, opened, sentences, unescaped


def test_a_model_can_be_uploaded_and_asked_for_a_text(manager):
    from engine.checkpoints import pack
    from engine.model import build
    from engine.tokenizers.char import CharTokenizer

    tokenizer = CharTokenizer.train("abcdefgh \n")
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, context=16, d_model=24, n_layers=1, n_heads=3, position="alibi"
    )
    page = opened()
    page.get_by_key("model_upload").upload(
        "model.zip",
        pack(build(config), tokenizer, {"evaluations": [{"validation_loss": 1.9}], "train": {"steps": 77}}),
    )
    page.run()
    assert not page.exception and "validation loss 1.900" in sentences(page)
    clicked(page, "use_settings")
    assert [page.session_state[f] for f in ("d_model", "position", "n_layers", "steps")] == [
        24,
        "alibi",
        1,
        77,
    ]
    page.button[[b.label for b in page.button].index("Write")].click().run()
    assert not page.exception and any(len(c.value) > 200 for c in page.code)
    again = opened()
    again.get_by_key("model_upload").upload("model.zip", b"PK\x03\x04 not a zip")
    again.run()
    assert not again.exception and "not a readable zip" in sentences(again)


@pytest.mark.parametrize(
    "loss", [10**400, -1, float("nan"), "low"], ids=["endless", "negative", "nan", "words"]
)
def test_a_model_file_that_somebody_edited_breaks_nothing(manager, loss):
    from engine.checkpoints import pack
    from engine.model import build
    from engine.tokenizers.char import CharTokenizer

    config, train = (
        ModelConfig(vocab_size=3, context=8, d_model=8, n_layers=1, n_heads=1),
        TrainConfig(sample_prompt="a\ud800").to_dict(),
    )
    page = opened()
    zipped = pack(
        build(config),
        CharTokenizer("\ud800\ud801\ud802"),
        {"evaluations": [{"validation_loss": loss}], "train": train},
    )
    page.get_by_key("model_upload").upload("model.zip", zipped)
    page.run()
    assert (
        not page.exception and "A whole model" in sentences(page) and "validation loss" not in sentences(page)
    )
    page.button[[b.label for b in page.button].index("Write")].click().run()
    assert not page.exception and any("???" in c.value for c in page.code)
    clicked(page, "use_settings")
    assert page.session_state["sample_prompt"] == "a?"


@pytest.mark.parametrize(
    "metrics",
    [
        {"train": [1]},
        {"train": "x"},
        {"train": {"steps": [1]}},
        {"train": 3, "evaluations": [[1]]},
        {"evaluations": 1},
    ],
)
def test_metrics_of_another_shape_leave_the_architecture(manager, metrics):
    from engine.checkpoints import pack
    from engine.model import build
    from engine.tokenizers.char import CharTokenizer

    config = ModelConfig(vocab_size=3, context=8, d_model=24, n_layers=1, n_heads=3)
    page = opened()
    page.get_by_key("model_upload").upload("model.zip", pack(build(config), CharTokenizer("abc"), metrics))
    page.run()
    assert not page.exception and not page.error and "A whole model" in sentences(page)
    clicked(page, "use_settings")
    assert page.session_state["d_model"] == 24


def test_an_uploaded_model_beyond_the_limits_is_a_sentence_and_is_not_kept(manager, monkeypatch):
    from engine.checkpoints import pack
    from engine.model import build
    from engine.tokenizers.char import CharTokenizer
    from pages.start.train import saved

    def upload(config: ModelConfig) -> AppTest:
        page = opened()
        page.get_by_key("model_upload").upload("model.zip", pack(build(config), CharTokenizer("abc"), {}))
        page.run()
        assert not page.exception
        return page

    saved._kept.clear()
    small = ModelConfig(vocab_size=3, context=300, d_model=8, n_layers=1, n_heads=1, position="rope")
    assert "A whole model" in sentences(upload(small))
    held = saved._kept().bytes
    assert 0 < held < 100_000
    monkeypatch.setenv("GLASSFORMER_PROFILE", "hosted")
    saved._kept.clear()
    assert "must be at most 256 here" in sentences(upload(small)) and not saved._kept().bytes
    monkeypatch.delenv("GLASSFORMER_PROFILE")
    monkeypatch.setattr(saved, "KEPT_BYTES", int(2.5 * held))
    saved._kept.clear()
    for seed in range(4):
        assert "A whole model" in sentences(upload(ModelConfig(**{**small.to_dict(), "context": 30 + seed})))
        assert saved._kept().bytes <= 2.5 * held


def test_a_bpe_model_can_be_uploaded(manager):
    from engine.checkpoints import pack
    from engine.model import build
    from engine.tokenizers import bpe

    tokenizer = bpe.train("the cat and the hat €€€", 262)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, context=16, d_model=24, n_layers=1, n_heads=3)
    page = opened()
    page.get_by_key("model_upload").upload(
        "model.zip", pack(build(config), tokenizer, {"train": TrainConfig(tokenizer="bpe:262").to_dict()})
    )
    page.run()
    assert not page.exception and "vocabulary of 262 tokens" in sentences(page)
    page.button[[b.label for b in page.button].index("Write")].click().run()
    assert not page.exception and page.code and not any("\ufffd" in c.value for c in page.code)
    clicked(page, "use_settings")
    assert (page.session_state["tokenizer"], page.session_state["vocabulary"]) == (
        "bpe",
        262,
    ) and "bpe:262" in unescaped(page)
