"""What the views of the Embeddings page share: the vocabulary with its classes and counts, the chosen token,
a run's snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import streamlit as st

from engine import corpora
from engine.errors import GlassformerError
from engine.measure.embeddings import case_pairs, embedding_of, token_bytes, token_classes, token_counts
from engine.tokenizers import Tokenizer
from ui import state
from ui.subject import Subject
from ui.text.tokens import show_bytes

TOKEN = "embed_token"
MAP, NEAR, CLOUD = "embed_map", "embed_near", "embed_cloud"  # figures whose points can be clicked
DRAWN = 1200  # tokens that a picture shows at most
NAMED = 160  # of them that carry their name


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """`words` are unique; `counts` is None where the text of the training is not at hand."""

    words: tuple[str, ...] = field(repr=False)
    names: tuple[str, ...]  # of the classes
    classes: np.ndarray = field(repr=False)  # (vocab,)
    counts: np.ndarray | None = field(repr=False)  # (vocab,)
    letters: bool  # every token is one character
    cases: np.ndarray = field(repr=False)  # (pair, 2): ids of a token and of the same with a capital

    @property
    def frequency(self) -> np.ndarray | None:
        """log10(1 + count), (vocab,)."""
        return None if self.counts is None else np.log10(1.0 + self.counts)

    @cached_property
    def met(self) -> np.ndarray:
        """Ids, ascending, of the tokens that occur in the text of the training; all, where nothing was
        counted. What is measured is measured of these: of 300 tokens that start from bytes, 191 never occur
        in Shakespeare, and their untaught rows would decide the mean and the axes.
        """
        found = np.flatnonzero(self.counts) if self.counts is not None else np.zeros(0, np.int64)
        return found if len(found) > 2 else np.arange(len(self.words))

    @property
    def left_out(self) -> str:
        """A sentence about the others; empty where there are none."""
        others = len(self.words) - len(self.met)
        return (
            f" {others:,} tokens that never occur in the text of the training are left out: nothing has"
            " taught them."
            if others
            else ""
        )

    def drawn(self, most: int | None = None) -> np.ndarray:
        """Ids of the tokens that are drawn: all that were met, or the `most` (DRAWN) most frequent; the
        lowest ids, where nothing was counted.
        """
        ids, most = self.met, DRAWN if most is None else most
        if len(ids) <= most:
            return ids
        order = ids if self.counts is None else ids[np.argsort(-self.counts[ids], kind="stable")]
        return np.sort(order[:most])


def vocabulary_of(subject: Subject) -> Vocabulary:
    return _vocabulary(subject.key[0], subject.config.vocab_size, subject.corpus, subject.tokenizer)


@st.cache_resource(max_entries=16, show_spinner="Counting the tokens of the text …")
def _vocabulary(model: str, vocab_size: int, corpus: str | None, _tokenizer: Tokenizer) -> Vocabulary:
    tokens = token_bytes(_tokenizer)
    names, classes = token_classes(tokens, vocab_size)
    words = [show_bytes(token) for token in tokens]
    words += ["[mask]"] * (vocab_size - len(words))
    met: set[str] = set()
    for i, word in enumerate(words):
        if word in met:
            words[i] = f"{word} #{i}"
        met.add(words[i])
    text = _text(corpus)
    counts = None if text is None else token_counts(text, _tokenizer, vocab_size)
    return Vocabulary(tuple(words), names, classes, counts, "vowels" in names, case_pairs(tokens))


def _text(corpus: str | None) -> str | None:
    """A corpus that this server has already: a colour is not worth a download."""
    if corpus is None or (corpus == "shakespeare" and corpora.shakespeare_path() is None):
        return None
    try:
        return state.corpus(corpus).text
    except GlassformerError:
        return None


def matrix_of(subject: Subject) -> np.ndarray:
    """E, (vocab, d_model)."""
    return embedding_of(subject.model)


def choose_token(subject: Subject, known: Vocabulary) -> int:
    """Id of the token that is looked at: clicked in one of the figures, chosen in the box, or named in the
    URL by its word.
    """
    options = list(known.words)
    held = st.session_state.get(TOKEN)
    clicked = next(
        (found for key in (MAP, NEAR, CLOUD) if (found := _clicked(key, len(options))) is not None), None
    )
    if clicked is not None:
        st.session_state[TOKEN] = options[clicked]
    elif held is not None and held not in options:
        del st.session_state[TOKEN]
    first = next(
        (options.index(word) for word in ("e", "␣the", "e #") if word in options), min(1, len(options) - 1)
    )
    word = st.selectbox(
        "Token",
        options,
        index=first,
        key=TOKEN,
        bind="query-params",
        help="Whose neighbours are shown. A click on a point or a bar chooses it as well.",
    )
    return options.index(word) if word in options else first


def _clicked(key: str, count: int) -> int | None:
    """The id that a click on the figure `key` has just named."""
    value = st.session_state.get(key)
    text = value.get("clicked") if value is not None and hasattr(value, "get") else None
    return (
        int(text)
        if isinstance(text, str)
        and text.isascii()
        and text.isdecimal()
        and len(text) < 7
        and int(text) < count
        else None
    )


def pick(place: object, label: str, options: list[str], key: str, hint: str | None = None) -> str:
    """A choice of a few in a row; what a stranger's link asks for falls back to the first."""
    chosen = place.segmented_control(  # type: ignore[attr-defined]
        label, options, default=options[0], required=True, key=key, bind="query-params", help=hint
    )
    return chosen if chosen in options else options[0]
