"""The tokenizers that are compared, by name: what each makes of a text, its entries and colour."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

import streamlit as st

from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.words import WordTokenizer
from engine.errors import TokenizerError
from pages.input.tokens.training_text import Sources, alphabet, known_words, smaller
from studies.tokens import published
from studies.tokens.published import PUBLISHED, PublishedTokenizer
from studies.tokens.vocabulary import (
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
from ui import content, memo
from ui.figures.theme import colour

TEXT = content.beside(__file__)
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


def _encoder(name: str, known: Sources, encodings: Encodings) -> BpeTokenizer | PublishedTokenizer | None:
    """A tokenizer of pieces; None for bytes, characters and words."""
    if name.startswith("bpe-"):
        return smaller(known, requested_size(name))
    return encodings.get(name)


def _words(known: Sources) -> WordTokenizer:
    listed = known_words(known)
    if listed is None:
        raise TokenizerError(TEXT["no word"])
    return listed


def _alphabet(known: Sources) -> str:
    return alphabet(known.name, known.custom, known.text)


def vocabulary_of(name: str, known: Sources, encodings: Encodings) -> int:
    """Entries of a tokenizer's vocabulary."""
    if (encoder := _encoder(name, known, encodings)) is not None:
        return encoder.vocab_size
    if name == "words":
        return _words(known).vocab_size
    return 256 if name == "bytes" else len(_alphabet(known))


@memo.measured()
def cut_of(name: str, source: str, custom: str, text: str, _known: Sources, _encodings: Encodings) -> Cut:
    """Returns a text in tokens. Raises TokenizerError where the tokenizer cannot cut it."""
    if (encoder := _encoder(name, _known, _encodings)) is not None:
        return cut_tokens(text, encoder, SHOWN)
    if name == "words":
        return cut_words(text, _words(_known), SHOWN)
    return cut_bytes(text, SHOWN) if name == "bytes" else cut_characters(text, _alphabet(_known), SHOWN)


def trip_of(name: str, text: str, known: Sources, encodings: Encodings) -> RoundTrip:
    """Returns a text's ids, and the text that they are decoded to. Raises TokenizerError like `cut_of`."""
    if (encoder := _encoder(name, known, encodings)) is not None:
        return of_tokens(text, encoder)
    if name == "words":
        return of_words(text, _words(known))
    return of_bytes(text) if name == "bytes" else of_characters(text, _alphabet(known))


def requested_size(name: str) -> int:
    """Entries that one of our BPEs was asked for."""
    return int(name.removeprefix("bpe-"))


def is_ours(name: str) -> bool:
    """True if a tokenizer, by its name or title, is a BPE that was learned here."""
    return name.lower().startswith("bpe")


def colour_of(name: str) -> str:
    """Returns the colour of a tokenizer, by its name or title: published, learned here, or neither."""
    return colour("training" if name in PUBLISHED else "run0" if is_ours(name) else "quiet")


def encodings(names: Iterable[str]) -> Encodings:
    """Returns the published encodings of these names that can be had; `tell_missing` tells of the others."""
    failed = _failures()
    wanted = [name for name in names if name in PUBLISHED]
    fresh = [name for name in wanted if name not in failed]
    loaded: Encodings = {}
    if fresh:
        with nullcontext() if all(map(published.ready, fresh)) else st.spinner(TEXT["reading"]):
            loaded, problems = published.load_all(fresh)
        failed.update(problems)
    return {name: loaded[name] for name in wanted if name in loaded}


def at_hand(names: Iterable[str] = PUBLISHED) -> Encodings:
    """Returns those of the encodings that lie on this machine: nothing is fetched without a request."""
    return encodings(name for name in names if published.here(name))


def tell_missing(names: Iterable[str]) -> None:
    """Draws a line that says why encodings that were asked for are not shown, and a button that
    tries again.
    """
    failed = _failures()
    missing = [name for name in names if name in PUBLISHED and name in failed]
    if missing:
        why, again = st.columns([6, 1], vertical_alignment="center")
        why.caption(TEXT("shown without", missing=", ".join(missing), why=failed[missing[0]]))
        again.button(TEXT["again"], key="compare_retry", on_click=failed.clear)


@st.cache_resource(ttl=600, show_spinner=False)
def _failures() -> dict[str, str]:
    """Encoding -> why it could not be had, for a while: without this an offline page would try the network at
    every click.
    """
    return {}
