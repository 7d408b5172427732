"""Figures of a training are pure functions of arrays."""

from __future__ import annotations

import math

import numpy as np

from tests.pages.stage import history
from ui.figures.curves import Curve, curve_of, curve_table, loss_curves, small_curve, spread
from ui.figures.labels import crowded

BASELINES = {"uniform": math.log(65), "unigram": 3.35, "bigram": 2.48}


def test_labels_of_curves_that_end_together_do_not_share_a_line():
    curve = curve_of("one", history(40).view())
    figure = loss_curves(curve, BASELINES, 65, others=[curve, curve])
    low, high = figure.layout.yaxis.range
    at = sorted(a.y * 240 / (high - low) + a.yshift for a in figure.layout.annotations if a.xref != "paper")
    assert len(at) == 4 and min(np.diff(at)) >= 15


def test_baselines_are_named_with_their_values():
    said = [a.text for a in loss_curves(None, BASELINES, 65).layout.annotations]
    assert said == ["knowing nothing (ln 65): 4.17", "letter frequencies: 3.35", "letter pairs: 2.48"]


def test_a_name_is_not_markup():
    figure = loss_curves(None, {}, 65, others=[curve_of("<b>&x", history(3).view())])
    assert figure.data[0].name == "&lt;b&gt;&amp;x"


def test_no_steps_and_losses_that_are_not_numbers_still_draw():
    loss_curves(Curve("empty"), {}, 2)
    broken = Curve(
        "b",
        *[np.array([1.0, 2.0])] * 2,
        np.array([np.nan, np.inf]),
        *[np.array([0.0])] * 2,
        np.array([np.nan]),
    )
    low, high = loss_curves(broken, BASELINES, 65, x="time").layout.yaxis.range
    assert 0 <= low < high < 20
    small_curve(np.zeros(0), np.zeros(0), title="gradient norm", log=True)


def test_the_table_holds_every_step_and_every_evaluation_once():
    log = history(40)
    table = curve_table(log.view())
    assert list(table["step"]) == list(range(41))
    assert table["validation_loss"].notna().sum() == 2 and math.isnan(table["batch_loss"][0])


def test_thinned_points_keep_both_ends():
    assert spread(7, 0).tolist() == list(range(7)) and spread(1000, 5).tolist() == [0, 249, 499, 749, 999]


def test_in_bits_per_character_everything_is_in_bits():
    log = history(40).view()
    nats, bits = curve_of("one", log), curve_of("one", log, 0, "bits")
    assert np.allclose(bits.losses, nats.losses / math.log(2)) and np.allclose(
        bits.eval_losses, nats.eval_losses / math.log(2)
    )
    figure = loss_curves(bits, {"uniform": 4.79, "unigram": 3.98}, 512, unit="bits", token="token")
    said = [a.text for a in figure.layout.annotations if a.xref == "paper"]
    assert said == ["knowing nothing (log₂ 512 a token): 4.79", "token frequencies: 3.98"]
    assert figure.layout.yaxis.title.text == "loss (bits per character)"


def test_tokens_of_several_letters_are_crowded_and_letters_are_not():
    assert crowded("a" * 128) == 0 and crowded(["␣the"] * 4) == 0
    assert crowded(["␣the"] * 40) == 4 and crowded(["x" * 50] * 40) == 10
