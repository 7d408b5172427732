"""The part "Clock" of "Sinusoidal": the many-handed clock, a hand for each frequency. It runs in the browser;
the frequencies are sent once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.parts.positions import sinusoidal_table
from pages.input.positions.sinusoid_sizes import sized
from studies.positions.sinusoids import frequencies, waves
from ui import content, explain, widgets
from ui.figures import theme
from ui.page_frame import View
from ui.players.component import mounted

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

TEXT = content.beside(__file__)
POSITION = "clock_position"  # in the URL, where the browser itself writes it
MOST_HANDS = 32
FIRST_POSITION = 5


def draw(figure: DeltaGenerator, controls: DeltaGenerator, length: int, width: int, base: int) -> None:
    """Draws the clock, and how long its hands take."""
    hands = waves(length, width, base)
    with figure:
        clock(hands.theta, length, key="clock_hands")
    fast, slow, count = hands.wavelength[0], hands.wavelength[-1], len(hands.theta)
    explain.answer(TEXT("one hand" if count == 1 else "answer", count=count, fast=fast, slow=slow))


def clock(thetas: np.ndarray, length: int, *, key: str) -> None:
    """Draws it. `thetas` (pair,) are radians a position, the fastest first; positions go from 0 to length -
    1.

    With more than MOST_HANDS pairs, evenly spaced ones are shown, the first and the last among them; the
    clock says so.
    """
    pairs = shown(len(thetas))
    data = {
        "thetas": [float(thetas[i]) for i in pairs],
        "pairs": pairs,
        "of": len(thetas),
        "last": length - 1,
        "position": linked(length),
        "name": POSITION,
        "palette": theme.palette(),
    }
    mounted("clock", stepper=True)(key=key, data=data)


def shown(count: int) -> list[int]:
    """Returns the pairs that get a hand.

    >>> shown(3), len(shown(256)), shown(256)[-1]
    ([0, 1, 2], 32, 255)
    """
    return (
        list(range(count))
        if count <= MOST_HANDS
        else np.linspace(0, count - 1, MOST_HANDS).round().astype(int).tolist()
    )


def linked(length: int) -> int:
    """Returns the position in the URL, which may be anything, within 0 .. length - 1."""
    named = widgets.url_index(POSITION, length, nearest=True)
    return min(FIRST_POSITION, length - 1) if named is None else named


PART = View("clock", TEXT, sized(draw), code=(sinusoidal_table, frequencies))
