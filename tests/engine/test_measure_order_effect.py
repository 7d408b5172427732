"""Which attention can tell two orders of the same words apart, and what is said of it."""

from __future__ import annotations

import numpy as np

from engine.measure.order_effect import SAME, order_effect, setting_of
from engine.measure.permutation import SCHEMES, Plan, compare, in_order_and_out, new_order
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

IDS, BACK = (0, 1, 2, 3), np.array([3, 2, 1, 0])


def test_every_scheme_is_compared_with_its_own_mask():
    found = order_effect(IDS, BACK)
    assert set(found.found) == {(s, mask) for s in SCHEMES for mask in (False, True)}
    for scheme, mask in (("rope", True), ("rope", False), ("none", True), ("t5", False)):
        alone = compare(IDS, BACK, Plan(scheme, mask))
        assert found.largest(scheme, mask) == alone.largest == np.abs(alone.matched - alone.before).max()
    assert found.largest("rope", True) != found.largest("rope", False)
    assert found.verdict("none", False) == "one bag" and found.largest("none", False) < SAME
    assert found.verdict("none", True) == "mask leaks" and found.largest("none", True) > SAME
    assert found.verdict("alibi", False) == "distances kept"
    assert found.verdict("alibi", True) == "order counts"
    for scheme in ("sinusoidal", "learned", "rope", "t5"):
        assert found.verdict(scheme, False) == found.verdict(scheme, True) == "order counts"
    assert order_effect(IDS, np.array([1, 2, 3, 0])).verdict("alibi", False) == "order counts"
    assert order_effect((0, 1, 0), np.array([2, 1, 0])).verdict("rope", True) == "reads the same"


@for_each("causal", [True, False])
def test_a_setting_is_found_by_its_switches(causal):
    model = loud(tiny(position="rope", causal=causal))
    settings = in_order_and_out(model, (1, 2, 3), new_order(3, "reverse"))
    for position in (True, False):
        for mask in (True, False):
            found = setting_of(settings, position, mask)
            if mask and not causal:
                assert found is None
            else:
                assert (found.position, found.mask) == (position, mask)
