"""The Tokens page: its numbers against plain arithmetic, odd texts, limits."""

import json
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiktoken
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig
from engine.data import corpora
from engine.data.tokenizers import bpe
from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.words import WordTokenizer
from engine.model import build
from pages.input.tokens import bpe as bpe_view
from pages.input.tokens import chips as token_chips
from pages.input.tokens import cutting, text_box, watching
from pages.input.tokens.examples import MERGES
from runs import profiles
from studies.tokens import published
from studies.tokens.bpe_watch import learning, replay, watch
from studies.tokens.published import END_OF_TEXT, PUBLISHED, PublishedTokenizer
from studies.tokens.vocabulary import cut_bytes, cut_tokens, cut_words
from tests.engine.cases import for_each
from tests.pages.helpers import chosen, in_address, lacking, opened, said
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
    "word": "ab" * 5_000,
    "blanks": " \n\t  \n\t ",
    "markup": "<script>alert(1)</script> **x** $y$ <script>",
    "long passage": "the cat sat on the mat " * 400,
    "private": "\ue000\uffff",
    "lines": "\n" * 300,
    "return": "a\r\nb\rc",
    "special": END_OF_TEXT * 3,
}


def with_text(text: str, **query: str) -> AppTest:
    return opened(PAGE, {"bpe_text": text}, **{"measure": "true", **query})


SHORT = "ab ab café ab café ab ab abc\n" * 3


def merged(text: str, merges: int, level: str, split: str) -> int:
    """Tokens of a text after so many merges, learned and applied anew."""
    return len(watch(text, merges, level=level, split=split).tokenizer.encode(text))  # type: ignore[arg-type]


@pytest.mark.parametrize(("level", "split"), [("byte", "words"), ("char", "none")])
def test_every_part_of_what_came_out(level, split, drawn):
    text, bytewise = SHORT, level == "byte"
    page = with_text(text, bpe_level=level, bpe_split=split, bpe_new="6")
    size, start = len(text.encode()), len(text.encode()) if bytewise else len(text)
    lengths = [start, *(merged(text, k, level, split) for k in range(1, 7))]
    left, told = lengths[-1], said(page)
    assert not lacking(
        told,
        f"**{start} → {left} tokens** after 6 merges, {left / start:.1%} of the original length",
        f"{len(text) / left:.2f} characters and {size / left:.2f} bytes per token",
        f"with a vocabulary of {6 + (256 if bytewise else len(set(text)))}.",
        f"Trained on your text: {len(text)} characters",
    )
    half = next(k for k, n in enumerate(lengths) if start - n >= (start - left) / 2)
    assert (f"The first {half} merges account for half of the compression" in told) == (half < 3)
    measures = {
        "tokens left, % of the original": [100 * n / start for n in lengths],
        "characters per token": [len(text) / n for n in lengths],
        "bytes per token": [size / n for n in lengths],
    }
    for unit, values in measures.items():
        chosen(page, "bpe_unit", unit)
        figure = drawn["bpe_compression"]
        assert np.allclose(figure.traces[0]["y"], values) and figure.traces[0]["x"] == list(range(7))
        assert figure.layout["yaxis"]["title"]["text"] == unit and len(figure.traces) == 1
    saved = f"{lengths[0] - lengths[1]} tokens shorter, the last {lengths[-2] - lengths[-1]}:"
    assert f"The first merge made your text {saved}" in said(page)
    chosen(page, "bpe_part", "merges")
    table, own = page.dataframe[0].value, watch(text, 6, level=level, split=split).tokenizer
    assert table["tokens left"].tolist() == lengths[1:] and table["merge"].tolist() == [1, 2, 3, 4, 5, 6]
    assert table["token"].tolist() == [show_bytes(own.tokens[m.token]) for m in own.merges]
    chosen(page, "bpe_part", "ways")
    bars, ways = drawn["bpe_ways"], page.dataframe[0].value
    kinds = [(a, b) for a in ("byte", "char") for b in ("words", "none")]
    assert ways["tokens left"].tolist() == [merged(text, 6, *kind) for kind in kinds]
    assert bars.traces[0]["x"] == ways["tokens at the start"].tolist() == [size, size, len(text), len(text)]
    assert bars.traces[1]["x"] == ways["tokens left"].tolist()
    assert np.allclose(ways["characters per token"], len(text) / ways["tokens left"])
    assert ways["way"].tolist()[1] == "bytes, no splitting" and "memorised" not in page.caption[-1].value
    crossing = int(ways["tokens across a word boundary"].iloc[1])
    assert f"Without splitting, {crossing} of the tokens learned from bytes cross a word" in said(page)
    chosen(page, "bpe_part", "tiktoken")
    told = said(page)
    assert crossing and (f"agree in all {left} tokens" in told) == bytewise
    assert ("always starts from the 256 bytes" in told) == (not bytewise)


def test_why_pieces_of_words_is_answered_from_the_text_that_is_shown(monkeypatch):
    """The answer and its table, with all folds closed."""
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)
    text, own = SHORT, watch(SHORT, 6).tokenizer
    page = with_text(text, bpe_new="6", measure="false")
    left, listed = merged(text, 6, "byte", "words"), text.split()
    times, new = len(text) / left, "caféabc"  # a word that is not there: "café" and "abc" as one
    pieces = len(own.encode(" " + new))
    assert not lacking(
        said(page),
        f"**{len(text)} characters become {left} tokens**: {times:.1f} times shorter, so attention compares",
        f"compares **{times**2:.1f} times fewer pairs**",
        f"A word-level vocabulary has no entry for a new word such as “{new}”; BPE spells it in",
        f"spells it in **{pieces} pieces**.",
    )
    wanted = {
        "characters": (f"{len(text)}", f"{1 + len(new)} tokens"),
        "BPE": (f"{left}", f"{pieces} tokens"),
        "whole words": (f"{len(listed)}", "impossible"),
    }
    assert {name: tuple(row) for name, row in page.table[0].value.iterrows()} == wanted
    measured = said(with_text(text, bpe_new="6", measure="true"))
    assert f"**{len(set(text))}** characters; **256 bytes + 6 merges** of BPE;" in measured
    assert f"**{len(set(listed))}** whole words" in measured
    chosen(page, "bpe_new", 1)  # a control of the main part changes the answer
    assert f"become {merged(text, 1, 'byte', 'words')} tokens" in said(page)


def test_a_tokenizer_that_is_not_ours_is_found_out(monkeypatch):
    """tiktoken is asked, not ourselves a second time."""
    broken = SimpleNamespace(encode_ordinary=lambda text: [*text.encode()[:3], 7, 7])
    assert "The same ids" in said(with_text("abcd efgi", bpe_part="tiktoken", bpe_new="1"))
    monkeypatch.setattr(BpeTokenizer, "as_tiktoken", lambda self: broken)
    page = with_text("abcd efgh", bpe_part="tiktoken", bpe_new="1")
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


LONG_WORD = pytest.param("ab" * 50_000, id="one word", marks=pytest.mark.exhaustive)


@pytest.mark.parametrize("text", [*(pytest.param(text, id=name) for name, text in ODD.items()), LONG_WORD])
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
    told = "at most 1,000,000 are allowed here. Shorten it by 5."
    assert told in said(with_text("a" * (limit + 5)))
    monkeypatch.setenv(profiles.VARIABLE, "hosted")
    assert "at most 200,000 are allowed here" in said(with_text("a" * 200_001))
    monkeypatch.setattr(bpe_view, "affordable", lambda text, level, split, limit: 100)
    page = with_text("ab" * 1000, bpe_split="none", bpe_new="3")
    assert "merges are learned from its first 100 of 2,000 characters" in said(page)


def test_a_long_text_is_not_cut_anew_in_a_rerun(monkeypatch: pytest.MonkeyPatch) -> None:
    page = opened(PAGE, bpe_from="python", bpe_new="3")
    cut: list[Any] = []
    monkeypatch.setattr(bpe_view, "affordable", lambda *text: cut.append(text) or 100)
    page.run()
    assert not cut


def test_more_merges_of_a_text_come_from_what_was_learned_before(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[int] = []

    def noted(text: str, new_tokens: int, **how: Any) -> Any:
        learned.append(new_tokens)
        return learning(text, new_tokens, **how)

    monkeypatch.setattr(watching, "apart", noted)
    text = "a text that nobody else has learned from: " * 30
    for new_tokens in (3, 20, 101, 499, 600):
        assert bpe_view.learned(text, new_tokens, "byte", "words")
        seen = watching.watching(text, text, new_tokens, "byte", "words").seen
        assert seen == watch(text, new_tokens)
    assert learned == [100, 500, 2000]


@pytest.mark.parametrize(("step", "token", "kept"), [("7", "260", "7"), ("100000", "100000", "32")])
def test_a_link_says_where_the_player_is(step, token, kept):
    page = opened(PAGE, bpe_step=step, bpe_token=token)
    assert in_address(page, "bpe_step") == kept
    assert in_address(page, "bpe_token") == (token if step == kept else None)


def test_frames_are_small_and_can_be_played():
    text = (MERGES["Languages"] + MERGES["Code"]) * 5
    passage = text[: bpe_view.SHOWN]
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


FAMILY = "👩\u200d👩\u200d👧"


@for_each(
    "token, shown",
    [
        ("é".encode()[:1], "⟨C3⟩"),
        ("€".encode()[1:], "⟨82 AC⟩"),
        (b"a\xff", "a⟨FF⟩"),
        (b" \n\t", "␣⏎⇥"),
        (b"\0", "␀"),
        ("\u202e".encode(), "U+202E"),
        (FAMILY.encode(), FAMILY),
        (FAMILY[:2].encode(), "👩U+200D"),
        ("\ud83d".encode("utf-8", "surrogatepass"), "U+D83D"),
        (b"x" * 5000, "x" * LONGEST + "… (5,000 characters)"),
    ],
)
def test_a_part_of_a_character_is_shown_as_bytes(token: bytes, shown: str) -> None:
    assert show_bytes(token) == shown


def test_no_part_of_a_text_is_shown_as_a_replacement_character():
    data = "é€👩\u200d👧".encode()
    cuts = [data[i:j] for i in range(len(data)) for j in range(i + 1, len(data) + 1)]
    for token in (*(bytes([b]) for b in range(256)), *cuts):
        assert show_bytes(token) and "\ufffd" not in show_bytes(token)
        assert not any("\ufffd" in piece for piece, _ in token_words.parts(token))


COMPARE, COST = "compare", "cost"


@cache
def stand_in(name: str) -> PublishedTokenizer:
    """An encoding that needs no network: 256 bytes, a few merges and one special token."""
    ranks = dict(bpe.train("the theory of the thing " * 20, 270).ranks)
    special = {END_OF_TEXT: 300}
    encoding = tiktoken.Encoding(name, pat_str=bpe.WORDS, mergeable_ranks=ranks, special_tokens=special)
    return PublishedTokenizer(name, encoding)


@pytest.fixture(autouse=True, scope="module")
def forgotten() -> Iterator[None]:
    """What other modules have read, before and after: their encodings are the published ones."""
    cutting._failures.clear()
    memo.clear()
    yield
    cutting._failures.clear()
    memo.clear()


@pytest.fixture(autouse=True)
def _encodings(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """All encodings are stand-ins; one whose name is put into what is returned cannot be had."""
    unreachable: dict[str, str] = {}

    def load_all(names: Any, seconds: float = 0) -> tuple[dict[str, PublishedTokenizer], dict[str, str]]:
        lost = {name: unreachable[name] for name in names if name in unreachable}
        return {name: stand_in(name) for name in names if name not in lost}, lost

    monkeypatch.setattr(published, "load_all", load_all)
    monkeypatch.setattr(published, "here", lambda name: name not in unreachable)
    return unreachable


def compared(view: str = COMPARE, text: str | None = None, **query: str) -> AppTest:
    asked = {"tokens_view": view, "measure": "true", "compare_corpus": "python", "cost_corpus": "python"}
    return opened(PAGE, {} if text is None else {text_box.COMPARED: text}, **asked | query)


def test_gpt2_merges_a_word_otherwise_where_a_blank_stands_before_it() -> None:
    page = compared(hand="true")
    assert "“`unbelievably`” becomes **12 tokens** by 0 merges" in said(page), "the stand-in has not met it"
    page.text_input(key="merged_word").set_value("theory!").run()
    for word, table in zip(("theory", " theory"), page.table[-2:], strict=True):
        pieces = [show_bytes(stand_in("gpt2").decode_bytes([i])) for i in stand_in("gpt2").encode(word)]
        assert table.value["pieces by then"].tolist()[-1] == " ".join(f"`{piece}`" for piece in pieces)
        assert f"becomes **{len(pieces)} token" in said(page)
        assert len(pieces) + len(table.value) == len(word), "each merge makes one of two"
    page.text_input(key="merged_word").set_value("42").run()
    assert "Type a word" in said(page)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the chips are made of: (text, rows, ...) of each time that they are drawn."""
    found: list[Any] = []
    real = token_chips.payload
    monkeypatch.setattr(token_chips, "payload", lambda *rest: found.append(rest) or real(*rest))
    return found


def counted(page: AppTest) -> dict[str, str]:
    """Tokens of each tokenizer, from the table."""
    table = page.table[0].value
    return dict(zip(table.index, table["tokens"], strict=True))


def test_every_tokenizer_counts_as_it_cuts(drawn: dict[str, Any], sent: list[Any]) -> None:
    text = "the theory of théo\nthe thing ☃"
    page = compared(text=text)
    chosen(page, "compare_show", list(cutting.TOKENIZERS))
    manual = state.corpus("python").text
    learned, words = bpe.train(manual, 512), WordTokenizer.train(manual)
    listed = words.encode(text)
    size, unknown = len(text.encode()), sum(c not in set(manual) for c in text)
    wanted = {
        "Characters": (len(set(manual)), len(text), unknown),
        "Bytes": (256, size, 0),
        "Words": (words.vocab_size, len(listed), listed.count(-1)),
        "BPE 300": (300, len(bpe.train(manual, 300).encode(text)), 0),
        "BPE 512": (512, len(learned.encode(text)), 0),
        "gpt2": (301, len(stand_in("gpt2").encode(text)), 0),
    }
    table, told = page.table[0].value, said(page)
    assert [*wanted] == [name for name in table.index if name in wanted]
    for name, (entries, tokens, lost) in wanted.items():
        each = [f"{len(text) / tokens:.2f}", f"{size / tokens:.2f}"]
        assert table.loc[name].tolist() == [f"{entries:,}", f"{tokens:,}", *each, f"{lost:,}"], name
    assert unknown and table.loc["Words", "unknown"] != "0"
    bars = drawn["compare_bars"].traces[0]
    assert bars["y"] == list(table.index) and bars["text"] == table["tokens"].tolist()
    assert np.allclose(bars["customdata"], table["chars each"].astype(float), atol=0.006)
    rows = {row.name: row for row in sent[-1][1]}
    assert rows["BPE 512"].cut.ids.tolist() == learned.encode(text)
    assert "some word" in rows["Words"].note and "outside the vocabulary" in rows["Characters"].note
    counts = {name: int(count) for name, count in table["tokens"][table["unknown"] == "0"].items()}
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    times = counts[most] / counts[least]
    assert most == "Bytes"
    assert not lacking(
        told,
        f"{len(text)} characters, {size} bytes: how many tokens?",
        f"**{least} needs {counts[least]} tokens, Bytes {size}: {times:.1f} times as many**",
        f"{times**2:.1f} times the work for attention",
        f"a vocabulary of {table.loc[least, 'entries']} entries instead of 256.",
    )
    lines, place = drawn["compare_lines"], list(table.index).index("BPE 512")
    shares = [len(learned.encode(line)) / len(line) for line in text.split("\n")]
    assert [row[place] for row in np.array(lines.traces[0]["z"])] == pytest.approx(shares)
    assert lines.table is not None and lines.table["characters"] == [18, 11]
    assert lines.table["Words"] == [4, 3] and lines.table["line"] == text.split("\n")
    chosen(page, "compare_show", [])
    assert "Choose at least one tokenizer" in said(page)


@for_each("text", [*ODD.values(), ""], ids=[*ODD, "empty"], fast=["", ODD["half a character"], ODD["markup"]])
def test_no_text_breaks_a_view(text: str) -> None:
    page = compared(text=text, compare_corpus="yours", cost_corpus="yours")
    assert "\ud83d" not in text or "half character" in said(page)
    assert not text.strip() or counted(page)["Characters"] == f"{len(text):,}"
    assert text or "empty" in said(page)
    for key, value in (("compare_part", "ids"), ("tokens_view", COST)):
        chosen(page, key, value)
        assert not page.error, value
        assert text or "empty" in said(page)


def test_a_text_beyond_the_limit_is_refused_with_the_limit_named_and_kept() -> None:
    limit = state.profile().max_watched
    page = compared(text="ab " * (limit // 3 + 10))
    assert f"at most {limit:,} are allowed" in page.error[0].value
    assert (
        len(page.text_area(key=text_box.COMPARED).value) > limit
        and text_box.COMPARED not in page.query_params
    )


def test_a_link_to_another_text_replaces_the_one_of_the_session_and_typing_replaces_that() -> None:
    page = compared(text="a text")
    assert in_address(page, text_box.COMPARED) == "a text"
    assert not page.run().text_area(key=text_box.COMPARED).proto.set_value, (
        "drawn again, it overwrites no typing"
    )
    page.query_params[text_box.COMPARED] = "To be or not to bé"
    assert counted(page.run())["Characters"] == "18"
    page.text_area(key=text_box.COMPARED).input("typed").run()
    assert counted(page)["Characters"] == "5"


def test_without_a_network_a_line_says_so_and_the_rest_is_shown(_encodings: dict[str, str]) -> None:
    memo.clear()
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


@cache
def parameters(entries: int) -> int:
    config = ModelConfig(vocab_size=entries, d_model=128, n_layers=2, n_heads=2, position="rope")
    return sum(p.numel() for p in build(config, device="meta").parameters())


def test_what_a_vocabulary_costs(drawn: dict[str, Any]) -> None:
    page = compared(COST, cost_words="100", cost_width="128", cost_layers="2")
    table, manual = page.table[0].value, state.corpus("python").text
    part = manual[: number(table.loc["characters", "T"])]
    counted = {
        "characters": (len(set(manual)), len(part)),
        "bytes": (256, len(part.encode())),
        "BPE 512": (512, len(bpe.train(manual, 512).encode(part))),
        "gpt2": (301, len(stand_in("gpt2").encode(part))),
    }
    for name, (entries, tokens) in counted.items():
        own, tied = entries * 128, parameters(entries)
        wanted = [f"{n:,}" for n in (entries, tokens, own, tied, tied + own)]
        assert table.loc[name].tolist() == [*wanted, f"{own / tied:.1%}", f"{tokens**2:,}"], name
    (v, t), (w, u) = counted["characters"], counted["gpt2"]
    end = int(0.9 * len(manual))
    listed = WordTokenizer.train(manual[:end])
    new = listed.encode(manual[end:])
    assert not lacking(
        said(page),
        f"{t / u:.1f} times fewer tokens, {t**2 / u**2:.1f} times less attention**",
        f"an embedding {w / v:,.1f} times as large",
        f"{listed.vocab_size:,} whole words would still miss **{new.count(-1) / len(new):.1%}** of the words in",
        f"At width 128 the embedding is {w * 128 / parameters(w):.0%} of the tied model with gpt2",
    )
    numbers, ours, *diamonds = drawn["cost_trade"].traces
    assert np.allclose(numbers["y"], 128 * np.array(numbers["x"])) and numbers["yaxis"] == "y2"
    assert ours["y"][ours["x"].index(512)] == counted["BPE 512"][1]
    assert {d["text"][0]: (d["x"][0], d["y"][0]) for d in diamonds}["gpt2"] == (w, u)
    axis = drawn["cost_trade"].layout["xaxis"]
    for at, written in zip(axis["tickvals"], axis["ticktext"], strict=True):
        assert number(written.replace("k", "000")) == (at if at < 10_000 else at - at % 1000)
    curve, *marks = drawn["cost_scores"].traces
    assert curve["y"][curve["x"].index(512)] == counted["BPE 512"][1] ** 2 and curve["x"][0] == 256
    squares = {name: number(table.loc[name, "T"]) ** 2 for name in ("characters", "bytes", *PUBLISHED)}
    assert {m["text"][0]: m["y"][0] for m in marks} == squares
    by_hand, each = compared(COST, cost_words="100", hand="true").table[-1].value, t / u
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


def test_what_comes_back_and_what_has_no_id(sent: list[Any]) -> None:
    text = "To be or not to b☃"
    page = compared(text=text, compare_part="ids")
    manual = state.corpus("python").text
    rows = {row.name: row for row in sent[-1][1]}
    assert list(rows) == ["Characters", "Words", "BPE 512", *PUBLISHED] and sent[-1][3]  # with their ids
    alphabet = sorted(set(manual))
    assert rows["Characters"].cut.ids.tolist() == [*(alphabet.index(c) for c in text[:-1]), -1]
    assert rows["Characters"].note == "back: “To be or not to b”. No id for “☃”"
    assert rows["Characters"].facts == f"18 ids, 1 unknown\n{len(alphabet):,} entries"
    assert rows["BPE 512"].cut.ids.tolist() == bpe.train(manual, 512).encode(text)
    assert rows["BPE 512"].note == f"back: “{text}”, character for character"
    last = [*PUBLISHED][-1]
    assert not lacking(
        said(page),
        f"**“☃” is not one of the {len(alphabet)} known characters, so it has no id**",
        f"**{last}'s {len(stand_in(last).encode(text))} ids decode to this text**",
    )
    glitch = next(t.value for t in page.table if "tokens" in t.value.columns)
    assert glitch.iloc[0]["tokens"] == str(len(stand_in("gpt2").encode(" SolidGoldMagikarp")))


def test_a_long_text_is_encoded_in_part_and_what_ours_restore_is_counted() -> None:
    page = compared(text="the " * 100, compare_part="ids")
    restored = f"**{2 + len(PUBLISHED)} of {3 + len(PUBLISHED)} tokenizers restore the text exactly.**"
    assert not lacking(said(page), "Only the first 32 of 400 characters are encoded", restored)
    chosen(page, "compare_show", ["characters", "bytes"])
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
