"""Figures of a training are pure functions of arrays."""

from __future__ import annotations

import math

import numpy as np

from engine.service.changes import Change
from engine.service.history import History, HistoryLog
from engine.training.records import Evaluation
from pages.start.train.curve_points import curve_of
from pages.start.train.curves import WHOLE, loss_curves
from tests.pages.stage import history
from ui.figures.labels import crowded

BASELINES = {"uniform": math.log(65), "unigram": 3.35, "bigram": 2.48}


def looks(*kinds: tuple[int, float, bool]) -> History:
    log = HistoryLog()
    for step, loss, complete in kinds:
        log.add(Evaluation(step, 3.0, loss, step / 10, complete, 3.0, 2 * loss))
    return log.view()


def test_the_evaluation_of_the_whole_split_is_drawn_apart_and_named():
    seen = looks((0, 4.0, False), (50, 2.0, False), (100, 1.8, False), (120, 1.5, True))
    curve = curve_of("one", seen)
    assert curve.eval_losses.tolist() == np.float32([4.0, 2.0, 1.8]).tolist()
    assert curve.whole_losses.tolist() == [1.5] and curve.whole_steps.tolist() == [120]
    figure = loss_curves(curve, BASELINES, 65, others=[curve_of("another", seen)])
    traces = {trace.name: trace for trace in figure.data}
    assert list(traces) == [
        "another 1.50",
        "another: validation, whole split",
        "each batch",
        "one 1.50",
        WHOLE,
        None,  # what an axis needs to be drawn
    ]
    for line, mark in (("one 1.50", WHOLE), ("another 1.50", "another: validation, whole split")):
        assert list(traces[line].x) == [0, 50, 100], "no line leads to the mark"
        assert traces[mark].mode == "markers"
        assert (list(traces[mark].x), list(traces[mark].y)) == (
            [120],
            [1.5],
        )
    said = [a.text for a in figure.layout.annotations if a.xref != "paper"]
    assert sorted(said) == ["1.50", "1.50"]
    along = curve_of("one", seen, unit="bits").along("time")
    assert along[1].tolist() == [0, 5, 10] and along[2].tolist() == [12]
    low, _ = figure.layout.yaxis.range
    assert low <= 1.5


def test_a_name_is_not_markup():
    figure = loss_curves(None, {}, 65, others=[curve_of("<b>&x", history(3).view())])
    assert figure.data[0].name == "&lt;b&gt;&amp;x 2.10"


def test_in_bits_per_character_everything_is_in_bits():
    log = history(40).view()
    nats, bits = curve_of("one", log), curve_of("one", log, 0, "bits")
    for in_bits, in_nats in (
        (bits.losses, nats.losses),
        (bits.eval_losses, nats.eval_losses),
        (bits.whole_losses, nats.whole_losses),
    ):
        assert len(in_bits) and np.allclose(in_bits, in_nats / math.log(2))
    figure = loss_curves(bits, {"uniform": 4.79, "unigram": 3.98}, 512, unit="bits", token="token")
    said = [a.text for a in figure.layout.annotations if a.xref == "paper"]
    assert said == ["knowing nothing (log₂ 512 a token): 4.79", "token frequencies: 3.98"]
    assert figure.layout.yaxis.title.text == "loss (bits per character)"


def test_tokens_of_several_letters_are_crowded_and_letters_are_not():
    assert crowded("a" * 128) == 0 and crowded(["␣the"] * 4) == 0
    assert crowded(["␣the"] * 40) == 4 and crowded(["x" * 50] * 40) == 10


def test_what_was_done_by_hand_is_a_mark_on_the_curve():
    changes = (Change(20, 0.4, "learning_rate", 0.003), Change(40, 0.8, "steps", 100))
    curve = curve_of("one", history(40).view(), changes=changes)
    for x, places in (("step", [20, 40]), ("time", [0.4, 0.8])):
        layout = loss_curves(curve, {}, 65, x=x).layout
        assert [shape["x0"] for shape in layout["shapes"]] == places
        said = [a.text for a in layout.annotations if "by hand" in a.text]
        assert said == [
            "by hand: learning rate 0.003",
            "by hand: 100 further steps",
        ]


def test_the_right_axis_says_between_how_many_letters_it_is_torn():
    axis = loss_curves(curve_of("one", history(40).view()), BASELINES, 65).layout["yaxis2"]
    assert list(axis["ticktext"]) == ["1", "2", "4", "8", "16", "32", "64"]
    assert np.allclose(np.exp(axis["tickvals"]), [1, 2, 4, 8, 16, 32, 64])
    in_bits = loss_curves(curve_of("one", history(40).view(), 0, "bits"), BASELINES, 65, unit="bits")
    assert "yaxis2" not in in_bits.arrangement
