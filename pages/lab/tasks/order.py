"""The view of the order of digits: the same sums, written from either end."""

from __future__ import annotations

from engine.errors import CheckpointError
from engine.service.lab_races import DIGITS, shipped, specs_of
from engine.service.stored import Stored
from pages.lab.tasks import words
from ui.race import show_race


def draw_order() -> None:
    """The race of both, the stored one until there is another."""
    show_race(DIGITS, "Order of the digits", specs_of(DIGITS), say=words.order, stored=_stored())


def _stored() -> Stored | None:
    """The race that is shipped; None where its file is not whole."""
    try:
        return shipped(DIGITS)
    except CheckpointError:
        return None
