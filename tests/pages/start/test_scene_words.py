"""What a scene says in numbers is so: held against the files and the parts that it speaks of."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from engine.checkpoints import load
from engine.doctor.checks import CHECKS
from engine.doctor.table import shipped, subject_of
from engine.ledger.morph import OFFERED
from engine.measure.lens import logit_lens
from engine.measure.raw_similarity import self_term
from engine.measure.recording import record
from engine.measure.rounding import Rounding, rounded, taken
from engine.presets.ladder import LADDER
from engine.pretrained import sources
from engine.pretrained.library import load as load_real
from engine.probe import AXES
from pages.lab.faults.doctor_figures import grid
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


def test_the_self_term_is_as_large_as_the_scene_says() -> None:
    found = self_term("similarity", 256, list(range(12)), 0)
    root = math.sqrt(found.d_model)
    assert found.own * root == pytest.approx(256, rel=0.1)
    assert found.others * root == pytest.approx(16, rel=0.2)
    assert round(found.own) == 16 and round(found.others) == 1
    says("attention-from-nothing", "The self-term", "about 256, times others about 16", "16 against 1")


def test_four_bits_take_a_seventh_of_the_room() -> None:
    matrix = load(KEPT / "shakespeare-classic").model.state_dict()["blocks.0.ffn.w_in.weight"]
    bits = taken(matrix, rounded(matrix, Rounding(4))).bits
    assert round(32 / bits) == 7
    says("inside-a-real-model", "Four bits", "4 bits", "instead of 32", "about a seventh")


def test_the_grid_of_checks_has_the_rows_and_columns_that_the_scene_names() -> None:
    charts = shipped()
    titles = {name: subject_of(name).title for name in charts}
    (trace,) = grid(charts, titles, CHECKS, "no_mask").data
    assert np.shape(trace["z"]) == (len(charts), len(CHECKS))
    says("the-chapter", "Checks that catch them", "every row is a mistake", "every column a check", "red")


def test_two_axes_of_tokens_are_there_from_the_scores_to_the_pattern() -> None:
    both = [name for name, axes in AXES.items() if {"query", "key"} <= set(axes)]
    assert [name for name in both if not name.startswith("cross_")] == ["scores", "masked_scores", "pattern"]
    says("built-live", "One block, every shape", "the mask", "from the scores to the", "two axes of tokens")


def test_what_is_asked_about_the_nucleus_is_what_is_then_shown() -> None:
    asked = scene("text-in-text-out", "Out come scores")
    assert asked.question is not None and asked.question.asked.startswith("Top-p is 0.9.")
    assert dict(asked.query)["sampling_top_p"] == "0.9"


def test_the_rungs_stand_as_the_scenes_and_their_notes_say() -> None:
    """Against the stored race, read without the engine."""
    runs = json.loads((KEPT / "races" / "ladder.json").read_text())["runs"]
    loss = {run["name"]: run["looks"][-1]["validation_loss"] for run in runs}
    course = "attention-from-nothing"
    assert loss["One matrix"] < loss["Values"] < loss["Queries and keys"]
    assert "no lower here than with one" in scene(course, "Values").notes
    layers = [loss[f"Attention ×{n}"] for n in (1, 2, 4, 8)]
    assert layers[1] < layers[0] < layers[1] + 0.05 and layers[2] < layers[1] < layers[2] + 0.05
    assert 1000 < layers[3] < 10_000
    says(course, "Layers of attention", "a second layer buys little, a fourth too; eight explode")
    assert "in the thousands" in scene(course, "Layers of attention").notes
    buys = {
        name: loss[LADDER[rung.below].title] - loss[rung.title]
        for name, rung in LADDER.items()
        if rung.below is not None and min(loss[rung.title], loss[LADDER[rung.below].title]) < 100
    }
    beyond = loss["Last letter"] - 0.01  # raw similarity comes back to the table's, from an average's
    above = {name: saved for name, saved in buys.items() if loss[LADDER[name].title] < beyond}
    assert max(above, key=above.__getitem__) == "positions"
    says(course, "Positions", "no idea that gets beyond the table of pairs buys as much")
    assert loss["Positions"] < loss["Four heads"] < loss["Norm"] > loss["Modern parts"] < loss["Positions"]
    notes = scene(course, "Several heads, a norm").notes
    assert "cost a little" in notes and "win it back" in notes and "300 steps" in notes
    assert runs[-1]["train"]["steps"] == 300


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
