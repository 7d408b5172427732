"""Tokenizers side by side, against counts of a few tokens by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import TokenizerError
from engine.measure.comparing import Lines, gain, line_counts, measure_passage, spread
from engine.measure.vocabulary import costs, cut_bytes, cut_characters, cut_words
from engine.tokenizers import bpe
from engine.tokenizers.words import WordTokenizer

TEXT = "the theory of the thing, the other thing — the end\n" * 8


def test_the_dearest_and_the_cheapest_hold_the_whole_text() -> None:
    text = "été été"
    listed = WordTokenizer.train(text)
    cuts = {
        "words": cut_words(text, listed),
        "bytes": cut_bytes(text),
        "characters": cut_characters(text, "ét "),
        "poor": cut_characters(text, "é"),
    }
    found = spread(cuts, without=("words",))
    assert found is not None and (found.most, found.least) == ("bytes", "characters")
    assert (found.most_tokens, found.least_tokens) == (11, 7)
    assert found.times == pytest.approx(11 / 7) and found.work == pytest.approx(121 / 49)
    every = spread(cuts)
    assert every is not None and (every.least, every.least_tokens) == ("words", 2)
    assert spread({"bytes": cuts["bytes"], "poor": cuts["poor"]}) is None  # the one has an unknown token
    assert spread({"bytes": cut_bytes(""), "characters": cut_characters("", "")}) is None


def test_lines_and_gains_in_tokens() -> None:
    found = Lines(("ab", "abcd"), np.array([[2, 1], [2, 3]]))
    assert found.characters.tolist() == [2, 4]
    assert found.per_character.tolist() == [[1, 0.5], [0.5, 0.75]]
    few, many = costs({"few": (100, 500), "many": (1000, 100)}, 64, 1)
    found = gain(few, many)
    assert found is not None and (found.tokens, found.scores, found.embedding) == (5, 25, 10)
    nothing = costs({"few": (100, 0), "many": (1000, 100)}, 64, 1)
    assert gain(*nothing) is None and gain(few, few) is None


class _GivesUp:
    vocab_size = 7

    def encode(self, text: str) -> list[int]:
        raise TokenizerError("no")


class _Halves:
    """A stand-in for a published encoding: a token for every two characters."""

    vocab_size = 9

    def encode(self, text: str) -> list[int]:
        return [0] * (-(-len(text) // 2))


def test_a_passage_is_counted_by_every_tokenizer() -> None:
    learned = bpe.train(TEXT, 300)
    published = {"halves": _Halves(), "not": _GivesUp()}
    found = measure_passage(TEXT, 5, learned, (256, 262, 270, 9999), (262,), published)  # type: ignore[arg-type]
    part = "the theory of the thing,"
    assert (found.words, found.characters) == (5, len(part))
    sizes = (256, 262, 270, learned.vocab_size)
    assert found.curve == {size: len(bpe.train(TEXT, size).encode(part)) for size in sizes}
    assert found.rows["characters"] == (len(set(TEXT)), 24) and found.rows["bytes"] == (256, 24)
    assert found.rows["halves"] == (9, 12) and "not" not in found.rows
    assert list(found.rows)[2:4] == ["BPE 262", f"BPE {learned.vocab_size}"]  # the largest has a row as well
    assert found.rows["BPE 262"] == (262, found.curve[262])
    assert found.per_word("characters") == pytest.approx(24 / 5) and found.per_word("halves") == 12 / 5
    found = measure_passage(TEXT, 0, learned, (256, 270), (), {})
    assert found.characters == len(TEXT) and found.words == len(TEXT.split())
    assert found.rows["bytes"] == (256, len(TEXT.encode())) and found.rows["bytes"][1] > found.characters
    assert found.curve == {size: len(bpe.train(TEXT, size).encode(TEXT)) for size in (256, 270)}
    nothing = measure_passage(" ", 3, bpe.train(" ", 256), (256,), (), {})
    assert nothing.words == 0 and nothing.per_word("characters") == 0


def test_a_line_is_counted_in_three_ways() -> None:
    learned = bpe.train("a\n\nb\n\na\n\nb" * 9, 258, split="none")  # two line breaks become one token
    alone, with_empty, running = line_counts("a\n", "a\n\nb", learned)
    assert (alone.characters, with_empty.characters, running.characters) == (2, 3, 3)
    assert alone.ids == tuple(learned.encode("a\n")) and with_empty.ids == tuple(learned.encode("a\n\n"))
    whole = learned.encode("a\n\nb")
    assert running.ids == tuple(whole[: len(running.ids)])
    assert b"b" not in learned.decode_bytes(running.ids)[3:]
