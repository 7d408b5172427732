"""The running map on Home, without a browser: what it shows of any text, what it is asked, and where it leads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import checkpoints
from engine.measure.lens import logit_lens
from engine.measure.recording import record
from engine.measure.shapes import trace
from pages.start.home import living, words
from pages.start.home.links import target
from pages.start.home.reading import HELD, Held, look
from tests.conftest import ROOT
from tests.pages import helpers
from tests.pages.start.home import CLASSIC, array, home, sent
from ui import models, widgets
from ui.reading import MAX_TEXT
from ui.step import NEWEST


def answer(app: AppTest) -> str:
    return next(text.value for text in app.markdown if "it says" in text.value or "vectors" in text.value)


@pytest.mark.parametrize(
    ("model", "text"),
    [(CLASSIC, "To be, or not to be"), (CLASSIC, "q"), ("shakespeare-modern", "ROMEO:\nO, she d")],
)
def test_the_answer_is_the_models_own(model: str, text: str) -> None:
    app = home(text, model)
    found = checkpoints.load(ROOT / "checkpoints" / model)
    ids = found.tokenizer.encode(text)
    recording = record(found.model, ids)
    logits = recording["logits"][-1].astype(np.float64)
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    best = int(shares.argmax())
    shown = sent(app)["picture"]["words"]
    said = answer(app)
    assert f"**“{words.safe(shown[str(best)])}” with {shares[best]:.0%}**" in said
    guesses = logit_lens(found.model, recording).guess[:, -1].tolist()
    settled = len(guesses) - 1
    while settled and guesses[settled - 1] == best:
        settled -= 1
    if settled:
        before = words.safe(shown[str(guesses[settled - 1])])
        assert f"; before block {settled - 1} it was “{before}”." in said
    else:
        assert "already the embedding alone" in said


def test_without_the_real_model_a_small_one_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.sources, "available", list)
    app = helpers.opened("app.py")
    data = sent(app)
    assert app.query_params["model"] in (CLASSIC, [CLASSIC])
    letters = "".join(data["picture"]["names"][str(i)] for i in data["picture"]["ids"])
    assert letters == words.FIRST_LETTERS.replace("\n", "⏎").replace(" ", "␣")
    assert set(data["examples"]) == set(words.LETTERS) and data["picture"]["whole"]


HOSTILE = ["", "😀🎉", "x" * 10_000, "שלום עולם", "<script>alert(1)</script>", "\n" * 50]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_is_drawn_or_said(text: str) -> None:
    data = sent(home(text))
    picture = data["picture"]
    assert 1 <= len(picture["ids"]) <= 16
    assert array(picture["stream"], np.int8, 5, len(picture["ids"])).shape[-1] == 16
    read = picture["earlier"] + len(picture["ids"])
    unknown = any(c not in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \n!$&',-.3:;?" for c in text)
    assert bool(data["notes"]) == (unknown or not text or len(text) > read)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Asks what a browser would, of a page that showed `text`."""
    state: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", state)
    monkeypatch.setattr(st, "query_params", {})

    def ask(shown: str, of: str = CLASSIC, /, **what: Any) -> dict[str, Any]:
        state[living.SHOWN] = (of, shown)
        monkeypatch.setattr(widgets, "picked", lambda key, name: {"id": "x-1", **what})
        living._asked()
        return state

    return ask


@pytest.mark.parametrize(("u", "place"), [(0.0, 0), (0.5, None), (0.999999, -1)])
def test_a_written_token_is_drawn_with_the_readers_settings(
    asked: Any, monkeypatch: pytest.MonkeyPatch, u: float, place: int | None
) -> None:
    monkeypatch.setattr(living.random, "random", lambda: u)
    state = asked("ROMEO:\nO, she d", do="write", temperature=0.5, top_k=4)
    found = checkpoints.load(ROOT / "checkpoints" / CLASSIC)
    ids = found.tokenizer.encode("ROMEO:\nO, she d")
    logits = record(found.model, ids)["logits"][-1].astype(np.float64)
    kept = sorted(np.argsort(-logits)[:4].tolist())  # by id, as the draw goes through them
    powers = np.array([math.exp((logits[i] - logits.max()) / 0.5) for i in kept])
    shares = powers / powers.sum()
    at = place if place is not None else int(np.searchsorted(np.cumsum(shares), u, side="right"))
    token = kept[at]
    assert state[living.WROTE]["token"] == token
    assert state[living.WROTE]["chance"] == pytest.approx(float(shares[at]), abs=1e-4)
    assert state["text"] == "ROMEO:\nO, she d" + found.tokenizer.decode([token])
    assert state[living.HELD] == Held(CLASSIC, state["text"], (*ids, token))


def checkpoints_context() -> int:
    return models.model_of(CLASSIC, NEWEST, ()).config.context


def test_what_makes_no_sense_is_left_undone(asked: Any) -> None:
    for what in (
        {"do": "step", "model": "nobody", "step": 3},
        {"do": "step", "model": CLASSIC, "step": "x"},
        {"do": "explode"},
        {"do": "back"},
        {},
    ):
        state = asked("To be", **what)
        assert "text" not in state and "subject_model" not in state


def test_typing_is_taken_over_and_cut(asked: Any) -> None:
    assert asked("a", do="type", text="b\nc")["text"] == "b\nc"
    state = asked("a", do="type", text="x" * 10_000)
    assert len(state["text"]) == MAX_TEXT and state["text_length"] == 10_000


def test_training_time_is_the_lapses_and_leads_back(asked: Any) -> None:
    state = asked(words.EXAMPLES["Fact"], do="step", model="timelapse", step=16)
    assert state["subject_model"] == "timelapse" and state["text"] == words.REPEATING
    state = asked(words.REPEATING, "timelapse", do="back")
    assert state["subject_model"] == CLASSIC and state["text"] == words.EXAMPLES["Fact"]
    mine = asked("my own words", do="step", model="timelapse", step=16)
    assert mine["text"] != words.REPEATING


def test_the_course_is_the_shipped_one() -> None:
    lapse = models.lapse_of("timelapse")
    for model, on in ((CLASSIC, False), ("timelapse", True)):
        course = sent(home(words.REPEATING, model))["course"]
        assert course["steps"] == list(lapse.steps) and course["losses"] == list(lapse.losses)
        assert course["on"] == on
        assert course["star"] in [[one.layer, one.head] for one in lapse.formed if one.kind == "induction"]
    early, late = (sent(home(words.REPEATING, "timelapse", step=str(s))) for s in (0, lapse.steps[-2]))
    assert early["picture"]["name"] != late["picture"]["name"]
    assert early["picture"]["stream"] != late["picture"]["stream"]


@pytest.mark.parametrize(
    ("ask", "page", "wanted"),
    [
        (
            {"part": "attention", "layer": 2, "head": 3, "token": 1},
            "inside/attention",
            {"attention_view": "heads", "attention_layer": 2, "attention_head": 3, "attention_query": "1"},
        ),
        (
            {"part": "attention", "layer": 1, "head": 2, "token": 4, "row": True},
            "inside/attention",
            {"attention_view": "steps", "attention_stage": "softmax", "attention_query": "4"},
        ),
        (
            {"part": "feedforward", "layer": 1, "neuron": 17, "token": 3},
            "inside/feedforward",
            {"feedforward_layer": 1, "feedforward_neuron": 17, "feedforward_token": "3"},
        ),
        (
            {"part": "sum_feedforward", "token": 4, "depth": 2},
            "inside/residual",
            {"residual_view": "lens", "residual_token": "4", "residual_cell": "2-4"},
        ),
        (
            {"part": "softmax", "token": 4, "temperature": 0.3, "top_k": 5},
            "output/sampling",
            {
                "sampling_position": "4",
                "sampling_temperature": "0.3",
                "sampling_top_k": "5",
                "sampling_top_p": "1",
            },
        ),
        (
            {"part": "norm2", "name": "blocks.1.norm2"},
            "inside/shapes",
            {"shapes_view": "pass", "shapes_step": "of blocks.1.norm2"},
        ),
        ({"part": "attention", "layer": 99, "head": "x"}, "inside/attention", {"attention_layer": 0}),
        ({"part": "no such part"}, "inside/shapes", {"shapes_view": "pass"}),
    ],
)
def test_a_part_leads_to_its_page_with_this_text_and_this_place(
    asked: Any, ask: dict[str, Any], page: str, wanted: dict[str, Any]
) -> None:
    subject = look(CLASSIC, "To be").subject
    leads = target(ask, subject, 40)
    query, held = dict(leads.query), dict(leads.held)
    if "shapes_step" in wanted:
        names = [step.name for step in trace(subject.config, 5)]
        wanted = wanted | {"shapes_step": str(names.index(str(wanted["shapes_step"]).removeprefix("of ")))}
    assert leads.path == f"pages/{page}/page.py"
    assert query["model"] == CLASSIC and query["step"] == "40"
    assert wanted.items() <= (query | held).items() and all(query[key] == str(held[key]) for key in held)
    assert "step" not in target(ask, subject, NEWEST).query
    # A component keeps what was chosen in it: what the address says is told to one that remembers nothing.
    assert {key for key in query if key.endswith(("_token", "_query", "_position"))} <= {
        *leads.forgotten,
        *held,
    }


def test_what_was_cut_is_said_with_the_letters_that_there_were() -> None:
    """2,000 of 10,000 letters are taken; of their tokens as many as there is room for."""
    app = home()
    app.session_state["text"] = ("To be. " * 1500)[:2000]
    app.session_state["text_length"] = 10_500
    app.run()
    said = " ".join(sent(app)["notes"])
    assert "The text has 10,500 characters; the first 2,000 are taken." in said
    context = models.model_of(CLASSIC, NEWEST, ()).config.context
    assert f"They are 2,000 tokens; the first {min(context, 128)} are used" in said
    assert "The text has 2,000 tokens" not in said


def test_what_was_forgotten_is_said_and_counted(asked: Any) -> None:
    room = min(128, checkpoints_context())
    text = "a" * room
    for _ in range(room + 2):
        state = asked(text, do="write", temperature=1.0, top_k=1)
        text = state["text"]
    # the first write finds no room and keeps half of it; half of it is written until it is full again
    gone = (room + 1 - room // 2) * (1 + (room + 1) // (room - room // 2 + 1))
    assert state[HELD].forgotten == gone
    assert len(text) + gone == 2 * room + 2
    notes = look(CLASSIC, text).notes
    assert notes == (words.forgotten(gone, room, checkpoints_context()),)
    assert f"{gone:,} tokens of this text so far" in notes[0] and f"{room} tokens" in notes[0]
    assert look(CLASSIC, "another").notes == ()
