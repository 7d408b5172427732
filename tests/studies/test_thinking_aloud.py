"""Parity and addition in three ways: the tasks' arithmetic, and the stored races of the three."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from engine.data import corpora
from engine.training.train import check
from runs.kinds import kind_of
from studies.experiments.lab_races import ALL, seeds_of, shipped, specs_of
from studies.experiments.thinking_aloud import ALOUD, PROBLEMS, THINKING, Accuracy, Problem, accuracies
from studies.tasks.carries import CARRIES, COLUMNS, LONG_ADDITIONS, column_steps, long_addition
from studies.tasks.parity import PARITIES, parity, running_parity
from studies.tasks.task import Task
from tests.engine.cases import for_each

WAYS = {
    "at once": parity("a", "A", "", 3),
    "dots": parity("d", "D", "", 3, dots=True),
    "aloud": parity("t", "T", "", 3, aloud=True),
}
SUMS = {
    "at once": long_addition("a", "A", "", 2),
    "dots": long_addition("d", "D", "", 2, dots=True),
    "aloud": long_addition("t", "T", "", 2, aloud=True),
}
every = for_each("task", [*WAYS.values(), *SUMS.values()], [*WAYS, *SUMS])


def test_running_parities_are_sums_modulo_two():
    for bits in itertools.product("01", repeat=6):
        sums = np.cumsum([int(bit) for bit in bits]) % 2
        assert running_parity("".join(bits)) == "".join(map(str, sums))


@for_each("ways, typed, questions, answers", [
    (WAYS, "110", ["110>", "110>..", "110>"], ["0", "0", "100"]),
    (SUMS, "7 + 95", ["07+95=", "07+95=....", "07+95="], ["102", "102", "¹2¹0102"]),
], ["parity", "sum"])  # fmt: skip
def test_a_problem_is_written_in_three_ways(
    ways: dict[str, Task], typed: str, questions: list[str], answers: list[str]
):
    assert [task.asks(typed) for task in ways.values()] == questions
    assert [task.answer(asked) for task, asked in zip(ways.values(), questions, strict=True)] == answers  # type: ignore[misc]
    assert ways["dots"].length == ways["aloud"].length  # as many positions to compute in
    wrong = {"110": ("11", "112"), "7 + 95": ("7", "7+", "7+100", "7+a", "1+2+3")}[typed]
    assert not any(ways["at once"].asks(each) for each in wrong)


@every
def test_drawn_problems_are_right_and_only_their_last_signs_are_judged(task: Task):
    for seed in range(20):
        line = task.draw(random.Random(seed), task.length - 1)
        assert task.right(line) and len(line) == task.length - 1 and set(line) <= set(task.alphabet)
        assert not task.right(line[:-1] + ("0" if line[-1] != "0" else "1"))
        assert not task.right(line[:-1]) and not task.right("x" + line[1:])
        if task in SUMS.values():
            assert int(line[-3:]) == sum(map(int, line.partition("=")[0].split("+")))
    assert WAYS["aloud"].right("110>010") and not WAYS["aloud"].right("110>101")
    assert SUMS["aloud"].right("07+95=⁰0⁰0102") and not SUMS["aloud"].right("07+95=¹2¹0112")
    assert not WAYS["dots"].right("110>.0") and not SUMS["dots"].right("07+95=...0102")


@every
def test_sources_of_an_answer_decide_it(task: Task):
    assert task.sources is not None
    lines = [task.draw(random.Random(seed), task.length - 1) for seed in range(3000)]
    for i, places in enumerate(task.sources(lines[0])):
        by_sources: dict[str, str] = {}
        for line in lines:
            read = "".join(line[at] for at in places)
            written = line[task.given + i].translate(str.maketrans(CARRIES, "01"))
            assert by_sources.setdefault(read, written) == written
    bits, drawn = (2, 3) if task in WAYS.values() else (10, 2)
    assert task.floor(task.length) == 0 and task.entropies[:drawn] == (math.log(bits),) * drawn


@pytest.mark.parametrize("columns", [1, 3, COLUMNS])
def test_column_steps_are_the_sum_s_digits_and_their_carries(columns: int):
    for seed in range(50):
        a, b = random.Random(seed).choices(range(10**columns), k=2)
        steps = column_steps(f"{a:0{columns}}", f"{b:0{columns}}")
        for i in range(columns):
            power = 10 ** (i + 1)  # a carry is what the last i + 1 digits come to beyond them
            assert CARRIES.index(steps[2 * i]) == (a % power + b % power) // power
            assert steps[2 * i + 1] == str((a + b) % power * 10 // power)


@for_each("name, task", [*PARITIES.items(), *LONG_ADDITIONS.items()])
def test_the_tasks_are_corpora_whose_held_out_problems_are_new_in_either_order(name: str, task: Task):
    corpus = corpora.load(name)
    assert kind_of(name).name == "text" and name in corpora.names() and corpus.task is task
    race = THINKING if name in PARITIES else "carries"
    model, train = next((s.model, s.train) for s in specs_of(race) if s.corpus == name)
    check(model, train, corpus)  # does not raise
    parts = []
    for split in (corpus.train, corpus.validation):
        lines = corpus.tokenizer.decode(split.tolist()).strip("\n").split("\n")
        assert all(map(task.right, lines[:50])) and len(lines[0]) == task.length - 1
        parts.append({frozenset(line[: task.given].strip("=>.").split("+")) for line in lines})
    assert parts[0].isdisjoint(parts[1]) and len(parts[1]) > 1_000


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_only_the_line_differs_between_the_three(problem: Problem):
    first, *others = specs_of(problem.race)
    same = {"context": 0, "vocab_size": 0}
    for other in others:
        assert other.train == first.train
        assert other.model.to_dict() | same == first.model.to_dict() | same
    assert problem.race in ALL and [spec.corpus for spec in specs_of(problem.race)] == [*problem.ways]


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_a_stored_race_is_of_these_settings_and_three_seeds(problem: Problem):
    stored = shipped(problem.race)
    assert all(a.same_recipe(run.spec) for a, run in zip(problem.specs(), stored.runs, strict=True))
    at_once, dots, aloud = accuracies(stored.runs, stored)
    for each in (at_once, dots, aloud):
        assert each.problem is problem and len(each.shares) == len(seeds_of(problem.race)) >= 3
        assert each.steps[0] == 0 and each.steps[-1] == stored.runs[0].spec.train.steps
    assert aloud.solved and aloud.solved_at is not None
    assert max(at_once.shares.max(), dots.shares.max()) < aloud.shares[:, -1].min() - 0.3
    ends = [run.history.evaluations[-1].task for run in stored.over_seeds(aloud.title)]
    assert np.allclose(aloud.shares[:, -1], [end.validation for end in ends if end])
    if problem.race == THINKING:
        assert aloud.end >= 0.99 and aloud.solved_at <= 300
        assert at_once.guesses and dots.guesses and at_once.solved_at is None and dots.solved_at is None


def test_solved_at_is_from_where_every_seed_stays_solved():
    steps = np.array([0, 10, 20, 30])
    found = Accuracy(ALOUD, steps, np.array([[0.5, 0.96, 1.0, 1.0], [0.5, 1.0, 0.9, 1.0]]))
    assert found.solved_at == 30 and found.solved and not found.guesses
    assert found.mean.tolist() == pytest.approx([0.5, 0.98, 0.95, 1.0]) and found.end == 1.0
    never = Accuracy(ALOUD, steps, np.array([[0.5, 1.0, 1.0, 0.45]]))
    assert never.solved_at is None and not never.solved and never.guesses
