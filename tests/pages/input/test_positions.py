"""The Positions page as a whole: its views, links to them old and new, and its figures' axes."""

from __future__ import annotations

import numpy as np
import pytest

from pages.input.positions import sinusoidal_figures
from tests.pages.helpers import unescaped
from tests.pages.input.positions import positions

VIEWS = {
    "why": "Why",
    "sinusoidal": "Sinusoidal",
    "learned": "Learned",
    "rope": "RoPE",
    "rope-sinusoidal": "RoPE against sinusoidal",
    "alibi": "ALiBi",
    "t5": "T5",
    "bench": "Side by side",
}
SAID = {  # a piece of the words of each view
    "why": "The same words in two orders",
    "sinusoidal": "Each position (a row) gets a vector",
    "learned": "one vector for each position",
    "rope": "pair $i$ of q and of k is turned",
    "rope-sinusoidal": "Two small models that differ in their positions",
    "alibi": "a fixed price for distance",
    "t5": "distances are sorted into buckets",
    "bench": "Six small models",
}

pytestmark = pytest.mark.usefixtures("manager")


@pytest.mark.parametrize("view", VIEWS)
def test_an_old_link_names_its_view_by_the_title(view):
    page = positions(VIEWS[view])
    row = page.get_by_key("positions_view")
    assert list(row.options) == list(VIEWS.values()) and row.value == view and not page.error
    assert SAID[view] in unescaped(page) and "Why it matters" in unescaped(page)
    assert page.query_params.get("positions_view", "why") in (view, [view])


def test_an_axis_has_a_few_round_labels():
    for count in (1, 2, 7, 64, 200, 512):
        ticks = sinusoidal_figures.table_map(np.zeros((count, count))).layout.xaxis.tickvals
        assert 1 <= len(ticks) <= 8 and ticks[0] == 0 and ticks[-1] < count
