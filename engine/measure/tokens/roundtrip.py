"""A text into ids and back: what returns, and what has no id at all."""

from __future__ import annotations

from dataclasses import dataclass

from engine.data.tokenizers.char import CharTokenizer
from engine.data.tokenizers.words import UNKNOWN, WordTokenizer
from engine.measure.tokens.vocabulary import (
    Cut,
    Encoder,
    cut_characters,
    cut_tokens,
    cut_words,
)

NO_WORD = "⟨unknown⟩"  # stands for a word that is not in the list


@dataclass(frozen=True, eq=False)
class RoundTrip:
    """`cut` are the ids of a text, `back` is the text that they are decoded to. `lost` are the characters or
    words without an id, each once.
    """

    cut: Cut
    back: str
    lost: tuple[str, ...]
    same: bool  # the text came back letter for letter


def of_characters(text: str, alphabet: str) -> RoundTrip:
    """One id a character; what is not in the alphabet has none, and is missing in what comes back."""
    known = CharTokenizer(alphabet)
    lost = tuple(known.unknown(text))
    back = known.decode(known.encode("".join(c for c in text if c not in lost)))
    return RoundTrip(cut_characters(text, alphabet), back, lost, back == text)


def of_words(text: str, known: WordTokenizer) -> RoundTrip:
    """One id a word. Blanks have none: words come back with one blank between them, an unknown one as
    NO_WORD.
    """
    cut = cut_words(text, known)
    data = text.encode("utf-8")
    words = [known.words[i] if i != UNKNOWN else NO_WORD for i in cut.ids.tolist()]
    lost = dict.fromkeys(
        data[start : start + length].decode("utf-8")
        for i, start, length in zip(cut.ids.tolist(), cut.starts.tolist(), cut.lengths.tolist(), strict=True)
        if i == UNKNOWN
    )
    back = " ".join(words)
    return RoundTrip(cut, back, tuple(lost), back == text)


def of_tokens(text: str, encoder: Encoder) -> RoundTrip:
    """Pieces that begin from the 256 bytes: whatever is typed has ids, and their bytes are the text."""
    cut = cut_tokens(text, encoder)
    back = encoder.decode_bytes(encoder.encode(text)).decode("utf-8", "replace")
    return RoundTrip(cut, back, (), back == text)
