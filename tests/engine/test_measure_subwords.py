"""Why pieces of words: counted by hand."""

from __future__ import annotations

import math

import pytest

from engine.measure.subwords import new_words, per_token, three_ways
from engine.tokenizers.bpe_watch import watch


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
