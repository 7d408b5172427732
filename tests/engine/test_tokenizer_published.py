"""Published encodings."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from pathlib import Path
from unittest import mock

import pytest
import tiktoken

from engine.errors import TokenizerError
from studies.tokens import published
from tests.engine.cases import for_each

LINE = "First Citizen:\nBefore we proceed any further, hear me speak.\n"
TEXTS = (
    "", LINE, "भाषा मॉडल", "语言模型", "👩‍👩‍👧‍👦🇩🇪", "مرحبا", "e\u0301\u0302", "\0\0", "a" * 100_000,
    " " * 10_000 + "a", published.END_OF_TEXT * 2,
)  # fmt: skip


@pytest.fixture(params=["gpt2", "cl100k_base"])
def encoding(request: pytest.FixtureRequest) -> published.PublishedTokenizer:
    return have(request.param)


def have(name: str) -> published.PublishedTokenizer:
    try:
        return published.load(name)
    except TokenizerError as error:
        pytest.skip(f"{name} is not in $TIKTOKEN_CACHE_DIR: {error}")


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "_loads", {})


def small(name: str) -> published.PublishedTokenizer:
    ranks = {bytes([b]): b for b in range(256)}
    encoding = tiktoken.Encoding(name, pat_str=r"(?s:.)", mergeable_ranks=ranks, special_tokens={})
    return published.PublishedTokenizer(name, encoding)


def test_the_lectures_line_is_61_characters_and_15_tokens() -> None:
    gpt2 = have("gpt2")
    ids = gpt2.encode(LINE)
    assert (len(LINE), len(ids)) == (61, 15)
    assert ids == [5962, 22307, 25, 198, 8421, 356, 5120, 597, 2252, 11, 3285, 502, 2740, 13, 198]
    assert len(gpt2.encode(LINE + "\n")) == 15  # 62 characters: the two line breaks are one token


@for_each("text", TEXTS, ids=lambda text: repr(text[:8]))
def test_it_encodes_as_tiktoken_does_and_back(encoding: published.PublishedTokenizer, text: str) -> None:
    ids = encoding.encode(text)
    assert ids == tiktoken.get_encoding(encoding.name).encode(text, disallowed_special=())
    assert encoding.decode_bytes(ids).decode("utf-8") == text


def test_a_special_token_never_comes_from_text(encoding: published.PublishedTokenizer) -> None:
    assert encoding.vocab_size == {"gpt2": 50_257, "cl100k_base": 100_277}[encoding.name]
    real = encoding.special
    assert real[published.END_OF_TEXT] == {"gpt2": 50_256, "cl100k_base": 100_257}[encoding.name]
    for text in real:
        assert len(encoding.encode(text)) > 1
        assert not set(encoding.encode(f"before {text} after")) & set(real.values())
    assert encoding.decode_bytes([real[published.END_OF_TEXT]]) == published.END_OF_TEXT.encode()


def test_the_merges_of_a_word_end_with_its_tokens(encoding: published.PublishedTokenizer) -> None:
    for word in ("unbelievably", " unbelievably", "hello", " hello", " Straße", "x", "Переводчик"):
        pieces = tuple(bytes([byte]) for byte in word.encode())
        for token, after in encoding.merges(word.encode()):
            assert len(after) == len(pieces) - 1 and b"".join(after) == word.encode()
            assert encoding.decode_bytes([token]) in after
            pieces = after
        assert pieces == tuple(encoding.decode_bytes([token]) for token in encoding.encode(word)), word


def test_half_characters_are_read_as_replacement_characters(encoding: published.PublishedTokenizer) -> None:
    assert encoding.encode("a\ud800b") == encoding.encode("a\ufffdb")
    assert encoding.encode("\ud83d\ude00") == encoding.encode("😀")
    for bad in (-1, encoding.vocab_size, 10**12):
        with pytest.raises(TokenizerError, match="no token"):
            encoding.decode_bytes([bad])


@for_each("text, expected", [
    ("é😀", ("é😀", 0)), ("\udc00\ud800", ("\ufffd\ufffd", 2)), ("\ud83d\ude00\ud83d", ("😀\ufffd", 1)),
    ("�", ("�", 0)), ("", ("", 0)),
])  # fmt: skip
def test_whole_characters(text: str, expected: tuple[str, int]) -> None:
    assert published.whole_characters(text) == expected


def test_where_the_pattern_gives_up_a_sentence_says_so() -> None:
    class Panic(BaseException):
        """As pyo3's, which is no Exception."""

    broken = mock.Mock()
    broken.encode_ordinary.side_effect = [Panic(), KeyboardInterrupt()]
    tokenizer = published.PublishedTokenizer("gpt2", broken)
    with pytest.raises(TokenizerError, match="gave up"):
        tokenizer.encode("x")
    with pytest.raises(KeyboardInterrupt):
        tokenizer.encode("x")


def test_without_a_network_the_error_says_what_to_do_and_the_next_call_tries_again(
    nothing_loaded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = mock.Mock(side_effect=[ConnectionError("no route"), ValueError("Hash mismatch"), small("gpt2")])
    monkeypatch.setattr(published, "_read", read)
    for said in (r"ConnectionError.*TIKTOKEN_CACHE_DIR", "ValueError"):
        with pytest.raises(TokenizerError, match=said):
            published.load("gpt2")
        assert not published.ready("gpt2")
    assert published.load("gpt2").name == "gpt2"
    assert published.ready("gpt2")
    assert published.load("gpt2") is published.load("gpt2") and read.call_count == 3


def test_a_download_that_hangs_holds_up_neither_the_caller_nor_the_others(
    nothing_loaded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrive, begun = threading.Event(), []

    def read(name: str) -> published.PublishedTokenizer:
        begun.append(name)
        if name == "o200k_base":
            assert arrive.wait(60)
        return small(name)

    monkeypatch.setattr(published, "_read", read)
    found, problems = published.load_all(published.PUBLISHED, seconds=1.0)
    assert list(found) == ["gpt2", "cl100k_base"]
    assert list(problems) == ["o200k_base"] and "the download goes on" in problems["o200k_base"]
    arrive.set()
    assert published.load("o200k_base", 60).name == "o200k_base"
    assert begun.count("o200k_base") == 1


def test_the_seconds_are_for_all_encodings_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, given = iter([100.0, 101.0, 107.0]), []
    monkeypatch.setattr(published, "_begin", lambda name: None)
    monkeypatch.setattr(published, "load", lambda name, seconds: given.append(seconds))
    monkeypatch.setattr(published.time, "monotonic", lambda: next(clock))
    published.load_all(["gpt2", "o200k_base"], seconds=5.0)
    monkeypatch.undo()
    assert given == [4.0, 0.0]


def test_what_lies_in_tiktokens_cache_can_be_had_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of the files are those that tiktoken itself asks for."""
    asked: list[str] = []

    def read(address: str, expected_hash: str | None = None) -> bytes:
        asked.append(address)
        raise OSError("no network")

    monkeypatch.setattr(published, "_loads", {})
    monkeypatch.setattr("tiktoken.load.read_file_cached", read)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for name, files in published.PUBLISHED.items():
        asked.clear()
        for place, file in enumerate(files):
            assert not published.here(name)
            with contextlib.suppress(TokenizerError):
                published.load(name)
            address = f"https://{published.HOST}/{file}"
            assert place or address in asked, "tiktoken asks for another file"
            (tmp_path / hashlib.sha1(address.encode()).hexdigest()).write_bytes(b"x")
        assert published.here(name)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # switched off
    assert not published.here("gpt2")
