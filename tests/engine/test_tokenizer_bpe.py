"""BPE against a naive trainer and tiktoken, words and characters as tokens: on whatever text."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.data.tokenizers.bpe import BYTES, WORDS, BpeTokenizer, Level, Split, pieces, train
from engine.data.tokenizers.char import CharTokenizer
from engine.data.tokenizers.stored import tokenizer_from_dict
from engine.data.tokenizers.words import UNKNOWN, WordTokenizer, word_spans
from engine.errors import TokenizerError
from studies.tokens import bpe_watch
from studies.tokens.bpe_work import rounds
from tests.engine.cases import for_each
from tests.engine.naive import merge_everywhere

TEXTS = {
    "english": "She sells sea shells by the sea shore; the shells she sells are sea shells, I'm sure.\n" * 3,
    "code": "for i in range(10):\n    if i % 2 == 0:\n        print(i, i ** 2)\n" * 3,
    "hindi": "नमस्ते दुनिया, यह एक छोटा सा वाक्य है। यह दुनिया बड़ी है।",
    "chinese": "那只猫坐在垫子上。那只狗坐在猫旁边。猫不喜欢狗。",
    "emoji": "🎉🎉 party 👩‍👩‍👧 time 🎉 e\u0301e\u0301 \u202eright to left\u202c",
    "repeats": "aaaa aaaaa aaaaaaa abababab",
}


TRAINED = train("".join(TEXTS.values()), 400)
# halves of characters (lone surrogates) included: `st.text()` alone has none
ANY = st.text(st.characters(exclude_categories=()))
LEVELS: tuple[Level, ...] = ("byte", "char")
SPLITS: tuple[Split, ...] = ("words", "none")
# halves of characters included
WILD = st.one_of(st.sampled_from("ab \n"), st.characters(exclude_categories=()))


@given(ANY)
@settings(max_examples=200, deadline=None)
def test_any_text_comes_back(text: str) -> None:
    for split in ("words", "none"):
        own = BpeTokenizer("byte", split, TRAINED.base, TRAINED.merges)  # type: ignore[arg-type]
        assert own.decode(own.encode(text)) == text
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert TRAINED.as_tiktoken().encode_ordinary(text) == TRAINED.encode(text)


@given(st.binary())
@settings(max_examples=100, deadline=None)
def test_any_bytes_come_back(data: bytes) -> None:
    ids = [TRAINED.ranks[bytes([b])] for b in data]
    assert TRAINED.decode_bytes(ids) == data
    assert isinstance(TRAINED.decode(ids), str)


def test_a_long_word_is_learned_and_encoded_without_hanging() -> None:
    own = train("ab" * 20_000, 300, split="none")
    assert own.merges[0].count == 20_000 and own.merges[0].length == 20_000
    assert own.decode(own.encode("ab" * 20_000)) == "ab" * 20_000
    assert [rounds(size) for size in (10, 256, 512, 2048)] == [1, 1, 2, 4]


def test_bytes_are_in_gpt_2_s_order() -> None:
    printable = [b for b in range(256) if chr(b).isprintable() and b != 32]
    assert [bytes([b]) for b in (*printable, *(b for b in range(256) if b not in printable))] == BYTES


def test_characters_to_start_from() -> None:
    own = train("नमस्ते नमस्ते", 14, level="char")
    assert own.tokens[: len(own.base)] == [c.encode() for c in sorted(set("नमस्ते नमस्ते"))]
    assert own.unknown("नx") == ["x"]
    with pytest.raises(TokenizerError, match=r"lacks 'a' 'b' 'c' 'd' 'e' 'f' 'g' 'h'$"):
        own.encode("नabcdefghij")
    with pytest.raises(TokenizerError, match="tiktoken starts from bytes"):
        own.as_tiktoken()
    assert tokenizer_from_dict(json.loads(json.dumps(own.to_dict()))) == own


@for_each("values", [
    {},
    {"level": "byte", "split": "words", "merges": [[0, 999, 1, 1]]},
    {"level": "byte", "split": "words", "merges": [[0, 1]]},
    {"level": "char", "split": "words", "base": "aa", "merges": []},
    {"level": "byte", "split": "x", "merges": []},
    {"level": "byte", "split": "none", "merges": [[True, 1, 1, 1]]},
    {"level": "byte", "split": "none", "merges": [[0, 0, 1, 1], *([256 + i, 256 + i, 1, 1] for i in range(60))]},
])  # fmt: skip
def test_a_file_that_is_none_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(TokenizerError):
        tokenizer_from_dict({"kind": "bpe", **values})


def test_what_cannot_be_learned_from() -> None:
    for text, size, level in (("", 300, "byte"), ("abc", 255, "byte"), ("abc", 2, "char")):
        with pytest.raises(TokenizerError):
            train(text, size, level=level)  # type: ignore[arg-type]
    for text, more, level in (("", 5, "byte"), ("a", -1, "byte"), ("a", 1, "x")):
        with pytest.raises(TokenizerError):
            bpe_watch.watch(text, more, level=level)  # type: ignore[arg-type]
    for wrong in (TRAINED.vocab_size, -1):
        with pytest.raises(TokenizerError, match="ids must lie between"):
            TRAINED.decode([wrong])
    assert tokenizer_from_dict(TRAINED.to_dict()) == TRAINED


@for_each("level", LEVELS)
@for_each("split", SPLITS)
@for_each("text", TEXTS.values(), ids=TEXTS)
def test_runners_up_are_those_of_a_naive_count(text: str, split: Split, level: Level) -> None:
    seen = bpe_watch.watch(text, 60, level=level, split=split, keep=5)
    own = seen.tokenizer
    ids = {token: i for i, token in enumerate(own.base)}
    letters = (
        (lambda piece: (bytes([b]) for b in piece.encode())) if level == "byte" else partial(map, str.encode)
    )
    words = [[ids[letter] for letter in letters(piece)] for piece in pieces(text, split)]
    assert seen.length == sum(map(len, words))
    for merge, runners_up in zip(own.merges, seen.runners_up, strict=True):
        counts = Counter(pair for word in words for pair in pairwise(word))
        best = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:6]
        assert [(merge.pair, merge.count), *runners_up] == best
        words = [merge_everywhere(word, merge.pair, merge.token) for word in words]


def test_watching_changes_nothing() -> None:
    text = "".join(TEXTS.values())
    assert bpe_watch.watch(text, 200).tokenizer == train(text, 456)
    first = bpe_watch.watch(text, 150).first(100)
    assert first == bpe_watch.watch(text, 100) and len(first.lengths) == 101
    nothing = bpe_watch.watch(text, 0)
    assert nothing.tokenizer.merges == () and nothing.lengths.tolist() == [len(text.encode())]


@for_each("level", LEVELS)
@for_each("split", SPLITS)
@for_each("text", [*TEXTS.values(), "a" * 301, "\ud83d\ud83d x\x00\x00 \u202e\u05e9\u05dc\u05d5\u05dd\u202c"])
def test_borders_fall_as_they_did_in_the_training(text: str, split: Split, level: Level) -> None:
    seen = bpe_watch.watch(text, 300, level=level, split=split)
    shown = bpe_watch.replay(seen.tokenizer, text)
    assert shown.lengths(len(seen.tokenizer.merges)).tolist() == seen.lengths.tolist()
    assert (shown.fallen == bpe_watch.WORD_BORDER).sum() == len(pieces(text, split)) - 1


@given(st.text(WILD, max_size=60), st.text(WILD, min_size=1, max_size=80), st.sampled_from(LEVELS), st.sampled_from(SPLITS))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_the_last_borders_are_those_of_the_encoder(
    text: str, learned: str, level: Level, split: Split
) -> None:
    own = bpe_watch.watch(learned * 2, 40, level=level, split=split).tokenizer
    shown = bpe_watch.replay(own, text)
    tokens, start = [], 0
    symbols = [own.base[i] if i != bpe_watch.UNKNOWN else b"" for i in shown.symbols]
    for i, rank in enumerate([*shown.fallen.tolist(), bpe_watch.STAYS][: len(symbols)]):
        if rank < 0:
            tokens.append(b"".join(symbols[start : i + 1]))
            start = i + 1
    if own.unknown(text):
        assert bpe_watch.UNKNOWN in shown.symbols
        return
    assert b"".join(tokens) == text.encode("utf-8", "surrogatepass")
    if len({merge.token for merge in own.merges}) == len(own.merges):  # else a token was made in two ways
        assert [own.ranks[token] for token in tokens] == own.encode(text)


def test_only_what_fits_into_memory_is_learned_from() -> None:
    assert (
        bpe_watch.affordable("the cat " * 1000, "byte", "words", 100) == 8000
    )  # what comes again costs nothing
    for one, times, level, limit, most in (
        ("x", 8000, "byte", 100, 100), ("x", 20, "byte", 100, 20), ("猫", 8000, "byte", 300, 100),
        ("猫", 8000, "char", 300, 300),
    ):  # fmt: skip
        assert bpe_watch.affordable(one * times, level, "none", limit) == most
    text = "".join(TEXTS.values())
    for limit in (50, 200, 400):
        for split in SPLITS:
            taken = text[: bpe_watch.affordable(text, "byte", split, limit)]
            # a cut may make a new last word
            assert sum(len(piece.encode()) for piece in set(pieces(taken, split))) <= limit + 40


def test_without_splitting_tokens_cross_the_borders_of_words() -> None:
    ways = {(way.level, way.split): way for way in bpe_watch.four_ways(TEXTS["english"], 50)}
    assert len(ways) == 4 and ways["byte", "words"].crossing == ways["char", "words"].crossing == ()
    assert ways["byte", "none"].crossing and all(map(bpe_watch.crosses, ways["char", "none"].crossing))
    assert ways["byte", "none"].length <= ways["byte", "words"].length  # a border less to respect
    # no pair is left in a word
    assert ways["byte", "none"].vocab_size > ways["byte", "words"].vocab_size == 280
    hindi = {(way.level, way.split): way for way in bpe_watch.four_ways(TEXTS["hindi"], 20)}
    assert hindi["byte", "words"].start == len(TEXTS["hindi"].encode())
    assert hindi["char", "words"].start == len(TEXTS["hindi"])
    assert np.all([way.start > way.length for way in ways.values()])


@given(st.text(st.characters(max_codepoint=127) | st.sampled_from(" \n\x1c'st9"), max_size=30))
def test_ascii_is_cut_as_any_other_text_is(text: str) -> None:
    assert pieces(text, "words") == regex.findall(WORDS, text)


def cut_words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


def test_words_and_signs_without_blanks() -> None:
    assert cut_words("Don't go, we’re 3.5 km off!\n") == [
        "Don't", "go", ",", "we’re", "3", ".", "5", "km", "off", "!",
    ]  # fmt: skip
    assert cut_words("भाषा मॉडल") == ["भाषा", "मॉडल"]  # its vowel signs are marks, and belong to the word
    assert cut_words("语言模型。数字") == ["语言模型", "。", "数字"]
    assert cut_words(" \n\t\0") == ["\0"]
    tokenizer = WordTokenizer.train("b a b c b a")
    assert tokenizer.words == ("b", "a", "c") and tokenizer.vocab_size == 3
    assert tokenizer.encode("c  B\nb") == [2, UNKNOWN, 0]


@for_each("text", ["", " \n"])
def test_a_text_without_words_teaches_none(text: str) -> None:
    with pytest.raises(TokenizerError):
        WordTokenizer.train(text)


@given(st.text(min_size=1, max_size=200))
def test_there_and_back(text: str) -> None:
    tokenizer = CharTokenizer.train(text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode_array(text).tolist() == ids
    assert tokenizer.vocab_size == len(set(text)) and max(ids) < tokenizer.vocab_size
    assert list(tokenizer.alphabet) == sorted(set(text))
    assert tokenizer_from_dict(json.loads(json.dumps(tokenizer.to_dict()))) == tokenizer


@given(st.text(min_size=1, max_size=40), st.text(max_size=40))
def test_unknown_characters_are_named_once_in_order(known: str, text: str) -> None:
    tokenizer = CharTokenizer.train(known)
    unknown = tokenizer.unknown(text)
    assert unknown == list(dict.fromkeys(c for c in text if c not in known))
    for encode in (tokenizer.encode, tokenizer.encode_array):
        if unknown:
            with pytest.raises(TokenizerError) as caught:
                encode(text)
            assert repr(unknown[0]) in str(caught.value)
        else:
            encode(text)


@for_each("ids", [[2], [-1], [0, 1, 99]])
def test_ids_outside_the_vocabulary(ids: list[int]) -> None:
    with pytest.raises(TokenizerError, match="between 0 and 1"):
        CharTokenizer("ab").decode(ids)


@for_each("values", [
    {}, {"kind": "char"}, {"kind": "char", "alphabet": 3}, {"kind": "bytes"}, {"kind": ["char"]}, [],
    None, "char",
])  # fmt: skip
def test_what_is_not_a_tokenizer(values: object) -> None:
    with pytest.raises(TokenizerError):
        tokenizer_from_dict(values)  # type: ignore[arg-type]
