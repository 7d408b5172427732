"""Dates: against Python's own calendar, and each digit against the letters that it comes from."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pytest

from engine.errors import TaskError
from engine.tasks.paired.dates import DATES, FIRST, FORMATS, LAST, MONTHS, answer, draw, written
from tests.engine.cases import for_each


@for_each(
    ("source", "target"),
    [
        ("the 3rd of March 1999", "1999-03-03"),
        ("21/11/26", "2026-11-21"),
        ("Nov 21, 2026", "2026-11-21"),
        ("3/11/26", "2026-11-03"),  # the day first
        ("03.11.50", "1950-11-03"),
        ("03.11.49", "2049-11-03"),
        ("1 Feb '00", "2000-02-01"),
        ("29 February 2000", "2000-02-29"),
        ("Sunday, 22 November 2026", "2026-11-22"),
        ("Sunday the 22nd of November 2026", "2026-11-22"),
        ("May 5, 2005", "2005-05-05"),
        ("11th May 2011", "2011-05-11"),
    ],
)
def test_dates_by_hand(source: str, target: str) -> None:
    assert answer(source).target == target


def test_every_day_in_every_format() -> None:
    """Every 37th day, 17 ways: the formats are told apart, and all name the day that was meant."""
    day = FIRST
    while day <= LAST:
        for form in FORMATS:
            assert answer(written(day, form)).target == f"{day.year:04d}-{day.month:02d}-{day.day:02d}"
        day += timedelta(days=37)


def test_where_each_digit_comes_from() -> None:
    draws = random.Random(5)
    seen = set()
    for _ in range(2000):
        one = answer(draw(draws))
        source, target = one.source, one.target
        year, month, day = one.sources[:4], one.sources[5:7], one.sources[8:]
        assert one.sources[4] == one.sources[7] == ()  # the strokes
        if source.endswith(target[:4]):  # the whole year is there
            assert year == tuple((place,) for place in range(len(source) - 4, len(source)))
        else:
            tens, ones = len(source) - 2, len(source) - 1
            assert year == ((tens,), (tens,), (tens,), (ones,)) and source[tens:] == target[2:4]
            seen.add("short year")
        name = MONTHS[int(target[5:7]) - 1]
        letters = "".join(source[place] for place in month[0])
        assert len({*month}) == 1 or letters == target[5]
        if letters.isalpha():
            assert letters in (name, name[:3])
            seen.add(len(letters) > 3)
        else:
            assert "".join(source[p[0]] for p in month) in (target[5:7], target[6] * 2)
        digits = "".join(source[places[0]] for places in day)
        assert digits in (target[8:], target[9] * 2) and all(len(places) == 1 for places in day)
        seen.add(("padded", digits == target[8:]))
    assert seen == {"short year", True, False, ("padded", True), ("padded", False)}


def test_an_alignment_by_hand() -> None:
    assert answer("3/11/74").sources == (*((5,), (5,), (5,), (6,)), (), *((2,), (3,)), (), *((0,), (0,)))
    assert answer("Nov 21, 2026").sources[5:7] == ((0, 1, 2), (0, 1, 2))


def test_the_day_is_what_is_held_out() -> None:
    assert {DATES.key(written(date(2026, 11, 21), form)) for form in FORMATS} == {"2026-11-21"}


@for_each(
    ("typed", "said"),
    [
        ("31 February 2020", "in no calendar"),
        ("29/02/23", "in no calendar"),
        ("13/13/13", "in no calendar"),
        ("1/1/1949", "no date of this task"),
        ("1.1.1949", "not from 1950 to 2049"),
        ("3th March 1999", "does not fit together"),
        ("Monday, 22 November 2026", "Sunday, 22 November 2026"),
        ("nov 21, 2026", "no date of this task"),
        ("1 Okt '20", "no date of this task"),
    ],
)
def test_what_is_no_date(typed: str, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        answer(typed)
