"""The view "Sinusoidal": every number against the formula, every size."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from engine.measure.sinusoids import similarity
from pages.input.positions import sinusoidal_clock as clock
from tests.pages.helpers import unescaped
from tests.pages.input.positions import metrics, plain, positions

pytestmark = pytest.mark.usefixtures("manager")


def table(length: int, width: int, base: float) -> np.ndarray:
    """Vaswani et al. 2017, 3.5, in plain NumPy."""
    angles = np.arange(length)[:, None] * base ** (-2 * (np.arange(width) // 2) / width)
    return np.where(np.arange(width) % 2, np.cos(angles), np.sin(angles))


def test_the_table_and_its_waves(drawn):
    page = positions(
        "Sinusoidal", sinusoid_part="Table", sinusoid_length="20", sinusoid_width="12", sinusoid_base="100"
    )
    assert page.get_by_key("sinusoid_part").value == "table"
    waves = [2 * math.pi * 100 ** (i / 6) for i in range(6)]
    assert drawn["sinusoid_table"].traces[0]["z"] == pytest.approx(table(20, 12, 100.0), abs=1e-5)
    assert drawn["sinusoid_waves"].traces[0]["y"] == pytest.approx(waves)
    assert drawn["sinusoid_waves"].traces[1]["y"] == [20, 20]
    said = unescaped(page)
    assert f"$2\\pi$ = 6.283 positions to $2\\pi \\cdot 100^{{(12-2)/12}}$ = {waves[-1]:,.1f}" in said
    assert "each is 2.154 times the one before" in said  # 100 ** (1/6)
    complete = sum(w <= 20 for w in waves)
    assert f"{complete} of 6 waves go round within these 20 places" in said
    assert f"{6 - complete} of 6 are longer than the table" in said
    assert f"every **6.28** places and tells neighbours apart; the slowest needs **{waves[-1]:,.1f}**" in said


def test_the_clock_has_the_hands_of_the_formula(monkeypatch):
    sent = {}
    monkeypatch.setattr(clock, "mounted", lambda name: lambda **rest: sent.update(rest))
    page = positions(
        "sinusoidal", sinusoid_part="clock", sinusoid_width="8", sinusoid_length="20", clock_position="7"
    )
    assert sent["data"]["thetas"] == pytest.approx([1, 0.1, 0.01, 0.001])
    assert (sent["data"]["pairs"], sent["data"]["of"], sent["data"]["last"]) == ([0, 1, 2, 3], 4, 19)
    assert sent["data"]["position"] == 7
    assert "**4 hands** at once" in unescaped(page)
    assert "the fastest needs 6.28 places for a round, the slowest 6,283.2" in unescaped(page)
    assert "A hand for each frequency" in unescaped(page)
    assert "read off **one hand** that goes round in 6.28" in unescaped(
        positions("sinusoidal", sinusoid_part="clock", sinusoid_width="2")
    )


def test_likeness_by_distance(drawn):
    page = positions(
        "sinusoidal",
        sinusoid_part="similarity",
        sinusoid_length="200",
        sinusoid_width="6",
        sinusoid_base="10",
    )
    values = table(200, 6, 10.0)
    cosines = values @ values.T / 3
    assert drawn["sinusoid_likeness"].traces[0]["z"] == pytest.approx(cosines[::2, ::2], abs=1e-4)
    assert drawn["sinusoid_by_distance"].traces[0]["y"] == pytest.approx(cosines[0], abs=1e-5)
    again = 1 + int(cosines[0, 1:].argmax())
    said = unescaped(page)
    c = cosines[0]
    assert f"{c[1]:.3f} at distance 1, and **{c[again]:.3f}** at distance {again}" in said and again > 1
    assert "here 1.732, so the cosine is the dot product divided by $d/2$ = 3" in said
    assert "multiples of 2" in said
    found = similarity(200, 6, 10.0)
    assert [plain(m) for m in metrics(page)] == pytest.approx([found.deviation, found.deviation64], rel=0.05)
    assert 1e-7 < plain(metrics(page)[0]) < 1e-4
    assert 0 < plain(metrics(page)[1]) < 1e-12
    falling = unescaped(positions("sinusoidal", sinusoid_part="similarity"))
    c = table(64, 64, 10_000.0)
    c = c @ c[0] / 32
    assert f"cosine **{c[1]:.3f}** at distance 1, {c[10]:.3f} at 10, {c[63]:.3f} at 63" in falling


def test_the_rotation_opens_with_the_worked_example(drawn):
    page = positions("sinusoidal", sinusoid_part="rotation")
    latex = page.latex[0].value
    numbers = [float(n) for n in re.findall(r"-?\d\.\d{3}", latex)]
    # turn(0.2), then (sin, cos) of 0.5, then of 0.7: theta is 0.1 for pair 8 of 32
    assert numbers == [0.980, 0.199, -0.199, 0.980, 0.479, 0.878, 0.644, 0.765]
    said = unescaped(page)
    assert "$\\theta$ = 0.1 radians" in said and "$k\\theta$ = 0.2:" in said
    assert "$(\\sin 0.7,\\ \\cos 0.7)$ = (0.644, 0.765)" in said
    assert "by **0.2** radians, wherever it starts: from (0.479, 0.878) at 5 to (0.644, 0.765) at 7" in said
    hands = drawn["sinusoid_turned"].traces[1:]
    assert [(hand["x"][1], hand["y"][1]) for hand in hands] == [
        pytest.approx((math.sin(x), math.cos(x))) for x in (0.5, 0.7)
    ]
    blocks = np.array(drawn["sinusoid_blocks"].traces[0]["z"])
    assert blocks[16:18, 16:18] == pytest.approx(np.array([[0.9801, 0.1987], [-0.1987, 0.9801]]), abs=1e-4)
    values = table(70, 64, 10_000.0)
    assert blocks @ values[3] == pytest.approx(values[5], abs=1e-5)
    assert 1e-8 < plain(metrics(page)[0]) < 1e-4 and plain(metrics(page)[1]) < 1e-12
    page.get_by_key("sinusoid_step").set_value(-60).run()
    assert "p = 60 is used instead of 5" in unescaped(page) and "the one 60 back" in unescaped(page)
    page.get_by_key("sinusoid_pair").set_value(31).run()
    page.get_by_key("sinusoid_width").set_value(4).run()  # there is no pair 31 any more
    assert not page.exception and "Pair 1 turns" in unescaped(page)
