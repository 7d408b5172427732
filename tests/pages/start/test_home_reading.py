"""What is kept of a reading of the living map."""

import numpy as np
import pytest

from pages.start.home import reading
from pages.start.home.reading import at_once, in_full, look, reading_of
from ui import memo


def test_a_visitor_gets_at_once_what_another_has_had_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_large", lambda subject: True)
    memo.clear()
    subject = look("shakespeare-classic", "To be, or not to be").subject
    read = reading_of(subject)
    assert not at_once(subject, read).whole
    first = in_full(subject, read)
    monkeypatch.setattr(reading, "likeliest_tokens", lambda logits: pytest.fail("computed twice"))
    second = at_once(subject, read)
    assert second.whole and second.by_lane.keys() == first.by_lane.keys()
    for lane, predictions in first.by_lane.items():
        assert np.array_equal(second.by_lane[lane].tokens, predictions.tokens)
    assert 0 < memo.MEASURED.held.bytes < memo.MEASURED.held.limit
