"""Cuts that tile their text, vocabularies that are beginnings of larger ones, and the costs of CURRICULUM's
table.
"""

from __future__ import annotations

import numpy as np
import pytest

from engine.corpora import Corpus
from engine.errors import TokenizerError
from engine.measure.vocabulary import (
    Cut,
    costs,
    cut_bytes,
    cut_characters,
    cut_tokens,
    cut_words,
    lengths,
    passage,
    prefix,
    training_lengths,
)
from engine.tokenizers import bpe, published
from engine.tokenizers.bpe import BpeTokenizer
from engine.tokenizers.words import UNKNOWN, WordTokenizer
from tests.engine.cases import for_each

LEARNED = (
    "the theme of the thesis is the theory of these things; भाषा भाषा 语言 语言 语言 👩‍👧 👩‍👧 ththth"
    " aaaaaaaa\n" * 3
)
TEXTS = (
    "", "the thesis", " \n\t ", "भाषा मॉडल", "语言模型。数字", "👩‍👩‍👧‍👦🇩🇪👍🏽", "مرحبا بالعالم",
    "e\u0301\u0302x\u0301", "a\0b", "€" * 50, "a" * 3000,
)  # fmt: skip


@pytest.fixture(scope="module")
def learned() -> BpeTokenizer:
    return bpe.train(LEARNED, 340)


def laid_out(cut: Cut, text: str) -> bytes:
    data = text.encode("utf-8")
    return b"".join(
        data[start : start + length] for start, length in zip(cut.starts, cut.lengths, strict=True)
    )


@for_each("text", TEXTS, ids=lambda text: repr(text[:6]))
def test_the_tokens_of_a_cut_are_the_text(learned: BpeTokenizer, text: str) -> None:
    for cut in (cut_bytes(text), cut_characters(text, "ab"), cut_tokens(text, learned)):
        assert laid_out(cut, text) == text.encode("utf-8")
        assert np.array_equal(cut.starts, np.cumsum(cut.lengths) - cut.lengths)
        assert (cut.tokens, cut.characters, cut.bytes) == (len(cut.ids), len(text), len(text.encode("utf-8")))
    assert cut_bytes(text).ids.tolist() == list(text.encode("utf-8"))
    assert cut_tokens(text, learned).ids.tolist() == learned.encode(text)
    assert cut_characters(text, "ab").lengths.tolist() == [len(c.encode("utf-8")) for c in text]


def test_a_token_may_end_inside_a_character_and_its_bytes_are_known() -> None:
    cut = cut_tokens("€", bpe.train("€€ x", 257))  # E2 82 AC: one merge of two of its bytes
    assert cut.lengths.tolist() in ([2, 1], [1, 2])
    assert cut.characters_per_token == 0.5
    assert cut.bytes_per_token == 1.5
    cut = cut_characters("abXa", "ba")
    assert cut.ids.tolist() == [1, 0, UNKNOWN, 1] and cut.unknown == 1


def test_between_words_there_are_blanks_and_nothing_else() -> None:
    text = " Hé, wörld —\n hé  नमस्ते "
    cut = cut_words(text, WordTokenizer.train("Hé wörld नमस्ते"))
    data = text.encode("utf-8")
    pieces = [data[s : s + n].decode("utf-8") for s, n in zip(cut.starts, cut.lengths, strict=True)]
    assert pieces == ["Hé", ",", "wörld", "—", "hé", "नमस्ते"] and cut.ids.tolist() == [0, -1, 1, -1, -1, 2]
    inside = np.zeros(len(data), bool)
    for start, length in zip(cut.starts, cut.lengths, strict=True):
        inside[start : start + length] = True
    assert bytes(np.frombuffer(data, np.uint8)[~inside]).isspace()
    assert cut_words("  ", WordTokenizer.train("a")).tokens == 0


def test_shown_keeps_the_first_tokens_and_counts_them_all(learned: BpeTokenizer) -> None:
    text = "the भाषा " * 40
    for whole, part in (
        (cut_tokens(text, learned), cut_tokens(text, learned, 7)),
        (cut_bytes(text), cut_bytes(text, 7)),
        (cut_characters(text, "the "), cut_characters(text, "the ", 7)),
    ):
        reach = len(text[:7].encode("utf-8"))
        assert (
            part.tokens == whole.tokens and part.unknown == whole.unknown and len(part.ids) < len(whole.ids)
        )
        assert part.starts[-1] < reach <= whole.starts[len(part.ids)]


def test_a_smaller_vocabulary_is_the_beginning_of_a_larger(learned: BpeTokenizer) -> None:
    for size in (256, 257, 300, 339, 340, 9999):
        assert prefix(learned, size) == bpe.train(LEARNED, size)
    text = "ababab abab aab aaaa bbbb" * 3
    for size in (256, 258, 260, 262):
        assert prefix(bpe.train(text, 262, split="none"), size) == bpe.train(text, size, split="none")
    sizes = (100, 256, 260, 300, 340, 5000)
    assert lengths(learned, "the theory", sizes) == {
        size: len(bpe.train(LEARNED, size).encode("the theory"))
        for size in (256, 260, 300, learned.vocab_size)
    }
    whole = training_lengths(learned, sizes, len(LEARNED.encode()))
    assert whole == {
        size: len(prefix(learned, size).encode(LEARNED)) for size in (256, 260, 300, learned.vocab_size)
    }


@for_each("text, words, expected", [
    ("a b  c\n", 2, ("a b", 2)), ("a b", 5, ("a b", 2)), ("  a", 1, ("  a", 1)), ("", 3, ("", 0)),
    (" \n", 3, ("", 0)),
])  # fmt: skip
def test_passages_end_with_a_word(text: str, words: int, expected: tuple[str, int]) -> None:
    assert passage(text, words) == expected


def test_the_costs_of_the_textbooks_table() -> None:
    characters, gpt2 = costs({"characters": (65, 5000), "gpt2": (50_257, 1300)}, 256, 4)
    assert (characters.embedding, gpt2.embedding) == (16_640, 12_865_792)
    assert (characters.scores, gpt2.scores) == (25_000_000, 1_690_000)


def test_a_thousand_words_of_shakespeare(shakespeare: Corpus) -> None:
    """The textbook says about 5,000 characters and 1,300 tokens; these are the true ones."""
    text, words = passage(shakespeare.text, 1000)
    assert (words, len(text), len(set(shakespeare.text))) == (1000, 5700, 65)
    try:
        gpt2 = published.load("gpt2")
    except TokenizerError as error:
        pytest.skip(
            "gpt2's encoding is not on this machine ($TIKTOKEN_CACHE_DIR names the folder that holds it):"
            f" {error}"
        )
    assert len(gpt2.encode(text)) == 1606
    # A well-known lecture's 62 characters and 16 tokens: the beginning, cut while the text goes on.
    assert cut_tokens(shakespeare.text[:200], gpt2, 62).ids.tolist()[-2:] == [198, 198]
    assert len(cut_tokens(shakespeare.text[:200], gpt2, 62).ids) == 16
