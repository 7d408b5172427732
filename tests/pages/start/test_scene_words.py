"""What a scene says in numbers is so: held against the files and the parts that it speaks of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.ledger.morph import OFFERED
from engine.measure.lens import logit_lens
from engine.measure.recording import record
from engine.presets.ladder import LADDER
from engine.pretrained import sources
from engine.pretrained.library import load as load_real
from ui.tour.courses import Scene, shelf

KEPT = Path(__file__).parents[3] / "checkpoints"


def scene(course: str, title: str) -> Scene:
    (found,) = [one for one in shelf().courses[course].scenes if one.title == title]
    return found


def says(course: str, title: str, *words: str) -> None:
    text = scene(course, title).text.lower()
    assert [word for word in words if word not in text] == []


def test_what_there_is_is_counted() -> None:
    config = json.loads((KEPT / "shakespeare-classic" / "config.json").read_text())
    config = config.get("model", config)
    says("ten-minutes", "Each number becomes a vector", f"a list of {config['d_model']} numbers")
    assert config["n_layers"] == 4
    says("ten-minutes", "Four rounds, one better guess", "this model has four")
    assert len(LADDER) == 19
    says("attention-from-nothing", "A table of pairs", "nineteen models")
    assert len(list((KEPT / "bugs").glob("*.json"))) == 24
    says("the-chapter", "Pitfalls", "twenty-four mistakes")
    moments = len(list((KEPT / "timelapse").glob("step-*.safetensors")))
    for course in ("built-live", "the-chapter"):
        assert scene(course, f"A training, kept at {moments} moments")
    assert len(OFFERED) == 8
    says("built-live", "What has changed since 2017", "eight choices")


def right(course: str, title: str) -> str:
    asked = scene(course, title).question
    assert asked is not None
    return asked.answers[asked.right].lower()


def test_the_answers_that_count_as_right_are_what_was_measured() -> None:
    loss = {
        run["name"]: run["looks"][-1]["validation_loss"]
        for name in ("bugs/no_mask", "races/ladder")
        for run in json.loads((KEPT / f"{name}.json").read_text())["runs"]
    }
    assert loss["with the bug"] < loss["healthy"] / 10
    assert right("built-live", "The mask") == "it falls far below that of the healthy model"
    kept = json.loads((KEPT / "residuals.json").read_text())
    (pair,) = [one for one in kept["pairs"] if (one["depth"], one["norm"]) == (8, "layernorm")]
    without, after = pair["replaced"]["losses"][-1], kept["train"]["steps"]
    assert 0 < pair["counting"] - without < 0.1 < 0.5 < without - pair["added"]["losses"][-1] and after == 300
    asked = scene("built-live", "The residual highway").question
    assert asked is not None and asked.asked.startswith("Eight blocks") and f"{after} steps" in asked.asked
    assert right("built-live", "The residual highway") == "hardly more than how often each letter occurs"
    assert loss["Average"] > loss["Last letter"]
    says("attention-from-nothing", "An average is worse", "falls behind the table")


def test_a_fact_rises_at_the_very_end_of_the_real_model() -> None:
    if "smollm2-135m" not in sources.available():
        pytest.skip("SmolLM2 is not installed")
    found = load_real("smollm2-135m", 200_000_000)
    ids = found.tokenizer.encode("The capital of France is")
    guess = logit_lens(found.model, record(found.model, ids)).guess[:, -1]
    (paris,) = found.tokenizer.encode(" Paris")
    assert len(guess) == 31 and guess[-1] == paris and paris not in guess[:-1]
    assert right("inside-a-real-model", "A fact rises") == "at the very end"
