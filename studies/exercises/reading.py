"""Reading a person's answer: numbers, letters, words, or a sentence that refuses it."""

from __future__ import annotations

import math
import re

from engine.errors import ExerciseError

LONGEST = 400  # characters of an answer that is read
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_AROUND = "[](){}"
_MINUS = str.maketrans("\u2212\u2013", "--")
_POINT_FIRST = re.compile(r"([-+]?),(\d+)")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


def plain(given: object) -> str:
    """Returns the answer as one short line of text. Raises ExerciseError where empty or endless."""
    if not isinstance(given, str):
        raise ExerciseError("there is no answer yet: write one, then press Check")
    result = given.strip()
    if not result:
        raise ExerciseError("there is no answer yet: write one, then press Check")
    if len(result) > LONGEST:
        raise ExerciseError(f"that is {len(result):,} characters long; the answer is a short line")
    return result


def numbers(given: object, count: int | None, unit: str = "", whole: bool = True) -> tuple[float, ...]:
    """Reads the numbers in an answer, `count` of them, or any number of them for None. They stand apart by
    blanks or commas; brackets around them, a leading equals sign and the unit behind them do no harm. Where
    they need not be `whole`, 1,024 is ambiguous, and is refused.

    >>> numbers("[1, 2.5  -3]", 3), numbers("1,048,576", 1), numbers("12 MB", 1, "MB"), numbers("2/4", 1)
    ((1.0, 2.5, -3.0), (1048576.0,), (12.0,), (0.5,))
    """
    text = plain(given).translate(_MINUS)
    if unit and text.lower().endswith(unit.lower()):
        text = text[: -len(unit)]
    for sign in _AROUND:
        text = text.replace(sign, " ")
    text = re.sub(r"\s+", " ", text).strip().lstrip("=\u2248~ ")
    text = re.sub(r"(?<=\d)['\u2019](?=\d{3})", "", text)  # 1'048'576, as in Switzerland
    if count is None:  # a shape: 2 x 3 x 4
        text = re.sub(r"(?<=\d) ?[x\u00d7] ?(?=\d)", " ", text, flags=re.IGNORECASE)
    _refuse_comma(text, count, whole)
    if count == 1 and _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if count == 1 and not whole:  # ,74 can be nothing but 0.74
        text = _POINT_FIRST.sub(r"\1.\2", text) if _POINT_FIRST.fullmatch(text) else text
    if count == 1 and re.fullmatch(r"\d{1,3}( \d{3})+", text):
        text = text.replace(" ", "")
    parts = [part for part in re.split(r"[\s;,]+", text) if part]
    result = tuple(_number(part) for part in parts)
    if not result:
        raise ExerciseError("it contains no number")
    if count is not None and len(result) != count:
        wanted = "one number is" if count == 1 else f"{count} numbers are"
        raise ExerciseError(f"{wanted} asked for, but there are {len(result)}")
    return result


def _refuse_comma(text: str, count: int | None, whole: bool) -> None:
    """0,5 is a half in half of Europe: it is read neither as two numbers nor as thousands."""
    parts = re.split(r"[\s;]+", text)
    commas = [part for part in parts if _DECIMAL_COMMA.fullmatch(part)]
    if len(parts) != (count or 0) or not commas:
        return
    if whole and count == 1 and _THOUSANDS.fullmatch(text):
        return
    point = commas[0].replace(",", ".")
    raise ExerciseError(f"write a decimal point instead of the comma: {_short(point)}")


def _number(part: str) -> float:
    above, stroke, below = part.partition("/")
    if stroke:
        value = _number(above), _number(below)
        if "/" in below or value[1] == 0:
            raise ExerciseError(f"{_short(part)} is not a number")
        return value[0] / value[1]
    if not _NUMBER.fullmatch(part) or not part.isascii():
        raise ExerciseError(f"{_short(part)} is not a number: write figures such as 12, -0.5 or 3e6")
    result = float(part)
    if not math.isfinite(result):
        raise ExerciseError(f"{_short(part)} is too large for a number")
    return result


def _short(part: str) -> str:
    """Quoted, and without what is no letter, figure or common sign: it comes from a stranger.

    >>> _short("a*b<c>"), _short("x" * 50)
    ('“abc”', '“xxxxxxxxxxxxxxxxxxxx…”')
    """
    kept = "".join(sign for sign in part if sign.isalnum() or sign in ".,+-/%")
    return f"“{kept[:20]}{'…' * (len(kept) > 20)}”" if kept else "that"


def letters(given: object, allowed: str) -> tuple[str, ...]:
    """Reads the letters of the steps that an answer names, in its order.

    >>> letters("c, a - B", "ABC")
    ('C', 'A', 'B')
    """
    text = plain(given).upper()
    result = tuple(sign for sign in text if sign.isalnum())
    wrong = next((sign for sign in result if sign not in allowed), None)
    if wrong is not None:
        raise ExerciseError(f"{_short(wrong)} is not a step: write letters {allowed[0]} to {allowed[-1]}")
    if not result:
        raise ExerciseError("write the letters of the steps in their order, such as B A C")
    twice = next((sign for sign in result if result.count(sign) > 1), None)
    if twice is not None:
        raise ExerciseError(f"step {twice} occurs more than once")
    return result


def pieces(given: object) -> tuple[str, ...]:
    """Reads the pieces of a word, apart by blanks or strokes.

    >>> pieces("l ow|er")
    ('l', 'ow', 'er')
    """
    result = tuple(part for part in re.split(r"[\s|·+,]+", plain(given).lower()) if part)
    if not result:
        raise ExerciseError("write the pieces with spaces between them, such as lo w er")
    return result
