"""Pen-and-paper arithmetic on plain lists, of sizes that fit on a sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Row = Sequence[float]
NOTHING = -math.inf  # the score of a place that must not be seen
MOST_DECIMALS = 15


def softmax(scores: Row) -> tuple[float, ...]:
    """
    >>> [round(p, 2) for p in softmax([1.0, 2.5, 0.5, NOTHING])]
    [0.16, 0.74, 0.1, 0.0]
    """
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    return tuple(power / math.fsum(powers) for power in powers)


def dot(left: Row, right: Row) -> float:
    """
    >>> dot([1, 2], [5, 6])
    17
    """
    return sum(a * b for a, b in zip(left, right, strict=True))


def times(row: Row, matrix: Sequence[Row]) -> tuple[float, ...]:
    """Multiplies a row by a matrix that is given by its rows.

    >>> times([1, 2], [[1, 0], [3, 1]])
    (7, 2)
    """
    return tuple(dot(row, column) for column in zip(*matrix, strict=True))


def mixed(weights: Row, rows: Sequence[Row]) -> tuple[float, ...]:
    """Returns the weighted sum of rows."""
    return times(weights, rows)


def written(x: float, decimals: int = 3) -> str:
    """Writes a number of a calculation, with at most so many decimals.

    >>> written(17.0), written(-0.12345), written(2359296)
    ('17', '-0.123', '2,359,296')
    """
    text = f"{x:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def decimals_for(
    calculate: Callable[[Sequence[float]], float], numbers: Sequence[float], result: str, least: int = 3
) -> int:
    """Returns how many decimals, at least so many, numbers need for a calculation with them, as they are
    written, to round to its written `result`.

    >>> decimals_for(lambda x: math.exp(x[0]), [1.1459], "3.1", 2), decimals_for(sum, [0.5, 0.25], "0.75", 2)
    (3, 2)
    """
    tried = range(least, MOST_DECIMALS)
    enough = (n for n in tried if rounds_to(calculate([round(x, n) for x in numbers]), result))
    return next(enough, MOST_DECIMALS)


def rounds_to(x: float, result: str) -> bool:
    """True if a number is what is written, in as many decimals as that has.

    >>> rounds_to(3.158, "3.1"), rounds_to(1234.56, "1,235")
    (False, True)
    """
    wanted, places = float(result.replace(",", "")), len(result.partition(".")[2])
    return abs(x - wanted) <= 0.5 * 10**-places + 1e-12 * abs(wanted)


def factor(x: float, decimals: int = 3) -> str:
    """Writes a factor of a product: in brackets where it is negative.

    >>> factor(3), factor(-2)
    ('3', '(-2)')
    """
    text = written(x, decimals)
    return f"({text})" if x < 0 else text


def shown(row: Row, decimals: int = 0) -> str:
    """Formats a row for a statement.

    >>> shown([1, -2]), shown([0.5, 0.25], 2)
    ('[1, -2]', '[0.50, 0.25]')
    """
    return f"[{', '.join('−∞' if x == NOTHING else f'{x:.{decimals}f}' for x in row)}]"


def matrix(rows: Sequence[Row], decimals: int = 0) -> str:
    """Formats a matrix, row by row.

    >>> matrix([[1, 0], [0, 1]])
    '[[1, 0], [0, 1]]'
    """
    return f"[{', '.join(shown(row, decimals) for row in rows)}]"
