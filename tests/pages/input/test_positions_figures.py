"""The figures of Positions that no link opens alone: what they draw of numbers written out here."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from engine.measure.distance import Slopes
from engine.measure.place_scores import PlaceRow, PlaceScores
from pages.input.positions import alibi_figures, rope_against_figures, t5_figures


def test_alibi_draws_what_each_head_leaves_and_marks_the_choice():
    figure = alibi_figures.decay_curves(np.array([0.5, 0.25]), 5, 3)
    assert [list(line.x) for line in figure.data] == [[0, 1, 2, 3, 4]] * 2
    for line, slope in zip(figure.data, (0.5, 0.25), strict=True):
        assert list(line.y) == pytest.approx([math.exp(-slope * d) for d in range(5)], rel=1e-5)
    assert [line.name for line in figure.data] == ["head 0", "head 1"]
    third, percent, chosen = figure.layout.shapes
    assert (third.y0, third.y1) == pytest.approx((1 / math.e, 1 / math.e))
    assert (percent.y0, percent.y1) == (0.01, 0.01) and (chosen.x0, chosen.x1) == (3, 3)
    assert [(note.text, round(note.y, 3)) for note in figure.layout.annotations] == [
        ("1/e", 0.368),
        ("1 percent", 0.01),
    ]


def test_alibi_draws_how_far_heads_reach_and_look():
    slope = np.array([0.5, 0.01])
    figure = alibi_figures.reach_bars(Slopes(slope, 1 / slope, math.log(100) / slope), 128)
    assert [list(bar.y) for bar in figure.data] == [
        pytest.approx([2, 100]),
        pytest.approx([9.2103, 460.517], rel=1e-4),
    ]
    assert [bar.name for bar in figure.data] == ["down to 1/e", "down to 1 percent"]
    assert (figure.layout.shapes[0].y0, figure.layout.yaxis.type) == (128, "log")
    low, high = figure.layout.yaxis.range
    assert 10**low < 1.01 and 10**high > 460
    without, having = alibi_figures.distance_bars([3.0, 4.0], [1.0, 2.0]).data
    assert (without.name, list(without.y)) == ("without the bias", [3, 4])
    assert (having.name, list(having.y)) == ("with it", [1, 2])


def test_t5_colours_own_shared_and_endless_buckets():
    offsets = np.arange(-6, 1)
    figure = t5_figures.bucket_steps(offsets, np.array([3, 3, 3, 2, 2, 1, 0]), 2, 4)
    drawn = {
        trace.name: {int(x): int(y) for x, y in zip(trace.x, trace.y, strict=True) if not np.isnan(y)}
        for trace in figure.data
    }
    assert drawn == {
        "own bucket each": {0: 0, -1: 1},
        "logarithmic": {-2: 2, -3: 2},
        "from 4 on: all in one": {-4: 3, -5: 3, -6: 3},
    }


def test_t5_marks_where_the_training_ended():
    bias = np.array([[0.5, -2.0, 1.0], [0.0, 0.25, -0.5]])
    lines = t5_figures.bias_lines(bias, np.array([-8, -4, 0]), 4)
    assert [list(line.y) for line in lines.data] == bias.tolist()
    assert [line.name for line in lines.data] == ["head 0", "head 1"]
    assert [(shape.x0, shape.x1) for shape in lines.layout.shapes] == [(-3.5, -3.5)]
    both = t5_figures.bias_lines(bias, np.array([-8, 0, 8]), 4)
    assert [shape.x0 for shape in both.layout.shapes] == [-3.5, 3.5]
    assert not t5_figures.bias_lines(bias, np.array([-2, -1, 0]), 4).layout.shapes
    heat = t5_figures.bias_by_head(bias, np.array([-8, -4, 0]), 4).data[0]
    assert heat.z.tolist() == bias.tolist() and list(heat.y) == [0, 1] and list(heat.x) == [-8, -4, 0]
    assert (heat.zmin, heat.zmid, heat.zmax) == (-2, 0, 2)


def test_a_moved_pair_stands_under_the_blocks_where_positions_enter():
    row = PlaceRow(np.array([3, 4, 5]), np.array([0.5, -1.0, 2.0]))
    entrances = [("embedding", False), ("block 0", True), ("block 1", True)]
    figure = rope_against_figures.moved_pair("Turned", entrances, row, (-2.0, 8.0), 3)
    line = figure.data[0]
    assert (list(line.x), list(line.y), list(line.customdata)) == ([3, 4, 5], [0.5, -1, 2], [0, 1, 2])
    low, high = figure.layout.yaxis.range
    assert low < -2 and high > 8 and high - low < 13
    assert [note.text for note in figure.layout.annotations] == [
        "embedding",
        "block 0",
        "block 1",
        "<b>Turned</b>",
    ]
    boxes = figure.layout.shapes
    assert [box.fillcolor == "rgba(0,0,0,0)" for box in boxes] == [True, False, False]
    for box, note in zip(boxes, figure.layout.annotations, strict=False):  # a name in the middle of its box
        assert (box.x0 + box.x1) / 2 == pytest.approx(note.x)
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_every_two_places_have_zero_in_the_middle():
    scores = np.array([[1.0, -3.0], [0.5, 2.0]])
    heat = rope_against_figures.every_two_places(PlaceScores(scores), 4.0).data[0]
    assert heat.z.tolist() == scores.tolist() and (heat.zmin, heat.zmax) == (-4, 4)
