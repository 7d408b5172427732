"""A passage of held-out text, and the nats that each predictor needs for its characters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from engine.data import corpora
from engine.data.corpus import Corpus
from engine.data.tokenizers import Tokenizer
from engine.errors import CorpusError
from engine.model import Transformer
from studies.generation.guessing_game import (
    Passage,
    Turn,
    draw_passage,
    model_log_p,
    nats_of,
    ngram_log_p,
    turns_of,
)
from ui import content, memo, models, session, widgets
from ui.model_bar import Subject
from ui.run_text import corpus_of
from ui.text.markdown import sentence

TEXT = content.beside(__file__)
SOURCES = ("shakespeare", "python")
OWN_TEXT = "text"  # the source of a run on a text of this browser's
ENOUGH_KNOWN = 0.5  # share of a text's characters, below which it makes no sense without the others
SEED = "you_seed"  # of the passage, in the address
MAX_SEED = 10_000
LEAD, MOST = 100, 240  # characters: shown before the first guess, at least; guessed, at most
MODEL = "model"


@dataclass(frozen=True, eq=False)
class Studied:
    """A passage of the corpus `source`, in a model's alphabet. `nats`: -ln p of each guessed character, by
    predictor, (character,); `turns`: how each would guess it; `log_p`: ln p of the whole alphabet by the
    model, (character, vocab).
    """

    source: str
    passage: Passage
    nats: Mapping[str, np.ndarray] = field(repr=False)
    turns: Mapping[str, list[Turn]] = field(repr=False)
    log_p: np.ndarray = field(repr=False)


def studied(subject: Subject, seed: int) -> Studied:
    """Returns the passage of that seed. Raises CorpusError where there is no text, or too short a one."""
    return _studied(subject.key, _source(subject), seed, subject.tokenizer, subject.model)


def passage_shown(subject: Subject) -> Studied | None:
    """Returns the passage of the address, and says where it is of a text that the model was not trained on;
    None, with a sentence, where there is none, and where the model has diverged.
    """
    try:
        found = studied(subject, seed_shown())
    except CorpusError as error:
        st.info(sentence(error), icon=":material/info:")
        return None
    if not np.isfinite(found.log_p).all():
        st.warning(TEXT["diverged"])
        return None
    if found.source in (OWN_TEXT, subject.corpus):
        return found
    case = "not here" if subject.corpus in SOURCES else "unknown"
    st.caption(TEXT(case, source=TEXT[f"source {found.source}"]))
    return found


def seed_shown() -> int:
    """Returns the seed of the address."""
    return widgets.url_index(SEED, MAX_SEED) or 0


def next_passage() -> None:
    """Puts the seed of another passage into the address."""
    widgets.put_index(SEED, (seed_shown() + 1) % MAX_SEED or None)


def _source(subject: Subject) -> str:
    """The text that the model was trained on, if it is here, else the one that always is. Somebody else's
    text is not shown to who has a link to its model.
    """
    if _own_text(subject.key[0]) is not None:
        return OWN_TEXT
    wanted = subject.corpus if subject.corpus in SOURCES else "shakespeare"
    return "python" if wanted == "shakespeare" and corpora.shakespeare_path() is None else wanted


def _own_text(name: str) -> Corpus | None:
    """The text of a run that this browser has started on one of its own."""
    run = models.run_of(name)
    if run is None or run.spec.corpus != OWN_TEXT:
        return None
    return corpus_of(run.spec) if session.manager().may_control(run.id, session.owner()) else None


@memo.measured("Scoring a passage …")
def _studied(
    key: tuple[str, int], source: str, seed: int, _tokenizer: Tokenizer, _model: Transformer
) -> Studied:
    train, text = _splits(key[0], source, _tokenizer)
    blanks = {i for i in range(_tokenizer.vocab_size) if _tokenizer.decode([i]).isspace()}
    line_break = next((i for i in blanks if _tokenizer.decode([i]) == "\n"), None)
    found = draw_passage(text, seed, lead=LEAD, most=MOST, blanks=blanks, line_break=line_break)
    log_p = ngram_log_p(train, found, _tokenizer.vocab_size) | {MODEL: model_log_p(_model, found)}
    nats = {name: nats_of(each, found.ids) for name, each in log_p.items()}
    turns = {name: turns_of(each, found.ids) for name, each in log_p.items() if name != "uniform"}
    return Studied(source, found, nats, turns, log_p[MODEL])


@memo.loaded()
def _splits(model: str, source: str, _tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """(training split, validation split) in a model's tokens, (token,), without what it does not know."""
    corpus = _own_text(model) if source == OWN_TEXT else session.corpus(source)
    if corpus is None:  # gone in this moment
        raise CorpusError(TEXT["gone"])
    if corpus.tokenizer == _tokenizer:
        return corpus.train.numpy(), corpus.validation.numpy()
    cut = len(corpus.text) - len(corpus.validation)  # a corpus is cut into characters
    train, validation = (_known(part, _tokenizer) for part in (corpus.text[:cut], corpus.text[cut:]))
    return train, validation


def _known(text: str, tokenizer: Tokenizer) -> np.ndarray:
    """The tokens of a text without what the tokenizer lacks. Raises CorpusError where that is most of it."""
    unknown = set(tokenizer.unknown(text))
    kept = "".join(c for c in text if c not in unknown) if unknown else text
    if len(kept) < ENOUGH_KNOWN * len(text):
        raise CorpusError(TEXT("foreign", share=len(kept) / len(text)))
    return np.array(tokenizer.encode(kept), dtype=np.int64)
