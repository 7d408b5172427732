"""Families, one sentence live: what its words and its player get, held against the engine and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import load
from engine.config import SampleConfig
from engine.measure.three_ways import carry_on, fill_in
from tests.pages import helpers

ROOT = Path(__file__).parents[3]
TEXT = "this horse will fear the funny old friend"
BLANKS = (2, 7, 12, 17, 22, 27, 32, 37)

pytestmark = pytest.mark.usefixtures("manager")


def opened(**query: str) -> AppTest:
    return helpers.opened("models/families", families_view="live", **query)


def answer(page: AppTest) -> str:
    (found,) = [
        str(one.value) for one in page.markdown if "wrote" in str(one.value) or "None of" in str(one.value)
    ]
    return found


def sent(page: AppTest) -> dict[str, Any]:
    return helpers.sent(page, "threeways")


def columns(page: AppTest) -> tuple[dict[str, Any], ...]:
    return tuple(sent(page)["columns"])


def letters(name: str):
    found = load(ROOT / "checkpoints" / name)
    return found.model, found.tokenizer


def test_the_answer_counts_passes_and_what_is_right():
    """8 blanks; 5 guesses equal the letter (the 2nd, 6th and 7th do not); 24 letters; 7 words and the end."""
    assert answer(opened()) == (
        "The encoder filled **8 blanks in 1 pass**, 5 right. The decoder wrote **24 letters in 24 passes**."
        " The encoder-decoder read in one, wrote in **8 passes** “timuro esto tald ilo sem veto velo”,"
        " which is **right**."
    )


def test_the_player_gets_what_the_encoder_filled():
    page = opened()
    encoder, _, _ = columns(page)
    found = fill_in(*letters("encoders/blanks"), TEXT, BLANKS)
    (row,) = encoder["rows"]
    assert row["cells"] == list(TEXT.replace(" ", "␣")) and [s["at"] for s in encoder["said"]] == list(BLANKS)
    assert {s["step"] for s in encoder["said"]} == {1} and {s["row"] for s in encoder["said"]} == {0}
    for one, said, place in zip(encoder["said"], found.said, BLANKS, strict=True):
        wrong = said.symbol != TEXT[place]
        verdict = f"it was “{TEXT[place]}”" if wrong else "right"
        assert one["told"] == f"“{said.symbol}”, {round(100 * said.probability)}% sure: {verdict}"
        assert one["wrong"] is wrong and one["symbol"] == said.symbol
        assert one["reads"][0] == pytest.approx(list(said.own), abs=1e-4) and len(one["reads"]) == 1
    assert encoder["lines"][0] == "8 blanks to fill"
    assert set(encoder["lines"][1:]) == {"1 pass: 8 blanks, all at once"}


def test_the_player_gets_what_the_decoder_wrote():
    page = opened()
    _, decoder, _ = columns(page)
    found = carry_on(*letters("shakespeare-modern"), TEXT, 24, SampleConfig(temperature=0.0))
    assert [(s["at"], s["step"]) for s in decoder["said"]] == [(len(TEXT) + i, i + 1) for i in range(24)]
    for one, said in zip(decoder["said"], found.said, strict=True):
        assert one["told"].endswith(f"”, {round(100 * said.probability)}% sure") and not one["wrong"]
        assert one["reads"][0] == pytest.approx(list(said.own), abs=1e-4)
    assert "".join(decoder["rows"][0]["cells"][len(TEXT) :]) == found.written.replace(" ", "␣").replace(
        "\n", "⏎"
    )
    assert [len(s["reads"][0]) for s in decoder["said"]] == [len(TEXT) + i for i in range(24)]
    assert decoder["lines"][:3] == [
        "0 passes, 0 letters: one each",
        "1 pass, 1 letter: one each",
        "2 passes, 2 letters: one each",
    ]
    assert len(decoder["lines"]) == 25 == sent(page)["last"] + 1


def test_the_player_gets_what_the_encoder_decoder_wrote():
    page = opened()
    *_, both = columns(page)
    source, target = both["rows"]
    assert source["cells"] == [*TEXT.split(), "<end>"]
    assert target["cells"] == ["<begin>", *["timuro", "esto", "tald", "ilo", "sem", "veto", "velo"], "<end>"]
    assert [(s["row"], s["at"], s["step"]) for s in both["said"]] == [(1, i + 1, i + 1) for i in range(8)]
    for i, one in enumerate(both["said"]):
        assert [len(weights) for weights in one["reads"]] == [9, i + 1]  # the source whole, its own text back
        assert [sum(weights) for weights in one["reads"]] == pytest.approx([1, 1], abs=1e-2)
    sem = both["said"][4]
    assert source["cells"][sem["reads"][0].index(max(sem["reads"][0]))] == "friend"  # it read the noun
    assert both["lines"][:2] == ["nothing is read yet", "1 pass to read, 1 to write: one each"]
    assert both["lines"][-1] == "1 pass to read, 8 to write: one each"


def test_what_is_hidden_is_chosen_and_clicked():
    page = opened(live_hiding="word", live_clicked="3-24-99")
    encoder, *_ = columns(page)
    assert [s["at"] for s in encoder["said"]] == [
        3,
        21,
        22,
        23,
        24,
    ]  # "the", and two blanks that were clicked
    assert sent(page)["toggled"] == [3, 24] and "**5 blanks in 1 pass**" in answer(page)
    page.text_input(key="live_text").set_value("the cat sees a dog").run()
    assert sent(page)["toggled"] == [] and page.query_params.get("live_clicked") is None


def test_temperature_and_seed_are_the_decoder_s():
    page = opened(live_temperature="1.0", live_seed="7")
    encoder, decoder, both = columns(page)
    drawn = carry_on(*letters("shakespeare-modern"), TEXT, 24, SampleConfig(temperature=1.0, seed=7))
    assert "".join(decoder["rows"][0]["cells"][len(TEXT) :]) == drawn.written.replace(" ", "␣").replace(
        "\n", "⏎"
    )
    first, _, third = columns(opened())
    assert encoder == first and both == third


def test_an_unknown_word_is_named_and_two_go_on():
    page = opened(live_text="the zebra sees a cat")
    assert [c["cannot"] for c in columns(page)][:2] == [None, None]
    assert columns(page)[2]["cannot"] == "Cannot: this model's vocabulary of 323 words lacks 'zebra'."
    assert "The encoder filled" in answer(page) and "encoder-decoder" not in answer(page)


def test_a_text_that_none_can_read_gets_its_sentence():
    page = opened(live_text=" ")
    assert all(c["cannot"] for c in columns(page)) and sent(page)["last"] == 1
    assert answer(page) == "None of the three can read this: each says above why."
