"""A text into ids and back, by each kind of tokenizer."""

from __future__ import annotations

from engine.measure.roundtrip import NO_WORD, of_characters, of_tokens, of_words
from engine.tokenizers import bpe
from engine.tokenizers.words import WordTokenizer

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


def test_what_has_no_id_is_lost_and_named() -> None:
    found = of_characters("To bé or not to bé☃", "".join(sorted(set(HELD))))
    assert found.lost == ("é", "☃") and found.back == "To b or not to b" and not found.same
    assert found.cut.ids.tolist().count(-1) == 3
    known = WordTokenizer.train(HELD)
    assert of_words(LINE, known).same
    found = of_words("To  bé or not", known)
    assert found.lost == ("bé",) and found.back == f"To {NO_WORD} or not" and not found.same
    assert not of_words("not  to be", known).same  # two blanks came back as one
