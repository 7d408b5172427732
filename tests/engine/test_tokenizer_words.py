"""Words as tokens: what is a word, what is unknown, and what is lost."""

from __future__ import annotations

import pytest

from engine.errors import TokenizerError
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


def test_the_most_frequent_word_has_the_smallest_id_and_others_are_unknown() -> None:
    tokenizer = WordTokenizer.train("b a b c b a")
    assert tokenizer.words == ("b", "a", "c") and tokenizer.vocab_size == 3
    assert tokenizer.encode("c  B\nb") == [2, UNKNOWN, 0]


@for_each("text", ["", " \n"])
def test_a_text_without_words_teaches_none(text: str) -> None:
    with pytest.raises(TokenizerError):
        WordTokenizer.train(text)
