"""Figures of a training are pure functions of arrays."""

from __future__ import annotations

import math

import numpy as np

from tests.pages.stage import history
from ui.figures.curves import Curve, curve_of, curve_table, loss_curves, small_curve, spread

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
    broken = Curve("b", *[np.array([1.0, 2.0])] * 2, np.array([np.nan, np.inf]), *[np.array([0.0])] * 2, np.array([np.nan]))
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
