"""Tasks with a source and a target: what every one of them keeps to, and the small ones by Python's own means."""

from __future__ import annotations

import random

import pytest

from engine.errors import TaskError
from engine.tasks.paired import PAIR_TASKS, Aligned, PairTask, pairs
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
def test_every_alignment_fits_its_pair(task: PairTask) -> None:
    for one in drawn(task, 300):
        source, target = symbols(task, one.source), symbols(task, one.target)
        assert source and target and len(one.sources) == len(target)
        assert all(0 <= place < len(source) for places in one.sources for place in places)
        assert all(len(set(places)) == len(places) for places in one.sources)
        assert any(one.sources)


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
    small = PairTask(
        "few",
        "Few",
        "",
        task.by,
        "",
        draw=lambda draws: task.draw(random.Random(draws.randrange(20))),
        answer=task.answer,
    )
    train, held = pairs(small, 1000, 1000)
    assert 1 < len(train) + len(held) <= 20
    assert len(pairs(small, 3, 1000)[0]) == 3  # one part is full, the other has no more


@for_each("task", TASKS, ids=named)
@for_each("typed", ["", " ", "?", "é", "ab", "x" * 500, "the", "1 a", "\n", "²"])
def test_what_is_no_source_is_said_so(task: PairTask, typed: str) -> None:
    with pytest.raises(TaskError) as found:
        task.answer(typed)
    assert 10 < len(str(found.value)) < 250


@for_each("task", TASKS, ids=named)
def test_every_rule_is_an_example_of_itself(task: PairTask) -> None:
    for rule in task.rules:
        assert task.answer(rule.source).target == rule.target
        assert rule.title and rule.words.endswith(".")


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
