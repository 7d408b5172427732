"""Reference, "Before 2017": the sentence and the table say what was measured and counted."""

from __future__ import annotations

import numpy as np
import pytest

from engine.measure.carrying import carried
from tests.pages.models.test_reference import opened, said
from ui.text.numbers import number

pytestmark = pytest.mark.usefixtures("manager")


def test_the_answer_says_the_steps_and_what_is_left(drawn):
    page = opened(reference_view="before", reference_length="16")
    table = drawn["reference_before"].table
    assert list(table["back"]) == list(range(1, 16))
    for name, layer in (("RNN", "rnn"), ("LSTM", "lstm"), ("attention", "attention")):
        assert table[name] == pytest.approx(carried(layer, 16).influence)
    lines = {line["name"]: line for line in drawn["reference_before"].traces}
    for name in ("RNN", "LSTM", "attention"):  # what is drawn is what is measured, against the distance
        assert lines[name]["y"] == pytest.approx(list(table[name]))
        assert list(lines[name]["x"]) == list(range(1, 16))
    answer = said(page)
    assert "needs **16 steps, one after the other**" in answer and "attention needs **1**" in answer
    assert f"keeps {number(float(np.asarray(table['RNN'])[-1]))} of a neighbour's influence" in answer
    assert f"keeps {number(float(np.asarray(table['attention'])[-1]))} of it" in answer


def test_the_table_counts_one_layer():
    page = opened(reference_view="before", reference_length="128")
    told = said(page)
    both, d = 128, 64
    for count in (2 * both * d * d, 8 * both * d * d, 4 * both * d * d + 2 * both * both * d):
        assert f"{count:,}" in told


@pytest.mark.parametrize("length", ["0", "9", "-8", "x", "1e9"])
def test_a_length_written_by_a_stranger_is_the_first(length):
    assert "**64 steps" in said(opened(reference_view="before", reference_length=length))
