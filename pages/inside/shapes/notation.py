"""Numbers read and written as on paper."""

from __future__ import annotations

import math

import numpy as np

from engine.errors import ShapeError
from ui import content

TEXT = content.beside(__file__)
MOST = 8  # numbers in a row


def numbers(text: str) -> list[float]:
    """Returns the numbers between commas or blanks. Raises ShapeError with a sentence for anything else, and
    for more than 8.

    >>> numbers("1, 2.5 -3")
    [1.0, 2.5, -3.0]
    """
    result = []
    for word in text.replace(",", " ").replace(";", " ").replace("−", "-").split():
        try:
            value = float(word)
        except ValueError:
            raise ShapeError(TEXT("no number", word=word[:20])) from None
        if not math.isfinite(value) or abs(value) > 1000:
            raise ShapeError(TEXT("out of range", word=word[:20]))
        result.append(value)
    if not 1 <= len(result) <= MOST:
        raise ShapeError(TEXT("how many", most=MOST, count=len(result)))
    return result


def plain(x: float) -> str:
    return "−∞" if x == -math.inf else f"{x:.2f}".replace("-", "−")


def matrix(x: np.ndarray, digits: int = 2) -> str:
    return (
        r"\begin{bmatrix} "
        + r" \\ ".join(" & ".join(number(float(value), digits) for value in row) for row in x)
        + r" \end{bmatrix}"
    )


def number(x: float, digits: int = 2) -> str:
    """
    >>> number(3.0), number(12.0208), number(float("-inf"))
    ('3', '12.02', '-\\\\infty')
    """
    if math.isinf(x):
        return r"-\infty"
    text = f"{x:.{digits}f}"
    if x and not float(text):
        mantissa, power = f"{x:.1e}".split("e")
        return rf"{mantissa} \cdot 10^{{{int(power)}}}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def signed(x: float) -> str:
    return number(x) if x >= 0 else f"({number(x)})"
