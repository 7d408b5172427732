"""The view "RoPE against sinusoidal": both panels against the models' own scores."""

from __future__ import annotations

import re

import numpy as np
import pytest

from engine.measure.recording import record
from tests.pages.helpers import unescaped
from tests.pages.input.positions import plain, positions, shipped

pytestmark = pytest.mark.usefixtures("manager")
LENGTH = 64


def scores_of_a_text(name: str, distance: int, head: int) -> np.ndarray:
    """The model's own recorded scores of "e" with an "h" that many places before, the query at each place.

    In the first block only the two tokens and their places count, so each place is read in a text of its own:
    all "e", with an "h" where the key is.
    """
    found = shipped(f"positions/{name}")
    e, h = (found.tokenizer.encode(letter)[0] for letter in "eh")
    values = []
    for query in range(distance, LENGTH):
        text = [e] * LENGTH
        text[query - distance] = h
        values.append(record(found.model, text)["blocks.0.scores"][head, query, query - distance])
    return np.array(values)


def test_the_added_score_wanders_and_the_turned_one_stays(drawn):
    page = positions("rope-sinusoidal", against_head="1", against_distance="2")
    for name in ("sinusoidal", "rope"):
        line = drawn[f"against_{name}"].traces[0]
        assert line["x"] == list(range(2, 64))
        assert line["y"] == pytest.approx(scores_of_a_text(name, 2, 1), abs=1e-4)
    added, turned = (np.array(drawn[f"against_{name}"].traces[0]["y"]) for name in ("sinusoidal", "rope"))
    said = re.search(
        r"“e” looks at “h” 2 places back .* from \*\*(\S+)\*\* to \*\*(\S+)\*\*\..*: \*\*(\S+)\*\* everywhere",
        unescaped(page),
    )
    low, high, still = map(plain, said.groups())
    assert (low, high) == (pytest.approx(added.min(), abs=6e-3), pytest.approx(added.max(), abs=6e-3))
    assert still == pytest.approx(turned.mean(), abs=6e-3) and np.ptp(turned) < 1e-5
    assert high - low > 1
    ranges = {tuple(drawn[f"against_{name}"].layout["yaxis"]["range"]) for name in ("sinusoidal", "rope")}
    assert len(ranges) == 1


def test_every_two_places_are_folded(drawn):
    page = positions("rope-sinusoidal", measure="")
    assert "against_places_rope" not in drawn
    page = positions("rope-sinusoidal", against_query="t", against_key="o")
    places = np.array(drawn["against_places_rope"].traces[0]["z"])
    assert places.shape == (64, 64)
    for distance in (-5, 0, 9):
        assert np.ptp(np.diagonal(places, -distance)) < 1e-4
    assert np.ptp(np.diagonal(drawn["against_places_sinusoidal"].traces[0]["z"], -9)) > 1
    assert "“t” looks at “o” 3 places back" in unescaped(page)
