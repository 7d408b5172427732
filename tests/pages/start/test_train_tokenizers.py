"""The training page with other tokenizers: links, limits, and losses that can be compared."""

from __future__ import annotations

import math

import pytest

from tests.pages.start.training import clicked, opened, sentences, unescaped


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


def test_choosing_bpe_and_going_back_to_the_preset(manager):
    page = opened()
    page.get_by_key("tokenizer").set_value("bpe").run()
    assert not page.exception
    assert page.number_input(key="vocabulary").value == 512
    assert "bpe:512" in unescaped(page)
    clicked(page, "back_to_preset")
    assert page.session_state["tokenizer"] == "char"
    assert "vocabulary" not in [n.key for n in page.number_input]


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
