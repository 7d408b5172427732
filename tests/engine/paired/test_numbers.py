"""Numbers in words: there and back for every number up to 20,000, and by hand."""

from __future__ import annotations

import random

import pytest

from engine.errors import TaskError
from engine.tasks.paired import PAIR_TASKS
from engine.tasks.paired.numbers import GROUPS, ONES, TENS, draw_digits, into_digits, into_words
from tests.engine.cases import for_each

BY_HAND = {
    "0": "zero",
    "7": "seven",
    "10": "ten",
    "13": "thirteen",
    "20": "twenty",
    "42": "forty two",
    "100": "one hundred",
    "101": "one hundred and one",
    "115": "one hundred and fifteen",
    "999": "nine hundred and ninety nine",
    "1000": "one thousand",
    "1001": "one thousand and one",
    "1100": "one thousand one hundred",
    "2042": "two thousand and forty two",
    "40000": "forty thousand",
    "203040": "two hundred and three thousand and forty",
    "1000000": "one million",
    "1000001": "one million and one",
    "1001000": "one million one thousand",
    "5006000": "five million six thousand",
    "123456789": "one hundred and twenty three million four hundred and fifty six thousand seven hundred"
    " and eighty nine",
}


@for_each("digits", BY_HAND)
def test_numbers_by_hand(digits: str) -> None:
    apart = " ".join(digits)
    assert into_words(apart).target == BY_HAND[digits] == into_words(digits).target
    assert into_digits(BY_HAND[digits]).target == apart


def test_there_and_back() -> None:
    """No two numbers are said alike."""
    for n in [*range(20_000), *(10**i + j for i in range(5, 9) for j in range(-3, 300, 7))]:
        apart = " ".join(str(n))
        assert into_digits(into_words(apart).target).target == apart


def worth(word: str) -> int:
    return ONES.index(word) if word in ONES else 10 * TENS.index(word)


def test_a_digit_comes_from_the_word_that_says_it() -> None:
    draws = random.Random(1)
    for _ in range(1000):
        one = into_digits(into_words(draw_digits(draws)).target)
        words = one.source.split()
        for digit, places, after in zip(
            one.target.split(), one.sources, [*one.sources[1:], None], strict=True
        ):
            if not places:
                assert digit == "0"
                continue
            (place,) = places
            said = worth(words[place])
            first_of_two = places == after or said >= 20
            assert int(digit) == (said // 10 if first_of_two else said % 10)
        used = {place for places in one.sources for place in places}
        left = {word for i, word in enumerate(words) if i not in used}
        assert left <= {"hundred", "and", *GROUPS}  # these say where, not what


def test_a_word_comes_from_its_digits() -> None:
    found = into_words("2 0 3 0 4 0")
    assert list(zip(found.target.split(), found.sources, strict=True)) == [
        ("two", (0,)),
        ("hundred", (0,)),
        ("and", (1, 2)),
        ("three", (2,)),
        ("thousand", (0, 1, 2)),
        ("and", (4, 5)),
        ("forty", (4,)),
    ]
    assert into_words("1 7").sources == ((0, 1),)
    assert into_digits("two hundred and three").sources == ((0,), (), (3,))
    assert into_digits("seventeen").sources == ((0,), (0,))
    assert into_digits("zero").sources == ((0,),)


@for_each(
    ("name", "typed"),
    [
        ("numbers", "twenty ten"),
        ("numbers", "one hundred one"),
        ("numbers", "and"),
        ("numbers", "hundred"),
        ("numbers", "two thousand forty"),
        ("numbers", "zero zero"),
        ("numbers", "one thousand million"),
        ("numbers", "thousand"),
        ("number_words", "0 1"),
        ("number_words", "1 2 3 4 5 6 7 8 9 0"),
        ("number_words", "twelve"),
    ],
)
def test_what_is_no_number(name: str, typed: str) -> None:
    with pytest.raises(TaskError, match="number"):
        PAIR_TASKS[name].answer(typed)
