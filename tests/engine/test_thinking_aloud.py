"""Parity and addition in three ways: the tasks' arithmetic, and the stored races of the three."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from engine.data import corpora
from engine.data.tasks.carries import CARRIES, COLUMNS, LONG_ADDITIONS, column_steps, long_addition
from engine.data.tasks.parity import BITS, PARITIES, parity, running_parity
from engine.data.tasks.task import Task
from engine.experiments.lab_races import ALL, seeds_of, shipped, specs_of
from engine.experiments.thinking_aloud import (
    ALOUD,
    PROBLEMS,
    THINKING,
    Accuracy,
    Problem,
    accuracies,
)
from engine.training.kinds import kind_of
from engine.training.train import check

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


def test_running_parities_are_sums_modulo_two():
    for bits in itertools.product("01", repeat=6):
        sums = np.cumsum([int(bit) for bit in bits]) % 2
        assert running_parity("".join(bits)) == "".join(map(str, sums))


def test_a_problem_is_written_in_three_ways():
    questions = {way: task.asks("110") for way, task in WAYS.items()}
    assert questions == {"at once": "110>", "dots": "110>..", "aloud": "110>"}
    answers = {way: task.answer(questions[way] or "") for way, task in WAYS.items() if task.answer}
    assert answers == {"at once": "0", "dots": "0", "aloud": "100"}
    assert WAYS["dots"].length == WAYS["aloud"].length  # as many positions to compute in
    assert WAYS["at once"].asks("11") is None and WAYS["at once"].asks("112") is None


@pytest.mark.parametrize("task", WAYS.values(), ids=WAYS)
def test_drawn_problems_are_right_and_only_their_last_bit_is_judged(task: Task):
    for seed in range(20):
        line = task.draw(random.Random(seed), task.length - 1)
        assert task.right(line) and len(line) == task.length - 1 and set(line) <= set(task.alphabet)
        assert not task.right(line[:-1] + ("0" if line[-1] == "1" else "1"))
        assert not task.right(line[:-1]) and not task.right("2" + line[1:])
    assert WAYS["aloud"].right("110>010") and not WAYS["aloud"].right("110>101")
    assert not WAYS["dots"].right("110>.0")


@pytest.mark.parametrize("task", WAYS.values(), ids=WAYS)
def test_sources_of_an_answer_decide_it(task: Task):
    assert task.sources is not None and task.answer is not None
    lines = [task.asks("".join(bits)) or "" for bits in itertools.product("01", repeat=3)]
    lines = [line + task.answer(line) for line in lines]
    for i, places in enumerate(task.sources(lines[0])):
        by_sources = {}
        for line in lines:
            read = "".join(line[at] for at in places)
            assert by_sources.setdefault(read, line[task.given + i]) == line[task.given + i]
    assert task.floor(task.length) == 0 and task.entropies[:3] == (math.log(2),) * 3


@pytest.mark.parametrize("columns", [1, 3, COLUMNS])
def test_column_steps_are_the_sum_s_digits_and_their_carries(columns: int):
    for seed in range(50):
        a, b = random.Random(seed).choices(range(10**columns), k=2)
        steps = column_steps(f"{a:0{columns}}", f"{b:0{columns}}")
        for i in range(columns):
            power = 10 ** (i + 1)  # a carry is what the last i + 1 digits come to beyond them
            assert CARRIES.index(steps[2 * i]) == (a % power + b % power) // power
            assert steps[2 * i + 1] == str((a + b) % power * 10 // power)


def test_a_sum_is_written_in_three_ways():
    questions = {way: task.asks("7 + 95") or "" for way, task in SUMS.items()}
    assert questions == {"at once": "07+95=", "dots": "07+95=....", "aloud": "07+95="}
    answers = {way: task.answer(questions[way]) for way, task in SUMS.items() if task.answer}
    assert answers == {"at once": "102", "dots": "102", "aloud": "¹2¹0102"}
    assert SUMS["dots"].length == SUMS["aloud"].length  # as many positions to compute in
    assert not any(SUMS["at once"].asks(typed) for typed in ("7", "7+", "7+100", "7+a", "1+2+3"))


@pytest.mark.parametrize("task", SUMS.values(), ids=SUMS)
def test_drawn_sums_are_right_and_only_the_sum_is_judged(task: Task):
    for seed in range(20):
        line = task.draw(random.Random(seed), task.length - 1)
        assert task.right(line) and len(line) == task.length - 1 and set(line) <= set(task.alphabet)
        assert int(line[-3:]) == sum(map(int, line.partition("=")[0].split("+")))
        assert not task.right(line[:-1] + str((int(line[-1]) + 1) % 10))
        assert not task.right(line[:-1]) and not task.right("x" + line[1:])
    assert SUMS["aloud"].right("07+95=⁰0⁰0102") and not SUMS["aloud"].right("07+95=¹2¹0112")
    assert not SUMS["dots"].right("07+95=...0102")


@pytest.mark.parametrize("task", SUMS.values(), ids=SUMS)
def test_sources_of_a_sum_decide_it(task: Task):
    assert task.sources is not None
    lines = [task.draw(random.Random(seed), task.length - 1) for seed in range(3000)]
    for i, places in enumerate(task.sources(lines[0])):
        by_sources: dict[str, str] = {}
        for line in lines:
            read = "".join(line[at] for at in places)
            written = line[task.given + i].translate(str.maketrans(CARRIES, "01"))
            assert by_sources.setdefault(read, written) == written
    assert task.floor(task.length) == 0 and task.entropies[:2] == (math.log(10),) * 2


def test_held_out_sums_are_new_in_either_order():
    for name, task in LONG_ADDITIONS.items():
        corpus = corpora.load(name)
        run = next(spec for spec in specs_of("carries") if spec.corpus == name)
        check(run.model, run.train, corpus)  # does not raise
        pairs = [
            {
                frozenset(line.partition("=")[0].split("+"))
                for line in corpus.tokenizer.decode(split.tolist()).split()
            }
            for split in (corpus.train, corpus.validation)
        ]
        assert corpus.task is task and pairs[0].isdisjoint(pairs[1]) and len(pairs[1]) > 1_000


def test_the_tasks_are_corpora_whose_held_out_bits_are_new():
    for name in PARITIES:
        corpus = corpora.load(name)
        assert kind_of(name).name == "text" and name in corpora.NAMES and corpus.task is PARITIES[name]
        model, train = next((s.model, s.train) for s in specs_of(THINKING) if s.corpus == name)
        check(model, train, corpus)  # does not raise
        length = corpus.task.length
        parts = []
        for split in (corpus.train, corpus.validation):
            text = corpus.tokenizer.decode(split.tolist()).strip("\n").split("\n")
            assert all(map(corpus.task.right, text[:50]))
            parts.append({line[:BITS] for line in text})
        assert parts[0].isdisjoint(parts[1]) and len(parts[1]) > 1_000 and length == len(text[0]) + 1


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_only_the_line_differs_between_the_three(problem: Problem):
    first, *others = specs_of(problem.race)
    for other in others:
        assert other.train == first.train
        assert {**other.model.to_dict(), "context": 0, "vocab_size": 0} == {
            **first.model.to_dict(),
            "context": 0,
            "vocab_size": 0,
        }
    assert problem.race in ALL and [spec.corpus for spec in specs_of(problem.race)] == [*problem.ways]


def test_the_stored_race_is_of_these_settings_and_three_seeds():
    stored = shipped(THINKING)
    assert all(a.same_recipe(run.spec) for a, run in zip(specs_of(THINKING), stored.runs, strict=True))
    at_once, dots, aloud = accuracies(stored.runs, stored)
    for each in (at_once, dots, aloud):
        assert len(each.shares) == len(seeds_of(THINKING)) >= 3
        assert each.steps[0] == 0 and each.steps[-1] == 600
    assert aloud.solved and aloud.end >= 0.99 and aloud.solved_at is not None and aloud.solved_at <= 300
    assert at_once.guesses and dots.guesses and at_once.solved_at is None and dots.solved_at is None
    ends = [run.history.evaluations[-1].task for run in stored.over_seeds(aloud.title)]
    assert np.allclose(aloud.shares[:, -1], [end.validation for end in ends if end])


def test_the_stored_race_of_sums_is_of_these_settings_and_three_seeds():
    problem = PROBLEMS["addition"]
    stored = shipped(problem.race)
    assert all(a.same_recipe(run.spec) for a, run in zip(problem.specs(), stored.runs, strict=True))
    at_once, dots, aloud = accuracies(stored.runs, stored)
    for each in (at_once, dots, aloud):
        assert each.problem is problem and len(each.shares) == len(seeds_of(problem.race)) >= 3
        assert each.steps[-1] == stored.runs[0].spec.train.steps
    assert aloud.solved and aloud.solved_at is not None
    assert max(at_once.shares.max(), dots.shares.max()) < aloud.shares[:, -1].min() - 0.3


def test_solved_at_is_from_where_every_seed_stays_solved():
    steps = np.array([0, 10, 20, 30])
    found = Accuracy(ALOUD, steps, np.array([[0.5, 0.96, 1.0, 1.0], [0.5, 1.0, 0.9, 1.0]]))
    assert found.solved_at == 30 and found.solved and not found.guesses
    assert found.mean.tolist() == pytest.approx([0.5, 0.98, 0.95, 1.0]) and found.end == 1.0
    never = Accuracy(ALOUD, steps, np.array([[0.5, 1.0, 1.0, 0.45]]))
    assert never.solved_at is None and not never.solved and never.guesses
