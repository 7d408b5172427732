"""Code that the views comparing tokenizers share: the custom text, the text that BPE learns from, and the
tokenizers themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

import streamlit as st

from engine.data.progress import Steps
from engine.data.tokenizers import bpe, bpe_process, bpe_work, published
from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.published import PUBLISHED, PublishedTokenizer, whole_characters
from engine.data.tokenizers.words import WordTokenizer
from engine.errors import CorpusError, TokenizerError
from engine.measure.tokens.vocabulary import prefix
from pages.input.tokens.words_examples import EXAMPLES, LINE
from ui import session, widgets
from ui.background_jobs import Key, known, measured
from ui.text.markdown import safe
from ui.widgets import select

TEXT, EXAMPLE = "compare_text", "compare_example"
LINK = 6000  # characters of an address that a text may take; a longer one stays out of it
SOURCES = {"shakespeare": "Tiny Shakespeare", "python": "The Python manual", "yours": "Your text"}
LARGEST = 8192  # the one training from which all smaller vocabularies are cut


@dataclass(frozen=True)
class Sources:
    """The text that our own tokenizers learn from. `custom` is the text itself where a visitor wrote it, else
    empty: together with `name` it names the text in caches.
    """

    name: str
    custom: str
    text: str


def custom_text() -> str | None:
    """Draws the examples and, folded, the box. Returns the text in whole characters, or None, with a
    sentence, where it is too long.
    """
    if TEXT not in st.session_state:
        linked = widgets.read_url(TEXT)[: 2 * LINK]
        st.session_state[TEXT] = linked or st.session_state.get("kept_compare_text", LINE)
    held, halves = whole_characters(str(st.session_state[TEXT]))
    if halves:
        st.session_state[TEXT] = held
    # Streamlit's own: a button that puts a text into the box; the box has the value, and is in the link.
    st.pills(
        "Examples",
        list(EXAMPLES),
        key=EXAMPLE,
        label_visibility="collapsed",
        wrap=True,
        on_change=_take_example,
    )
    limit = session.profile().max_watched
    hint = (
        f"Anything, up to {limit:,} characters; {widgets.MUCH_LONGER} Press Ctrl+Enter to apply. A long text"
        " is not part of the link."
    )
    with st.popover("Your text", icon=":material/edit:"):
        typed = widgets.box("Your text", limit, TEXT, height=150, width=420, help=hint)
        st.session_state["kept_compare_text"] = typed
        text, more = whole_characters(typed)
        _to_link(text)
    if len(text) > limit:
        st.error(
            f"The text has {len(text):,} characters; at most {limit:,} are allowed here. Shorten it by"
            f" {len(text) - limit:,}."
        )
        return None
    if halves + more:
        st.caption(
            f":material/info: {halves + more:,} lone surrogates (half characters) cannot be encoded in UTF-8:"
            " each tokenizer reads U+FFFD instead."
        )
    return text


def _take_example() -> None:
    chosen = st.session_state.get(EXAMPLE)
    if chosen in EXAMPLES:
        st.session_state[TEXT] = EXAMPLES[chosen][0]
        st.session_state[EXAMPLE] = None


def _to_link(text: str) -> None:
    fits = len(text) <= LINK and len(quote(text)) <= LINK
    widgets.write_url(TEXT, None if text == LINE or not fits else text)
    if not fits:
        st.caption("The text is too long for the link: if you share it, others will see a different text.")


def choose_source(key: str, label: str, hint: str) -> str:
    """Draws the choice of one of SOURCES, kept in the URL under `key`."""
    return select(label, SOURCES, key, first="shakespeare", hint=hint, wrap=True)


def source(name: str, custom: str) -> Sources | None:
    """Returns the text of a source; the Python manual where Tiny Shakespeare cannot be had. None while its
    tokens are learned, with a bar, or where that was cancelled or is too much work, with a sentence.
    """
    found = Sources("yours", custom, custom) if name == "yours" and custom else _built_in(name)
    most = session.profile().max_merging if found.custom else None
    doing = f"Learning the tokens of {'your text' if found.custom else SOURCES[found.name]}"
    learned = measured(_merges_of(found.name, found.custom), partial(_learning, found.text, most), doing)
    return None if learned is None else found


def _built_in(name: str) -> Sources:
    if name == "yours":
        st.info(
            "There is nothing to learn from an empty text: the tokenizers below were trained on the Python"
            " manual."
        )
        name = "python"
    try:
        return Sources(name, "", session.corpus(name).text)
    except CorpusError as error:
        st.caption(
            f":material/info: {SOURCES[name]} is not on this machine: the Python manual is used instead.",
            help=safe(str(error)),
        )
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


@st.cache_resource(max_entries=6, show_spinner="Learning merges …")
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


@st.cache_resource(max_entries=48, show_spinner=False)
def _smaller(name: str, custom: str, size: int, _whole: BpeTokenizer) -> BpeTokenizer:
    return prefix(_whole, size)


@st.cache_resource(max_entries=6, show_spinner=False)
def _words(name: str, custom: str, _text: str) -> WordTokenizer | None:
    try:
        return WordTokenizer.train(_text)
    except TokenizerError:
        return None


@st.cache_data(max_entries=6, show_spinner=False)
def alphabet(name: str, custom: str, _text: str) -> str:
    """Returns the distinct characters of a text, by code point."""
    return "".join(sorted(set(_text)))


def encodings(names: Iterable[str]) -> dict[str, PublishedTokenizer]:
    """Returns the published encodings of these names that can be had; `tell_missing` tells of the others."""
    failed = _failures()
    wanted = [name for name in names if name in PUBLISHED]
    fresh = [name for name in wanted if name not in failed]
    found: dict[str, PublishedTokenizer] = {}
    if fresh:
        with (
            nullcontext()
            if all(map(published.ready, fresh))
            else st.spinner("Reading the published vocabularies …")
        ):
            found, problems = published.load_all(fresh)
        failed.update(problems)
    return {name: found[name] for name in wanted if name in found}


def at_hand(names: Iterable[str] = PUBLISHED) -> dict[str, PublishedTokenizer]:
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
        why.caption(
            f":material/cloud_off: Shown without {', '.join(map(safe, missing))}. {safe(failed[missing[0]])}."
        )
        again.button("Try again", key="compare_retry", on_click=failed.clear)


@st.cache_resource(ttl=600, show_spinner=False)
def _failures() -> dict[str, str]:
    """Encoding -> why it could not be had, for a while: without this an offline page would try the network at
    every click.
    """
    return {}
