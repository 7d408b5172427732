"""BPE against a naive trainer, Hugging Face's trainer and tiktoken's encoder, on whatever text."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import TokenizerError
from engine.tokenizers import from_dict
from engine.tokenizers.bpe import BYTES, BpeTokenizer, Merge, Split, pieces, train
from engine.tokenizers.bpe_work import rounds
from tests.engine.cases import for_each
from tests.engine.naive import merge_everywhere

TEXTS = {
    "english": "She sells sea shells by the sea shore; the shells she sells are sea shells, I'm sure.\n" * 3,
    "code": "for i in range(10):\n    if i % 2 == 0:\n        print(i, i ** 2)\n" * 3,
    "hindi": "नमस्ते दुनिया, यह एक छोटा सा वाक्य है। यह दुनिया बड़ी है।",
    "chinese": "那只猫坐在垫子上。那只狗坐在猫旁边。猫不喜欢狗。",
    "emoji": "🎉🎉 party 👩‍👩‍👧 time 🎉 e\u0301e\u0301 \u202eright to left\u202c",
    "repeats": "aaaa aaaaa aaaaaaa abababab",
}


def naive(text: str, vocab_size: int, split: Split) -> list[Merge]:
    """Everything counted anew for every merge."""
    ids, tokens = {token: i for i, token in enumerate(BYTES)}, list(BYTES)
    words = [
        ([ids[bytes([b])] for b in piece.encode()], n) for piece, n in Counter(pieces(text, split)).items()
    ]
    merges: list[Merge] = []
    while len(tokens) < vocab_size:
        counts: Counter[tuple[int, int]] = Counter()
        for word, n in words:
            for pair in pairwise(word):
                counts[pair] += n
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        made = tokens[best[0]] + tokens[best[1]]
        token = ids.setdefault(made, len(tokens))
        tokens += [made] if token == len(tokens) else []
        words = [(merge_everywhere(word, best, token), n) for word, n in words]
        merges.append(Merge(len(merges), best, token, counts[best], sum(len(word) * n for word, n in words)))
    return merges


@for_each("split", ["words", "none"])
@for_each("text", TEXTS.values(), ids=TEXTS)
def test_merges_are_those_of_a_naive_trainer(text: str, split: Split) -> None:
    assert list(train(text, 300, split=split).merges) == naive(text, 300, split)


TRAINED = train("".join(TEXTS.values()), 400)
ANY = st.text(
    st.characters(exclude_categories=())
)  # halves of characters (lone surrogates) included: `st.text()` alone has none


@given(ANY)
@settings(max_examples=200, deadline=None)
def test_any_text_comes_back(text: str) -> None:
    for split in ("words", "none"):
        own = BpeTokenizer("byte", split, TRAINED.base, TRAINED.merges)  # type: ignore[arg-type]
        assert own.decode(own.encode(text)) == text
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert TRAINED.as_tiktoken().encode_ordinary(text) == TRAINED.encode(text)


@given(st.binary())
@settings(max_examples=100, deadline=None)
def test_any_bytes_come_back(data: bytes) -> None:
    ids = [TRAINED.ranks[bytes([b])] for b in data]
    assert TRAINED.decode_bytes(ids) == data
    assert isinstance(TRAINED.decode(ids), str)


def test_a_long_word_is_learned_and_encoded_without_hanging() -> None:
    own = train("ab" * 20_000, 300, split="none")
    assert own.merges[0].count == 20_000 and own.merges[0].length == 20_000
    assert own.decode(own.encode("ab" * 20_000)) == "ab" * 20_000


def test_the_work_of_a_byte_grows_with_each_doubling_of_the_vocabulary() -> None:
    assert [rounds(size) for size in (10, 256, 512, 2048)] == [1, 1, 2, 4]


def test_characters_to_start_from() -> None:
    own = train("नमस्ते नमस्ते", 14, level="char")
    assert own.tokens[: len(own.base)] == [c.encode() for c in sorted(set("नमस्ते नमस्ते"))]
    assert own.unknown("नx") == ["x"]
    with pytest.raises(TokenizerError, match=r"lacks 'a' 'b' 'c' 'd' 'e' 'f' 'g' 'h'$"):
        own.encode("नabcdefghij")
    with pytest.raises(TokenizerError, match="tiktoken starts from bytes"):
        own.as_tiktoken()
    assert from_dict(json.loads(json.dumps(own.to_dict()))) == own


@for_each("values", [
    {},
    {"level": "byte", "split": "words", "merges": [[0, 999, 1, 1]]},
    {"level": "byte", "split": "words", "merges": [[0, 1]]},
    {"level": "char", "split": "words", "base": "aa", "merges": []},
    {"level": "byte", "split": "x", "merges": []},
    {"level": "byte", "split": "none", "merges": [[True, 1, 1, 1]]},
    {
        "level": "byte",
        "split": "none",
        "merges": [[0, 0, 1, 1], *([256 + i, 256 + i, 1, 1] for i in range(60))],
    },
])  # fmt: skip
def test_a_file_that_is_none_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(TokenizerError):
        from_dict({"kind": "bpe", **values})


def test_what_cannot_be_learned_from() -> None:
    for arguments in (
        {"text": "", "vocab_size": 300},
        {"text": "abc", "vocab_size": 255},
        {"text": "abc", "vocab_size": 2, "level": "char"},
    ):
        with pytest.raises(TokenizerError):
            train(**arguments)  # type: ignore[arg-type]
    with pytest.raises(TokenizerError, match="ids must lie between"):
        TRAINED.decode([TRAINED.vocab_size])
    with pytest.raises(TokenizerError, match="ids must lie between"):
        TRAINED.decode([-1])
    assert from_dict(TRAINED.to_dict()) == TRAINED
