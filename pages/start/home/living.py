"""The living map: the model itself, running."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.config import SampleConfig
from engine.errors import ConfigError
from engine.measure.home import living_map as living
from engine.measure.home.living_map import DepthPredictions
from engine.measure.residual.lens import first_settled
from engine.sample.stages import draw, stages
from pages.start.home import links, words
from pages.start.home.packing import KEY, living_map, living_map_further, packed, spoken
from pages.start.home.reading import (
    HELD,
    Looked,
    Predictions,
    at_once,
    grown,
    in_full,
    last_lane,
    look,
    reading_of,
)
from pages.start.home.words_map import describe
from ui import explain, site, training_step, widgets
from ui.fit_text import ENGLISH, EXAMPLES, MAX_TEXT
from ui.model_bar import Choice, Subject
from ui.models import LAPSES
from ui.timeline import follow, timeline_of
from ui.training_step import NEWEST

SHOWN, ANSWERED, WROTE, GO, BEFORE = "home_shown", "home_answered", "home_wrote", "home_go", "home_before"
START = {"temperature": 1.0, "top_k": 0}


def draw_living(choice: Choice) -> None:
    """Draws the living map, as soon as the bar is known. A large model's predictions at every depth after
    every token follow in the same run, and a next question ends it.
    """
    looked = look(choice.name, choice.text or "", choice.letters)
    subject = looked.subject
    if (go := st.session_state.pop(GO, None)) is not None:
        leads = links.target(go, subject, looked.step)
        for key in leads.forgotten:
            st.session_state.pop(key, None)
        st.session_state.update(leads.held)
        st.switch_page(leads.path, query_params=leads.query)
    reading = reading_of(subject)
    if st.session_state.get(SHOWN, ("", ""))[0] != choice.name:
        last_lane(subject, reading)  # which block is open at first depends on it
    predictions = at_once(subject, reading)
    st.session_state[SHOWN] = (choice.name, choice.text or "")
    text_id = f"{hash(subject.ids):x}"
    name = f"{subject.key[0]}@{subject.key[1]} {text_id}"
    picture = packed(reading, subject.vocabulary) | _spoken(name, predictions, subject)
    living_map(picture, _rest(looked) | {"text_id": text_id}, _asked)
    explain.answer(_answer(looked, last_lane(subject, reading)))
    if not predictions.whole:
        with st.container(key="living_map_further_place"):
            living_map_further(_spoken(name, in_full(subject, reading), subject))
    follow(looked.timeline)


def _spoken(name: str, predictions: Predictions, subject: Subject) -> dict[str, Any]:
    p = predictions
    return spoken(name, p.last, p.by_lane, p.outlook, p.depths, subject.vocabulary) | {"whole": p.whole}


def _rest(looked: Looked) -> dict[str, Any]:
    subject = looked.subject
    parts = describe(subject.config, subject.model.parts)
    return {
        "model": {
            "title": subject.title,
            "causal": subject.config.causal,
            "speaks": subject.model.output.present,
            "vocab": subject.config.vocab_size,
            "d_model": subject.config.d_model,
            "d_ff": subject.config.d_ff,
            "ends_normed": subject.model.parts.wiring(subject.config).ends_normed,
            "step": None if subject.key[1] == NEWEST else subject.key[1],
        },
        "parts": {
            name: {
                "title": part.title.removeprefix("2  "),
                "text": part.text,
                "colour": part.colour,
                "parameters": next((value for key, value in part.rows if key == "parameters"), ""),
            }
            for name, part in parts.items()
        },
        "part": widgets.read_url("part") or None,
        "say": words.SAY if subject.config.causal else words.SAY_OF_GAPS,
        "panel": words.PANEL if subject.config.causal else words.PANEL_OF_GAPS,
        "text": subject.text,
        "notes": [note.replace("\n", " ") for note in looked.notes],
        "answered": st.session_state.get(ANSWERED),
        "wrote": st.session_state.get(WROTE),
        "start": START,
        "course": _timeline_payload(looked),
        "before": st.session_state.get(BEFORE, ("", ""))[1] if subject.key[0] in LAPSES else "",
    }


def _timeline_payload(looked: Looked) -> dict[str, Any] | None:
    """The training below the map: of the model that is looked at, else the one that comes with the app."""
    timeline, name = looked.timeline, looked.subject.key[0]
    if timeline is None or not timeline.steps:
        name = next((head for head in LAPSES if (site.ROOT / "checkpoints" / head).is_dir()), "")
        timeline = timeline_of(name) if name else None
    if timeline is None:
        return None
    return {
        "model": name,
        "steps": list(timeline.steps),
        "losses": list(timeline.losses),
        "marks": [mark._asdict() for mark in timeline.marks],
        "shown": looked.step,
        "star": next(([head.layer, head.head] for head in timeline.formed if head.kind == "induction"), None),
        "on": name == looked.subject.key[0],
    }


def _answer(looked: Looked, last: DepthPredictions | None) -> str:
    subject = looked.subject
    if last is None:
        return words.vectors(len(subject.ids), subject.config.d_model)
    guess = last.tokens[:, 0, :1]  # (depth, 1)
    settled = int(first_settled(guess)[0])
    vocabulary = subject.vocabulary
    return words.answer(
        read=subject.text,
        causal=subject.config.causal,
        word=vocabulary[int(guess[-1, 0])],
        chance=float(last.chances[-1, 0, 0]),
        settled=settled,
        before=vocabulary[int(guess[max(settled - 1, 0), 0])],
        gap=subject.gap is not None and subject.gap >= len(subject.ids) - living.LANES,
    )


# What the browser asks --------------------------------------------------------------------------


def _asked() -> None:
    """Does it, once, before the page is drawn. Requests that make no sense are ignored."""
    ask = widgets.picked(KEY, "ask")
    if not isinstance(ask, Mapping) or SHOWN not in st.session_state:
        return
    st.session_state[ANSWERED] = str(ask.get("id"))[:60]
    name, text = st.session_state[SHOWN]
    what = ask.get("do")
    if what == "type":
        typed = str(ask.get("text") or "")
        st.session_state["text"] = typed[:MAX_TEXT]
        st.session_state["text_length"] = len(typed)
    elif what == "write":
        _write(name, text, ask)
    elif what == "step":
        _travel(name, text, ask.get("model"), ask.get("step"))
    elif what == "back" and BEFORE in st.session_state:
        st.session_state["subject_model"], _, st.session_state["text"] = st.session_state.pop(BEFORE)
    elif what == "open":
        st.session_state[GO] = dict(ask)


def _travel(name: str, text: str, model: Any, step: Any) -> None:
    """To a step of a training: of the model that is looked at, or of one that comes with the app. A text that
    nobody typed gives way to one that such a model can copy.
    """
    if not isinstance(step, int) or (model != name and model not in LAPSES):
        return
    if model != name:
        st.session_state[BEFORE] = (name, look(name, text).subject.title, text)
        st.session_state["subject_model"] = model
        if text in {words.FIRST_LETTERS, *EXAMPLES.values(), *ENGLISH.values()}:
            st.session_state["text"] = words.REPEATING
    training_step.move(model, step)


def _write(name: str, text: str, ask: Mapping[str, Any]) -> None:
    """Draws a token with the reader's settings and puts it behind the text."""
    looked = look(name, text)
    subject = looked.subject
    reading = reading_of(subject)
    if reading.logits is None or not subject.config.causal:
        return
    probabilities = stages(reading.logits, settings(ask))[-1].probabilities
    token = draw(probabilities, random.random())
    held = grown(looked, token)
    st.session_state[HELD] = held
    st.session_state["text"] = held.text
    st.session_state["text_length"] = 0
    st.session_state[WROTE] = {
        "id": st.session_state[ANSWERED],
        "token": token,
        "word": subject.vocabulary[token],
        "chance": float(probabilities[token]),
    }


def settings(ask: Mapping[str, Any]) -> SampleConfig:
    """Returns temperature and top-k as the browser has them; START's where they make no sense.

    >>> settings({"temperature": 0.5, "top_k": 3}) == SampleConfig(temperature=0.5, top_k=3)
    True
    >>> settings({"temperature": "x", "top_k": -1}) == SampleConfig(temperature=1.0)
    True
    """
    heat, top = ask.get("temperature"), ask.get("top_k")
    if not isinstance(heat, int | float) or isinstance(heat, bool) or not math.isfinite(heat):
        heat = START["temperature"]
    if not isinstance(top, int) or isinstance(top, bool):
        top = 0
    try:
        return SampleConfig(temperature=float(heat), top_k=top).validate()
    except ConfigError:
        return SampleConfig(temperature=START["temperature"])
