"""Words as tokens: what is a word, what is unknown, and what is lost."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import tokenizers
from engine.errors import TokenizerError
from engine.tokenizers.char import CharTokenizer
from engine.tokenizers.words import UNKNOWN, WordTokenizer, places
from tests.engine.cases import for_each


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in places(text)]


def test_words_and_signs_without_blanks() -> None:
    assert words("Don't go, we’re 3.5 km off!\n") == [
        "Don't", "go", ",", "we’re", "3", ".", "5", "km", "off", "!",
    ]  # fmt: skip
    assert words("भाषा मॉडल") == ["भाषा", "मॉडल"]  # its vowel signs are marks, and belong to the word
    assert words("语言模型。数字") == ["语言模型", "。", "数字"]
    assert words(" \n\t\0") == ["\0"]
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
    assert tokenizers.from_dict(json.loads(json.dumps(tokenizer.to_dict()))) == tokenizer


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
        tokenizers.from_dict(values)  # type: ignore[arg-type]
