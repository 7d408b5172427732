"""Numbers in words into digits, and back: two hundred and three <-> 2 0 3.

British English: an `and` before the tens and ones of a group that has hundreds, and before a last group below
one hundred. A number is cut into groups of three digits, each with its own name: thousand, million.
"""

from __future__ import annotations

import random

from engine.errors import TaskError
from studies.pairs.paired.task import Aligned, PairTask, Rule, rules_of

ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
        "nineteen")  # fmt: skip
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
GROUPS = ("", "thousand", "million")
DIGITS = 3 * len(GROUPS)  # of the longest number

NumberWords = list[tuple[str, tuple[int, ...]]]  # words, each with the places of the digits that it says


def number_words(number: str) -> NumberWords:
    """Returns a number in words, each with the positions of the digits that it comes from.

    >>> " ".join(word for word, _ in number_words("203040"))
    'two hundred and three thousand and forty'
    >>> number_words("17")
    [('seventeen', (0, 1))]
    """
    if int(number) == 0:
        return [(ONES[0], (0,))]
    words: NumberWords = []
    for group in reversed(range(-(-len(number) // 3))):
        end = len(number) - 3 * group
        places = range(max(0, end - 3), end)
        of_group = _below_thousand(number, places, last=group == 0, before=bool(words))
        if of_group and group:
            of_group.append((GROUPS[group], tuple(places)))
        words += of_group
    return words


def _below_thousand(number: str, positions: range, last: bool, before: bool) -> NumberWords:
    """One group of three digits. `before`: words stand before it."""
    # 0: hundreds, 1: tens, 2: ones
    digits = {2 - i: position for i, position in enumerate(reversed(positions))}
    value = {i: int(number[digits[i]]) if i in digits else 0 for i in range(3)}
    words: NumberWords = []
    if value[0]:
        words += [(ONES[value[0]], (digits[0],)), ("hundred", (digits[0],))]
    rest = 10 * value[1] + value[2]
    low = tuple(digits[i] for i in (1, 2) if i in digits)
    if rest and (value[0] or (last and before)):
        words.append(("and", low))
    if rest >= 20:
        words.append((TENS[value[1]], (digits[1],)))
        if value[2]:
            words.append((ONES[value[2]], (digits[2],)))
    elif rest >= 10:
        words.append((ONES[rest], low))
    elif rest:
        words.append((ONES[rest], (digits[2],)))
    return words


def read(words: str) -> str:
    """Reads the digits of a number in words. Raises TaskError for words that are not English numbers.

    >>> read("two hundred and three thousand and forty")
    '203040'
    """
    total = group = 0
    known = {word: n for n, word in enumerate(ONES)} | {word: 10 * n for n, word in enumerate(TENS) if word}
    for word in words.split():
        if word in known:
            group += known[word]
        elif word == "hundred":
            group *= 100
        elif word in GROUPS:
            total, group = total + group * 1000 ** GROUPS.index(word), 0
        elif word != "and":
            raise TaskError(f"“{word[:40]}” is not a number word: type {IN_WORDS}")
    digits = str(total + group)
    if len(digits) > DIGITS or [word for word, _ in number_words(digits)] != words.split():
        raise TaskError(f"“{words[:60]}” is not a number in this form: type {IN_WORDS}")
    return digits


IN_WORDS = "a number in words, such as “two hundred and three thousand and forty”"
IN_DIGITS = f"a number of 1 to {DIGITS} digits"


def into_digits(source: str) -> Aligned:
    """Returns the digits, each aligned with the word that names it; a 0 that no word names, with none."""
    digits, words = read(source), source.split()
    of: dict[int, tuple[int, ...]] = {}
    for place, (word, digit_places) in enumerate(number_words(digits)):
        if word not in ("hundred", "and", *GROUPS):
            of |= dict.fromkeys(digit_places, (place,))
    return Aligned(" ".join(words), " ".join(digits), tuple(of.get(i, ()) for i in range(len(digits))))


def into_words(source: str) -> Aligned:
    """Returns the words with their alignment. A word comes from the digits that it names; `hundred` from the
    digit before it, `and` from those after it, the name of a group from all its digits.
    """
    digits = "".join(source.split())
    proper = digits.isascii() and digits.isdigit() and len(digits) <= DIGITS
    if not proper or (digits[0] == "0" and digits != "0"):
        raise TaskError(f"“{source[:40]}” is not a number here: type {IN_DIGITS}, without a leading zero")
    words = number_words(digits)
    return Aligned(
        " ".join(digits), " ".join(word for word, _ in words), tuple(places for _, places in words)
    )


def draw_digits(draws: random.Random) -> str:
    """Draws a number of one to DIGITS digits, each length equally likely, with many silent zeros."""
    length = draws.randint(1, DIGITS)
    rest = [draws.choice("000123456789") for _ in range(length - 1)]
    return " ".join([draws.choice("123456789" if length > 1 else "0123456789"), *rest])


def draw_words(draws: random.Random) -> str:
    return into_words(draw_digits(draws)).target


_RULES = rules_of("numbers", into_digits)
NUMBERS = PairTask(
    name="numbers",
    title="Numbers into digits",
    rule="Write out in digits a number given in words.",
    by="words",
    form=IN_WORDS,
    draw=draw_words,
    answer=into_digits,
    repeats=True,
    rules=_RULES,
)
WORDS = PairTask(
    name="number_words",
    title="Digits into words",
    rule="Write out in words a number given in digits.",
    by="words",
    form=IN_DIGITS,
    draw=draw_digits,
    answer=into_words,
    repeats=True,
    rules=tuple(Rule(r.title, r.words, r.target, r.source) for r in _RULES),
)
