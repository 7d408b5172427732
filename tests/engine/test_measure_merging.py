"""What merges achieved, counted again from the lengths of the text."""

from __future__ import annotations

import numpy as np
import pytest

from engine.measure.merging import Shrinking, achieved, agreement
from engine.tokenizers.bpe_watch import four_ways, watch
from tests.engine.cases import for_each

SHELLS = (
    "She sells sea shells by the sea shore.\nThe shells that she sells are sea shells, I'm sure — é.\n" * 2
)


def test_a_text_shrinks_by_what_each_merge_takes() -> None:
    found = Shrinking(np.array([200, 150, 120, 100]), characters=180, bytes=200)
    assert found.percent.tolist() == [100, 75, 60, 50] and found.saved.tolist() == [50, 30, 20]
    assert found.characters_per_token.tolist() == pytest.approx([0.9, 1.2, 1.5, 1.8])
    assert found.bytes_per_token.tolist() == pytest.approx([1, 4 / 3, 5 / 3, 2])
    for ours, theirs, first in (
        ([1, 2, 3], [1, 2, 3], None),
        ([1, 2, 3], [1, 9, 3], 1),
        ([1, 2], [1, 2, 3], 2),
        ([1, 2, 3], [1, 2], 2),
        ([], [], None),
        ([], [1], 0),
    ):
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
    lengths = [seen.length]
    for size in range(1, len(own.merges) + 1):
        lengths.append(len(watch(SHELLS, size, level=level).tokenizer.encode(SHELLS)))
    assert found.shrinking.tokens.tolist() == lengths
    assert found.start == (len(SHELLS.encode()) if level == "byte" else len(SHELLS))
    assert found.left == len(own.encode(SHELLS)) and found.share == pytest.approx(found.left / found.start)
    assert found.merges == 30 and found.learned == 30 and found.vocab_size == len(own.base) + 30
    assert found.shrinking.characters_per_token[-1] == pytest.approx(len(SHELLS) / found.left)
    assert found.shrinking.bytes_per_token[-1] == pytest.approx(len(SHELLS.encode()) / found.left)
    half = next(k for k, n in enumerate(lengths) if lengths[0] - n >= (lengths[0] - lengths[-1]) / 2)
    assert found.half == half and found.early == (2 * half < 30)
    assert found.once is None


def test_the_merges_of_what_stands_there_once_are_named() -> None:
    found = achieved(watch("abab cdef", 50))
    assert found.learned < 50 and found.once is not None
    merges = watch("abab cdef", 50).tokenizer.merges
    assert [merge.count > 1 for merge in merges[: found.once - 1]] == [True] * (found.once - 1)
    assert merges[found.once - 1].count == 1
