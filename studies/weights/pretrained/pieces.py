"""How published vocabularies write their tokens down, and which bytes of a text each one stands for.

- byte-level BPE (GPT-2 and most since): a letter for every byte;
- SentencePiece (LLaMA 2, Gemma, T5; Kudo & Richardson 2018): `▁` for a blank, and `<0x0A>` for a byte, where
  what no token holds is spelled in bytes;
- WordPiece (BERT): `##` before what goes on a word (Schuster & Nakajima 2012).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import PretrainedError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Inner

BLANK = "▁"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class Writing:
    """One such way. `exact`: the bytes of tokens, side by side, are the text that was cut."""

    bytes_of: Callable[[str], bytes]
    exact: bool = False


def writing_of(inner: Inner) -> Writing:
    """Returns the way of a vocabulary. Raises PretrainedError for one that is not read here."""
    kind, described = type(inner.model).__name__, repr(inner.pre_tokenizer) + repr(inner.decoder)
    if "ByteLevel" in described:
        return BYTE_LEVEL
    if kind == "WordPiece":
        return WORD_PIECE
    if kind in ("BPE", "Unigram") and BLANK in described + repr(inner.normalizer):
        return SENTENCE_PIECE
    raise PretrainedError(
        f"tokenizer.json holds a vocabulary of type {kind} in a layout that is not supported: supported are"
        " byte-level, SentencePiece's and WordPiece's"
    )


def letters_as_bytes(token: str) -> bytes:
    r"""
    >>> letters_as_bytes("Ġthe"), letters_as_bytes("Ċ"), letters_as_bytes("Ã©")
    (b' the', b'\n', b'\xc3\xa9')
    """
    return bytes(_LETTERS[c] for c in token) if all(c in _LETTERS for c in token) else token.encode()


def blanks_as_bytes(token: str) -> bytes:
    r"""
    >>> blanks_as_bytes("▁the"), blanks_as_bytes("<0x0A>"), blanks_as_bytes("é")
    (b' the', b'\n', b'\xc3\xa9')
    """
    result = _BYTE.fullmatch(token)
    return bytes([int(result[1], 16)]) if result else token.replace(BLANK, " ").encode()


def words_as_bytes(token: str) -> bytes:
    """Returns the bytes of a WordPiece token: the blank before a word goes to its first token, so that tokens
    can be joined.

    >>> words_as_bytes("play"), words_as_bytes("##ing"), words_as_bytes("##")
    (b' play', b'ing', b' ##')
    """
    return token[2:].encode() if token.startswith("##") and len(token) > 2 else f" {token}".encode()


def _table() -> dict[str, int]:
    """GPT-2's letters for bytes: a printable byte is itself, the 68 others stand from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(rest)}


_LETTERS = _table()
_BY_BYTE = {byte: letter for letter, byte in _LETTERS.items()}


def letters(token: bytes) -> str:
    r"""Returns the bytes as byte-level vocabularies write them.

    >>> letters(b" the"), letters(b"\n")
    ('Ġthe', 'Ċ')
    """
    return "".join(_BY_BYTE[byte] for byte in token)


BYTE_LEVEL, SENTENCE_PIECE = Writing(letters_as_bytes, exact=True), Writing(blanks_as_bytes)
WORD_PIECE = Writing(words_as_bytes)
