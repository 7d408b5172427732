"""The Positions page as a whole: its views, links to them old and new, and its figures' axes."""

from __future__ import annotations

import numpy as np
import pytest

from pages.input.positions import sinusoidal_figures
from tests.pages.input.positions import opened, sentences

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
def test_a_link_opens_its_view_by_the_id_and_old_ones_by_the_title(view):
    page = opened(VIEWS[view])
    row = page.get_by_key("positions_view")
    assert list(row.options) == list(VIEWS.values()) and row.value == view and not page.error
    assert SAID[view] in sentences(page) and "Why it matters" in sentences(page)
    assert page.query_params.get("positions_view", "why") in (view, [view])
    if view != "bench":  # of which the opening is slow
        assert opened(view).get_by_key("positions_view").value == view


def test_a_view_nobody_knows_is_the_first():
    page = opened("<script>")
    assert page.get_by_key("positions_view").value == "why" and SAID["why"] in sentences(page)


@pytest.mark.parametrize("count", [1, 2, 7, 64, 200, 512])
def test_an_axis_has_a_few_round_labels(count):
    ticks = sinusoidal_figures.table_map(np.zeros((count, count))).layout.xaxis.tickvals
    assert 1 <= len(ticks) <= 8 and ticks[0] == 0 and ticks[-1] < count
