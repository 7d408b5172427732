"""Cuts that tile their text, vocabularies that are beginnings of larger ones, and what they cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.data.corpus import Corpus
from engine.data.tokenizers import bpe
from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.words import UNKNOWN, WordTokenizer
from engine.errors import TokenizerError
from studies.tokens import published, vocabulary
from studies.tokens.bpe_watch import four_ways, watch
from studies.tokens.subwords import Shrinking, achieved, agreement, new_words, per_token, three_ways
from studies.tokens.vocabulary import (
    NO_WORD,
    Lines,
    gain,
    lengths,
    line_counts,
    measure_passage,
    of_characters,
    of_tokens,
    of_words,
    spread,
)
from tests.engine.cases import for_each

LEARNED = (
    "the theme of the thesis is the theory of these things; भाषा भाषा 语言 语言 语言 👩‍👧 👩‍👧 ththth aaaa\n"
    * 3
)
TEXTS = (
    "", "the thesis", " \n\t ", "भाषा मॉडल", "语言模型。数字", "👩‍👩‍👧‍👦🇩🇪👍🏽", "مرحبا بالعالم",
    "e\u0301\u0302x\u0301", "a\0b", "€" * 50, "a" * 3000,
)  # fmt: skip


@pytest.fixture(scope="module")
def learned() -> BpeTokenizer:
    return bpe.train(LEARNED, 340)


def laid_out(cut: vocabulary.Cut, text: str) -> list[bytes]:
    data = text.encode("utf-8")
    return [data[start : start + length] for start, length in zip(cut.starts, cut.lengths, strict=True)]


@for_each("text", TEXTS, ids=lambda text: repr(text[:6]))
def test_the_tokens_of_a_cut_are_the_text(learned: BpeTokenizer, text: str) -> None:
    data = text.encode("utf-8")
    by_byte, by_letter = vocabulary.cut_bytes(text), vocabulary.cut_characters(text, "ab")
    tokens = vocabulary.cut_tokens(text, learned)
    for cut in (by_byte, by_letter, tokens):
        assert b"".join(laid_out(cut, text)) == data
        assert np.array_equal(cut.starts, np.cumsum(cut.lengths) - cut.lengths)
        assert (cut.tokens, cut.characters, cut.bytes) == (len(cut.ids), len(text), len(data))
    assert by_byte.ids.tolist() == list(data) and tokens.ids.tolist() == learned.encode(text)
    assert by_letter.lengths.tolist() == [len(c.encode("utf-8")) for c in text]


def test_tokens_end_inside_characters_and_unknown_ones_are_counted() -> None:
    cut = vocabulary.cut_tokens("€", bpe.train("€€ x", 257))  # E2 82 AC: one merge of two of its bytes
    assert cut.lengths.tolist() in ([2, 1], [1, 2])
    assert cut.characters_per_token == 0.5
    assert cut.bytes_per_token == 1.5
    cut = vocabulary.cut_characters("abXa", "ba")
    assert cut.ids.tolist() == [1, 0, UNKNOWN, 1] and cut.unknown == 1


def test_between_words_there_are_blanks_and_nothing_else() -> None:
    text = " Hé, wörld —\n hé  नमस्ते "
    cut = vocabulary.cut_words(text, WordTokenizer.train("Hé wörld नमस्ते"))
    assert b" ".join(laid_out(cut, text)).decode() == "Hé , wörld — hé नमस्ते"
    assert cut.ids.tolist() == [0, -1, 1, -1, -1, 2]
    assert vocabulary.cut_words("  ", WordTokenizer.train("a")).tokens == 0


def test_shown_keeps_the_first_tokens_and_counts_them_all(learned: BpeTokenizer) -> None:
    text = "the भाषा " * 40
    reach = len(text[:7].encode("utf-8"))
    ways = (vocabulary.cut_bytes, text), (vocabulary.cut_tokens, text, learned)
    for cut, *given in (*ways, (vocabulary.cut_characters, text, "the ")):
        whole, part = cut(*given), cut(*given, 7)
        assert (part.tokens, part.unknown) == (whole.tokens, whole.unknown)
        assert len(part.ids) < len(whole.ids) and part.starts[-1] < reach <= whole.starts[len(part.ids)]


def test_a_smaller_vocabulary_is_the_beginning_of_a_larger(learned: BpeTokenizer) -> None:
    for size in (256, 257, 300, 339, 340, 9999):
        assert vocabulary.prefix(learned, size) == bpe.train(LEARNED, size)
    text = "ababab abab aab aaaa bbbb" * 3
    whole = bpe.train(text, 262, split="none")
    for size in (256, 258, 260, 262):
        assert vocabulary.prefix(whole, size) == bpe.train(text, size, split="none")
    sizes, kept = (100, 256, 260, 300, 340, 5000), (256, 260, 300, learned.vocab_size)
    found = lengths(learned, "the theory", sizes)
    assert found == {size: len(bpe.train(LEARNED, size).encode("the theory")) for size in kept}
    found = vocabulary.training_lengths(learned, sizes, len(LEARNED.encode()))
    assert found == {size: len(vocabulary.prefix(learned, size).encode(LEARNED)) for size in kept}


def test_passages_end_with_a_word() -> None:
    for text, words, expected in (
        ("a b  c\n", 2, ("a b", 2)), ("a b", 5, ("a b", 2)), ("  a", 1, ("  a", 1)), (" \n", 3, ("", 0)),
    ):  # fmt: skip
        assert vocabulary.passage(text, words) == expected


def test_the_costs_of_the_textbooks_table() -> None:
    characters, gpt2 = vocabulary.costs({"characters": (65, 5000), "gpt2": (50_257, 1300)}, 256, 4)
    assert (characters.embedding, gpt2.embedding) == (16_640, 12_865_792)
    assert (characters.scores, gpt2.scores) == (25_000_000, 1_690_000)
    found = Lines(("ab", "abcd"), np.array([[2, 1], [2, 3]]))
    assert found.characters.tolist() == [2, 4] and found.per_character.tolist() == [[1, 0.5], [0.5, 0.75]]
    nothing, few, many = vocabulary.costs({"no": (100, 0), "few": (100, 500), "many": (1000, 100)}, 64, 1)
    found = gain(few, many)
    assert found is not None and (found.tokens, found.scores, found.embedding) == (5, 25, 10)
    assert gain(nothing, many) is None and gain(few, few) is None


def test_a_thousand_words_of_shakespeare(shakespeare: Corpus) -> None:
    """The textbook says about 5,000 characters and 1,300 tokens; these are the true ones."""
    text, words = vocabulary.passage(shakespeare.text, 1000)
    assert (words, len(text), len(set(shakespeare.text))) == (1000, 5700, 65)
    try:
        gpt2 = published.load("gpt2")
    except TokenizerError as error:
        pytest.skip(f"gpt2's encoding is not on this machine ($TIKTOKEN_CACHE_DIR names its folder): {error}")
    assert len(gpt2.encode(text)) == 1606
    # A well-known lecture's 62 characters and 16 tokens: the beginning, cut while the text goes on.
    assert vocabulary.cut_tokens(shakespeare.text[:200], gpt2, 62).ids.tolist()[-2:] == [198, 198]
    assert len(vocabulary.cut_tokens(shakespeare.text[:200], gpt2, 62).ids) == 16


def test_one_text_in_three_ways() -> None:
    text = "aba aba aba!"
    found = three_ways(text, watch(text, 2))
    assert (found.characters.vocab_size, found.characters.tokens) == (4, 12)  # a, b, blank, !
    # "ab" (3 times), then "aba": aba ␣ aba ␣ aba ! are 6 tokens
    assert (found.pieces.vocab_size, found.pieces.tokens) == (258, 6)
    assert found.words is not None and (found.words.vocab_size, found.words.tokens) == (2, 4)
    assert found.characters.pairs == 144 and found.pieces.pairs == 36
    assert found.shorter == 2.0 and found.less_work == 4.0
    assert three_ways(" \n", watch(" \n", 1)).words is None


def test_a_list_of_words_misses_the_next_new_one() -> None:
    text = "to be or not to " * 9 + "not to beware or"  # 160 characters: the last 16 are new
    found = new_words(text)
    assert found is not None and (found.listed, found.unknown, found.read) == (4, 1, 4)
    assert found.share == 0.25
    assert new_words("") is None and new_words("word" + " " * 40) is None
    found = per_token(2.0, {"characters": (100, 100), "pieces": (100, 25), "none": (0, 0)})
    assert set(found) == {"characters", "pieces"}
    assert found["characters"].perplexity == 4.0 and found["pieces"].perplexity == 256.0
    assert found["pieces"].characters_per_token == 4.0 and found["pieces"].bits_per_token == 8.0
    # a loss in nats for each character is the same for both
    nats = [math.log(one.perplexity) / one.characters_per_token for one in found.values()]
    assert nats == pytest.approx([2.0 * math.log(2)] * 2)


LINE = "To be or not to be"
HELD = "To be or not to be, that is it.\nI note that."


def test_what_is_known_comes_back() -> None:
    alphabet = "".join(sorted(set(HELD)))
    found = of_characters(LINE, alphabet)
    assert found.same and found.back == LINE and found.lost == ()
    assert found.cut.ids.tolist() == [alphabet.index(c) for c in LINE]
    learned = bpe.train(HELD, 270)
    for text in (LINE, "To bé", "你好", "👍🏽", " \n\t"):
        found = of_tokens(text, learned)
        assert found.same and found.back == text and found.lost == ()
        assert b"".join(learned.tokens[i] for i in found.cut.ids.tolist()) == text.encode()
    found = of_characters("To bé or not to bé☃", alphabet)
    assert found.lost == ("é", "☃") and found.back == "To b or not to b" and not found.same
    assert found.cut.ids.tolist().count(-1) == 3
    known = WordTokenizer.train(HELD)
    found = of_words("To  bé or not", known)
    assert found.lost == ("bé",) and found.back == f"To {NO_WORD} or not" and not found.same
    assert of_words(LINE, known).same
    assert not of_words("not  to be", known).same, "two blanks came back as one"


SHELLS = (
    "She sells sea shells by the sea shore.\nThe shells that she sells are sea shells, I'm sure — é.\n" * 2
)


def test_a_text_shrinks_by_what_each_merge_takes() -> None:
    found = Shrinking(np.array([200, 150, 120, 100]), characters=180, bytes=200)
    assert found.percent.tolist() == [100, 75, 60, 50] and found.saved.tolist() == [50, 30, 20]
    assert found.characters_per_token.tolist() == pytest.approx([0.9, 1.2, 1.5, 1.8])
    assert found.bytes_per_token.tolist() == pytest.approx([1, 4 / 3, 5 / 3, 2])
    for ours, theirs, first in (
        ([1, 2, 3], [1, 2, 3], None), ([1, 2, 3], [1, 9, 3], 1), ([1, 2], [1, 2, 3], 2),
        ([1, 2, 3], [1, 2], 2), ([], [], None), ([], [1], 0),
    ):  # fmt: skip
        found = agreement(ours, theirs)
        assert (found.ours, found.theirs, found.first) == (len(ours), len(theirs), first)
    for way in four_ways("one two three four é", 4):
        assert way.characters_per_token == pytest.approx(20 / way.length) and not way.by_heart
    assert all(way.by_heart for way in four_ways("aaaa", 2) if way.level == "byte")
    assert not any(way.by_heart for way in four_ways("abc", 0))


@for_each("level", ["byte", "char"])
def test_a_training_is_summed_up_by_its_tokens(level) -> None:
    seen = watch(SHELLS, 30, level=level)
    found, own = achieved(seen), seen.tokenizer
    sizes = range(1, len(own.merges) + 1)
    lengths = [seen.length, *(len(watch(SHELLS, n, level=level).tokenizer.encode(SHELLS)) for n in sizes)]
    assert found.shrinking.tokens.tolist() == lengths
    assert found.start == (len(SHELLS.encode()) if level == "byte" else len(SHELLS))
    assert found.left == len(own.encode(SHELLS)) and found.share == pytest.approx(found.left / found.start)
    assert found.merges == 30 and found.learned == 30 and found.vocab_size == len(own.base) + 30
    assert found.shrinking.characters_per_token[-1] == pytest.approx(len(SHELLS) / found.left)
    assert found.shrinking.bytes_per_token[-1] == pytest.approx(len(SHELLS.encode()) / found.left)
    half = next(k for k, n in enumerate(lengths) if lengths[0] - n >= (lengths[0] - lengths[-1]) / 2)
    assert found.half == half and found.early == (2 * half < 30) and found.once is None


def test_the_merges_of_what_stands_there_once_are_named() -> None:
    seen = watch("abab cdef", 50)
    found, counts = achieved(seen), [merge.count for merge in seen.tokenizer.merges]
    assert found.learned < 50 and found.once is not None
    assert min(counts[: found.once - 1]) > 1 and counts[found.once - 1] == 1


THEORY = "the theory of the thing, the other thing — the end\n" * 8


def test_the_dearest_and_the_cheapest_hold_the_whole_text() -> None:
    text = "été été"
    by_byte, poor = vocabulary.cut_bytes(text), vocabulary.cut_characters(text, "é")
    words = vocabulary.cut_words(text, WordTokenizer.train(text))
    characters = vocabulary.cut_characters(text, "ét ")
    cuts = {"words": words, "bytes": by_byte, "characters": characters, "poor": poor}
    found = spread(cuts, without=("words",))
    assert found is not None and (found.most, found.least) == ("bytes", "characters")
    assert (found.most_tokens, found.least_tokens) == (11, 7)
    assert found.times == pytest.approx(11 / 7) and found.work == pytest.approx(121 / 49)
    every = spread(cuts)
    assert every is not None and (every.least, every.least_tokens) == ("words", 2)
    assert spread({"bytes": by_byte, "poor": poor}) is None  # the one has an unknown token
    empty = vocabulary.cut_bytes("")
    assert spread({"bytes": empty, "characters": empty}) is None


class _Halves:
    """A stand-in for a published encoding: a token for every two characters, or none at all."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def encode(self, text: str) -> list[int]:
        if not self.vocab_size:
            raise TokenizerError("no")
        return [0] * (-(-len(text) // 2))


def test_a_passage_is_counted_by_every_tokenizer() -> None:
    learned = bpe.train(THEORY, 300)
    published = {"halves": _Halves(9), "not": _Halves(0)}
    found = measure_passage(THEORY, 5, learned, (256, 262, 270, 9999), (262,), published)  # type: ignore[arg-type]
    part = "the theory of the thing,"
    assert (found.words, found.characters) == (5, len(part))
    sizes = (256, 262, 270, learned.vocab_size)
    assert found.curve == {size: len(bpe.train(THEORY, size).encode(part)) for size in sizes}
    assert found.rows["characters"] == (len(set(THEORY)), 24) and found.rows["bytes"] == (256, 24)
    assert found.rows["halves"] == (9, 12) and "not" not in found.rows
    assert list(found.rows)[2:4] == ["BPE 262", f"BPE {learned.vocab_size}"]  # the largest has a row as well
    assert found.rows["BPE 262"] == (262, found.curve[262])
    assert found.per_word("characters") == pytest.approx(24 / 5) and found.per_word("halves") == 12 / 5
    found = measure_passage(THEORY, 0, learned, (256, 270), (), {})
    assert found.characters == len(THEORY) and found.words == len(THEORY.split())
    assert found.rows["bytes"] == (256, len(THEORY.encode())) and found.rows["bytes"][1] > found.characters
    assert found.curve == {size: len(bpe.train(THEORY, size).encode(THEORY)) for size in (256, 270)}
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
