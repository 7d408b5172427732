"""The Tokens page's views that compare tokenizers: every option, hostile links and texts, and a machine
without a network.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiktoken
from streamlit.testing.v1 import AppTest

from engine.measure.vocabulary import cut_bytes, cut_tokens, cut_words
from engine.tokenizers import bpe, published
from engine.tokenizers.published import END_OF_TEXT, PUBLISHED, PublishedTokenizer
from engine.tokenizers.words import WordTokenizer
from pages.input.tokens import chips as token_chips
from pages.input.tokens import compare as tokens_compare
from pages.input.tokens import cost as tokens_cost
from pages.input.tokens import figures, shared
from tests.pages.stage import open_page
from ui import state
from ui.text import tokens as token_words

PAGE = str(Path(__file__).parents[3] / "pages" / "input" / "tokens" / "page.py")
COMPARE, COST = "Compare tokenizers", "What vocabulary size costs"
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
    for cache in (shared._failures, tokens_compare._cut, tokens_cost._measure):
        cache.clear()
    yield unreachable
    for cache in (shared._failures, tokens_compare._cut, tokens_cost._measure):
        cache.clear()


def opened(view: str = COMPARE, text: str | None = None, **query: str) -> AppTest:
    page = AppTest.from_file(PAGE, default_timeout=60)
    if text is not None:
        page.session_state[shared.TEXT] = text
    return open_page(
        page,
        **{
            "tokens_view": view,
            "compare_corpus": shared.SOURCES["python"],
            "cost_corpus": shared.SOURCES["python"],
            **query,
        },
    )


def words_of(page: AppTest) -> str:
    return "\n".join(
        element.value for kind in (page.markdown, page.caption, page.info, page.error) for element in kind
    )


def counted(page: AppTest) -> dict[str, str]:
    """Tokens of each tokenizer, from the table."""
    table = page.table[0].value
    return dict(zip(table.index, table["tokens"], strict=True))


@pytest.mark.parametrize("example", list(shared.EXAMPLES))
def test_every_example_says_what_to_notice_and_is_kept_in_the_link(example: str) -> None:
    page = opened()
    page.button_group(key=shared.EXAMPLE).set_value(example).run()
    assert not page.exception
    text, notice = shared.EXAMPLES[example]
    assert page.text_area(key=shared.TEXT).value == text and notice in words_of(page)
    assert page.query_params.get(shared.TEXT) in (([text], text) if text != shared.LINE else (None,))
    assert counted(page)["Characters"] == f"{len(text):,}"


def test_every_tokenizer_counts_as_the_engine_does() -> None:
    page = opened(text="the theory of everything")
    page.button_group(key="compare_show").set_value(list(tokens_compare.TOKENIZERS)).run()
    found = counted(page)
    assert list(found) == [
        "Characters",
        "Bytes",
        "Words",
        "BPE 300",
        "BPE 512",
        "BPE 1,024",
        "BPE 4,096",
        *PUBLISHED,
    ]
    learned = bpe.train(state.corpus("python").text, 512)
    assert found["BPE 512"] == str(len(learned.encode("the theory of everything")))
    assert (found["Bytes"], found["Words"], found["gpt2"]) == (
        "24",
        "4",
        str(len(stand_in("gpt2").encode("the theory of everything"))),
    )
    page.button_group(key="compare_show").set_value([]).run()
    assert not page.exception and "Choose at least one tokenizer" in words_of(page)


@pytest.mark.parametrize("corpus", list(shared.SOURCES))
@pytest.mark.parametrize("view", [COMPARE, COST])
def test_every_source(view: str, corpus: str, shakespeare: object) -> None:
    page = opened(
        view,
        "my own words, my own words",
        compare_corpus=shared.SOURCES[corpus],
        cost_corpus=shared.SOURCES[corpus],
    )
    assert not page.error
    if corpus == "yours" and view == COMPARE:
        assert "no pair was left to merge" not in words_of(
            page
        )  # that is said beside the tokens, in the browser
        assert any(name.startswith("BPE 2") for name in counted(page))


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
@pytest.mark.parametrize("view", [COMPARE, COST])
def test_no_text_breaks_a_view(view: str, text: str) -> None:
    page = opened(view, text, compare_corpus=shared.SOURCES["yours"], cost_corpus=shared.SOURCES["yours"])
    assert not page.error
    if view == COMPARE and text.strip():
        assert counted(page)["Characters"] == f"{len(text):,}"
    if "\ud800" in text:
        assert "half character" in words_of(page)


@pytest.mark.parametrize("view", [COMPARE, COST])
def test_an_empty_box(view: str) -> None:
    page = opened(view, "", compare_corpus=shared.SOURCES["yours"], cost_corpus=shared.SOURCES["yours"])
    assert not page.error and "empty" in words_of(page)


def test_a_text_beyond_the_limit_is_refused_with_the_limit_named_and_kept() -> None:
    limit = state.profile().max_watched
    page = opened(text="ab " * (limit // 3 + 10))
    assert f"at most {limit:,} are allowed" in page.error[0].value
    assert len(page.text_area(key=shared.TEXT).value) > limit and shared.TEXT not in page.query_params


@pytest.mark.parametrize(
    "query",
    [
        {"compare_show": "nonsense"},
        {"compare_corpus": "../etc/passwd"},
        {"compare_text": "\0"},
        {"compare_text": ""},
        {"compare_text": "x" * 20_000},
        {"compare_example": "nonsense"},
        {"tokens_view": "nonsense"},
    ],
    ids=str,
)
def test_links_of_strangers_comparing(query: dict[str, str]) -> None:
    assert not opened(**query).error


@pytest.mark.parametrize(
    "query",
    [
        {"cost_words": "-5"},
        {"cost_width": "1000000000"},
        {"cost_width": "NaN"},
        {"cost_layers": "0"},
        {"cost_corpus": "nonsense"},
        {"cost_width": "9" * 400},
    ],
    ids=str,
)
def test_links_of_strangers_costing(query: dict[str, str]) -> None:
    assert not opened(COST, **query).error


def test_a_link_holds_the_text() -> None:
    page = opened(compare_text="héllo €")
    assert page.text_area(key=shared.TEXT).value == "héllo €" and counted(page)["Characters"] == "7"


def test_without_a_network_a_line_says_so_and_the_rest_is_shown(_encodings: dict[str, str]) -> None:
    _encodings["o200k_base"] = "it could not be loaded"
    page = opened()
    assert (
        "it could not be loaded" in words_of(page)
        and set(counted(page)) >= {"gpt2", "cl100k_base"}
        and "o200k_base" not in counted(page)
    )
    _encodings.clear()
    page.run()
    assert "o200k_base" not in counted(page)  # it is not asked for again at every click
    page.button(key="compare_retry").click().run()
    assert "o200k_base" in counted(page) and "could not be loaded" not in words_of(page)


@pytest.mark.parametrize("view", [COMPARE, COST])
def test_without_any_published_encoding_our_own_serve(view: str, _encodings: dict[str, str]) -> None:
    _encodings.update(dict.fromkeys(PUBLISHED, "it could not be loaded"))
    page = opened(view)
    assert not page.error and "it could not be loaded" in words_of(page) and len(page.table[0].value) >= 3


def test_a_typed_special_token_is_ordinary_text() -> None:
    table = opened(text=END_OF_TEXT).table[1].value
    ids = [int(i) for i in table.loc["gpt2", "its ids"].replace(",", " ").split()]
    assert len(ids) > 1 and 300 not in ids and table.loc["gpt2", "the real one"] == "300"


# What it costs ----------------------------------------------------------------------------------


def test_every_passage_width_and_depth() -> None:
    page = opened(COST)
    for words in tokens_cost.WORDS:
        page.button_group(key="cost_words").set_value([words]).run()
        assert not page.exception
        table = page.table[0].value
        lengths = [int(n.replace(",", "")) for n in table.loc["bytes":"BPE 8,192", "T"]]
        assert (
            lengths == sorted(lengths, reverse=True) and lengths[-1] > 0
        )  # a larger vocabulary never makes it longer
    for width, layers in ((64, 1), (8192, 96)):
        page.select_slider(key="cost_width").set_value(width)
        page.select_slider(key="cost_layers").set_value(layers).run()
        assert not page.exception
        assert page.table[0].value.loc["bytes", "V·d"] == f"{256 * width:,}"


def test_the_textbooks_figures_stand_beside_the_measured_ones() -> None:
    page = opened(COST)
    table = next(t.value for t in page.table if "characters, textbook" in t.value.columns)
    text = state.corpus("python").text
    thousand = " ".join(text.split()[:1000])
    measured = int(table.loc["T", "characters, measured"].replace(",", ""))
    assert measured > len(thousand) and text[:measured].split() == text.split()[:1000]
    assert table.loc["T", "characters, textbook"] == "about 5,000"
    assert (
        table.loc["V·d, d = 256", "gpt2, textbook"] == f"{50_257 * 256:,}"
        and table.loc["T²", "characters, measured"] == f"{measured**2:,}"
    )


def test_the_lectures_line_is_counted_where_gpt2_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        real = published.load("gpt2")
    except published.TokenizerError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(
        published,
        "load_all",
        lambda names, seconds=0: ({"gpt2": real}, {n: "not here" for n in names if n != "gpt2"}),
    )
    page = opened(COST)
    table = page.table[-1].value
    assert list(zip(table["characters"], table["gpt2 tokens"], strict=True)) == [
        ("61", "15"),
        ("62", "15"),
        ("62", "16"),
    ]
    assert "61 characters and 15 tokens" in words_of(page)


# The parts --------------------------------------------------------------------------------------


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
    assert (
        len(long["rows"][0]["labels"]) == token_chips.CHIPS
        and len(token_chips.shorter("x" * 9000)) <= token_chips.LONGEST
    )


def test_figures_hold_the_numbers() -> None:
    bars = figures.token_bars(["a", "b"], ["plain", "ours"], np.array([3, 1200]), np.array([1.0, 2.0]))
    assert list(bars.data[0].x) == [3, 1200] and list(bars.data[0].text) == ["3", "1,200"]
    table = figures.line_table(["x<b>"], ["gpt2"], np.array([[3]]), np.array([[1.5]]))
    assert table.data[0].zmax == 1.5 and "<b>" not in table.data[0].hovertext[0][0].replace("<br>", "")
    shades = figures.line_table(["x"], ["a", "b"], np.array([[1, 9]]), np.array([[0.5, 1.0]])).data[1]
    assert list(shades.text) == ["1", "9"] and list(shades.textfont.color) == [
        "var(--gf-seq6)",
        "var(--gf-seq0)",
    ], "a number is read on its own cell"
    curve = figures.cost_curve(
        np.array([256, 512]), np.array([9, 4]), [("gpt2", "published", 50_257, 2.0)], title="T", unit="tokens"
    )
    assert list(curve.data[0].y) == [9, 4] and list(curve.data[1].x) == [50_257]
