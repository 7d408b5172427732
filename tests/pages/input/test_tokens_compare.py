"""The Tokens page's views that compare tokenizers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiktoken
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig
from engine.measure.vocabulary import cut_bytes, cut_tokens, cut_words
from engine.model import build
from engine.tokenizers import bpe, published
from engine.tokenizers.published import END_OF_TEXT, PUBLISHED, PublishedTokenizer
from engine.tokenizers.words import WordTokenizer
from pages.input.tokens import chips as token_chips
from pages.input.tokens import cost as tokens_cost
from pages.input.tokens import cutting, roundtrip, shared
from tests.engine.cases import for_each
from tests.pages.helpers import opened, said
from ui import state
from ui.text import tokens as token_words

COMPARE, COST, TRIP = "compare", "cost", "roundtrip"
NASTY = {
    "null": "a\0b\0",
    "rtl": "مرحبا \u202eabc\u202c بالعالم",
    "marks": "e" + "\u0301" * 300,
    "private": "\ue000\uffff",
    "half": "x\ud800y",
    "one word": "a" * 100_000,
    "blanks": " " * 5000,
    "lines": "\n" * 300,
    "return": "a\r\nb\rc",
    "special": END_OF_TEXT * 3,
    "html": "<script>alert(1)</script> **x** $y$ `z` :material/x:",
}


def stand_in(name: str) -> PublishedTokenizer:
    """An encoding that needs no network: 256 bytes, a few merges and one special token."""
    ranks = dict(bpe.train("the theory of the thing " * 20, 270).ranks)
    return PublishedTokenizer(
        name,
        tiktoken.Encoding(name, pat_str=bpe.WORDS, mergeable_ranks=ranks, special_tokens={END_OF_TEXT: 300}),
    )


@pytest.fixture
def shakespeare_or_manual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is downloaded where Tiny Shakespeare does not lie: a part of the manual stands in."""
    real = state.corpus
    manual = replace(real("python"), text=real("python").text[:60_000])
    monkeypatch.setattr(state, "corpus", lambda name: manual)


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
    for cache in (shared._failures, cutting.cut_of, tokens_cost.measured, tokens_cost._new_words):
        cache.clear()
    yield unreachable
    for cache in (shared._failures, cutting.cut_of, tokens_cost.measured, tokens_cost._new_words):
        cache.clear()


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
    assert "some word" in rows["Words"].note and "alphabet does not have" in rows["Characters"].note
    counts = {
        name: int(table.loc[name, "tokens"]) for name in table.index if table.loc[name, "unknown"] == "0"
    }
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    times = counts[most] / counts[least]
    assert most == "Bytes"
    assert f"**{least} needs {counts[least]} tokens, Bytes {size}: {times:.1f} times as many**" in said(page)
    assert f"{times**2:.1f} times the work for attention" in said(page)
    assert f"a list of {table.loc[least, 'entries']} entries instead of 256." in said(page)
    lines = drawn["compare_lines"]
    place = list(table.index).index("BPE 512")
    assert [row[place] for row in np.array(lines.traces[0]["z"])] == pytest.approx(
        [len(learned.encode(line)) / len(line) for line in text.split("\n")]
    )
    assert lines.table is not None and lines.table["characters"] == [18, 11]
    assert lines.table["Words"] == [4, 3] and lines.table["line"] == text.split("\n")
    page.button_group(key="compare_show").set_value([]).run()
    assert not page.exception and "Choose at least one tokenizer" in said(page)


@for_each("text", [*NASTY.values(), ""], ids=[*NASTY, "empty"], fast=["", NASTY["half"], NASTY["html"]])
def test_no_text_breaks_a_view(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roundtrip, "SOURCE", "python")
    held = {shared.TEXT: text, roundtrip.TEXT: text}
    page = opened(
        "input/tokens", held, tokens_view=COMPARE, compare_corpus="yours", cost_corpus="yours", measure="true"
    )
    assert "\ud800" not in text or "half character" in said(page)
    assert not text.strip() or counted(page)["Characters"] == f"{len(text):,}"
    assert text or "empty" in said(page)
    for view in (COST, TRIP):
        page.get_by_key("tokens_view").set_value(view).run()
        assert not page.exception and not page.error, view
        assert text or view == TRIP or "empty" in said(page)


def test_a_text_beyond_the_limit_is_refused_with_the_limit_named_and_kept() -> None:
    limit = state.profile().max_watched
    page = compared(text="ab " * (limit // 3 + 10))
    assert f"at most {limit:,} are allowed" in page.error[0].value
    assert len(page.text_area(key=shared.TEXT).value) > limit and shared.TEXT not in page.query_params


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
    table = compared(TRIP).table[-1].value
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
    assert f"needs {listed.vocab_size:,} entries and still misses **{missed:.1%}**" in words
    model = ModelConfig(vocab_size=w, d_model=128, n_layers=2, n_heads=2, position="rope")
    share = w * 128 / sum(p.numel() for p in build(model, device="meta").parameters())
    assert f"At width 128 the embedding is {share:.0%} of the tied model with gpt2" in words
    numbers, ours, *diamonds = drawn["cost_trade"].traces
    assert np.allclose(numbers["y"], 128 * np.array(numbers["x"])) and numbers["yaxis"] == "y2"
    assert ours["y"][ours["x"].index(512)] == counted["BPE 512"][1]
    assert {d["text"][0]: (d["x"][0], d["y"][0]) for d in diamonds}["gpt2"] == (w, u)
    for field, exponent in (("tokens", 1), ("scores", 2)):
        curve, *marks = drawn[f"cost_{field}"].traces
        at = curve["x"].index(512)
        assert curve["y"][at] == counted["BPE 512"][1] ** exponent and curve["x"][0] == 256
        assert {m["text"][0]: m["y"][0] for m in marks} == {
            name: number(table.loc[name, "T"]) ** exponent for name in ("characters", "bytes", *PUBLISHED)
        }
    curve, *marks = drawn["cost_embedding"].traces
    assert curve["y"] == [128 * v for v in curve["x"]] and marks[0]["y"] == [128 * len(set(manual))]
    by_hand = compared(COST, cost_words="100", hand="true").table[-1].value
    each = t / u
    assert by_hand.loc["gpt2"].tolist() == [
        f"{each:.2f}",
        f"{2 * each:.2f}",
        f"{4**each:,.0f}",
        "2.00",
    ]
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
    assert f"has {measured / 1000:.2f} characters, and gpt2 makes {here / 1000:.2f} tokens of one." in said(
        page
    )
    assert table.loc["V·d, d = 256", "gpt2, rule of thumb"] == f"{50_257 * 256:,}"
    assert table.loc["T²", "characters, measured"] == f"{measured**2:,}"


def test_a_line_is_counted_in_three_surroundings_where_gpt2_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        real = published.load("gpt2")
    except published.TokenizerError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(
        published,
        "load_all",
        lambda names, seconds=0: ({"gpt2": real}, {n: "not here" for n in names if n != "gpt2"}),
    )
    page = compared(COST)
    table = page.table[-1].value
    assert list(zip(table["characters"], table["gpt2 tokens"], strict=True)) == [
        ("61", "15"),
        ("62", "15"),
        ("62", "16"),
    ]
    assert "61 characters and 15 tokens" in said(page)


def test_what_comes_back_and_what_has_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    real = token_chips.payload
    monkeypatch.setattr(token_chips, "payload", lambda *rest: sent.append(rest) or real(*rest))
    monkeypatch.setattr(roundtrip, "SOURCE", "python")
    page = compared(TRIP)
    manual = state.corpus("python").text
    learned = bpe.train(manual, 512)
    text, rows = "To be or not to b☃", {row.name: row for row in sent[-1][1]}
    assert list(rows) == ["Characters", "Words", "BPE", "gpt2"] and sent[-1][3]  # with their ids
    page.text_input(key=roundtrip.TEXT).input(text).run()
    rows = {row.name: row for row in sent[-1][1]}
    alphabet = sorted(set(manual))
    assert rows["Characters"].cut.ids.tolist() == [*(alphabet.index(c) for c in text[:-1]), -1]
    assert rows["Characters"].note == "back: “To be or not to b”. No id for “☃”"
    assert rows["BPE"].cut.ids.tolist() == learned.encode(text)
    assert rows["BPE"].note == f"back: “{text}”, letter for letter"
    words = said(page)
    assert f"**“☃” is none of the {len(alphabet)} known characters, so it has no id**" in words
    assert f"**its {len(learned.encode(text))} ids come back as the text**" in words
    glitch = next(t.value for t in page.table if "tokens" in t.value.columns)
    assert glitch.iloc[0]["tokens"] == str(len(stand_in("gpt2").encode(" SolidGoldMagikarp")))


def test_part_of_a_character_is_its_bytes_and_never_a_replacement_sign() -> None:
    for text in ("€", "भाषा", "👩‍👧", "é"):
        data = text.encode()
        for start in range(len(data)):
            for end in range(start + 1, len(data) + 1):
                shown = token_words.parts(data[start:end])
                assert not any("�" in piece for piece, _ in shown)
                try:
                    whole = data[start:end].decode()
                except UnicodeDecodeError:
                    assert any(is_bytes for _, is_bytes in shown)
                else:
                    assert shown == ((token_words.show_characters(whole), False),)
    assert token_words.parts("�".encode()) == (("�", False),)  # one that stands in the text is shown


def test_what_is_sent_holds_every_tokens_place_and_label() -> None:
    text = "the € 👍 of"
    rows = [
        token_chips.Row("a", "", cut_tokens(text, bpe.train("the the", 258))),
        token_chips.Row("b", "", cut_words(text, WordTokenizer.train("the of"))),
    ]
    sent = token_chips.payload(text, rows, "x")
    assert (
        "".join(label if isinstance(label, str) else "|" for label in sent["rows"][1]["labels"]) == "the€👍of"
    )
    assert sent["rows"][0]["labels"][0] == "the" and (("E2", True),) in sent["rows"][0]["labels"]
    long = token_chips.payload("x" * 9000, [token_chips.Row("b", "", cut_bytes("x" * 9000))], "x")
    assert len(long["rows"][0]["labels"]) == token_chips.CHIPS
    assert len(token_chips.shorter("x" * 9000)) <= token_chips.LONGEST
