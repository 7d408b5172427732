"""The Tokens page's first view: every option, odd texts, limits, and URLs written by strangers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import corpora
from engine.service import profiles
from engine.tokenizers.bpe_watch import replay, watch
from pages.input.tokens import bpe as bpe_player
from pages.input.tokens import bpe_figures as figures
from pages.input.tokens import bpe_result, bpe_text
from pages.input.tokens.bpe_text import EXAMPLES
from tests.pages.stage import open_page
from ui.text.tokens import LONGEST, is_partial, show_bytes

PAGE = str(Path(__file__).parents[3] / "pages" / "input" / "tokens" / "page.py")
ODD = {
    "null bytes": "\0\0 a\0b a\0b",
    "half a character": "\ud83d\ud83d a \ud83d\ud83d",
    "right to left": "\u202eabc abc\u202c \u05e9\u05dc\u05d5\u05dd \u05e9\u05dc\u05d5\u05dd",
    "combining marks": "e\u0301e\u0301 \u0301\u0301 e\u0301",
    "joiners": "👩\u200d👩\u200d👧 \u200d\u200d 👩\u200d👩\u200d👧",
    "one sign": "x",
    "one word": "ab" * 50_000,
    "blanks": " \n\t  \n\t ",
    "markup": "<script>alert(1)</script> **x** $y$ <script>",
    "long passage": "the cat sat on the mat " * 400,
}


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.success, page.caption, page.markdown)
        for e in kind
    )


def with_text(text: str, **query: str) -> AppTest:
    page = AppTest.from_file(PAGE, default_timeout=60)
    page.session_state[bpe_text.TYPED] = text
    return open_page(page, **query)


@pytest.mark.parametrize("level", bpe_player.LEVELS)
@pytest.mark.parametrize("split", bpe_player.SPLITS)
def test_every_part_of_what_came_out(level, split):
    page = opened(bpe_level=level, bpe_split=split)
    for part in bpe_result.PARTS:
        page.get_by_key("bpe_part").set_value(part).run()
        assert not page.exception and not page.error, part
        said = sentences(page)
        if part == "As tiktoken":
            assert ("The same ids" in said) == (level == "Bytes") and (
                "always starts from the 256 bytes" in said
            ) == (level == "Characters")
        if part == "Four ways to start":
            assert "run across a border of words" in said
        if part == "Compression":
            for unit in bpe_result.UNITS:
                page.get_by_key("bpe_unit").set_value(unit).run()
                assert not page.exception
    assert "183 → " in sentences(page)  # the sea shells are 183 bytes, and as many characters


def test_every_example_and_every_source():
    page = opened(bpe_new="40")
    for example in EXAMPLES:
        page.get_by_key("bpe_example").set_value(example).run()
        assert (
            not page.exception
            and not page.error
            and page.text_area(key=bpe_text.TYPED).value == EXAMPLES[example]
        )
        assert page.query_params.get("bpe_text", EXAMPLES["Sea shells"]) == EXAMPLES[example]
    page.get_by_key("bpe_from").set_value("Python manual").run()
    assert not page.exception and "Learned from the Python manual" in sentences(page)


def test_a_shakespeare_that_is_not_here_is_replaced_and_said(monkeypatch):
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)
    assert "is not on this machine" in sentences(opened(bpe_from="Tiny Shakespeare", bpe_new="5"))


@pytest.mark.parametrize("level", bpe_player.LEVELS)
@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_texts_neither_crash_nor_hang(text, level):
    for split in bpe_player.SPLITS:
        page = with_text(
            text, bpe_level=level, bpe_split=split, bpe_new="60", bpe_part="As tiktoken", bpe_step="3"
        )
        assert not page.error
        if text == "x":
            assert "nothing to merge" in sentences(page)


def test_an_empty_box_says_so():
    assert "The box is empty" in sentences(with_text(""))
    page = with_text("", bpe_from="Python manual", bpe_new="5")
    assert "the beginning of what is learned from" in sentences(page)


def test_text_up_to_the_limit_and_no_further(monkeypatch):
    limit = profiles.PROFILES["local"].max_watched
    assert limit == 1_000_000 > profiles.PROFILES["hosted"].max_watched
    page = with_text("the cat sat " * (limit // 12), bpe_new="20")
    assert (
        "All 999,996 characters count; the first 2,000 are shown" in sentences(page)
        and "bpe_text" not in page.query_params
    )
    page = with_text("a" * (limit + 5))
    assert "at most 1,000,000 are allowed here. Shorten it by 5." in sentences(page)
    monkeypatch.setenv(profiles.VARIABLE, "hosted")
    assert "at most 200,000 are allowed here" in sentences(with_text("a" * 200_001))
    monkeypatch.setattr(bpe_text, "affordable", lambda text, level, split, limit: 100)
    assert "merges are learned from its first 100 of 2,000 characters" in sentences(
        with_text("ab" * 1000, bpe_split="Leave it whole", bpe_new="3")
    )


@pytest.mark.parametrize(
    "query",
    [
        {"tokens_view": "<script>"},
        {"bpe_new": "-5"},
        {"bpe_new": "1000000000"},
        {"bpe_new": "nan"},
        {"bpe_new": "9" * 400},
        {"bpe_new": "1e3"},
        {"bpe_new": "0"},
        {"bpe_step": "-1"},
        {"bpe_step": "9" * 50},
        {"bpe_step": "²"},
        {"bpe_token": "99999"},
        {"bpe_token": "x"},
        {"bpe_level": "half"},
        {"bpe_split": ""},
        {"bpe_from": "/etc/passwd"},
        {"bpe_part": "nothing"},
        {"bpe_unit": "miles"},
        {"bpe_text": ""},
        {"bpe_text": "<b>x</b> <b>x</b>"},
        {"bpe_text": "\0\x1b\u202e"},
    ],
)
def test_a_url_written_by_a_stranger_does_no_harm(query):
    page = opened(**query)
    assert not page.error
    assert 1 <= page.number_input(key="bpe_new").value <= bpe_player.MOST


def test_a_link_says_where_the_player_is():
    page = opened(bpe_step="7", bpe_token="260")
    assert page.query_params["bpe_step"] == "7" and page.query_params["bpe_token"] == "260"
    page = opened(bpe_step="100000", bpe_token="100000")
    assert (
        page.query_params["bpe_step"] == "32" and "bpe_token" not in page.query_params
    )  # 33 merges, of which the last is 32


def test_frames_are_small_and_can_be_played():
    text = (EXAMPLES["Languages"] + EXAMPLES["Code"]) * 5
    passage = text[: bpe_text.SHOWN]
    seen = watch(text, 1000)
    shown = replay(seen.tokenizer, passage)
    frames = bpe_player.frames_of(seen, shown, passage, False)
    assert len(json.dumps(frames, separators=(",", ":"))) < 250_000
    merges = np.array(frames["merges"]).reshape(-1, 5)
    assert merges[:, 2].max() < len(frames["tokens"]) and len(frames["fallen"]) == len(frames["symbols"]) - 1
    assert len(frames["runners"]) == 15 * len(merges) and max(frames["fallen"]) < len(merges)
    assert not any("\ufffd" in token for token in frames["tokens"])
    for i, token in enumerate(seen.tokenizer.tokens):
        assert (i in frames["partial"]) == is_partial(token)


def test_characters_without_a_symbol_are_shown_as_they_are():
    seen = watch("abab", 2, level="char")
    assert bpe_player.frames_of(seen, replay(seen.tokenizer, "axb\u0301a"), "axb\u0301a", False)[
        "unknown"
    ] == ["x", "◌\u0301"]


def test_a_part_of_a_character_is_shown_as_bytes():
    assert (
        show_bytes("é".encode()[:1]) == "⟨C3⟩"
        and show_bytes("€".encode()[1:]) == "⟨82 AC⟩"
        and show_bytes(b"a\xff") == "a⟨FF⟩"
    )
    assert (
        show_bytes(b" \n\t") == "␣⏎⇥"
        and show_bytes(b"\0") == "␀"
        and show_bytes("\u202e".encode()) == "U+202E"
    )
    family = "👩\u200d👩\u200d👧"
    assert show_bytes(family.encode()) == family and show_bytes(family[:2].encode()) == "👩U+200D"
    assert show_bytes("\ud83d".encode("utf-8", "surrogatepass")) == "U+D83D"
    assert show_bytes(b"x" * 5000) == "x" * LONGEST + "… (5,000 characters)"
    for token in (bytes([b]) for b in range(256)):
        assert show_bytes(token) and "\ufffd" not in show_bytes(token)


def test_the_table_of_merges_is_the_training():
    seen = watch(EXAMPLES["lowest, newest"], 10)
    table = bpe_result.merges_table(seen)
    assert list(table["count"]) == [m.count for m in seen.tokenizer.merges]
    assert list(table["token"].iloc[:2]) == ["es", "est"] and table["next in line"].iloc[0].endswith(": 9")


def test_figures_hold_the_numbers():
    figure = figures.compression(
        {"a": np.array([1.0, 2.0, 2.5]), "b<b>": np.array([1.0, 1.5, 1.75])}, "characters per token"
    )
    assert figure.data[0].y[-1] == 2.5 and len(figure.data) == 2
    assert [int(v) for v in figures.four_ways(["x", "y"], [9, 8], [3, 2]).data[1].x] == [3, 2]
