"""Both forms: parallel, the same for the same seed, short enough for eight minutes, and what a class gained."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from runs.quizzes import Counts
from studies.inventory.gain import gain, table
from studies.inventory.questions import FORMS, LARGEST_SEED, MINUTES, TABLE, Question, cases, form, letters

READ = 200  # words a minute, of a text that one has to think about


@cache
def both(seed: int = 1) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    first, second = (form(which, seed) for which in FORMS)
    return first, second


def test_both_forms_ask_the_same_of_other_cases() -> None:
    first, second = both()
    assert len(first) == len(second) == len(TABLE) == 14
    for a, b in zip(first, second, strict=True):
        assert (a.id, a.title) == (b.id, b.title)
        assert {option.name for option in a.options} == {option.name for option in b.options}
        assert a.options[a.right].name == b.options[b.right].name
        said = [(one.text, *sorted(option.text for option in one.options)) for one in (a, b)]
        assert said[0] != said[1], f"{a.id} asks for the same case twice"


def test_a_seed_gives_the_same_forms_again_and_another_one_others() -> None:
    assert both(2)[1] == form("after", 2) != both(1)[1]
    drawn = {name: {cases(name, seed) for seed in range(1, 200)} for name in TABLE}
    for name, pairs in drawn.items():
        count = len(TABLE[name]["cases"])
        assert count >= 3 and len(pairs) == count * (count - 1), "each case before and after each other one"
        assert all(a != b for a, b in pairs)
    assert cases("heads", LARGEST_SEED)


def test_no_letter_is_right_more_often_and_none_twice_for_a_question() -> None:
    assert [[q.right for q in each] for each in both()] == list(letters(1))
    for seed in range(1, 60):
        first, second = letters(seed)
        assert not any(a == b for a, b in zip(first, second, strict=True))
        for row in (first, second):
            assert sorted(row.count(letter) for letter in range(4)) == [3, 3, 4, 4]
            assert all(len(set(row[i : i + 3])) > 1 for i in range(12))
    assert len({tuple(letters(seed)[0]) for seed in range(1, 60)}) > 50


def test_every_misconception_is_named_once_and_is_a_sentence() -> None:
    names = [belief for row in TABLE.values() for _, belief in row["options"].values() if belief]
    assert len(names) == len(set(names)) >= 40
    assert all(name[0].isupper() and name.endswith(".") for name in names)


@pytest.mark.parametrize("which", FORMS)
def test_a_form_is_read_in_less_than_its_minutes(which: str) -> None:
    for seed in (1, 2):
        words = [
            word
            for one in both(seed)[FORMS.index(which)]  # type: ignore[arg-type]
            for text in (one.text, *(option.text for option in one.options))
            for word in text.split()
        ]
        assert len(words) / READ < 0.8 * MINUTES


def counts(questions: tuple[Question, ...], chosen: list[list[int | None]]) -> Counts:
    rows = [[0] * len(question.options) for question in questions]
    for person in chosen:
        for row, option in zip(rows, person, strict=True):
            if option is not None:
                row[option] += 1
    return Counts(len(chosen), tuple(map(tuple, rows)))


def wrong(question: Question) -> int:
    return (question.right + 1) % len(question.options)


def test_a_gain_is_counted_by_hand() -> None:
    """Four people before: of the first question one is right; after it three of five, and of all others everybody."""
    first, second = both()
    rest = [question.right for question in first[1:]]
    after = [question.right for question in second[1:]]
    before_rows = [[first[0].right, *rest], *[[wrong(first[0]), *rest]] * 2, [None, *rest]]
    after_rows = [*[[second[0].right, *after]] * 3, *[[wrong(second[0]), *after]] * 2]
    found = gain(first, second, (counts(first, before_rows), counts(second, after_rows)))
    assert found.people == (4, 5)
    assert found.before.tolist() == [0.25, *[1.0] * 13] and found.after.tolist() == [0.6, *[1.0] * 13]
    assert found.points == (13.25, 13.6)
    assert found.normalised == pytest.approx(0.35 / 0.75)
    assert found.order[0] == 0 and found.change[0] == pytest.approx(0.35)
    assert not found.clear.any(), "of four and five people"
    (stayed,) = found.stayed
    assert stayed.option == second[0].options[wrong(second[0])]
    assert stayed.question.id == second[0].id and stayed.after == 0.4
    assert len(found.chosen) == sum(len(question.options) for question in second)
    assert sum(row.after for row in found.chosen) == pytest.approx(14)
    same = [option.name for option in first[0].options].index(stayed.option.name)
    assert stayed.before == (0.5 if same == wrong(first[0]) else 0.0)


def test_a_large_class_tells_a_change_from_chance() -> None:
    first, second = both()
    before = [[q.right if i % 10 < 3 else wrong(q) for q in first] for i in range(100)]
    after = [[q.right if i % 10 < 7 else wrong(q) for q in second] for i in range(100)]
    found = gain(first, second, (counts(first, before), counts(second, after)))
    assert found.clear.all() and found.normalised == pytest.approx(4 / 7)
    assert 2 * math.sqrt(2 * 0.21 / 100) < 0.4 and 2 * math.sqrt(2 * 0.21 / 10) > 0.4
    few = gain(first, second, (counts(first, before[:10]), counts(second, after[:10])))
    assert not few.clear.any(), "the same shares of ten people"


def test_a_form_that_nobody_took_has_no_shares() -> None:
    first, second = both()
    nobody = counts(first, [])
    after = counts(second, [[wrong(q) for q in second]])
    found = gain(first, second, (nobody, after))
    assert np.isnan(found.before).all() and np.isnan(found.normalised) and found.points[1] == 0
    assert len(found.stayed) == 14 and all(math.isnan(row.before) and row.after == 1 for row in found.stayed)
    assert sorted(found.order) == list(range(14)) and not found.clear.any()
    everybody = counts(second, [[q.right for q in second]])
    assert math.isnan(gain(first, second, (counts(first, [[q.right for q in first]]), everybody)).normalised)
    assert gain(first, second, (nobody, everybody)).stayed == []


def test_the_table_holds_every_count_and_no_person() -> None:
    forms = both()
    chosen: list[list[int | None]] = [[0] * 14, [1] * 14, [None] * 13 + [0]]
    answers = (counts(forms[0], chosen), counts(forms[1], chosen[:2]))
    columns = table(forms, answers)
    assert list(columns) == [
        "form",
        "question",
        "text",
        "option",
        "right",
        "misconception",
        "chosen",
        "people",
    ]
    rows = list(zip(*columns.values(), strict=True))
    assert len(rows) == sum(len(q.options) + 1 for each in forms for q in each)
    for which, form_, people in zip(FORMS, forms, (3, 2), strict=True):
        for question in form_:
            its = [row for row in rows if row[:2] == (which, question.id)]
            assert sum(row[6] for row in its) == people and {row[7] for row in its} == {people}  # type: ignore[misc]
            assert [row[3] for row in its if row[4]] == [question.options[question.right].text]
            left_out = next(row[6] for row in its if row[3] == "")
            assert left_out == (1 if which == "before" and question is not form_[-1] else 0)
