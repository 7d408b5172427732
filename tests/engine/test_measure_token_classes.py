"""Kinds of tokens, their counts, and which of them are looked at."""

from __future__ import annotations

import numpy as np

from engine.measure.token_classes import (
    CHARACTERS,
    Vocabulary,
    case_pairs,
    token_classes,
    token_counts,
    vocabulary,
)
from engine.tokenizers import bpe, token_bytes
from engine.tokenizers.char import CharTokenizer


def test_characters_have_the_classes_of_a_primer():
    names, found = token_classes([c.encode() for c in "aeiouybzAZé0٣,$ \n中"], vocab_size=20)
    told = [names[i] for i in found]
    assert told == ["vowels"] * 5 + ["consonants"] * 3 + ["capitals"] * 2 + [
        "vowels", "digits", "digits", "punctuation", "punctuation",
    ] + [
        "whitespace",
        "whitespace",
        "other",
        "other",
        "other",
    ]  # the last two are beyond the tokenizer: a mask has no text  # fmt: skip


def test_pieces_of_a_bpe_are_told_by_their_beginning():
    tokens = [b" the", b"ing", b" The", b"42", b" 7", b"...", b" \n", b"\xe2\x80", b"'ll", b"e"]
    names, found = token_classes(tokens)
    assert [names[i] for i in found] == [
        "begins a word", "inside a word", "capitalised", "digits", "digits", "punctuation", "whitespace",
        "part of a character", "inside a word", "inside a word",
    ]  # fmt: skip


def test_every_token_of_a_real_tokenizer_gets_its_bytes_and_counts():
    text = "the cat and the hat, the bat"
    for tokenizer in (CharTokenizer.train(text), bpe.train(text, 270)):
        tokens = token_bytes(tokenizer)
        assert len(tokens) == tokenizer.vocab_size
        assert b"".join(tokens[i] for i in tokenizer.encode(text)) == text.encode()
        counts = token_counts(text, tokenizer, tokenizer.vocab_size + 1)
        assert counts.sum() == len(tokenizer.encode(text))
        assert len(counts) == tokenizer.vocab_size + 1
        assert counts[-1] == 0
    assert token_counts("cat?", CharTokenizer("act"), 3).tolist() == [1, 1, 1]  # what it lacks is left out


def known_of(counts: list[int] | None, size: int) -> Vocabulary:
    return Vocabulary(
        ("one", "two"),
        np.arange(size) % 2,
        None if counts is None else np.array(counts),
        np.array([(0, 1), (1, 3)]),
    )


def test_tokens_that_were_never_met_are_neither_drawn_nor_members():
    known = known_of([0, 5, 0, 9, 1, 7], 6)
    assert known.met.tolist() == [1, 3, 4, 5] and known.never_met == 2 and known.size == 6
    assert known.drawn(2).tolist() == [3, 5] and known.drawn(4).tolist() == [1, 3, 4, 5]
    assert known.members("one").tolist() == [4] and known.members("two").tolist() == [3, 5, 1]
    assert known.paired().tolist() == [[0, 1]]  # 1 and 3, counted among those that were met
    assert known.frequency is not None and np.allclose(10**known.frequency - 1, [0, 5, 0, 9, 1, 7])
    for every in (known_of(None, 6), known_of([0, 0, 1, 1, 0, 0], 6), known_of([1, 2, 3, 4, 5, 6], 6)):
        assert every.met.tolist() == [0, 1, 2, 3, 4, 5] and every.never_met == 0
    assert known_of(None, 6).drawn(2).tolist() == [0, 1] and known_of(None, 6).frequency is None
    assert known_of(None, 6).members("two").tolist() == [1, 3, 5]


def test_the_vocabulary_of_a_model_has_a_class_for_each_of_its_rows():
    known = vocabulary(CharTokenizer("aAb "), 5, "ab ba")
    assert known.letters and known.names == CHARACTERS and known.size == 5
    assert [known.names[i] for i in known.classes] == [
        "vowels", "capitals", "consonants", "whitespace", "other",
    ]  # fmt: skip
    assert known.counts is not None and known.counts.tolist() == [2, 0, 2, 1, 0]
    assert known.cases.tolist() == [[0, 1]] and known.paired().size == 0  # A was never met
    pieces = vocabulary(bpe.train("the the the", 258), 258)
    assert not pieces.letters and pieces.counts is None
    assert case_pairs([c.encode() for c in "abAB."]).tolist() == [[0, 2], [1, 3]]
