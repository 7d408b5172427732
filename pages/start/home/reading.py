"""The reading of the living map: a model at a step, a text as ids, and what was measured of it so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from engine.model import Transformer
from studies.home import living_map
from studies.home.living_map import DepthPredictions, Outlook, depth_logits, likeliest_tokens, outlook
from ui import content, memo, training_step
from ui.fields import visible
from ui.fit_text import MAX_TEXT, most_tokens, read
from ui.model_bar import Subject, subject_from
from ui.models import model_of
from ui.timeline import Timeline, timeline_of

TEXT = content.beside(__file__)
LARGE = 100_000  # vocabulary times layers: from here on predictions at all depths take a while
HELD, BEFORE = "home_ids", "home_before_reading"


@dataclass(frozen=True)
class Held:
    """A text that grew token by token: its ids are not always those that its text is cut into. `forgotten`
    tokens were left out before it, all in all, to make room.
    """

    name: str
    text: str
    ids: tuple[int, ...]
    forgotten: int = 0


@dataclass(frozen=True, eq=False)
class Looked:
    """The view of the map: the subject, its training, the step of it that is shown, what was left out."""

    subject: Subject
    timeline: Timeline | None
    step: int
    notes: tuple[str, ...]


def look(name: str, text: str, letters: int = 0, step: int | None = None) -> Looked:
    """Returns the model of a name at a `step`, or that which is looked at, reading a text, which is what was
    taken of so many `letters` (0: all of it).
    """
    timeline = timeline_of(name)
    steps = timeline.steps if timeline else ()
    step = training_step.current(name, steps) if step is None else step
    model = model_of(name, step, steps)
    notes: Sequence[str] = ()
    held = st.session_state.get(HELD)
    if isinstance(held, Held) and held.name == name and held.text == text:
        ids, shown = held.ids, text
        if held.forgotten:
            limit = most_tokens(model.config)
            full = "context full" if limit == model.config.context else "page full"
            notes = [TEXT(full, limit=limit, count=held.forgotten)]
    else:
        ids, shown, notes = read(text, model.tokenizer, most_tokens(model.config), letters)
    subject = subject_from(name, step, steps, model, shown, ids)
    return Looked(subject, timeline, step, tuple(notes))


def grown(looked: Looked, token: int) -> Held:
    """Returns the text with one token more. Where there is no room for more, its first half is forgotten."""
    subject = looked.subject
    limit = most_tokens(subject.config)
    before = st.session_state.get(HELD)
    gone = before.forgotten if isinstance(before, Held) and before.ids == subject.ids else 0
    ids = (*subject.ids, token)
    if len(ids) > limit:
        remaining = max(1, limit // 2)
        gone += len(ids) - remaining
        ids = ids[-remaining:]
    text = visible(subject.tokenizer.decode(list(ids)))[:MAX_TEXT]
    return Held(subject.key[0], text, ids, gone)


def reading_of(subject: Subject) -> living_map.Reading:
    """Reads the text. Results for its beginning are used again; it is worth the trouble in a large model
    only.
    """
    large = _large(subject)
    key, before = st.session_state.get(BEFORE, (None, None))
    earlier = before if key == subject.key else None
    result = _reading(subject.key, subject.ids, subject.model, earlier, large, subject.gap)
    if large:
        st.session_state[BEFORE] = (subject.key, result)
    return result


@memo.measured()
def _reading(
    key: tuple[str, int],
    ids: tuple[int, ...],
    _model: Transformer,
    _before: living_map.Reading | None,
    _keep: bool,
    _gap: int | None,
) -> living_map.Reading:
    return living_map.read(_model, ids, _before, _keep, _gap)


def _large(subject: Subject) -> bool:
    """True if predictions at all depths take longer than a person should wait for the bars."""
    return subject.config.vocab_size * subject.config.n_layers > LARGE


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of a reading: `last` after each lane at the end; by lane those at every depth; the outlook
    at `depths`; and whether that is all there is to know.
    """

    last: DepthPredictions | None
    by_lane: Mapping[int, DepthPredictions]
    outlook: Outlook | None
    depths: tuple[int, ...]
    whole: bool


def at_once(subject: Subject, reading: living_map.Reading) -> Predictions:
    """Returns what the bars need, and what is known already. For a small model that is everything."""
    depths, shown = reading.streams.shape[:2]
    if reading.logits is None:
        return Predictions(None, {}, None, (), True)
    if not _large(subject):
        return in_full(subject, reading)
    known = {
        lane: depth_predictions
        for lane in range(shown)
        if (depth_predictions := _remembered(subject, reading, lane)) is not None
    }
    if len(known) == shown:
        return in_full(subject, reading)
    return Predictions(reading.predictions, known, reading.end, (depths - 1,), False)


def last_lane(subject: Subject, reading: living_map.Reading) -> DepthPredictions | None:
    """Returns the predictions at every depth for the last lane, or for a gap at the gap."""
    if reading.logits is None:
        return None
    result = _ends(subject.key, subject.ids, reading, subject.model)[0]
    _remember(subject, reading, reading.predicted_lane, result)
    return result


def in_full(subject: Subject, reading: living_map.Reading) -> Predictions:
    """Returns all there is to know, the lane that is asked first. Another question of the reader's ends it
    between two lanes: what was found by then is remembered.
    """
    depths, shown = reading.streams.shape[:2]
    if reading.logits is None:
        return Predictions(None, {}, None, (), True)
    first_lane, ending = _ends(subject.key, subject.ids, reading, subject.model)
    likeliest = {reading.predicted_lane: first_lane}
    _remember(subject, reading, reading.predicted_lane, first_lane)
    for lane in (lane for lane in range(shown - 1, -1, -1) if lane != reading.predicted_lane):
        known = _remembered(subject, reading, lane)
        if known is None:
            known = likeliest_tokens(depth_logits(subject.model, reading.streams[:, lane : lane + 1]))
        likeliest[lane] = known
        _remember(subject, reading, lane, known)
    return Predictions(reading.predictions, likeliest, ending, tuple(range(depths)), True)


@memo.measured()
def _ends(
    key: tuple[str, int], ids: tuple[int, ...], _reading: living_map.Reading, _model: Transformer
) -> tuple[DepthPredictions, Outlook]:
    """Returns predictions and outlook of the requested lane at every depth."""
    logits = depth_logits(_model, _reading.streams[:, _reading.predicted_lane : _reading.predicted_lane + 1])
    return likeliest_tokens(logits), outlook(logits[:, 0])


def _name(subject: Subject, reading: living_map.Reading, lane: int) -> tuple[object, ...]:
    """Returns the cache key of a lane: what a causal model predicts after a token depends on nothing behind
    it, so that results for a shorter text still hold.
    """
    behind = reading.lanes.earlier + lane + 1 if subject.config.causal else len(subject.ids)
    return "lane", subject.key, subject.ids[:behind], -1 if subject.config.causal else lane


def _remembered(subject: Subject, reading: living_map.Reading, lane: int) -> DepthPredictions | None:
    known: DepthPredictions | None = memo.MEASURED.known(_name(subject, reading, lane))
    return known


def _remember(
    subject: Subject, reading: living_map.Reading, lane: int, depth_predictions: DepthPredictions
) -> None:
    size = depth_predictions.tokens.nbytes + depth_predictions.chances.nbytes + 8 * len(subject.ids)
    # All visitors begin with the same text, and a large model takes 2 s for it.
    memo.MEASURED.put(_name(subject, reading, lane), depth_predictions, size + memo.ENTRY)
