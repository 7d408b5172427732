"""Every answer that is a number, pieces or a set, over 200 seeds, and the hint of every mistake."""

from __future__ import annotations

import re

import numpy as np

from engine.exercises.catalogue import SETS, TASKS, make
from engine.exercises.exercise import RIGHT, Exercise, check
from engine.exercises.forms import Choice, Numbers, Order, Pick
from tests.engine.cases import for_each
from tests.engine.exercises.answers import ANSWERS

SEEDS = range(200)
IN_WORDS = {*SETS["families"].tasks, *SETS["proofs"].tasks} - {"match"}
COUNTED = [task for task in TASKS if task not in IN_WORDS]


def given_for(exercise: Exercise, value) -> object:
    """As a person would give it."""
    if isinstance(exercise.form, Choice | Pick):
        return value
    if isinstance(exercise.form, Order):
        return " ".join(exercise.form.letter(step) for step in value)
    return exercise.form.said(value).strip("`")


def agree(exercise: Exercise, ours, theirs) -> bool:
    if isinstance(exercise.form, Numbers):
        wanted = np.atleast_1d(np.asarray(theirs, dtype=float))
        return len(ours) == len(wanted) and np.allclose(ours, wanted, rtol=1e-12, atol=1e-12)
    return ours == theirs


@for_each("task", COUNTED)
def test_the_answer_is_worked_out_right(task: str) -> None:
    for seed in SEEDS:
        exercise = make(task, seed)
        assert agree(exercise, exercise.answer, ANSWERS[task](exercise.given)), (seed, exercise.statement)


@for_each("task", TASKS)
def test_every_known_mistake_gets_its_hint_and_the_answer_is_right(task: str) -> None:
    for seed in SEEDS:
        exercise = make(task, seed)
        right = check(exercise, given_for(exercise, exercise.answer))
        assert right.right and right.hint == RIGHT
        assert exercise.mistakes and len({one.id for one in exercise.mistakes}) == len(exercise.mistakes)
        for mistake in exercise.mistakes:
            said = given_for(exercise, mistake.value)
            if isinstance(exercise.form, Numbers) and any(one % 1 for one in mistake.value):
                said = " ".join(f"{one:.{exercise.form.decimals or 2}f}" for one in mistake.value)
            verdict = check(exercise, said)
            told = (verdict.right, verdict.mistake, verdict.hint)
            assert told == (False, mistake.id, mistake.hint), (seed, mistake)


@for_each("task", COUNTED)
def test_the_numbers_that_were_drawn_stand_in_the_statement(task: str) -> None:
    for seed in range(20):
        exercise = make(task, seed)
        text = re.sub(r"(?<=\d),(?=\d{3})", "", exercise.statement)
        for name, value in exercise.given.items():
            if name in DERIVED.get(task, ()) or name == "right":
                continue
            for number in numbers_of(value):
                assert any(abs(number - seen) < 1e-9 for seen in figures(text)), (task, seed, name, number)


# what a statement says in another way: [name] is not written as it was drawn
DERIVED = {
    "row": ("at",), "share": ("times",), "top-k": ("shares",), "top-p": ("shares", "p"), "alibi": ("power",),
    "vocabulary": ("special",),
}  # fmt: skip


def numbers_of(value) -> list[float]:
    if isinstance(value, dict):
        return [float(one) for one in value.values()]
    if isinstance(value, list):
        return [number for one in value for number in numbers_of(one)]
    return [float(value)] if isinstance(value, int | float) else []


def figures(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", text)]


def test_what_is_drawn_can_be_told_apart() -> None:
    """No mistake gives the right number, no two the same, for any form: else a hint may name the wrong one."""
    for task in TASKS:
        for seed in SEEDS:
            exercise = make(task, seed)
            values = [exercise.answer, *(one.value for one in exercise.mistakes)]
            for place, one in enumerate(values):
                assert not any(exercise.form.near(one, other) for other in values[:place]), (task, seed)


def test_the_worked_numbers_of_the_texts() -> None:
    """CURRICULUM: q=[1,2,3,4] and k=[5,6,7,8] give 17 and 53; p=5, k=2, theta=0.1; a row under the mask."""
    assert list(ANSWERS["split"]({"q": [1, 2, 3, 4], "k": [5, 6, 7, 8]})) == [17, 53]
    assert np.allclose(ANSWERS["shift"]({"place": 5, "steps": 2, "rate": 0.1}), [0.644, 0.765], atol=5e-4)
    row = ANSWERS["row"]({"scores": [1.0, 2.5, 0.5, 9.0], "at": 2})
    assert np.allclose(row, [0.16, 0.74, 0.10, 0.0], atol=5e-3)
    assert ANSWERS["mini"]({"vocab": 65, "d": 256, "layers": 4}) == 2_916_864
    assert ANSWERS["tying"]({"vocab": 50_257, "d": 768}) == 38_597_376
    assert round(ANSWERS["share"]({"d": 512, "times": 4}), 1) == 66.7
