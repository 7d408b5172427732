"""Parity in three ways: the tasks' arithmetic, and the stored race of the three."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from engine.data import corpora
from engine.data.tasks.parity import BITS, PARITIES, parity, running_parity
from engine.data.tasks.task import Task
from engine.experiments.lab_races import ALL, seeds_of, shipped, specs_of
from engine.experiments.thinking_aloud import ALOUD, AT_ONCE, DOTS, THINKING, Accuracy, accuracies
from engine.training.kinds import kind_of
from engine.training.train import check

WAYS = {
    "at once": parity("a", "A", "", 3),
    "dots": parity("d", "D", "", 3, dots=True),
    "aloud": parity("t", "T", "", 3, aloud=True),
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


def test_only_the_line_differs_between_the_three():
    first, *others = specs_of(THINKING)
    for other in others:
        assert other.train == first.train
        assert {**other.model.to_dict(), "context": 0, "vocab_size": 0} == {
            **first.model.to_dict(),
            "context": 0,
            "vocab_size": 0,
        }
    assert THINKING in ALL and [spec.corpus for spec in specs_of(THINKING)] == [AT_ONCE, DOTS, ALOUD]


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


def test_solved_at_is_from_where_every_seed_stays_solved():
    steps = np.array([0, 10, 20, 30])
    found = Accuracy(ALOUD, steps, np.array([[0.5, 0.96, 1.0, 1.0], [0.5, 1.0, 0.9, 1.0]]))
    assert found.solved_at == 30 and found.solved and not found.guesses
    assert found.mean.tolist() == pytest.approx([0.5, 0.98, 0.95, 1.0]) and found.end == 1.0
    never = Accuracy(ALOUD, steps, np.array([[0.5, 1.0, 1.0, 0.45]]))
    assert never.solved_at is None and not never.solved and never.guesses
