"""The view "Running model": the living map of the model itself, or the two stacks of an encoder-decoder."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from engine.config import SampleConfig
from engine.errors import ConfigError
from engine.sample.stages import draw as draw_token
from engine.sample.stages import stages
from pages.start.home import links, running_pair
from pages.start.home.map_parts import describe
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
from studies.families.written_target import write_target
from studies.home import living_map as living
from studies.home.living_map import DepthPredictions
from studies.pairs.seq2seq import Seq2Seq
from studies.residual.lens import first_settled
from ui import content, explain, families, frames, model_choice, models, site, training_step, widgets
from ui.fit_text import ENGLISH, EXAMPLES, MAX_TEXT
from ui.model_bar import Choice, Subject, choose_subject
from ui.models import LAPSES, REAL_MODEL
from ui.page_frame import Code, View
from ui.timeline import follow, timeline_of
from ui.training_step import NEWEST

TEXT = content.beside(__file__)
FIRST_LETTERS = "ROMEO:\nO, she d"  # as many as there are lanes
REPEATING = "hark, hark, har"  # for a model in which heads learn to copy
FAMILY = "home_family"  # key
SHOWN, ANSWERED, WROTE, GO, BEFORE = "home_shown", "home_answered", "home_wrote", "home_go", "home_before"
START = {"temperature": 1.0, "top_k": 0}
QUOTED = 40  # letters of the text in the answer


def choose() -> Choice:
    """Draws the bar and, beside it, the switch of its family; another family starts with its first model."""
    switch = st.empty()
    choice = choose_subject(FIRST_LETTERS, REAL_MODEL)
    st.session_state[FAMILY] = _family_of(choice.name)
    # Streamlit's own: the model, which stands in the link, has the value.
    switch.segmented_control(
        TEXT["family"],
        list(FIRST),
        format_func=lambda family: TEXT[f"family {family}"],
        key=FAMILY,
        label_visibility="collapsed",
        required=True,
        on_change=_open_family,
    )
    return choice


def _family_of(name: str) -> families.Family:
    """A model's family; a run's or a published one's own configuration says it."""
    family = families.family_of(name)
    run = models.run_of(name)
    if family == "decoder" and (run is not None or models.is_pretrained(name)):
        config = run.spec.model if run is not None else models.model_of(name, NEWEST, ()).config
        return "decoder" if config.causal else "encoder"
    return family


def _open_family() -> None:
    # a forged message may hold anything, and nothing
    if (first := FIRST.get(st.session_state.get(FAMILY, ""))) is not None:
        model_choice.choose(model_choice.first_of((first,)))


def draw(choice: Choice) -> None:
    if _family_of(choice.name) == "both":
        running_pair.draw(choice)
    else:
        _living_map(choice)


def _living_map(choice: Choice) -> None:
    """Draws the living map, as soon as the bar is known. A large model's predictions at every depth after
    every token follow in the same run, and a next question ends it.
    """
    looked = look(choice.name, choice.text or "", choice.letters)
    subject = looked.subject
    if (go := st.session_state.pop(GO, None)) is not None:
        path, there = links.target(go, subject, looked.step)
        for key in there.forgotten:
            st.session_state.pop(key, None)
        st.session_state.update(there.held)
        st.switch_page(path, query_params=there.query)
    if st.session_state.get(SHOWN, ("", ""))[0] != choice.name:
        last_lane(subject, reading_of(subject))  # which block is open at first depends on it
    st.session_state[SHOWN] = (choice.name, choice.text or "")
    trained = looked.timeline is not None and len(looked.timeline.steps) > 1
    _draw_map(looked, frames.offer(partial(_draw_at, choice), looked.step) if trained else "")
    follow(looked.timeline)


def _draw_at(choice: Choice, step: int) -> None:
    """Draws the living map at another step of the training, for a file in which it is saved."""
    timeline = timeline_of(choice.name)
    if timeline is None or step not in (NEWEST, *timeline.steps):
        frames.page_needed()
    _draw_map(look(choice.name, choice.text or "", choice.letters, step))


def _draw_map(looked: Looked, offered: str = "") -> None:
    """Draws the map, its answer, and what takes longer. `offered` names it for `frames` at other steps."""
    subject = looked.subject
    reading = reading_of(subject)
    predictions = at_once(subject, reading)
    text_id = f"{hash(subject.ids):x}"
    name = f"{subject.key[0]}@{subject.key[1]} {text_id}"
    picture = packed(reading, subject.vocabulary) | _spoken(name, predictions, subject)
    living_map(picture, _rest(looked, offered) | {"text_id": text_id}, _asked)
    explain.answer(_answer(looked, last_lane(subject, reading)))
    if not predictions.whole:
        with st.container(key="living_map_further_place"):
            living_map_further(_spoken(name, in_full(subject, reading), subject))


def _spoken(name: str, predictions: Predictions, subject: Subject) -> dict[str, Any]:
    p = predictions
    return spoken(name, p.last, p.by_lane, p.outlook, p.depths, subject.vocabulary) | {"whole": p.whole}


def _rest(looked: Looked, offered: str) -> dict[str, Any]:
    subject = looked.subject
    parts = describe(subject.config, subject.model.parts)
    return {
        "model": {
            "title": subject.title,
            "causal": subject.config.causal,
            "speaks": subject.model.output.present,
            "vocab": subject.config.vocab_size,
            "d_model": subject.config.d_model,
            "d_ff": subject.config.d_hidden,
            "ends_normed": subject.model.parts.wiring(subject.config).ends_normed,
            "step": None if subject.key[1] == NEWEST else subject.key[1],
        },
        "parts": {
            name: {
                "title": part.title.removeprefix("2  "),
                "text": part.text,
                "colour": part.colour,
                "parameters": part.parameters,
            }
            for name, part in parts.items()
        },
        "part": widgets.read_url("part") or None,
        "say": _say(subject.config.causal),
        "panel": _panel(subject.config.causal),
        "text": subject.text,
        "notes": [note.replace("\n", " ") for note in looked.notes],
        "answered": st.session_state.get(ANSWERED),
        "wrote": st.session_state.get(WROTE),
        "start": START,
        "course": _timeline_payload(looked, offered),
        "before": st.session_state.get(BEFORE, ("", ""))[1] if subject.key[0] in LAPSES else "",
    }


def _timeline_payload(looked: Looked, offered: str) -> dict[str, Any] | None:
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
        "frames": offered,
    }


def _say(causal: bool) -> dict[str, list[str]]:
    """Returns what the browser says of what is pointed at, (title, sentence), its numbers in {braces}."""
    names = [name.removeprefix("say ") for name in TEXT if name.startswith("say ")]
    other = () if causal else ("guess", "bar")
    return {
        name: TEXT[f"gaps say {name}" if name in other else f"say {name}"].split("\n\n") for name in names
    }


def _panel(causal: bool) -> dict[str, str]:
    names = [name.removeprefix("panel ") for name in TEXT if name.startswith("panel ")]
    other = () if causal else ("says", "summary")
    return {name: TEXT[f"gaps panel {name}" if name in other else f"panel {name}"] for name in names}


def _answer(looked: Looked, last: DepthPredictions | None) -> str:
    """Says what comes next, or stands in the last gap, and from which block on that is so: depth 0 is the
    embedding alone.
    """
    subject = looked.subject
    if last is None:
        return TEXT("vectors", tokens=len(subject.ids), width=subject.config.d_model)
    guess, vocabulary = last.tokens[:, 0, 0], subject.vocabulary
    gap = subject.gap is not None and subject.gap >= len(subject.ids) - living.LANES
    read = subject.text
    predicted = TEXT(
        "after" if subject.config.causal else "in the gap" if gap else "at the end",
        read=read if len(read) <= QUOTED else f"…{read[-QUOTED:]}",
        word=vocabulary[int(guess[-1])],
        chance=float(last.chances[-1, 0, 0]),
    )
    settled = int(first_settled(guess[:, None])[0])
    if settled == 0:
        return f"{predicted} {TEXT['at once']}"
    before = TEXT("settled", block=settled - 1, before=vocabulary[int(guess[settled - 1])])
    return f"{predicted} {before}"


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
        st.session_state["text_length"] = 0
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
        if text in {FIRST_LETTERS, *EXAMPLES.values(), *ENGLISH.values()}:
            st.session_state["text"] = REPEATING
    training_step.move(model, step)


def _write(name: str, text: str, ask: Mapping[str, Any]) -> None:
    """Draws a token with the reader's settings and puts it behind the text."""
    looked = look(name, text)
    subject = looked.subject
    reading = reading_of(subject)
    if reading.logits is None or not subject.config.causal:
        return
    probabilities = stages(reading.logits, settings(ask))[-1].probabilities
    token = draw_token(probabilities, random.random())
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


FIRST = {"decoder": REAL_MODEL, "encoder": families.FIRST_ENCODER, "both": families.FIRST_PAIR}


def _variant(choice: Choice) -> str:
    return {"decoder": "", "encoder": "gaps", "both": "both"}[_family_of(choice.name)]


def _code(choice: Choice) -> Code:
    if _family_of(choice.name) == "both":
        return write_target, Seq2Seq.forward
    return living.read, living.lanes, living.depth_logits, living.outlook


VIEW = View(
    "living",
    TEXT,
    draw,
    _code,
    choose=choose,
    variant=_variant,
    variants={"gaps": (("model", families.FIRST_ENCODER),), "both": (("model", families.FIRST_PAIR),)},
)
