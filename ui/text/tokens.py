"""Tokens as they can be read: blanks, marks, invisible signs, and bytes that are only a part of a
character.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from engine.data.tokenizers import UNUSED, Tokenizer, token_bytes
from studies.pairs.tokenizer import SIGNS, SourceTokenizer
from studies.tokens.blanks import BlankTokenizer

LONGEST = 120  # characters of a token that are shown
_KEPT = {" ": "␣", "\n": "⏎", "\t": "⇥", "\x7f": "␡"}
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}


@lru_cache(maxsize=20_000)
def parts(token: bytes) -> tuple[tuple[str, bool], ...]:
    r"""Returns a token's bytes as they are shown: its characters, made visible, and bytes that make no whole
    character as two hexadecimal digits each.

    The flag says which of the two. Never a replacement sign.

    >>> parts("€".encode()[:2]), parts(" €".encode()[:3])
    ((('E2 82', True),), (('␣', False), ('E2 82', True)))
    """
    pieces: list[tuple[str, bool]] = []
    rest = token
    while rest:
        try:
            pieces.append((show_characters(rest.decode("utf-8", "surrogatepass")), False))
            break
        except UnicodeDecodeError as error:
            if error.start:
                pieces.append((show_characters(rest[: error.start].decode("utf-8", "surrogatepass")), False))
            end = error.start + 1
            while end < len(rest) and rest[end] & 0xC0 == 0x80:  # on to the next byte that begins a character
                end += 1
            pieces.append((rest[error.start : end][:16].hex(" ").upper(), True))
            rest = rest[end:]
    return tuple(pieces)


def show_bytes(token: bytes) -> str:
    r"""Returns the same on one line: bytes stand between ⟨ and ⟩.

    >>> show_bytes(b" the\n"), show_bytes(b" \xf0\x9f"), show_bytes(b"")
    ('␣the⏎', '␣⟨F0 9F⟩', '∅')
    >>> show_bytes("\u0301".encode()), show_bytes("\u200d".encode())
    ('◌́', 'U+200D')
    """
    return "".join(f"⟨{piece}⟩" if is_bytes else piece for piece, is_bytes in parts(token)) or "∅"


def is_partial(token: bytes) -> bool:
    """True if a token holds a part of a character.

    >>> is_partial("€".encode()), is_partial("€".encode()[:2])
    (False, True)
    """
    try:
        token.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return True
    return False


def show_characters(text: str) -> str:
    """Returns a text in which everything can be seen, shortened where it is long."""
    shown = "".join(each_shown(text, LONGEST))
    return shown if len(text) <= LONGEST else f"{shown}… ({len(text):,} characters)"


def each_shown(text: str, most: int) -> list[str]:
    r"""Returns the first characters of a text as they can be seen. A joiner between two signs does its work
    there, and is left; alone it is named.

    >>> each_shown("a\u2028\r\n", 9)
    ['a', 'U+2028', '␍', '⏎']
    """
    last = len(text) - 1
    return [_visible(c, inside=0 < i < last, first=i == 0) for i, c in enumerate(text[:most])]


def _visible(c: str, *, inside: bool, first: bool) -> str:
    if c in _KEPT:
        return _KEPT[c]
    if c < " ":
        return chr(0x2400 + ord(c))
    kind = unicodedata.category(c)
    joins = c in "\u200c\u200d" or "\U000e0020" <= c <= "\U000e007f"
    if (kind in _HIDDEN and not (joins and inside)) or (first and "\ufe00" <= c <= "\ufe0f"):
        return f"U+{ord(c):04X}"
    return f"◌{c}" if first and kind.startswith("M") else c


def names_of(tokenizer: Tokenizer) -> list[str]:
    """Returns every token as it is shown, by id: signs that no text holds by their names.

    >>> from engine.data.tokenizers.char import CharTokenizer
    >>> names_of(BlankTokenizer(CharTokenizer("a ")))
    ['a', '␣', '[mask]']
    """
    if isinstance(tokenizer, SourceTokenizer):
        return [*SIGNS, *(show_characters(name) for name in tokenizer.symbols)]
    if isinstance(tokenizer, BlankTokenizer):
        return [*names_of(tokenizer.inner), "[mask]"]
    tokens, known = token_bytes(tokenizer), tokenizer.vocab_size
    return [show_bytes(token) for token in tokens[:known]] + [UNUSED] * (len(tokens) - known)
