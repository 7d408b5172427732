"""Numbers as they are written on a page."""

from __future__ import annotations

import math

from engine.training.numerics import perplexity


def number(value: float) -> str:
    """Returns a difference in plain figures, or with a power of ten where it is small.

    >>> number(-0.728), number(1.19e-7), number(0.0)
    ('−0.728', '1.2 × 10⁻⁷', '0')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    return minus(f"{value:.3f}") if abs(value) >= 1e-3 else scientific(value)


def counted(count: int, noun: str, many: str = "", bold: bool = False) -> str:
    """Returns a count with its noun, in the plural (`many`, or the noun with an s) unless there is one.

    >>> counted(1, "token"), counted(1200, "token"), counted(2, "other entry", "other entries", bold=True)
    ('1 token', '1,200 tokens', '**2** other entries')
    """
    number = f"**{count:,}**" if bold else f"{count:,}"
    return f"{number} {noun if count == 1 else many or noun + 's'}"


def scientific(value: float, digits: int = 1) -> str:
    """Returns a number with a power of ten, as it is written in a text.

    >>> scientific(1.19e-7), scientific(-96.2, 0), scientific(0.0)
    ('1.2 × 10⁻⁷', '−1 × 10²', '0')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    mantissa, power = f"{value:.{digits}e}".split("e")
    return f"{minus(mantissa)} × 10" + str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def minus(written: str) -> str:
    """Returns a written number with a true minus sign.

    >>> minus("-0.5")
    '−0.5'
    """
    return written.replace("-", "−")


def duration(seconds: float) -> str:
    """Returns the seconds in words, no more exact than they are.

    >>> duration(4.4), duration(95), duration(7200)
    ('4 s', '1.6 min', '2.0 h')
    """
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"


def time_left(seconds: float) -> str:
    """Returns an estimate of the seconds that are left in words.

    >>> time_left(12.3), time_left(0.2)
    ('about 12 s left', 'under 1 s left')
    """
    return f"{duration(seconds)} left" if seconds < 1 else f"about {duration(seconds)} left"


def short(n: float) -> str:
    """Returns a count with three digits and a letter.

    >>> short(38_597_376), short(2048), short(6.7e9), short(999_600), short(0)
    ('38.6M', '2.05K', '6.7B', '1M', '0')
    """
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if n / size >= 0.9995:  # 1,000 of the smaller unit, rounded
            return f"{_three(n / size)}{letter}"
    return f"{n:g}"


def _three(x: float) -> str:
    """Returns three digits of a number, or all before its point."""
    return f"{x:.3g}" if x < 999.5 else f"{x:,.0f}"


def flop(n: float) -> str:
    """Returns a number of floating-point operations with its unit.

    >>> flop(284_812_800), flop(9e15)
    ('285 MFLOP', '9 PFLOP')
    """
    text = short(n).replace("B", "G").replace("K", "k")
    return f"{text[:-1]} {text[-1]}FLOP" if text[-1].isalpha() else f"{text} FLOP"


def percent(part: float, whole: float) -> str:
    """Returns a share of a whole, in percent: nearly all is not all.

    >>> percent(1, 4), percent(0, 4), percent(1, 9000), percent(8999, 9000), percent(4, 4)
    ('25.0%', '0%', '<0.1%', '>99.9%', '100%')
    """
    share = part / max(whole, 1)
    if share in (0, 1):
        return f"{share:.0%}"
    return "<0.1%" if share < 0.0005 else ">99.9%" if 0.9995 <= share < 1 else f"{share:.1%}"


def gigabytes(n: float) -> str:
    """Returns the bytes in words; 1 GB is 2^30 bytes here.

    >>> gigabytes(2 * 2**30), gigabytes(1_536), gigabytes(3.5 * 2**40)
    ('2 GB', '1.5 KB', '3.5 TB')
    """
    for size, letter in ((2**40, "TB"), (2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if n / size >= 1 - 0.5 / 1024:  # 1,024 of the smaller unit, rounded
            return f"{_three(n / size)} {letter}"
    return f"{n:,.0f} B"


def nats(value: float, token: str = "character") -> str:
    """Returns a loss or an entropy with its perplexity, e^nats.

    >>> nats(2.0794), nats(11.0, "word")
    ('2.08 nats per character (perplexity 8.0)', '11.00 nats per word (perplexity 59,874)')
    """
    choices = perplexity(value)
    return f"{value:.2f} nats per {token} (perplexity {choices:,.{1 if choices < 20 else 0}f})"
