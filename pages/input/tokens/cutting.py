"""The tokenizers that are compared, by name: how each cuts a text, and how large its vocabulary is."""

from __future__ import annotations

import streamlit as st

from engine.data.tokenizers.published import PUBLISHED, PublishedTokenizer
from engine.errors import TokenizerError
from engine.measure.tokens.vocabulary import (
    Cut,
    cut_bytes,
    cut_characters,
    cut_tokens,
    cut_words,
)
from pages.input.tokens import shared

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


def vocabulary_of(name: str, known: shared.Sources, encodings: Encodings) -> int:
    """Entries of a tokenizer's vocabulary."""
    if name in encodings:
        return encodings[name].vocab_size
    if name.startswith("bpe-"):
        return shared.smaller(known, requested_size(name)).vocab_size
    listed = shared.known_words(known) if name == "words" else None
    return {
        "bytes": 256,
        "characters": len(shared.alphabet(known.name, known.custom, known.text)),
        "words": listed.vocab_size if listed else 0,
    }[name]


@st.cache_resource(max_entries=256, show_spinner=False)
def cut_of(
    name: str, source: str, custom: str, text: str, _known: shared.Sources, _encodings: Encodings
) -> Cut:
    if name in _encodings:
        return cut_tokens(text, _encodings[name], SHOWN)
    if name.startswith("bpe-"):
        return cut_tokens(text, shared.smaller(_known, requested_size(name)), SHOWN)
    if name == "bytes":
        return cut_bytes(text, SHOWN)
    if name == "characters":
        return cut_characters(text, shared.alphabet(_known.name, _known.custom, _known.text), SHOWN)
    listed = shared.known_words(_known)
    if listed is None:
        raise TokenizerError("this text contains no word")
    return cut_words(text, listed, SHOWN)


def requested_size(name: str) -> int:
    """Entries that one of our BPEs was asked for."""
    return int(name.removeprefix("bpe-"))


def kind_of(name: str) -> str:
    """Returns the kind of a tokenizer: without learning, learned here, or published."""
    return "published" if name in PUBLISHED else "ours" if name.startswith("bpe-") else "plain"
