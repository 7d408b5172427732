"""Numbers as they are written on a page."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """A difference in plain figures, or with a power of ten where it is small.

    >>> number(0.728), number(1.19e-7), number(0.0)
    ('0.728', '1.2 × 10⁻⁷', '0')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    power = math.floor(math.log10(value))
    if power >= -3:
        return f"{value:.3f}"
    return f"{value / 10**power:.1f} × 10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def minus(written: str) -> str:
    """A written number with a true minus sign.

    >>> minus("-0.5")
    '−0.5'
    """
    return written.replace("-", "−")


def duration(seconds: float) -> str:
    """Seconds in words, no more exact than they are.

    >>> duration(4.4), duration(95), duration(7200)
    ('4 s', '1.6 min', '2.0 h')
    """
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"
