"""The gain of a class: what stayed, and which differences are clear."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runs.quizzes import Counts
from studies.inventory.gain import FEWEST, Gain, gain
from studies.inventory.questions import FORMS, form


def of(people: int, first: dict[str, int], second: dict[str, int]) -> Gain:
    """The gain of one question of seed 1, from how many chose each option of it in both forms."""
    before, after = ([form(which)[0]] for which in FORMS)
    counts = [
        Counts(people, (tuple(chosen.get(option.name, 0) for option in asked[0].options),))
        for asked, chosen in ((before, first), (after, second))
    ]
    return gain(before, after, (counts[0], counts[1]))


def test_what_stayed_was_chosen_in_both_forms_and_what_is_new_did_not_stay() -> None:
    question = form(FORMS[1])[0]
    right = question.options[question.right].name
    wrong = [option.name for option in question.options if option.misconception]
    held = of(10, {wrong[0]: 6, right: 4}, {wrong[0]: 3, wrong[1]: 5, right: 2}).stayed
    assert [(row.option.name, row.held) for row in held] == [(wrong[0], 0.3)]
    alone = of(10, {}, {wrong[1]: 5, right: 5})
    assert not alone.stayed
    (only,) = replace(alone, chosen=tuple(replace(row, before=float("nan")) for row in alone.chosen)).stayed
    assert (only.option.name, only.held) == (wrong[1], 0.5)


@pytest.mark.parametrize(("people", "clear"), [(1, False), (FEWEST - 1, False), (FEWEST, True)])
def test_no_difference_is_clear_with_very_few_people(people: int, clear: bool) -> None:
    question = form(FORMS[1])[0]
    right = question.options[question.right].name
    wrong = next(option.name for option in question.options if option.misconception)
    assert of(people, {wrong: people}, {right: people}).clear.tolist() == [clear]
