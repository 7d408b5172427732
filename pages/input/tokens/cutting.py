"""The tokenizers that are compared, by name: how each cuts a text, what comes back, and its entries."""

from __future__ import annotations

from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.published import PUBLISHED, PublishedTokenizer
from engine.data.tokenizers.words import WordTokenizer
from engine.errors import TokenizerError
from engine.measure.tokens.vocabulary import (
    Cut,
    RoundTrip,
    cut_bytes,
    cut_characters,
    cut_tokens,
    cut_words,
    of_bytes,
    of_characters,
    of_tokens,
    of_words,
)
from pages.input.tokens import shared
from ui import memo

SIZES = (300, 512, 1024, 4096)
TOKENIZERS = {
    "characters": "Characters",
    "bytes": "Bytes",
    "words": "Words",
    **{f"bpe-{size}": f"BPE {size:,}" for size in SIZES},
    **{name: name for name in PUBLISHED},
}
SHOWN = 1500  # characters whose tokens are drawn; the numbers are of the whole text

Encodings = dict[str, PublishedTokenizer]


def _encoder(
    name: str, known: shared.Sources, encodings: Encodings
) -> BpeTokenizer | PublishedTokenizer | None:
    """A tokenizer of pieces; None for bytes, characters and words."""
    if name.startswith("bpe-"):
        return shared.smaller(known, requested_size(name))
    return encodings.get(name)


def _words(known: shared.Sources) -> WordTokenizer:
    listed = shared.known_words(known)
    if listed is None:
        raise TokenizerError("this text contains no word")
    return listed


def _alphabet(known: shared.Sources) -> str:
    return shared.alphabet(known.name, known.custom, known.text)


def vocabulary_of(name: str, known: shared.Sources, encodings: Encodings) -> int:
    """Entries of a tokenizer's vocabulary."""
    if (encoder := _encoder(name, known, encodings)) is not None:
        return encoder.vocab_size
    if name == "words":
        return _words(known).vocab_size
    return 256 if name == "bytes" else len(_alphabet(known))


@memo.measured()
def cut_of(
    name: str, source: str, custom: str, text: str, _known: shared.Sources, _encodings: Encodings
) -> Cut:
    """Returns a text in tokens. Raises TokenizerError where the tokenizer cannot cut it."""
    if (encoder := _encoder(name, _known, _encodings)) is not None:
        return cut_tokens(text, encoder, SHOWN)
    if name == "words":
        return cut_words(text, _words(_known), SHOWN)
    return cut_bytes(text, SHOWN) if name == "bytes" else cut_characters(text, _alphabet(_known), SHOWN)


def trip_of(name: str, text: str, known: shared.Sources, encodings: Encodings) -> RoundTrip:
    """Returns a text's ids, and the text that they are decoded to. Raises TokenizerError like `cut_of`."""
    if (encoder := _encoder(name, known, encodings)) is not None:
        return of_tokens(text, encoder)
    if name == "words":
        return of_words(text, _words(known))
    return of_bytes(text) if name == "bytes" else of_characters(text, _alphabet(known))


def requested_size(name: str) -> int:
    """Entries that one of our BPEs was asked for."""
    return int(name.removeprefix("bpe-"))


def kind_of(name: str) -> str:
    """Returns the kind of a tokenizer: without learning, learned here, or published."""
    return "published" if name in PUBLISHED else "ours" if name.startswith("bpe-") else "plain"
