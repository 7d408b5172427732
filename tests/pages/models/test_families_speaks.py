"""Families, who speaks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.checkpoints_paired import LabelCheckpoint
from engine.classifier import build_classifier
from engine.config import ModelConfig, TrainConfig
from engine.errors import RunError
from engine.paired import Labelled, LabelledText
from engine.paired_data import Speakers
from engine.service.state import RunSpec
from engine.tokenizers.paired import PairTokenizer
from engine.training import kinds
from pages.models.families import speaks, words_speaks
from tests.pages import helpers
from tests.pages.helpers import unescaped as said
from tests.pages.stage import StageManager, view_of

ROOT = Path(__file__).parents[3]
LABELS = ("KING RICHARD II", "ROMEO", "LEONTES")
HELD = (("me ay", "ROMEO", 1), ("ay !", "LEONTES", 1), ("me me ay !", "ROMEO", 8))
KNOWN = LabelledText(
    "speakers",
    "Who speaks?",
    PairTokenizer(("!", "<other>", "ay", "me"), "speech", "<other>"),
    LABELS,
    (Labelled("ay", "ROMEO"), Labelled("ay ay", "ROMEO"), Labelled("me", "LEONTES")),
    tuple(Labelled(text, who) for text, who, _ in HELD),
    "mean",
)
MODEL = ModelConfig(KNOWN.vocab_size, 6, 16, 1, 2, norm="none", norm_gain=False)
STEPS = (0, 25, 50)
TEXT = "Ay, me!"
WORDS = ("ay", ",", "me", "!")


def at(step: int) -> LabelCheckpoint:
    """Another model for every step, none of them trained."""
    config = KNOWN.fitted(MODEL)
    model = build_classifier(replace(config, context=8), 3, seed=step, init="normal")
    return LabelCheckpoint(model.eval().requires_grad_(False), KNOWN.tokenizer, LABELS, {"step": step})


@pytest.fixture(autouse=True)
def run(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> str:
    """A finished training."""
    for cached in (speaks._snapshot, speaks._spoken, speaks.measured):
        cached.clear()
    spec = RunSpec(MODEL, TrainConfig(steps=50), kinds.SPEAKERS, name="mine")
    manager.views["abc"] = view_of(spec, "abc", "finished", 50, snapshots=STEPS)

    def trained(run: str, step: int | None = None) -> LabelCheckpoint:
        if step not in STEPS:
            raise RunError(f"No snapshot of step {step} is kept.")
        return at(step)

    monkeypatch.setattr(manager, "trained", trained, raising=False)
    found = Speakers(KNOWN, tuple(lines for _, _, lines in HELD), 2 / 3)
    monkeypatch.setattr(speaks, "speakers", lambda: found)
    return "run-abc"


def opened(**query: str) -> AppTest:
    return helpers.opened("models/families", families_view="speaks", **query)


def shares(step: int, words: tuple[str, ...]) -> np.ndarray:
    ids = {"!": 3, "<other>": 4, "ay": 5, "me": 6}
    row = [1, *(ids.get(word, 4) for word in words), 2]
    return at(step).model(torch.tensor([row]))[0].double().softmax(-1).numpy()


@pytest.mark.parametrize("step", STEPS)
def test_the_shares_are_those_of_the_step(run: str, step: int, drawn: dict[str, Any]) -> None:
    page = opened(speaks_model=run, step=str(step), speaks_text=TEXT)
    whole = shares(step, WORDS)
    order = sorted(range(3), key=lambda i: -whole[i])
    less = [shares(step, WORDS[:i] + WORDS[i + 1 :]) for i in range(4)]
    figure = drawn["speaks"]
    bars, heat = figure.traces
    np.testing.assert_allclose(bars["x"], 100 * whole[order], rtol=1e-4)
    assert list(bars["text"]) == [f"{whole[i]:.0%}" for i in order]
    assert figure.layout["yaxis"]["ticktext"] == [words_speaks.named(LABELS[i]) for i in order]
    cells = np.array([[100 * (whole[i] - one[i]) for one in less] for i in order])
    np.testing.assert_allclose(heat["z"], cells, atol=1e-3)
    assert figure.layout["xaxis2"]["ticktext"] == list(WORDS)
    first, second = order[:2]
    most = max(range(4), key=lambda i: abs(whole[first] - less[i][first]))
    who = ["King Richard II", "Romeo", "Leontes"]
    told = said(page)
    assert (
        f"**{who[first]}**, it thinks: **{whole[first]:.0%}**, then {who[second]} {whole[second]:.0%}" in told
    )
    assert f"each has {1 / 3:.1%}" in told
    assert f"“{WORDS[most]}”: without it {who[first]} has **{less[most][first]:.0%}**" in told
    assert "New to it, and all alike: “,”." in told


def test_whether_it_is_right_about_what_was_held_out(run: str) -> None:
    for step in STEPS:
        for text, who, _ in HELD:
            page = opened(speaks_model=run, step=str(step), speaks_text=text)
            best = LABELS[int(shares(step, tuple(text.split())).argmax())]
            verdict = "Right" if best == who else "Wrong"
            assert f"{verdict}: it is {who.title()} who says it" in said(page)
    assert "who says it" not in said(opened(speaks_model=run, speaks_text="me"))


@pytest.mark.parametrize("step", STEPS[1:])
def test_the_scores_beside_those_who_know_less(run: str, step: int) -> None:
    """Naive Bayes by hand: Romeo says "ay" thrice, Leontes "me" once; half a time more of the two words."""
    page = opened(speaks_model=run, step=str(step), speaks_text="ay", measure="true")
    (table,) = page.table
    right = [LABELS[int(shares(step, tuple(text.split())).argmax())] == who for text, who, _ in HELD]
    often = [who == "ROMEO" for _, who, _ in HELD]
    counted = []
    for text, who, _ in HELD:
        chances = {}
        for name, prior, said_words in (("ROMEO", 2 / 3, "aaa"), ("LEONTES", 1 / 3, "m")):
            chances[name] = prior
            for word in text.split():
                chances[name] *= (said_words.count(word[0]) + 0.5) / (len(said_words) + 0.5 * 2)
        counted.append(max(chances, key=chances.__getitem__) == who)
    assert counted == [True, False, False] and often == [True, False, True]
    for row, found in zip((1, 2, 3), (often, counted, right), strict=True):
        wanted = [sum(found) / 3, sum(found[:2]) / 2, float(found[2])]
        assert list(table.value.iloc[row]) == [f"{one:.1%}" for one in wanted]
    assert list(table.value.iloc[0]) == ["3", "2", "1"]
    assert list(table.value.columns) == ["all", "1 line", "8 lines"]
    assert "Of **3** stretches of speeches that it never read" in said(page)
    assert f"the speaker of **{sum(right) / 3:.1%}**" in said(page)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"speaks_text": "ay " * 7}, "reads 6 words and signs at once, not 7"),
        ({"speaks_model": "run-gone"}, "That run is not on this server"),
    ],
)
def test_what_cannot_be_read_gets_a_sentence(run: str, query: dict[str, str], says: str) -> None:
    page = opened(**({"speaks_model": run} | query))
    assert says in said(page) and not page.exception


def test_the_shipped_one_reads_the_first_line(drawn: dict[str, Any]) -> None:
    page = opened()
    assert "it thinks" in said(page) and not page.exception
    config = json.loads((ROOT / "checkpoints/paired/speakers/config.json").read_text())
    assert set(drawn["speaks"].table["speaker"]) == {words_speaks.named(one) for one in config["labels"]}
    assert len(drawn["speaks"].traces[1]["z"][0]) == len(
        re.findall("[a-z']+|[^a-z' ]", words_speaks.FIRST.lower())
    )
