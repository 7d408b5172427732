"""The Tokens page's first view: its numbers against plain arithmetic, odd texts, limits."""

from __future__ import annotations

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import corpora
from engine.service import profiles
from engine.tokenizers.bpe import BpeTokenizer
from engine.tokenizers.bpe_watch import replay, watch
from pages.input.tokens import bpe_result, bpe_text, watching
from pages.input.tokens.bpe_text import EXAMPLES
from tests.pages.helpers import opened, said
from ui import state
from ui.text.tokens import LONGEST, is_partial, show_bytes

PAGE = "input/tokens"
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


def tokens(**query: str) -> AppTest:
    return opened(PAGE, **{"measure": "true", **query})


def with_text(text: str, **query: str) -> AppTest:
    return opened(PAGE, {bpe_text.TYPED: text}, **{"measure": "true", **query})


def merged(text: str, merges: int, level: str, split: str) -> int:
    """Tokens of a text after so many merges, learned and applied anew."""
    return len(watch(text, merges, level=level, split=split).tokenizer.encode(text))  # type: ignore[arg-type]


@pytest.mark.parametrize(("level", "split"), [("byte", "words"), ("char", "none")])
def test_every_part_of_what_came_out(level, split, drawn):
    text = "ab ab café ab café ab ab abc\n" * 3
    page = with_text(text, bpe_level=level, bpe_split=split, bpe_new="6")
    start = len(text.encode()) if level == "byte" else len(text)
    lengths = [start, *(merged(text, k, level, split) for k in range(1, 7))]
    left, size = lengths[-1], len(text.encode())
    told = said(page)
    base = 256 if level == "byte" else len(set(text))
    assert f"**{start} → {left} tokens** after 6 merges, {left / start:.1%} of the start" in told
    assert f"{len(text) / left:.2f} characters and {size / left:.2f} bytes for each token" in told
    assert f"with a vocabulary of {base + 6}." in told and "You asked for" not in told
    half = next(k for k, n in enumerate(lengths) if start - n >= (start - left) / 2)
    assert (f"The first {half} merges did half of the work" in told) == (half < 3)
    assert f"Learned from your text: {len(text)} characters" in told
    measures = {
        "tokens left, % of the start": [100 * n / start for n in lengths],
        "characters per token": [len(text) / n for n in lengths],
        "bytes per token": [size / n for n in lengths],
    }
    for unit, values in measures.items():
        page.get_by_key("bpe_unit").set_value(unit).run()
        assert not page.exception
        figure = drawn["bpe_compression"]
        assert np.allclose(figure.traces[0]["y"], values) and figure.traces[0]["x"] == list(range(7))
        assert figure.layout["yaxis"]["title"]["text"] == unit and len(figure.traces) == 1
    saved = f"{lengths[0] - lengths[1]} tokens shorter, the last {lengths[-2] - lengths[-1]}:"
    assert f"The first merge made your text {saved}" in said(page)
    page.get_by_key("bpe_part").set_value("merges").run()
    table, own = page.dataframe[0].value, watch(text, 6, level=level, split=split).tokenizer
    assert table["tokens left"].tolist() == lengths[1:] and table["merge"].tolist() == [1, 2, 3, 4, 5, 6]
    assert table["token"].tolist() == [show_bytes(own.tokens[m.token]) for m in own.merges]
    page.get_by_key("bpe_part").set_value("ways").run()
    bars, ways = drawn["bpe_ways"], page.dataframe[0].value
    kinds = [(a, b) for a in ("byte", "char") for b in ("words", "none")]
    assert ways["tokens left"].tolist() == [merged(text, 6, *kind) for kind in kinds]
    assert bars.traces[0]["x"] == ways["tokens at the start"].tolist() == [size, size, len(text), len(text)]
    assert bars.traces[1]["x"] == ways["tokens left"].tolist()
    assert np.allclose(ways["characters per token"], len(text) / ways["tokens left"])
    assert ways["way"].tolist()[1] == "bytes, left whole" and "learned by heart" not in page.caption[-1].value
    crossing = int(ways["tokens that cross a word border"].iloc[1])
    assert crossing and f"Left whole, {crossing} of the tokens learned from bytes run across" in said(page)
    page.get_by_key("bpe_part").set_value("tiktoken").run()
    told = said(page)
    assert (f"agree in all {left} tokens" in told) == (level == "byte")
    assert ("always starts from the 256 bytes" in told) == (level == "char")


def test_why_pieces_of_words_is_answered_from_the_text_that_is_shown(monkeypatch):
    """The answer and its table, with all folds closed."""
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)
    text = "ab ab café ab café ab ab abc\n" * 3
    page = with_text(text, bpe_new="6", measure="false")
    left = merged(text, 6, "byte", "words")
    times, listed = len(text) / left, text.split()
    assert (
        f"**{len(text)} characters become {left} tokens**: {times:.1f} times shorter, so attention compares"
        f" **{times**2:.1f} times fewer pairs**"
    ) in said(page)
    assert page.header[0].value == "Why byte-pair encoding (BPE)?"
    # a word that is not there: "café" and "abc" as one
    new, own = "caféabc", watch(text, 6).tokenizer
    assert (
        f"Whole words would be {len(listed)}, but their list has no entry for a new word such as “{new}”"
        f"; BPE spells it in **{len(own.encode(' ' + new))} pieces**, at worst letter by letter."
        in said(page)
    )
    table = page.table[0].value
    wanted = {
        "characters": (f"{len(text)}", f"{1 + len(new)} tokens"),
        "BPE": (f"{left}", f"{len(own.encode(' ' + new))} tokens"),
        "whole words": (f"{len(listed)}", "cannot"),
    }
    assert {name: tuple(row) for name, row in table.iterrows()} == wanted
    assert table.columns.tolist() == ["tokens T", f"“␣{new}”"]
    measured = said(with_text(text, bpe_new="6", measure="true"))
    assert f"**{len(set(text))}** characters; **256 bytes + 6 merges** of BPE;" in measured
    assert f"**{len(set(listed))}** whole words" in measured
    page.get_by_key("bpe_new").set_value(1).run()  # a control of the main part changes the answer
    assert f"become {merged(text, 1, 'byte', 'words')} tokens" in said(page)


def test_a_tokenizer_that_is_not_ours_is_found_out(monkeypatch):
    """tiktoken is asked, not ourselves a second time."""

    class Broken:
        def encode_ordinary(self, text: str) -> list[int]:
            return [*text.encode()[:3], 7, 7]

    assert "The same ids" in said(with_text("abcd efgh", bpe_part="tiktoken", bpe_new="1"))
    monkeypatch.setattr(BpeTokenizer, "as_tiktoken", lambda self: Broken())
    bpe_result._theirs.clear()
    page = with_text("abcd efgh", bpe_part="tiktoken", bpe_new="1")
    bpe_result._theirs.clear()
    assert "The ids differ from token 0 on: ours has 8, tiktoken 5." in page.error[0].value
    ids = page.dataframe[0].value
    assert ids["tiktoken's id"].tolist()[:5] == [97, 98, 99, 7, 7] and ids["our id"].tolist()[0] == 256
    assert ids["token"].tolist()[0] == "ab"


def test_the_passage_has_a_curve_of_its_own(drawn):
    page = with_text("sea shells — é", bpe_from="python", bpe_new="8")
    seen = watch(state.corpus("python").text, 8)
    shown = replay(seen.tokenizer, "sea shells — é").lengths(8)
    first, second = drawn["bpe_compression"].traces
    assert np.allclose(first["y"], 100 * seen.lengths / seen.length) and second["name"] == "the passage shown"
    assert np.allclose(second["y"], 100 * shown / shown[0])
    table = drawn["bpe_compression"].table
    assert table is not None and np.allclose(table["characters per token, the passage shown"], 14 / shown)
    assert np.allclose(table["bytes per token, the passage shown"], 17 / shown)
    assert "Learned from the Python manual" in said(page)


def test_a_shakespeare_that_is_not_here_is_replaced_and_said(monkeypatch):
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)
    assert "is not on this machine" in said(tokens(bpe_from="shakespeare", bpe_new="5"))


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_texts_neither_crash_nor_hang(text):
    page = with_text(text, bpe_new="60", bpe_part="tiktoken", bpe_step="3")
    for level, split in (("char", "none"), ("byte", "none")):
        page.get_by_key("bpe_level").set_value(level)
        page.get_by_key("bpe_split").set_value(split).run()
        assert not page.exception and not page.error
        assert text != "x" or "nothing to merge" in said(page)


def test_text_up_to_the_limit_and_no_further(monkeypatch):
    limit = profiles.PROFILES["local"].max_watched
    assert limit == 1_000_000 > profiles.PROFILES["hosted"].max_watched
    page = with_text("the cat sat " * (limit // 12), bpe_new="20")
    assert "All 999,996 characters count; the first 2,000 are shown" in said(page)
    assert "bpe_text" not in page.query_params
    page = with_text("a" * (limit + 5))
    assert "at most 1,000,000 are allowed here. Shorten it by 5." in said(page)
    monkeypatch.setenv(profiles.VARIABLE, "hosted")
    assert "at most 200,000 are allowed here" in said(with_text("a" * 200_001))
    monkeypatch.setattr(bpe_text, "affordable", lambda text, level, split, limit: 100)
    assert "merges are learned from its first 100 of 2,000 characters" in said(
        with_text("ab" * 1000, bpe_split="none", bpe_new="3")
    )


def test_a_link_says_where_the_player_is():
    page = tokens(bpe_step="7", bpe_token="260")
    assert page.query_params["bpe_step"] == "7" and page.query_params["bpe_token"] == "260"
    page = tokens(bpe_step="100000", bpe_token="100000")
    assert (
        page.query_params["bpe_step"] == "32" and "bpe_token" not in page.query_params
    )  # 33 merges, of which the last is 32


def test_frames_are_small_and_can_be_played():
    text = (EXAMPLES["Languages"] + EXAMPLES["Code"]) * 5
    passage = text[: bpe_text.SHOWN]
    seen = watch(text, 1000)
    shown = replay(seen.tokenizer, passage)
    frames = watching.frames_of(seen, shown, passage, False)
    assert len(json.dumps(frames, separators=(",", ":"))) < 250_000
    merges = np.array(frames["merges"]).reshape(-1, 5)
    assert merges[:, 2].max() < len(frames["tokens"]) and len(frames["fallen"]) == len(frames["symbols"]) - 1
    assert len(frames["runners"]) == 15 * len(merges) and max(frames["fallen"]) < len(merges)
    assert not any("\ufffd" in token for token in frames["tokens"])
    for row, merge in zip(merges, seen.tokenizer.merges, strict=True):
        assert row.tolist() == [*merge.pair, merge.token, merge.count, merge.length]
    runners = np.array(frames["runners"]).reshape(len(merges), 5, 3)
    (pair, count), second = seen.runners_up[3][:2]
    assert runners[3, 0].tolist() == [*pair, count] and runners[3, 1].tolist() == [*second[0], second[1]]
    assert frames["start"] == len(text.encode()) == frames["bytes"] and frames["characters"] == len(text)
    assert frames["shown"] == len(passage) and not frames["same"] and frames["base"] == 256
    for i, token in enumerate(seen.tokenizer.tokens):
        assert (i in frames["partial"]) == is_partial(token)


def test_a_part_of_a_character_is_shown_as_bytes():
    assert show_bytes("é".encode()[:1]) == "⟨C3⟩"
    assert show_bytes("€".encode()[1:]) == "⟨82 AC⟩"
    assert show_bytes(b"a\xff") == "a⟨FF⟩"
    assert show_bytes(b" \n\t") == "␣⏎⇥"
    assert show_bytes(b"\0") == "␀"
    assert show_bytes("\u202e".encode()) == "U+202E"
    family = "👩\u200d👩\u200d👧"
    assert show_bytes(family.encode()) == family and show_bytes(family[:2].encode()) == "👩U+200D"
    assert show_bytes("\ud83d".encode("utf-8", "surrogatepass")) == "U+D83D"
    assert show_bytes(b"x" * 5000) == "x" * LONGEST + "… (5,000 characters)"
    for token in (bytes([b]) for b in range(256)):
        assert show_bytes(token) and "\ufffd" not in show_bytes(token)
