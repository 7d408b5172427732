"""What is shown of BPE."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import TokenizerError
from engine.tokenizers.bpe import Level, Split, pieces, train
from engine.tokenizers.bpe_watch import (
    STAYS,
    UNKNOWN,
    WORD_BORDER,
    affordable,
    crosses,
    four_ways,
    replay,
    watch,
)
from tests.engine.cases import for_each
from tests.engine.naive import merge_everywhere
from tests.engine.test_tokenizer_bpe import TEXTS

LEVELS: tuple[Level, ...] = ("byte", "char")
SPLITS: tuple[Split, ...] = ("words", "none")
WILD = st.one_of(
    st.sampled_from("ab \n"), st.characters(exclude_categories=())
)  # halves of characters included


@for_each("level", LEVELS)
@for_each("split", SPLITS)
@for_each("text", TEXTS.values(), ids=TEXTS)
def test_runners_up_are_those_of_a_naive_count(text: str, split: Split, level: Level) -> None:
    seen = watch(text, 60, level=level, split=split, keep=5)
    own = seen.tokenizer
    ids = {token: i for i, token in enumerate(own.base)}
    parts = [
        (bytes([b]) for b in piece.encode()) if level == "byte" else (c.encode() for c in piece)
        for piece in pieces(text, split)
    ]
    words = [[ids[symbol] for symbol in part] for part in parts]
    assert seen.length == sum(map(len, words))
    for merge, runners_up in zip(own.merges, seen.runners_up, strict=True):
        counts = Counter(pair for word in words for pair in pairwise(word))
        best = sorted(
            ((pair, count) for pair, count in counts.items()), key=lambda entry: (-entry[1], entry[0])
        )[:6]
        assert [(merge.pair, merge.count), *runners_up] == best
        words = [merge_everywhere(word, merge.pair, merge.token) for word in words]


def test_watching_changes_nothing() -> None:
    text = "".join(TEXTS.values())
    assert watch(text, 200).tokenizer == train(text, 456)
    assert watch(text, 0).tokenizer.merges == () and watch(text, 0).lengths.tolist() == [len(text.encode())]
    for arguments in (
        {"text": "", "new_tokens": 5},
        {"text": "a", "new_tokens": -1},
        {"text": "a", "new_tokens": 1, "level": "x"},
    ):
        with pytest.raises(TokenizerError):
            watch(**arguments)  # type: ignore[arg-type]


@for_each("level", LEVELS)
@for_each("split", SPLITS)
@for_each("text", [*TEXTS.values(), "a" * 301, "\ud83d\ud83d x\x00\x00 \u202e\u05e9\u05dc\u05d5\u05dd\u202c"])
def test_borders_fall_as_they_did_in_the_training(text: str, split: Split, level: Level) -> None:
    seen = watch(text, 300, level=level, split=split)
    shown = replay(seen.tokenizer, text)
    assert shown.lengths(len(seen.tokenizer.merges)).tolist() == seen.lengths.tolist()
    assert (shown.fallen == WORD_BORDER).sum() == len(pieces(text, split)) - 1


@given(
    st.text(WILD, max_size=60),
    st.text(WILD, min_size=1, max_size=80),
    st.sampled_from(LEVELS),
    st.sampled_from(SPLITS),
)
@settings(max_examples=150, deadline=None)
def test_the_last_borders_are_those_of_the_encoder(
    text: str, learned: str, level: Level, split: Split
) -> None:
    own = watch(learned * 2, 40, level=level, split=split).tokenizer
    shown = replay(own, text)
    tokens, start = [], 0
    symbols = [own.base[i] if i != UNKNOWN else b"" for i in shown.symbols]
    for i, rank in enumerate([*shown.fallen.tolist(), STAYS][: len(symbols)]):
        if rank < 0:
            tokens.append(b"".join(symbols[start : i + 1]))
            start = i + 1
    if own.unknown(text):
        assert UNKNOWN in shown.symbols
    else:
        assert b"".join(tokens) == text.encode("utf-8", "surrogatepass")
        if len({merge.token for merge in own.merges}) == len(
            own.merges
        ):  # no token was made in two ways: both rules agree
            assert [own.ranks[token] for token in tokens] == own.encode(text)


def test_only_what_fits_into_memory_is_learned_from() -> None:
    assert affordable("the cat " * 1000, "byte", "words", 100) == 8000  # words that come again cost nothing
    assert affordable("x" * 8000, "byte", "none", 100) == 100
    assert affordable("x" * 20, "byte", "none", 100) == 20
    assert affordable("猫" * 8000, "byte", "none", 300) == 100
    assert affordable("猫" * 8000, "char", "none", 300) == 300
    text = "".join(TEXTS.values())
    for limit in (50, 200, 400):
        for split in SPLITS:
            taken = text[: affordable(text, "byte", split, limit)]
            assert (
                sum(len(piece.encode()) for piece in set(pieces(taken, split))) <= limit + 40
            )  # a cut may make a new last word


def test_without_splitting_tokens_cross_the_borders_of_words() -> None:
    ways = {(way.level, way.split): way for way in four_ways(TEXTS["english"], 50)}
    assert len(ways) == 4 and ways["byte", "words"].crossing == ways["char", "words"].crossing == ()
    assert ways["byte", "none"].crossing and all(map(crosses, ways["char", "none"].crossing))
    assert ways["byte", "none"].length <= ways["byte", "words"].length  # a border less to respect
    assert (
        ways["byte", "none"].vocab_size > ways["byte", "words"].vocab_size == 280
    )  # no pair was left inside of a word
    hindi = {(way.level, way.split): way for way in four_ways(TEXTS["hindi"], 20)}
    assert (
        hindi["byte", "words"].start
        == len(TEXTS["hindi"].encode())
        > hindi["char", "words"].start
        == len(TEXTS["hindi"])
    )
    assert np.all([way.start > way.length for way in ways.values()])
