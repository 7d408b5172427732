"""The bar on top of every page that looks inside: which model, at which step of its training, reading which
text.

    with subject_bar() as subject:
        recording = subject.recording()
        ...  # draw the page

All of it is in the URL (`model`, `step`, `text`) and goes along from page to page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import streamlit as st

from engine.config import ResolvedConfig
from engine.data import corpora
from engine.data.tokenizers import UNUSED, Tokenizer
from engine.model import Transformer
from engine.recording import Recording, record
from studies.costs.ledger import shape_trace
from studies.pairs.checkpoints import PairCheckpoint
from studies.tokens.blanks import BlankTokenizer
from ui import families, fetching, frames, memo, models, session
from ui.fit_text import (
    FIRST_TEXT,
    FIRST_WORDS,
    most_tokens,
    read,
)
from ui.model_choice import choose_model
from ui.model_text import choose_text, first_of, settled_text
from ui.models import FIRST_MODEL, PRETRAINED, is_pretrained, kind_of
from ui.text.markdown import safe
from ui.text.tokens import names_of
from ui.timeline import Moment, scrubbed, timeline_of
from ui.training_step import NEWEST

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

BEGINS = 28  # characters of a text that its line shows


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, and the text that it reads. `key` and `ids` name it in caches: `model` itself must not be
    hashed.
    """

    key: tuple[str, int]  # (model, step of its training; NEWEST where it has none)
    title: str
    model: Transformer = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    text: str  # as the model sees it: cut, and without the characters it does not know
    ids: tuple[int, ...]
    corpus: str | None  # name of the text it was trained on, where the server has that; else None
    repeat: float = 0.0  # share of the windows that repeated themselves there (TrainConfig.repeat)
    pair: PairCheckpoint | None = None  # the encoder-decoder whose encoder `model` is

    @property
    def config(self) -> ResolvedConfig:
        return self.model.config

    @cached_property
    def labels(self) -> list[str]:
        """The tokens of the text as they are shown: spaces and line breaks visible. (position,)"""
        return [self.vocabulary[i] for i in self.ids]

    @cached_property
    def vocabulary(self) -> list[str]:
        """Every token as it is shown, by id: (vocab,)"""
        return _vocabulary(self.key[0], self.config.vocab_size, self.tokenizer)

    @property
    def is_pretrained(self) -> bool:
        """True if others trained it, on texts that are not here."""
        return is_pretrained(self.key[0])

    @property
    def gap(self) -> int | None:
        """Where the last gap of the text is that the model is to fill; None where there is none."""
        if not isinstance(self.tokenizer, BlankTokenizer) or self.tokenizer.mask_id not in self.ids:
            return None
        return len(self.ids) - 1 - self.ids[::-1].index(self.tokenizer.mask_id)

    def recording(self) -> Recording:
        """Returns every activation of the forward pass over the text; cached by model, step and text."""
        return _recording(self.key, self.ids, self.model)


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice in the bar: a model by its name, and the text it reads; None where the bar has no box for one.
    `facts` is the container below the name, `letters` the length of the text before it was cut.
    """

    name: str
    text: str | None
    facts: DeltaGenerator = field(repr=False)
    letters: int = 0


def choose_subject(
    text: str = FIRST_TEXT,
    model: str = FIRST_MODEL,
    asks: bool = True,
    words: str = FIRST_WORDS,
    *,
    best: Sequence[str] = (),
    view: str = "",
    walked: bool = False,
) -> Choice:
    """Draws one line that says which model is looked into and, where the bar `asks`, what it reads: `model`
    and `text`, or `words` for a model that was trained on much of them, until there are others. It opens, and
    holds the choice of both. `best`, `view` and `walked` as `choose_model` has them.
    """
    session.drop_endless()
    opened: list[DeltaGenerator] = []

    def line(name: str) -> DeltaGenerator:
        kind = kind_of(name)
        first = words if kind == "words" else text if kind == "letters" else first_of(kind)
        read = settled_text(first, kind) if asks else None
        opened.append(st.popover(_told(name, read), icon=":material/edit:", key="subject_bar"))
        return opened[0]

    name = choose_model(model, line, best=best, view=view, walked=walked)
    with opened[0] if opened else st.container():
        below = st.empty()
        fetching.more_models(PRETRAINED)
        read, letters = choose_text(kind_of(name)) if asks else (None, 0)
        return Choice(name, read, below, letters)


def _told(name: str, read: str | None) -> str:
    """The line: the model, and how its text begins."""
    title = models.title_of(name)
    if read is None:
        return safe(title)
    begins = " ".join(read[: 2 * BEGINS].split())
    return f"{safe(title)} · {safe(begins if len(begins) <= BEGINS else begins[:BEGINS] + ' …')}"


def subject_from(
    name: str,
    step: int,
    steps: Sequence[int],
    loaded: models.Loaded,
    text: str,
    ids: tuple[int, ...],
) -> Subject:
    """Makes the subject of a model `loaded` under that name, at a step of its `steps` (NEWEST: the last), and
    of the text it reads.
    """
    at = step if step != NEWEST else max(steps, default=NEWEST)
    corpus = loaded.metrics.get("corpus")
    known = corpus if corpus in corpora.names() else None
    title, repeat = models.title_of(name), models.repeat_of(loaded)
    pair = families.pair_of(name, at)
    return Subject((name, at), title, loaded.model, loaded.tokenizer, text, ids, known, repeat, pair)


def read_ahead(name: str) -> None:
    """Reads a published model before anybody asks for it, and what takes a second of the first visit to Home:
    the names of its tokens, the shapes of its activations. Raises GlassformerError where it cannot be read.
    """
    loaded = models.published(name)
    subject = subject_from(name, NEWEST, (), loaded, "", ())
    _ = subject.vocabulary
    shape_trace(subject.config, subject.model.parts)


@contextmanager
def subject_of(choice: Choice, draw: Callable[[Subject], object] | None = None) -> Iterator[Subject]:
    """Reads the model at the step of the scrubber, which is drawn on leaving; where `draw` draws a view of it
    that differs from step to step in its figures alone, it moves past Streamlit.
    """
    name = choice.name

    def at(step: int) -> None:
        assert draw is not None
        moment = Moment(timeline_of(name), step)
        if step not in (NEWEST, *moment.steps):  # thinned out meanwhile, or a stranger's
            frames.page_needed()
        draw(_read(choice, moment, models.model_of(name, step, moment.steps))[0])

    with scrubbed(name, draw=None if draw is None else at) as moment:
        step, steps = moment.step, moment.steps
        found = models.model_of(name, step, steps)
        total = moment.timeline.total if moment.timeline else None
        known = models.facts(name, found, total, step, steps), models.good_for(name)
        further = models.source_of(name).further(found, len(steps) or None)
        choice.facts.caption("  \n".join(filter(None, known)), help=further)
        subject, notes = _read(choice, moment, found)
        for note in notes if choice.text is not None else ():
            st.caption(f":material/info: {safe(note)}")
        yield subject


def _read(choice: Choice, moment: Moment, found: models.Loaded) -> tuple[Subject, tuple[str, ...]]:
    """(the subject at that moment, what has to be said of its text)"""
    text = FIRST_TEXT if choice.text is None else choice.text
    ids, shown, notes = read(text, found.tokenizer, most_tokens(found.config), choice.letters)
    return subject_from(choice.name, moment.step, moment.steps, found, shown, ids), tuple(notes)


@contextmanager
def subject_bar() -> Iterator[Subject]:
    """Draws the whole bar at once."""
    with subject_of(choose_subject()) as subject:
        yield subject


@memo.measured()
def _recording(key: tuple[str, int], ids: tuple[int, ...], _model: Transformer) -> Recording:
    return record(_model, ids)


@memo.loaded()
def _vocabulary(name: str, vocab_size: int, _tokenizer: Tokenizer) -> list[str]:
    """All steps of a run have one. A published model's has tens of thousands of words, of which naming takes
    a tenth of a second.
    """
    words = names_of(_tokenizer)
    return words + [UNUSED if is_pretrained(name) else "[mask]"] * (vocab_size - len(words))
