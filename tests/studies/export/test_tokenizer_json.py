"""The library opens what is written, and gives our ids."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.tokenizers import bpe
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import TokenizerError
from studies.weights.export.tokenizer_json import tokenizer_json
from studies.weights.pretrained.vocabulary import from_gguf, from_json
from tests.engine.cases import for_each
from tests.engine.helpers import VERSE
from tests.studies.pretrained.test_vocabulary import facts_of
from tests.studies.pretrained.vocabularies import trained

tokenizers = pytest.importorskip("tokenizers", reason="not installed (it comes with transformers)")
HOSTILE = (
    "aaaaaaaaab aaa  aa\n\n\t a", "it's they'll 'twas ''s", "été ÉTÉ naïve 中文字 😀👩‍👩‍👧 \u200d",
    "12345 6.78e9 x²", "   \r\n \r", "<|endoftext|> [MASK]", "\x00\x1f\x85\u00a0\u2028",
)  # fmt: skip


def opened(text: str) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(text)


@for_each(("level", "size"), [("byte", 257), ("byte", 420), ("char", 260)])
@for_each("split", ["words", "none"])
def test_merges_of_bytes_and_of_characters(size: int, level: bpe.Level, split: bpe.Split) -> None:
    ours = bpe.train(VERSE + "".join(HOSTILE) + "aaaa aaaaaaa aaa" * 9, size, level=level, split=split)
    theirs = opened(tokenizer_json(ours, ours.vocab_size))
    for text in (*HOSTILE, VERSE):
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ids == ours.encode(text), text
        assert theirs.decode(ids) == text


LOOPED = bpe.train("abababbbaab aab abb aaaa bbbb aabb" * 20, 300, split="none")
LOOPED_THEIRS = opened(tokenizer_json(LOOPED, LOOPED.vocab_size))


@given(st.text(alphabet="ab ", max_size=60))
def test_merges_that_overlap(text: str) -> None:
    assert LOOPED_THEIRS.encode(text).ids == LOOPED.encode(text)


def test_characters() -> None:
    ours = CharTokenizer.train(VERSE + "\n\t\r 'é中😀\u0301")
    theirs = opened(tokenizer_json(ours, ours.vocab_size))
    for text in (VERSE, "\n\n 'é中😀\u0301 e\u0301", "  "):
        ids = theirs.encode(text).ids
        assert ids == ours.encode(text) and theirs.decode(ids) == text
    with pytest.raises(Exception, match="UNK"):  # an unknown character is an error there as it is here
        theirs.encode("Ω")


def test_a_published_one_keeps_its_added_tokens_whatever_rows_the_table_has() -> None:
    inner = trained(False)
    inner.add_tokens([tokenizers.AddedToken("<think>", normalized=False)])
    text = "the <think>cat</think> <|im_end|>"
    for ours in (from_json(inner.to_str()), from_gguf(facts_of(trained(False), "gpt-2"))):
        for rows in (ours.vocab_size, ours.vocab_size + 1, ours.vocab_size + 99):
            theirs = opened(tokenizer_json(replace(ours, rows=rows), rows))
            assert theirs.get_added_tokens_decoder().keys() == set(ours.added.values())
            assert theirs.get_vocab_size(with_added_tokens=True) == ours.vocab_size
            assert theirs.encode("<|im_end|>").ids == [ours.special["<|im_end|>"]]
            theirs.encode_special_tokens = True
            assert theirs.encode(text).ids == ours.encode(text)


def test_half_characters_are_left_out() -> None:
    with pytest.raises(TokenizerError, match="half characters"):
        tokenizer_json(CharTokenizer("a\ud83d"), 2)
