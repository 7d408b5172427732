"""What the living map reads: a model at a step, a text as ids, and what was found of it so far."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from engine.measure import living
from engine.model import Transformer
from ui import state
from ui import step as training_step
from ui.fields import visible
from ui.models import RUN, model_of
from ui.reading import MAX_TEXT, most_tokens, read
from ui.subject import LARGE, Subject, seen
from ui.timeline import Timeline, timeline_of

HELD, SAID = "home_ids", "home_said"
REMEMBERED = 2000  # lanes of which it is remembered what is said
SECONDS = 0.25  # that one answer spends on the lanes before the last


@dataclass(frozen=True)
class Held:
    """A text that grew token by token: its ids are not always those that its text is cut into."""

    name: str
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Looked:
    """What is looked at: the subject, its training, the step of it that is shown, what was left out."""

    subject: Subject
    course: Timeline | None
    step: int
    notes: tuple[str, ...]


def look(name: str, text: str) -> Looked:
    """The model of a name at the step that is looked at, reading a text."""
    run = state.manager().view(name.removeprefix(RUN)) if name.startswith(RUN) else None
    course = timeline_of(name)
    steps = course.steps if course else ()
    step = training_step.current(name, steps)
    found = model_of(name, step, steps)
    notes: Sequence[str] = ()
    held = st.session_state.get(HELD)
    if isinstance(held, Held) and held.name == name and held.text == text:
        ids, shown = held.ids, text
    else:
        ids, shown, notes = read(text, found.tokenizer, most_tokens(found.config))
    subject = seen(name, run, step, steps, found, shown, ids)
    return Looked(subject, course, step, tuple(notes))


def grown(looked: Looked, token: int) -> Held:
    """The text with one token more. Where there is no room for more, its first half is forgotten."""
    subject = looked.subject
    limit = most_tokens(subject.config)
    ids = (*subject.ids, token)
    if len(ids) > limit:
        ids = ids[-max(1, limit // 2) :]
    text = visible(subject.tokenizer.decode(list(ids)))[:MAX_TEXT]
    return Held(subject.key[0], text, ids)


@st.cache_resource(max_entries=16, show_spinner=False)
def reading_of(key: tuple[str, int], ids: tuple[int, ...], _model: Transformer) -> living.Reading:
    return living.read(_model, ids)


@dataclass(frozen=True, eq=False)
class Heard:
    """What is known of a reading: by lane what is said after it, the outlook at `depths`, and whether that is
    all there is to know.
    """

    said: Mapping[int, living.Said]
    outlook: living.Outlook | None
    depths: tuple[int, ...]
    whole: bool


def hear(looked: Looked, reading: living.Reading, whole: bool) -> Heard:
    """The last lane first, and of a large model only that until the `whole` is asked for."""
    subject = looked.subject
    depths, shown = reading.streams.shape[:2]
    large = subject.config.vocab_size * subject.config.n_layers > LARGE
    everything = whole or not large
    if not subject.model.output.present:
        return Heard({}, None, (), True)
    places = tuple(range(depths)) if everything else (depths - 1,)
    outlook = _outlook(subject.key, subject.ids, places, subject.model)
    said = _said(looked, reading, everything, large)
    return Heard(said, outlook, places, everything and len(said) == shown)


@st.cache_resource(max_entries=64, show_spinner=False)
def _outlook(
    key: tuple[str, int], ids: tuple[int, ...], depths: tuple[int, ...], _model: Transformer
) -> living.Outlook:
    streams = reading_of(key, ids, _model).streams[list(depths), -1:]
    return living.outlook(living.depth_logits(_model, streams)[:, 0])


def _said(looked: Looked, reading: living.Reading, everything: bool, large: bool) -> dict[int, living.Said]:
    """By lane. What is said after a token of a causal model depends on nothing behind it, so what was found
    of a shorter text still holds.
    """
    subject, shown = looked.subject, reading.streams.shape[1]
    memory = st.session_state.setdefault(SAID, {})
    found, begun = {}, time.perf_counter()
    for lane in range(shown - 1, -1, -1):
        behind = reading.lanes.earlier + lane + 1 if subject.config.causal else len(subject.ids)
        key = (subject.key, subject.ids[:behind], lane if not subject.config.causal else -1)
        known = memory.pop(key, None)
        late = large and time.perf_counter() - begun > SECONDS
        if known is None and (lane == shown - 1 or (everything and not late)):
            logits = living.depth_logits(subject.model, reading.streams[:, lane : lane + 1])
            known = living.said(logits)
        if known is not None:
            found[lane] = memory[key] = known  # the last that was asked for is the last to go
    while len(memory) > REMEMBERED:
        memory.pop(next(iter(memory)))
    return found
