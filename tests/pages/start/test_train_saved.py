"""A model that is uploaded again, and training with other tokenizers."""

from __future__ import annotations

import math

import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import pack
from engine.config import ModelConfig, TrainConfig
from engine.model import build
from engine.tokenizers import Tokenizer
from engine.tokenizers.char import CharTokenizer
from pages.start.train import saved
from tests.pages.helpers import ran
from tests.pages.start.training import clicked, opened, sentences, unescaped

TINY = ModelConfig(vocab_size=3, context=8, d_model=24, n_layers=1, n_heads=3)


def zipped(config: ModelConfig = TINY, tokenizer: Tokenizer | None = None, **metrics: object) -> bytes:
    return pack(build(config), tokenizer or CharTokenizer("abc"), metrics)


def uploaded(file: bytes) -> AppTest:
    page = opened()
    page.get_by_key("model_upload").upload("model.zip", file)
    return ran(page)


def written(page: AppTest) -> list[str]:
    page.button[[b.label for b in page.button].index("Write")].click()
    return [code.value for code in ran(page).code]


def test_a_model_can_be_uploaded_and_asked_for_a_text(manager):
    tokenizer = CharTokenizer.train("abcdefgh \n")
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, context=16, d_model=24, n_layers=1, n_heads=3, position="alibi"
    )
    page = uploaded(zipped(config, tokenizer, evaluations=[{"validation_loss": 1.9}], train={"steps": 77}))
    assert "validation loss 1.900" in sentences(page)
    clicked(page, "use_settings")
    found = [page.session_state[f] for f in ("d_model", "position", "n_layers", "steps")]
    assert found == [24, "alibi", 1, 77]
    assert any(len(text) > 200 for text in written(page))
    assert "not a readable zip" in sentences(uploaded(b"PK\x03\x04 not a zip"))


@pytest.mark.parametrize("loss", [10**400, -1, "low"], ids=["endless", "negative", "words"])
def test_a_model_file_that_somebody_edited_breaks_nothing(manager, loss):
    train = TrainConfig(sample_prompt="a\ud800").to_dict()
    odd = CharTokenizer("\ud800\ud801\ud802")
    page = uploaded(zipped(TINY, odd, evaluations=[{"validation_loss": loss}], train=train))
    assert "A whole model" in sentences(page) and "validation loss" not in sentences(page)
    assert any("???" in text for text in written(page))
    clicked(page, "use_settings")
    assert page.session_state["sample_prompt"] == "a?"


@pytest.mark.parametrize(
    "metrics", [{"train": [1]}, {"train": {"steps": [1]}}, {"train": 3, "evaluations": [[1]]}]
)
def test_metrics_of_another_shape_leave_the_architecture(manager, metrics):
    page = uploaded(zipped(**metrics))
    assert not page.error and "A whole model" in sentences(page)
    clicked(page, "use_settings")
    assert page.session_state["d_model"] == 24


def test_an_uploaded_model_beyond_the_limits_is_a_sentence_and_is_not_kept(manager, monkeypatch):
    def upload(context: int) -> str:
        sizes = {"vocab_size": 3, "d_model": 8, "n_layers": 1, "n_heads": 1, "position": "rope"}
        return sentences(uploaded(zipped(ModelConfig(**sizes, context=context))))

    saved._kept.clear()
    assert "A whole model" in upload(300)
    held = saved._kept().bytes
    assert 0 < held < 100_000
    monkeypatch.setenv("GLASSFORMER_PROFILE", "hosted")
    saved._kept.clear()
    assert "must be at most 256 here" in upload(300) and not saved._kept().bytes
    monkeypatch.delenv("GLASSFORMER_PROFILE")
    monkeypatch.setattr(saved, "KEPT_BYTES", int(2.5 * held))
    saved._kept.clear()
    for seed in range(4):
        assert "A whole model" in upload(30 + seed)
        assert saved._kept().bytes <= 2.5 * held


@pytest.mark.parametrize(
    ("query", "cut", "size"),
    [
        ({"tokenizer": "byte"}, "byte", 256),
        ({"tokenizer": "bpe:300"}, "bpe:300", 300),
    ],
)
@pytest.mark.parametrize("objective", ["next_token", "masked"])
def test_a_tokenizer_in_a_link_is_trained_with(manager, query, cut, size, objective):
    causal = "true" if objective == "next_token" else "false"
    page = opened(**query, objective=objective, causal=causal, measure="true")
    assert cut in unescaped(page) and f"**{size + (objective == 'masked')}**" in sentences(page)
    assert any("|" in c.value for c in page.code), "the tokens of the text are shown"
    clicked(page, "train")
    spec = manager.views["run-0"].spec
    assert (spec.train.tokenizer, spec.model.vocab_size) == (
        cut,
        size + (objective == "masked"),
    )
    assert cut in spec.name
    assert "cannot be compared between tokenizers" in sentences(page)


@pytest.mark.parametrize("vocabulary", ["256", "8193"])
def test_a_vocabulary_beyond_the_limits_is_refused_beside_its_control(manager, vocabulary):
    page = opened(tokenizer="bpe", vocabulary=vocabulary)
    assert page.button(key="train").disabled
    assert "bpe:V" in sentences(page) or "at most 8,192" in sentences(page)


def test_runs_of_different_tokenizers_are_laid_over_each_other_in_bits_per_character(manager, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "pages.start.train.losses.plot",
        lambda figure, **rest: drawn.append((figure.layout.yaxis.title.text, rest["alt"])),
    )
    page = opened()
    clicked(page, "train")
    page.get_by_key("loss_in").set_value("bits per character").run()
    assert drawn[-2][0] == "loss (nats per character)"
    assert drawn[-1][0] == "loss (bits per character)"
    assert "bits" in drawn[-1][1]
    page.get_by_key("loss_in").set_value("nats per token").run()
    page.get_by_key("tokenizer").set_value("byte").run()
    clicked(page, "train")
    page.multiselect(key="overlaid").unselect("run-0").run()
    assert drawn[-1][0] == "loss (nats per byte)"
    page.multiselect(key="overlaid").select("run-0").run()
    assert not page.exception and drawn[-1][0] == "loss (bits per character)"
    assert "different tokens" in sentences(page)
    assert "loss_in" not in [g.key for g in page.get("button_group")]
    assert "tokens char → byte" in str(page.dataframe[0].value["different from the one before"][1])
    assert list(page.dataframe[0].value["bits / character"]) == pytest.approx([2.1 / math.log(2)] * 2)
