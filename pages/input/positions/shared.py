"""Written numbers."""

from __future__ import annotations

from ui.text.numbers import minus


def signed(value: float, digits: int = 3) -> str:
    """Returns a number with a true minus sign.

    >>> signed(-1.5), signed(2.0, 1)
    ('−1.500', '2.0')
    """
    return minus(f"{value:.{digits}f}")


def thousands(value: float) -> str:
    """Returns a number as sliders write it.

    >>> thousands(10_000), thousands(0.25)
    ('10,000', '0.25')
    """
    return f"{value:,}"
