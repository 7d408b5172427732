"""The class of each token of a vocabulary, and how often it occurs."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine.data.tokenizers import Tokenizer, token_bytes

CHARACTERS = ("vowels", "consonants", "capitals", "digits", "punctuation", "whitespace", "other")
PIECES = (
    "begins a word", "inside a word", "capitalised", "digits", "punctuation", "whitespace",
    "part of a character", "other",
)  # fmt: skip


def token_classes(
    tokens: Sequence[bytes], vocab_size: int | None = None
) -> tuple[tuple[str, ...], np.ndarray]:
    """Returns the names of the classes and the class of each token, (vocab,) int64. Tokens beyond the given
    ones, such as a mask, are `other`.

    Where every token is one character: vowels, consonants, capitals, digits ... Else pieces of a BPE: by
    whether they begin with a space, lie inside a word, begin with a capital, or are part of a character.

    >>> names, classes = token_classes([b"a", b"T", b"z", b","])
    >>> [names[i] for i in classes]
    ['vowels', 'capitals', 'consonants', 'punctuation']
    >>> names, classes = token_classes([b" the", b"ing", b"\\xe2"])
    >>> [names[i] for i in classes]
    ['begins a word', 'inside a word', 'part of a character']
    """
    texts = [_text(token) for token in tokens]
    single = all(text is not None and len(text) < 2 for text in texts)  # signs are empty
    names = CHARACTERS if single else PIECES
    kind = _character if single else _piece
    result = [names.index(kind(text)) for text in texts]
    beyond = max(0, (vocab_size or 0) - len(result))
    return names, np.asarray(result + [names.index("other")] * beyond, dtype=np.int64)


def _text(token: bytes) -> str | None:
    try:
        return token.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def _character(char: str | None) -> str:
    if not char:
        return "other"
    if char.isspace():
        return "whitespace"
    if char.isdecimal():
        return "digits"
    plain = unicodedata.normalize("NFD", char)[0]
    if char.isalpha():
        return (
            "capitals"
            if char.isupper()
            else "other"
            if not char.islower()
            else "vowels"
            if plain in "aeiou"
            else "consonants"
        )
    return "punctuation" if unicodedata.category(char)[0] in "PS" else "other"


def _piece(text: str | None) -> str:
    if text is None:
        return "part of a character"
    bare = text.strip()
    if text and not bare:
        return "whitespace"
    if bare.isdecimal():
        return "digits"
    if bare and all(unicodedata.category(c)[0] in "PS" for c in bare):
        return "punctuation"
    if not any(c.isalpha() for c in bare):
        return "other"
    if bare.lstrip("'")[:1].isupper():
        return "capitalised"
    return "begins a word" if text[0].isspace() else "inside a word"


def token_counts(text: str, tokenizer: Tokenizer, vocab_size: int) -> np.ndarray:
    """Counts each token in a text, (vocab,) int64; characters that the tokenizer lacks are left out."""
    unknown = set(tokenizer.unknown(text))
    kept = "".join(c for c in text if c not in unknown) if unknown else text
    array = getattr(tokenizer, "encode_array", None)
    ids = np.asarray(array(kept) if array is not None else tokenizer.encode(kept), dtype=np.int64)
    return np.bincount(ids, minlength=vocab_size)[:vocab_size]


def case_pairs(tokens: Sequence[bytes]) -> np.ndarray:
    """Returns the ids of every small letter or word and of the same with a capital, (pair, 2).

    >>> case_pairs([b"A", b"a", b"b", b" the", b" The"]).tolist()
    [[1, 0], [3, 4]]
    """
    ids = {text: i for i, token in enumerate(tokens) if (text := _text(token))}
    result = [
        (i, ids[capital])
        for text, i in ids.items()
        if (capital := text.title()) in ids and capital != text and text == text.lower()
    ]
    return np.asarray(result, dtype=np.int64).reshape(-1, 2)


# The vocabulary of one model --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens of a model: their classes, and their counts in the training text, where that is at hand."""

    names: tuple[str, ...]  # of the classes
    classes: np.ndarray = field(repr=False)  # (vocab,)
    counts: np.ndarray | None = field(repr=False)  # (vocab,)
    cases: np.ndarray = field(repr=False)  # (pair, 2): ids of a token and of the same with a capital

    @property
    def size(self) -> int:
        return len(self.classes)

    @property
    def letters(self) -> bool:
        """True if every token is one character."""
        return self.names == CHARACTERS

    @property
    def frequency(self) -> np.ndarray | None:
        """The token frequency log10(1 + count), (vocab,)."""
        return None if self.counts is None else np.log10(1.0 + self.counts)

    @cached_property
    def met(self) -> np.ndarray:
        """The ids, ascending, of the tokens that occur in the training text; all, where nothing was counted.
        Rows that training never touched would decide the mean and the axes: of 300 tokens that start from
        bytes, 191 never occur in Shakespeare.
        """
        result = np.flatnonzero(self.counts) if self.counts is not None else np.zeros(0, np.int64)
        return result if len(result) > 2 else np.arange(self.size)

    @property
    def never_met(self) -> int:
        """The number of tokens that are not measured."""
        return self.size - len(self.met)

    def drawn(self, most: int) -> np.ndarray:
        """Returns the ids, ascending, of the tokens to draw: the `most` most frequent that were met."""
        ids = self.met
        if len(ids) <= most:
            return ids
        order = ids if self.counts is None else ids[np.argsort(-self.counts[ids], kind="stable")]
        return np.sort(order[:most])

    def members(self, name: str) -> np.ndarray:
        """Returns the ids of a class that occur, the most frequent first; by id, if not counted."""
        ids = np.flatnonzero(self.classes == self.names.index(name))
        if self.counts is None:
            return ids
        ids = ids[self.counts[ids] > 0]
        return ids[np.argsort(-self.counts[ids], kind="stable")]

    def paired(self) -> np.ndarray:
        """Returns the `cases` of which both were met, as indices among `met`: (pair, 2)."""
        cases = self.cases[np.isin(self.cases, self.met).all(1)]
        return np.searchsorted(self.met, cases)


def vocabulary(tokenizer: Tokenizer, vocab_size: int, text: str | None = None) -> Vocabulary:
    """Returns the vocabulary of a model with `vocab_size` tokens; counted in `text`, where there is one."""
    tokens = token_bytes(tokenizer)
    names, classes = token_classes(tokens, vocab_size)
    counts = None if text is None else token_counts(text, tokenizer, vocab_size)
    return Vocabulary(names, classes, counts, case_pairs(tokens))
