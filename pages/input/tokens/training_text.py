"""The text that our own tokenizers learn from, and what they learned: once for each text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial

import streamlit as st

from engine.data.progress import Steps
from engine.data.tokenizers import bpe
from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.words import WordTokenizer
from engine.errors import CorpusError, TokenizerError
from runs import bpe_process
from studies.tokens import bpe_work
from studies.tokens.vocabulary import prefix
from ui import content, memo, session
from ui.background_jobs import Key, known, measured
from ui.text.markdown import safe
from ui.widgets import select

TEXT = content.beside(__file__)
SOURCES = ("shakespeare", "python", "yours")
LARGEST = 8192  # the one training from which all smaller vocabularies are cut


@dataclass(frozen=True)
class Sources:
    """The text that our own tokenizers learn from. `custom` is the text itself where a visitor wrote it, else
    empty: together with `name` it names the text in caches.
    """

    name: str
    custom: str
    text: str


def called(name: str) -> content.Filled:
    """Returns whose text it is, as a sentence says it."""
    return TEXT(f"called {name}")


def choose_source(key: str, label: str, hint: str) -> str:
    """Draws the choice of one of SOURCES, kept in the URL under `key`."""
    names = {name: TEXT(f"source {name}") for name in SOURCES}
    return select(label, names, key, first="shakespeare", hint=hint, wrap=True)


def source(name: str, custom: str) -> Sources | None:
    """Returns the text of a source; the Python manual where Tiny Shakespeare cannot be had. None while its
    tokens are learned, with a bar, or where that was cancelled or is too much work, with a sentence.
    """
    sources = Sources("yours", custom, custom) if name == "yours" and custom else _built_in(name)
    most = session.profile().max_merging if sources.custom else None
    doing = TEXT("learning tokens", text=called(sources.name))
    learned = measured(
        _merges_of(sources.name, sources.custom), partial(_learning, sources.text, most), doing
    )
    return None if learned is None else sources


def _built_in(name: str) -> Sources:
    if name == "yours":
        st.info(TEXT["nothing to learn"])
        name = "python"
    return corpus(name)


def corpus(name: str) -> Sources:
    """Returns a corpus; the Python manual, with a line, in place of one that is not on this machine."""
    try:
        return Sources(name, "", session.corpus(name).text)
    except CorpusError as error:
        st.caption(TEXT["manual instead"], help=safe(str(error)))
        return Sources("python", "", session.corpus("python").text)


def trained(sources: Sources) -> BpeTokenizer:
    """Learns byte-level BPE with words kept apart, as far as LARGEST or as the text goes; once
    for each text.
    """
    return _trained(sources.name, sources.custom, sources.text)


def smaller(sources: Sources, size: int) -> BpeTokenizer:
    """Returns the same training, stopped at `size` tokens."""
    return _smaller(sources.name, sources.custom, size, trained(sources))


def known_words(sources: Sources) -> WordTokenizer | None:
    """Returns the words of the text; None where it has none."""
    return _words(sources.name, sources.custom, sources.text)


@memo.loaded(TEXT["learning"])
def _trained(name: str, custom: str, _text: str) -> BpeTokenizer:
    learned: BpeTokenizer | None = known(_merges_of(name, custom))
    return learned or bpe.train(_text, LARGEST)


def _merges_of(name: str, custom: str) -> Key:
    """Under this key their training is known (ui.background_jobs)."""
    return "merges", name, hashlib.sha256(custom.encode("utf-8", "surrogatepass")).hexdigest(), LARGEST


def _learning(text: str, most: int | None) -> Steps[BpeTokenizer]:
    """Refuses what is more work than `most`."""
    if most is not None:
        bpe_work.check(text, LARGEST, most)
    return (yield from bpe_process.learning(text, LARGEST))


@memo.loaded()
def _smaller(name: str, custom: str, size: int, _whole: BpeTokenizer) -> BpeTokenizer:
    return prefix(_whole, size)


@memo.loaded()
def _words(name: str, custom: str, _text: str) -> WordTokenizer | None:
    try:
        return WordTokenizer.train(_text)
    except TokenizerError:
        return None


@memo.measured(copied=True)
def alphabet(name: str, custom: str, _text: str) -> str:
    """Returns the distinct characters of a text, by code point."""
    return "".join(sorted(set(_text)))
