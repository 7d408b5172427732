"""Tasks with a source and a target: what every one of them keeps to, and the small ones, dates and numbers by Python's own means and by hand."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pytest

from engine.errors import TaskError
from studies.pairs.paired import PAIR_TASKS, Aligned, PairTask, pairs
from studies.pairs.paired.dates import DATES, FIRST, FORMATS, LAST, written
from studies.pairs.paired.numbers import into_digits, into_words
from tests.engine.cases import for_each

TASKS = [*PAIR_TASKS.values()]


def named(task: PairTask) -> str:
    return task.name


def symbols(task: PairTask, text: str) -> list[str]:
    return list(text) if task.by == "letters" else text.split()


def drawn(task: PairTask, count: int) -> list[Aligned]:
    draws = random.Random(7)
    return [task.answer(task.draw(draws)) for _ in range(count)]


@for_each("task", TASKS, ids=named)
def test_alignments_fit_and_rules_are_examples_of_themselves(task: PairTask) -> None:
    for one in drawn(task, 300):
        source, target = symbols(task, one.source), symbols(task, one.target)
        assert source and target and len(one.sources) == len(target)
        assert all(0 <= place < len(source) for places in one.sources for place in places)
        assert all(len(set(places)) == len(places) for places in one.sources)
        assert any(one.sources)
    for rule in task.rules:
        assert task.answer(rule.source).target == rule.target
        assert rule.title and rule.words.endswith(".")


@for_each("task", TASKS, ids=named)
def test_what_is_held_out_is_never_learned_from(task: PairTask) -> None:
    train, held = pairs(task, 1500, 150)
    assert len(train) == 1500 and len(held) == 150
    both = [one.source for one in train + held]
    assert len(set(both)) == len(both) or task.repeats
    assert len({one.source for one in held}) == len(held)
    assert not {task.key(one.source) for one in train} & {task.key(one.source) for one in held}
    assert pairs(task, 1500, 150) == (train, held)
    assert pairs(task, 1500, 150, seed=1)[0] != train
    assert all(task.answer(one.source) == one for one in held)
    known = {symbol for one in train for text in (one.source, one.target) for symbol in symbols(task, text)}
    for one in held:  # else a model could not read it
        assert known >= {*symbols(task, one.source), *symbols(task, one.target)}


@for_each("task", TASKS, ids=named)
def test_a_task_with_nothing_more_to_give_ends(task: PairTask) -> None:
    def few(draws: random.Random) -> str:
        return task.draw(random.Random(draws.randrange(20)))

    small = PairTask("few", "Few", "", task.by, "", draw=few, answer=task.answer)
    train, held = pairs(small, 1000, 1000)
    assert 1 < len(train) + len(held) <= 20
    assert len(pairs(small, 3, 1000)[0]) == 3  # one part is full, the other has no more


@for_each("task", TASKS, ids=named)
@for_each("typed", ["", " ", "?", "é", "ab", "x" * 500, "the", "1 a", "\n", "²"])
def test_what_is_no_source_is_said_so(task: PairTask, typed: str) -> None:
    with pytest.raises(TaskError) as found:
        task.answer(typed)
    assert 10 < len(str(found.value)) < 250


@for_each("name", ["numbers", "number_words"])
def test_short_numbers_are_learned_from_again_and_again(name: str) -> None:
    """Drawn once each they were a two-hundredth of all, and twenty was 2."""
    train, _ = pairs(PAIR_TASKS[name], 1500, 150)
    digits = [len(one.source.split()) if name == "number_words" else len(one.target.split()) for one in train]
    assert 0.07 < digits.count(1) / len(train) < 0.15 and 0.07 < digits.count(2) / len(train) < 0.15


def test_letters_turned_round_and_sorted() -> None:
    for one in drawn(PAIR_TASKS["reverse"], 200):
        assert one.target == "".join(reversed(one.source))
        assert one.sources == tuple((len(one.source) - 1 - i,) for i in range(len(one.source)))
    for one in drawn(PAIR_TASKS["sort"], 200):
        assert one.target == "".join(sorted(one.source))
        for letter, places in zip(one.target, one.sources, strict=True):
            assert {one.source[place] for place in places} == {letter}
            assert len(places) == one.source.count(letter)
    assert PAIR_TASKS["sort"].answer("cab").sources == ((1,), (2,), (0,))


@for_each(("source", "target"), [
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
])  # fmt: skip
def test_dates_by_hand(source: str, target: str) -> None:
    assert DATES.answer(source).target == target


def test_every_day_in_every_format() -> None:
    """Every 37th day, 17 ways: the formats are told apart, and all name the day that was meant."""
    day = FIRST
    while day <= LAST:
        for form in FORMATS:
            assert DATES.answer(written(day, form)).target == f"{day.year:04d}-{day.month:02d}-{day.day:02d}"
        day += timedelta(days=37)
    assert {DATES.key(written(date(2026, 11, 21), form)) for form in FORMATS} == {"2026-11-21"}


@for_each("source, year, month, day", [
    ("3/11/74", ((5,), (5,), (5,), (6,)), ((2,), (3,)), ((0,), (0,))),
    ("03.11.50", ((6,), (6,), (6,), (7,)), ((3,), (4,)), ((0,), (1,))),
    ("Nov 21, 2026", ((8,), (9,), (10,), (11,)), ((0, 1, 2), (0, 1, 2)), ((4,), (5,))),
    ("11th May 2011", ((9,), (10,), (11,), (12,)), ((5, 6, 7), (5, 6, 7)), ((0,), (1,))),
    ("1 Feb '00", ((7,), (7,), (7,), (8,)), ((2, 3, 4), (2, 3, 4)), ((0,), (0,))),
    ("the 3rd of March 1999", ((17,), (18,), (19,), (20,)), ((11, 12, 13, 14, 15),) * 2, ((4,), (4,))),
])  # fmt: skip
def test_where_each_digit_comes_from(source: str, year: object, month: object, day: object) -> None:
    found = DATES.answer(source).sources
    assert (found[:4], found[5:7], found[8:]) == (year, month, day)
    assert found[4] == found[7] == ()  # the strokes


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


def test_numbers_by_hand_and_there_and_back() -> None:
    for digits, words in BY_HAND.items():
        apart = " ".join(digits)
        assert into_words(apart).target == words == into_words(digits).target
        assert into_digits(words).target == apart
    for n in [*range(20_000), *(10**i + j for i in range(5, 9) for j in range(-3, 300, 7))]:
        apart = " ".join(str(n))
        assert into_digits(into_words(apart).target).target == apart


def test_a_word_comes_from_its_digits() -> None:
    found = into_words("2 0 3 0 4 0")
    assert found.target == "two hundred and three thousand and forty"
    assert found.sources == ((0,), (0,), (1, 2), (2,), (0, 1, 2), (4, 5), (4,))
    assert into_words("1 7").sources == ((0, 1),)
    assert into_digits("two hundred and three").sources == ((0,), (), (3,))
    assert into_digits("seventeen").sources == ((0,), (0,))
    assert into_digits("zero").sources == ((0,),)
    assert into_digits("forty two thousand and seventeen").sources == ((0,), (1,), (), (4,), (4,))


NO_SOURCES = {
    "dates": {
        "31 February 2020": "not a real date",
        "29/02/23": "not a real date",
        "13/13/13": "not a real date",
        "1/1/1949": "not a date for this task",
        "1.1.1949": "not between 1950 and 2049",
        "3th March 1999": "is inconsistent",
        "Monday, 22 November 2026": "Sunday, 22 November 2026",
        "nov 21, 2026": "not a date for this task",
        "1 Okt '20": "not a date for this task",
    },
    "numbers": dict.fromkeys(
        (
            "twenty ten",
            "one hundred one",
            "and",
            "hundred",
            "two thousand forty",
            "zero zero",
            "one thousand million",
            "thousand",
        ),
        "number",
    ),
    "number_words": dict.fromkeys(("0 1", "1 2 3 4 5 6 7 8 9 0", "twelve"), "number"),
}


@for_each("name", NO_SOURCES)
def test_what_is_no_date_and_no_number(name: str) -> None:
    for typed, said in NO_SOURCES[name].items():
        with pytest.raises(TaskError, match=said):
            PAIR_TASKS[name].answer(typed)
