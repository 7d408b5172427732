"""Tokenizers: text to ids and back. A model's has `vocab_size`, `encode`, `decode`, `unknown`."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

UNUSED = "[unused]"  # a row of an embedding that no token has: published tables are filled up to a round size


class Tokenizer(Protocol):
    """The interface of a model's tokenizer."""

    @property
    def vocab_size(self) -> int: ...
    def encode(self, text: str) -> list[int]: ...
    def decode(self, ids: list[int]) -> str: ...
    def unknown(self, text: str) -> list[str]: ...


class Storable(Tokenizer, Protocol):
    """A tokenizer that is trained here and stored beside its model, as JSON."""

    def to_dict(self) -> dict[str, Any]: ...


@runtime_checkable
class OfBytes(Protocol):
    """A tokenizer whose tokens are bytes: a token may hold a part of a character."""

    @property
    def tokens(self) -> Sequence[bytes]: ...
    def decode_bytes(self, ids: Iterable[int]) -> bytes: ...


@runtime_checkable
class Ending(Protocol):
    """A tokenizer with tokens by which a model ends its text."""

    @property
    def stops(self) -> frozenset[int]: ...


def token_bytes(tokenizer: Tokenizer) -> list[bytes]:
    """Returns the UTF-8 bytes of every token, by id. A token may hold a part of a character."""
    if isinstance(tokenizer, OfBytes):
        return list(tokenizer.tokens)
    return [tokenizer.decode([i]).encode("utf-8", "surrogatepass") for i in range(tokenizer.vocab_size)]


def ends(tokenizer: Tokenizer) -> frozenset[int]:
    """Returns the ids by which a model ends its text or its turn, if it has any."""
    return tokenizer.stops if isinstance(tokenizer, Ending) else frozenset()


def characters(tokenizer: Tokenizer) -> np.ndarray:
    """Counts the characters that begin in each token, by id: int64 (vocab,).

    A character begins at the one byte of its UTF-8 that is not of the form 10xxxxxx (RFC 3629). So the sum
    over the tokens of a text is the text's length, even where a character lies in two tokens.

    >>> from engine.data.tokenizers.char import CharTokenizer
    >>> characters(CharTokenizer("aé")).tolist()
    [1, 1]
    """
    return np.array(
        [sum(byte & 0xC0 != 0x80 for byte in token) for token in token_bytes(tokenizer)], dtype=np.int64
    )


def readable(data: bytes, final: bool = True) -> str:
    r"""Returns bytes as text; a byte that belongs to no complete character is shown as itself, as Python
    writes it.

    With `final` False, bytes at the end that may still become a character are held back.

    >>> readable(b"\xe2\x82"), readable("€".encode()), readable(b"a\xe2\x82", final=False)
    ('\\xe2\\x82', '€', 'a')
    """
    return codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(data, final)


def written(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Returns ids as text, as far as they make complete characters: never a replacement sign.

    A byte that is no character is shown as by `readable`; a character that has begun at the end is held back.
    """
    return (
        readable(tokenizer.decode_bytes(ids), final=False)
        if isinstance(tokenizer, OfBytes)
        else tokenizer.decode(list(ids))
    )
