"""The vocabulary as the views of Embeddings show it, and the chosen token."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from engine.data import corpora
from engine.data.tokenizers import Tokenizer
from engine.errors import GlassformerError
from studies.embeddings import token_classes
from studies.embeddings.table import embedding_of
from ui import content, memo, session, widgets
from ui.fields import visible
from ui.fit_text import token_named
from ui.model_bar import Subject
from ui.text.tokens import names_of

TEXT = content.beside(__file__)
TOKEN = "embed_token"
MAP, NEAR, CLOUD = "embed_map", "embed_near", "embed_cloud"  # figures whose points can be clicked
DRAWN = 1200  # tokens that a picture shows at most
NAMED = 160  # of them that carry their name
LISTED = 4096  # tokens of a vocabulary that is chosen from by a list; a longer one is typed from
MAX_TYPED = 60  # characters
FAVOURITES = ("e", "␣the", "e #", "dog", "two")  # one of these is looked at first


@dataclass(frozen=True, eq=False)
class Vocabulary(token_classes.Vocabulary):
    """The vocabulary with its tokens as they are shown. `words` are unique."""

    words: tuple[str, ...] = field(repr=False)


def vocabulary_of(subject: Subject) -> Vocabulary:
    return _vocabulary(subject.key[0], subject.config.vocab_size, subject.corpus, subject.tokenizer)


@memo.loaded(TEXT["counting"])
def _vocabulary(model: str, vocab_size: int, corpus: str | None, _tokenizer: Tokenizer) -> Vocabulary:
    known = token_classes.vocabulary(_tokenizer, vocab_size, _text(corpus))
    return Vocabulary(known.names, known.classes, known.counts, known.cases, words_of(_tokenizer, vocab_size))


def words_of(tokenizer: Tokenizer, vocab_size: int) -> tuple[str, ...]:
    """Returns every token as it is shown, by id; of two that look alike the later one has its id
    beside it.
    """
    words = names_of(tokenizer)
    words += ["[mask]"] * (vocab_size - len(words))
    met: set[str] = set()
    for i, word in enumerate(words):
        if word in met:
            words[i] = f"{word} #{i}"
        met.add(words[i])
    return tuple(words)


def _text(corpus: str | None) -> str | None:
    """A corpus that this server has already: a colour is not worth a download."""
    if corpus is None or (corpus == "shakespeare" and corpora.shakespeare_path() is None):
        return None
    try:
        return session.corpus(corpus).text
    except GlassformerError:
        return None


def finite_matrix(subject: Subject) -> np.ndarray | None:
    """Returns E, (vocab, d_model); None, with a sentence, where a training that diverged left no numbers."""
    matrix = embedding_of(subject.model)
    if _is_finite(subject.key, matrix):
        return matrix
    st.info(TEXT["not finite"])
    return None


@memo.measured()
def _is_finite(key: tuple[str, int], _matrix: np.ndarray) -> bool:
    return bool(np.isfinite(_matrix).all())


def choose_token(known: Vocabulary, tokenizer: Tokenizer) -> int:
    """Returns the id of the token that is looked at: clicked in one of the figures, chosen in the box, or
    named in the URL by its word. A vocabulary that is too long for a list is typed from.
    """
    options = known.words
    for figure in (MAP, NEAR, CLOUD):
        clicked = widgets.index_of(widgets.picked(figure, "clicked"), len(options))
        if clicked is not None:
            shown = options[clicked]
            exact = len(options) <= LISTED or shown.startswith("␣")
            st.session_state[TOKEN] = shown if exact else f'"{shown}"'
            break
    if len(options) > LISTED:
        hint = f"{TEXT['token hint']} {TEXT['typed hint']}"
        return typed_token(TEXT["token"], "␣Paris", TOKEN, known, tokenizer, hint)
    first = next((word for word in FAVOURITES if word in options), options[min(1, len(options) - 1)])
    hint = TEXT["token hint"]
    return options.index(widgets.select(TEXT["token"], options, TOKEN, first=first, kind="list", hint=hint))


def typed_token(
    label: str, first: str, key: str, known: Vocabulary, tokenizer: Tokenizer, hint: str = ""
) -> int:
    """Returns the id of the token that is typed; of a word that the model cuts, its first piece, which is
    said.
    """
    typed = st.text_input(label, first, key=key, help=hint or TEXT["typed hint"], **widgets.KEPT)
    text = visible(typed or "")[:MAX_TYPED]
    shown = text[1:-1] if len(text) > 2 and text[0] == text[-1] == '"' else text
    if (shown != text or not shown[:1].isalnum()) and shown in known.words:  # written as the figures write it
        return known.words.index(shown)
    ids = token_named(text, tokenizer) or token_named(first, tokenizer) or [0]
    if not text or len(ids) > 1:
        pieces = content.Filled(", ".join(TEXT("quoted", token=known.words[i]) for i in ids[:6]))
        st.caption(TEXT("cut" if text else "empty", count=len(ids), pieces=pieces))
    return ids[0]
