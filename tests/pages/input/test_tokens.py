"""The Tokens page: its numbers against plain arithmetic, odd texts, limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tiktoken
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig
from engine.data import corpora
from engine.data.tokenizers import bpe, published
from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.bpe_watch import replay, watch
from engine.data.tokenizers.published import END_OF_TEXT, PUBLISHED, PublishedTokenizer
from engine.data.tokenizers.words import WordTokenizer
from engine.measure.tokens.vocabulary import cut_bytes, cut_tokens, cut_words
from engine.model import build
from engine.service import profiles
from pages.input.tokens import bpe_text, cutting, shared, watching
from pages.input.tokens import chips as token_chips
from pages.input.tokens.words_examples import MERGES
from tests.engine.cases import for_each
from tests.pages.helpers import opened, said
from ui import memo
from ui import session as state
from ui.text import tokens as token_words
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
    "private": "\ue000\uffff",
    "lines": "\n" * 300,
    "return": "a\r\nb\rc",
    "special": END_OF_TEXT * 3,
}


def tokens(**query: str) -> AppTest:
    return opened(PAGE, **{"measure": "true", **query})


def with_text(text: str, **query: str) -> AppTest:
    return opened(PAGE, {"bpe_text": text}, **{"measure": "true", **query})


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
    assert f"**{start} → {left} tokens** after 6 merges, {left / start:.1%} of the original length" in told
    assert f"{len(text) / left:.2f} characters and {size / left:.2f} bytes per token" in told
    assert f"with a vocabulary of {base + 6}." in told and "You asked for" not in told
    half = next(k for k, n in enumerate(lengths) if start - n >= (start - left) / 2)
    assert (f"The first {half} merges account for half of the compression" in told) == (half < 3)
    assert f"Trained on your text: {len(text)} characters" in told
    measures = {
        "tokens left, % of the original": [100 * n / start for n in lengths],
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
    assert ways["way"].tolist()[1] == "bytes, no splitting" and "memorised" not in page.caption[-1].value
    crossing = int(ways["tokens across a word boundary"].iloc[1])
    assert (
        crossing
        and f"Without splitting, {crossing} of the tokens learned from bytes cross a word" in said(page)
    )
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
    assert page.header[0].value == "How does BPE build its tokens?"
    # a word that is not there: "café" and "abc" as one
    new, own = "caféabc", watch(text, 6).tokenizer
    assert (
        f"A word-level vocabulary has no entry for a new word such as “{new}”; BPE spells it in"
        f" **{len(own.encode(' ' + new))} pieces**." in said(page)
    )
    table = page.table[0].value
    wanted = {
        "characters": (f"{len(text)}", f"{1 + len(new)} tokens"),
        "BPE": (f"{left}", f"{len(own.encode(' ' + new))} tokens"),
        "whole words": (f"{len(listed)}", "impossible"),
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
    memo.clear()
    page = with_text("abcd efgh", bpe_part="tiktoken", bpe_new="1")
    memo.clear()
    assert "The ids differ from token 0 onwards: 8 in ours, 5 in tiktoken's." in page.error[0].value
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
    assert "Trained on the Python manual" in said(page)


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
    assert "Merges are learned from all 999,996 characters; the first 2,000 are shown" in said(page)
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
    assert page.query_params["bpe_step"] == "32" and "bpe_token" not in page.query_params


def test_frames_are_small_and_can_be_played():
    text = (MERGES["Languages"] + MERGES["Code"]) * 5
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
    data = "é€👩\u200d👧".encode()
    cuts = [data[i:j] for i in range(len(data)) for j in range(i + 1, len(data) + 1)]
    for token in (*(bytes([b]) for b in range(256)), *cuts):
        assert show_bytes(token) and "\ufffd" not in show_bytes(token)
        assert not any("\ufffd" in piece for piece, _ in token_words.parts(token))


COMPARE, COST = "compare", "cost"


def stand_in(name: str) -> PublishedTokenizer:
    """An encoding that needs no network: 256 bytes, a few merges and one special token."""
    ranks = dict(bpe.train("the theory of the thing " * 20, 270).ranks)
    return PublishedTokenizer(
        name,
        tiktoken.Encoding(name, pat_str=bpe.WORDS, mergeable_ranks=ranks, special_tokens={END_OF_TEXT: 300}),
    )


@pytest.fixture(autouse=True)
def _encodings(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """All encodings are stand-ins; one whose name is put into what is yielded cannot be had."""
    unreachable: dict[str, str] = {}
    held = {name: stand_in(name) for name in PUBLISHED}

    def load_all(names: Any, seconds: float = 0) -> tuple[dict[str, PublishedTokenizer], dict[str, str]]:
        return {n: held[n] for n in names if n not in unreachable}, {
            n: unreachable[n] for n in names if n in unreachable
        }

    monkeypatch.setattr(published, "load_all", load_all)
    monkeypatch.setattr(published, "here", lambda name: name not in unreachable)
    shared._failures.clear()
    memo.clear()
    yield unreachable
    shared._failures.clear()
    memo.clear()


def compared(view: str = COMPARE, text: str | None = None, **query: str) -> AppTest:
    corpora = {"compare_corpus": "python", "cost_corpus": "python"}
    state = {} if text is None else {shared.TEXT: text}
    return opened("input/tokens", state, **{"tokens_view": view, "measure": "true"} | corpora | query)


def counted(page: AppTest) -> dict[str, str]:
    """Tokens of each tokenizer, from the table."""
    table = page.table[0].value
    return dict(zip(table.index, table["tokens"], strict=True))


def test_every_tokenizer_counts_as_it_cuts(drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    real = token_chips.payload
    monkeypatch.setattr(token_chips, "payload", lambda *rest: sent.append(rest) or real(*rest))
    text = "the theory of théo\nthe thing ☃"
    page = compared(text=text)
    page.button_group(key="compare_show").set_value(list(cutting.TOKENIZERS)).run()
    manual = state.corpus("python").text
    learned = bpe.train(manual, 512)
    listed = WordTokenizer.train(manual).encode(text)
    size, unknown = len(text.encode()), sum(c not in set(manual) for c in text)
    wanted = {
        "Characters": (len(set(manual)), len(text), unknown),
        "Bytes": (256, size, 0),
        "Words": (WordTokenizer.train(manual).vocab_size, len(listed), listed.count(-1)),
        "BPE 300": (300, len(bpe.train(manual, 300).encode(text)), 0),
        "BPE 512": (512, len(learned.encode(text)), 0),
        "gpt2": (301, len(stand_in("gpt2").encode(text)), 0),
    }
    table = page.table[0].value
    assert [*wanted] == [name for name in table.index if name in wanted]
    for name, (entries, tokens, lost) in wanted.items():
        assert table.loc[name].tolist() == [
            f"{entries:,}",
            f"{tokens:,}",
            f"{len(text) / tokens:.2f}",
            f"{size / tokens:.2f}",
            f"{lost:,}",
        ], name
    assert unknown and table.loc["Words", "unknown"] != "0"
    bars = drawn["compare_bars"].traces[0]
    assert bars["y"] == list(table.index) and bars["text"] == table["tokens"].tolist()
    assert np.allclose(bars["customdata"], table["chars each"].astype(float), atol=0.006)
    assert f"{len(text)} characters, {size} bytes: how many tokens?" in said(page)
    rows = {row.name: row for row in sent[-1][1]}
    assert rows["BPE 512"].cut.ids.tolist() == learned.encode(text)
    assert "some word" in rows["Words"].note and "outside the vocabulary" in rows["Characters"].note
    counts = {
        name: int(table.loc[name, "tokens"]) for name in table.index if table.loc[name, "unknown"] == "0"
    }
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    times = counts[most] / counts[least]
    assert most == "Bytes"
    assert f"**{least} needs {counts[least]} tokens, Bytes {size}: {times:.1f} times as many**" in said(page)
    assert f"{times**2:.1f} times the work for attention" in said(page)
    assert f"a vocabulary of {table.loc[least, 'entries']} entries instead of 256." in said(page)
    lines = drawn["compare_lines"]
    place = list(table.index).index("BPE 512")
    assert [row[place] for row in np.array(lines.traces[0]["z"])] == pytest.approx(
        [len(learned.encode(line)) / len(line) for line in text.split("\n")]
    )
    assert lines.table is not None and lines.table["characters"] == [18, 11]
    assert lines.table["Words"] == [4, 3] and lines.table["line"] == text.split("\n")
    page.button_group(key="compare_show").set_value([]).run()
    assert not page.exception and "Choose at least one tokenizer" in said(page)


@for_each("text", [*ODD.values(), ""], ids=[*ODD, "empty"], fast=["", ODD["half a character"], ODD["markup"]])
def test_no_text_breaks_a_view(text: str) -> None:
    held = {shared.TEXT: text}
    page = opened(
        "input/tokens", held, tokens_view=COMPARE, compare_corpus="yours", cost_corpus="yours", measure="true"
    )
    assert "\ud83d" not in text or "half character" in said(page)
    assert not text.strip() or counted(page)["Characters"] == f"{len(text):,}"
    assert text or "empty" in said(page)
    for key, value in (("compare_part", "ids"), ("tokens_view", COST)):
        page.get_by_key(key).set_value(value).run()
        assert not page.exception and not page.error, value
        assert text or "empty" in said(page)


def test_a_text_beyond_the_limit_is_refused_with_the_limit_named_and_kept() -> None:
    limit = state.profile().max_watched
    page = compared(text="ab " * (limit // 3 + 10))
    assert f"at most {limit:,} are allowed" in page.error[0].value
    assert len(page.text_area(key=shared.TEXT).value) > limit and shared.TEXT not in page.query_params


def test_a_link_to_another_text_replaces_the_one_of_the_session_and_typing_replaces_that() -> None:
    page = compared(text="a text")
    assert page.query_params[shared.TEXT] in ("a text", ["a text"])
    page.query_params[shared.TEXT] = "To be or not to bé"
    page.run()
    assert counted(page)["Characters"] == "18"
    page.text_area(key=shared.TEXT).input("typed").run()
    assert counted(page)["Characters"] == "5"


def test_what_somebody_is_typing_is_not_overwritten_by_a_page_that_is_drawn_again() -> None:
    page = compared(text="a text").run()
    assert not page.text_area(key=shared.TEXT).proto.set_value


def test_without_a_network_a_line_says_so_and_the_rest_is_shown(_encodings: dict[str, str]) -> None:
    _encodings["o200k_base"] = "it could not be loaded"
    page = compared()  # what is not on this machine is not asked for
    assert "o200k_base" not in counted(page) and "could not be loaded" not in said(page)
    page = compared(compare_show="o200k_base")
    page.button_group(key="compare_show").set_value(["characters", *PUBLISHED]).run()
    assert "it could not be loaded" in said(page)
    assert set(counted(page)) >= {"gpt2", "cl100k_base"}
    assert "o200k_base" not in counted(page)
    _encodings.clear()
    page.run()
    assert "o200k_base" not in counted(page)  # it is not asked for again at every click
    page.button(key="compare_retry").click().run()
    assert "o200k_base" in counted(page) and "could not be loaded" not in said(page)


def test_a_typed_special_token_is_ordinary_text() -> None:
    table = compared(compare_part="ids").table[-1].value
    ids = [int(i) for i in table.loc["gpt2", "its ids"].replace(",", " ").split()]
    assert len(ids) > 1 and 300 not in ids and table.loc["gpt2", "the real one"] == "300"
    shown = table.loc["gpt2", f"`{END_OF_TEXT}` typed by a person"]
    assert shown.replace("` `", "").strip("`") == END_OF_TEXT and shown.count("`") == 2 * len(ids)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_what_a_vocabulary_costs(drawn: dict[str, Any]) -> None:
    page = compared(COST, cost_words="100", cost_width="128", cost_layers="2")
    table, words = page.table[0].value, said(page)
    manual = state.corpus("python").text
    part = manual[: number(table.loc["characters", "T"])]
    counted = {
        "characters": (len(set(manual)), len(part)),
        "bytes": (256, len(part.encode())),
        "BPE 512": (512, len(bpe.train(manual, 512).encode(part))),
        "gpt2": (301, len(stand_in("gpt2").encode(part))),
    }
    for name, (entries, tokens) in counted.items():
        config = ModelConfig(vocab_size=entries, d_model=128, n_layers=2, n_heads=2, position="rope")
        tied = sum(p.numel() for p in build(config, device="meta").parameters())
        assert table.loc[name].tolist() == [
            f"{entries:,}",
            f"{tokens:,}",
            f"{entries * 128:,}",
            f"{tied:,}",
            f"{tied + entries * 128:,}",
            f"{entries * 128 / tied:.1%}",
            f"{tokens**2:,}",
        ], name
    (v, t), (w, u) = counted["characters"], counted["gpt2"]
    assert f"{t / u:.1f} times fewer tokens, {t**2 / u**2:.1f} times less attention**" in words
    assert f"an embedding {w / v:,.1f} times as large" in words
    end = int(0.9 * len(manual))
    listed = WordTokenizer.train(manual[:end])
    new = listed.encode(manual[end:])
    missed = new.count(-1) / len(new)
    assert (
        f"{listed.vocab_size:,} whole words would still miss **{missed:.1%}** of the words in new text"
        in words
    )
    model = ModelConfig(vocab_size=w, d_model=128, n_layers=2, n_heads=2, position="rope")
    share = w * 128 / sum(p.numel() for p in build(model, device="meta").parameters())
    assert f"At width 128 the embedding is {share:.0%} of the tied model with gpt2" in words
    numbers, ours, *diamonds = drawn["cost_trade"].traces
    assert np.allclose(numbers["y"], 128 * np.array(numbers["x"])) and numbers["yaxis"] == "y2"
    assert ours["y"][ours["x"].index(512)] == counted["BPE 512"][1]
    assert {d["text"][0]: (d["x"][0], d["y"][0]) for d in diamonds}["gpt2"] == (w, u)
    curve, *marks = drawn["cost_scores"].traces
    assert curve["y"][curve["x"].index(512)] == counted["BPE 512"][1] ** 2 and curve["x"][0] == 256
    assert {m["text"][0]: m["y"][0] for m in marks} == {
        name: number(table.loc[name, "T"]) ** 2 for name in ("characters", "bytes", *PUBLISHED)
    }
    by_hand = compared(COST, cost_words="100", hand="true").table[-1].value
    each = t / u
    assert by_hand.loc["gpt2"].tolist() == [f"{each:.2f}", f"{2 * each:.2f}", f"{4**each:,.0f}", "2.00"]
    assert by_hand.loc["characters", "perplexity per token"] == "4"


def test_the_rule_of_thumb_stands_beside_what_is_measured() -> None:
    page = compared(COST)
    table = next(t.value for t in page.table if "characters, rule of thumb" in t.value.columns)
    text = state.corpus("python").text
    thousand = " ".join(text.split()[:1000])
    measured = int(table.loc["T", "characters, measured"].replace(",", ""))
    assert measured > len(thousand) and text[:measured].split() == text.split()[:1000]
    assert table.loc["T", "characters, rule of thumb"] == "about 5,000"
    assert table.loc["V·d, d = 256", "gpt2, measured"] == f"{301 * 256:,}"
    here = number(table.loc["T", "gpt2, measured"])
    assert here == len(stand_in("gpt2").encode(text[:measured]))
    assert f"averages {measured / 1000:.2f} characters, which is {here / 1000:.2f} gpt2 tokens." in said(page)
    assert table.loc["V·d, d = 256", "gpt2, rule of thumb"] == f"{50_257 * 256:,}"
    assert table.loc["T²", "characters, measured"] == f"{measured**2:,}"


def test_what_comes_back_and_what_has_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    real = token_chips.payload
    monkeypatch.setattr(token_chips, "payload", lambda *rest: sent.append(rest) or real(*rest))
    text = "To be or not to b☃"
    page = compared(text=text, compare_part="ids")
    manual = state.corpus("python").text
    learned = bpe.train(manual, 512)
    rows = {row.name: row for row in sent[-1][1]}
    assert list(rows) == ["Characters", "Words", "BPE 512", *PUBLISHED] and sent[-1][3]  # with their ids
    alphabet = sorted(set(manual))
    assert rows["Characters"].cut.ids.tolist() == [*(alphabet.index(c) for c in text[:-1]), -1]
    assert rows["Characters"].note == "back: “To be or not to b”. No id for “☃”"
    assert rows["Characters"].facts == f"18 ids, 1 unknown\n{len(alphabet):,} entries"
    assert rows["BPE 512"].cut.ids.tolist() == learned.encode(text)
    assert rows["BPE 512"].note == f"back: “{text}”, character for character"
    words, last = said(page), [*PUBLISHED][-1]
    assert f"**“☃” is not one of the {len(alphabet)} known characters, so it has no id**" in words
    assert f"**{last}'s {len(stand_in(last).encode(text))} ids decode to this text**" in words
    glitch = next(t.value for t in page.table if "tokens" in t.value.columns)
    assert glitch.iloc[0]["tokens"] == str(len(stand_in("gpt2").encode(" SolidGoldMagikarp")))


def test_a_long_text_is_encoded_in_part_and_what_ours_restore_is_counted() -> None:
    page = compared(text="the " * 100, compare_part="ids")
    assert "Only the first 32 of 400 characters are encoded" in said(page)
    assert (
        f"**{1 + 1 + len(PUBLISHED)} of {3 + len(PUBLISHED)} tokenizers restore the text exactly.**"
        in said(page)
    )
    page.button_group(key="compare_show").set_value(["characters", "bytes"]).run()
    assert "**Every tokenizer restores the text exactly.**" in said(page)


def test_what_is_sent_holds_every_tokens_place_and_label() -> None:
    text = "the € 👍 of"
    rows = [
        token_chips.Row("a", "", cut_tokens(text, bpe.train("the the", 258))),
        token_chips.Row("b", "", cut_words(text, WordTokenizer.train("the of"))),
    ]
    sent = token_chips.payload(text, rows, "x")
    assert "".join(map(str, sent["rows"][1]["labels"])) == "the€👍of"
    assert sent["rows"][0]["labels"][0] == "the" and (("E2", True),) in sent["rows"][0]["labels"]
    long = token_chips.payload("x" * 9000, [token_chips.Row("b", "", cut_bytes("x" * 9000))], "x")
    assert len(long["rows"][0]["labels"]) == token_chips.CHIPS
    assert len(token_chips.shorter("x" * 9000)) <= token_chips.LONGEST
