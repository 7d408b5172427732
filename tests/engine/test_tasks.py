"""Synthetic tasks: floors, answers and held-out problems; and trainings that reach the floor."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine import checkpoints
from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import ConfigError, CorpusError
from engine.training.batches import Batches, measure
from engine.training.records import Evaluation, Sample
from engine.training.train import train
from studies.tasks.all import MODULUS, SIGNS, TASKS
from studies.tasks.lines import adding, repeating, rewriting
from studies.tasks.problems import task_scores
from studies.tasks.recipes import task_recipe
from studies.tasks.sources import brackets, chain, markov, stationary
from studies.tasks.task import Task, marked, problems
from tests.engine.cases import for_each
from tests.engine.trainings import only

LINES = [task for task in TASKS.values() if not task.stream]


def named(task: Task) -> str:
    return task.name


Small = tuple[Task, list[tuple[str, float]]]  # a task, and every line with its probability


def by_place(lines: Iterable[tuple[str, float]], places: int) -> list[float]:
    """The entropy of each place given those before, from every line with its probability: by counting alone."""
    chances: list[dict[str, float]] = [defaultdict(float) for _ in range(places + 1)]
    for line, p in lines:
        for end in range(places + 1):
            chances[end][line[:end]] += p
    return [
        -sum(p * math.log(p / chances[end - 1][start[:-1]]) for start, p in chances[end].items())
        for end in range(1, places + 1)
    ]


def all_equal(lines: list[str]) -> list[tuple[str, float]]:
    return [(line, 1 / len(lines)) for line in lines]


def balanced(word: str) -> bool:
    before = None
    while before != word:
        before, word = word, word.replace("()", "").replace("[]", "")
    return not word


def small_reverse() -> Small:
    task = rewriting("r", "R", "", "abc", 3, lambda q: range(len(q))[::-1])
    return task, all_equal([f"{a}{b}{c}>{c}{b}{a}" for a, b, c in itertools.product("abc", repeat=3)])


def small_repeat() -> Small:
    task = repeating("r", "R", "", "abcde", 2, 4, 9)
    lines = []
    for period in (2, 3, 4):
        pieces = list(itertools.permutations("abcde", period))
        lines += [(("".join(piece) * 9)[:9], 1 / 3 / len(pieces)) for piece in pieces]
    return task, lines


def small_adding() -> Small:
    task = adding("a", "A", "", 2, backwards=False)
    chance = {n: (n < 10) / 2 / 10 + 1 / 2 / 100 for n in range(100)}
    lines = [(f"{a:02d}+{b:02d}={a + b:03d}", chance[a] * chance[b]) for a in chance for b in chance]
    return task, lines


def small_brackets() -> Small:
    task = brackets("b", "B", "", ("()", "[]"), 3)
    words = ("".join(w) for w in itertools.product("()[]", repeat=6))
    return task, all_equal([w for w in words if balanced(w)])


@for_each("small", [small_reverse, small_repeat, small_adding, small_brackets])
def test_the_floor_is_that_of_every_problem_there_is(small: Callable[[], Small]) -> None:
    task, lines = small()
    whole = [(line + "\n", p) for line, p in lines]
    assert sum(p for _, p in lines) == pytest.approx(1)
    expected = by_place(whole, task.length)
    assert task.entropies == pytest.approx(expected, abs=1e-12)
    assert task.floor(task.length) == pytest.approx(sum(expected) / task.length)
    # a window that is no whole number of problems begins with one and ends within one
    longer = task.length + 2
    assert task.floor(longer) == pytest.approx((sum(expected) + sum(expected[:2])) / longer)
    assert all(task.right(line) for line, _ in lines)
    many = min(40 * len(lines), 20_000)
    drawn = Counter(task.draw(random.Random(i), task.length - 1) for i in range(many))
    assert set(drawn) <= {line for line, _ in lines}
    likely = [(line, many * p) for line, p in lines if many * p > 30]  # what chi squared can be asked about
    assert len(likely) > 20
    off = sum((drawn[line] - n) ** 2 / n for line, n in likely)
    assert off < len(likely) + 6 * math.sqrt(2 * len(likely))


def test_the_floors_of_the_app() -> None:
    ln = math.log
    assert TASKS["copy"].floor(18) == pytest.approx(8 * ln(8) / 18)
    assert TASKS["sort"].floor(36) == pytest.approx(8 * ln(8) / 18)
    assert TASKS["addition"].floor(13) == TASKS["addition_reversed"].floor(13)
    chances = [sum((n < top) / 3 / top for top in (10, 100, 1000)) for n in range(1000)]
    of_a_number = -sum(p * ln(p) for p in chances)
    assert TASKS["addition"].floor(13) == pytest.approx(2 * of_a_number / 13)
    catalan = math.comb(16, 8) // 9
    assert TASKS["brackets"].floor(17) == pytest.approx((ln(catalan) + 8 * ln(2)) / 17)
    pieces = sum(ln(math.perm(16, length)) for length in range(5, 10)) / 5
    assert TASKS["repeat"].floor(25) == pytest.approx((ln(5) + pieces) / 25)
    assert TASKS["modular"].floor(6) == 0.0 == TASKS["modular"].floor(5)  # the answer alone counts
    assert math.isnan(TASKS["modular"].floor(4))


def test_the_entropy_rate_is_that_of_its_words() -> None:
    """h = H(words of n + 1 letters) - H(words of n), exactly from two letters on: by summing over all words."""
    task = markov("m", "M", "", "abc", seed=3)
    p = chain("abc", 3)
    pairs = stationary(p)
    assert pairs.sum() == pytest.approx(1)
    assert np.einsum("ab,abc->bc", pairs, p) == pytest.approx(pairs, abs=1e-12)

    words = {1: pairs.sum(0), 2: pairs}  # the probability of every word of so many letters
    for length in (3, 4, 5):
        words[length] = words[length - 1][..., None] * p

    def entropy(length: int) -> float:
        return -sum(q * math.log(q) for q in words[length].ravel() if q)

    assert task.entropies[0] == pytest.approx(entropy(2) - entropy(1))
    assert task.entropies[1] == pytest.approx(entropy(5) - entropy(4))
    assert task.floor(4) == pytest.approx((task.entropies[0] + 3 * task.entropies[1]) / 4)


@for_each("task", LINES, ids=named)
def test_held_out_problems_are_never_trained_on(task: Task) -> None:
    train, validation = problems(task, 3000, 300)
    assert train and validation
    assert not set(train) & set(validation)
    assert not {task.key(line) for line in train} & {task.key(line) for line in validation}
    assert not {line[: task.given] for line in train} & {line[: task.given] for line in validation}
    assert problems(task, 3000, 300) == (train, validation)
    if task.everything is None:
        assert problems(task, 3000, 300, seed=1)[0] != train
    assert set("".join(train)) == set(task.alphabet)


def test_numbers_turned_round_are_the_same_problem() -> None:
    for name in ("addition", "modular"):
        train, validation = problems(TASKS[name], 3000, 300)
        sums = [{frozenset(line.split("=")[0].split("+")) for line in part} for part in (train, validation)]
        assert not sums[0] & sums[1]
    every = problems(TASKS["modular"], 0, 0)
    assert len(every[0]) + len(every[1]) == MODULUS**2 == len({*every[0], *every[1]})


def python_says(name: str, line: str) -> bool:
    """What is right, in other words than the engine's."""
    if name in ("copy", "reverse", "sort"):
        q, _, a = line.partition(">")
        return {"copy": q, "reverse": "".join(reversed(q)), "sort": "".join(sorted(q))}[name] == a
    if name.startswith("addition"):
        q, _, a = line.partition("=")
        return sum(map(int, q.split("+"))) == int(a if name == "addition" else a[::-1])
    if name == "modular":
        a, b, c = (SIGNS.index(line[i]) for i in (0, 2, 4))
        return (a + b - c) % 47 == 0
    if name == "brackets":
        return balanced(line)
    period = line.index(line[0], 1)
    return all(line[i] == line[i % period] for i in range(len(line)))


@for_each("task", LINES, ids=named)
def test_what_is_right(task: Task) -> None:
    lines = [task.draw(random.Random(i), task.length - 1) for i in range(50)]
    for line in lines:
        assert len(line) == task.length - 1
        assert task.right(line) and python_says(task.name, line)
        if task.answer is not None:
            assert line[: task.given] + task.answer(line[: task.given]) == line
        for place in range(len(line)):  # one letter changed, anywhere
            other = line[:place] + next(c for c in task.alphabet if c != line[place]) + line[place + 1 :]
            if task.right(other):
                assert python_says(task.name, other)
            if place >= task.given and task.answer is not None:
                assert not task.right(other)
        assert not task.right(line[:-1]) and not task.right(line + line[-1])
    for junk in ("", ">", "=", "+", "\n", "é" * (task.length - 1), "?" * 100, lines[0].upper() + "x"):
        assert not task.right(junk)


@for_each("task", LINES, ids=named)
def test_where_an_answer_comes_from(task: Task) -> None:
    assert task.sources is not None
    for i in range(30):
        line = task.draw(random.Random(i), task.length - 1)
        found = task.sources(line)
        assert len(found) == task.length - 1 - task.given
        for place, sources in enumerate(found, task.given):
            assert all(0 <= source < place for source in sources)
            if task.name in ("copy", "reverse", "sort", "repeat"):
                assert sources and {line[source] for source in sources} == {line[place]}
            elif task.name == "brackets":
                assert [line[s] + line[place] for s in sources] in ([], ["()"], ["[]"])
                assert bool(sources) == (line[place] in ")]")
                inside = [line[s + 1 : place] for s in sources]
                assert all(balanced(word) for word in inside)
    assert TASKS["copy"].sources("abcdefgh>abcdefgh")[2] == (2,)  # type: ignore[misc]
    assert TASKS["reverse"].sources("abcdefgh>hgfedcba")[2] == (5,)  # type: ignore[misc]
    assert TASKS["sort"].sources("baabhgfe>aabbefgh")[1] == (1, 2)  # type: ignore[misc]
    assert TASKS["addition"].sources("123+456=0579") == ((0, 4), (0, 4), (1, 5), (2, 6))  # type: ignore[misc]
    assert TASKS["addition_reversed"].sources("123+456=9750")[0] == (2, 6)  # type: ignore[misc]


def test_what_was_written_is_marked() -> None:
    task = TASKS["reverse"]
    text = "\nabcdefgh>hgfedcba\nabcdefgh>abcdefgh\n\nabc"
    assert marked(task, text) == [("abcdefgh>hgfedcba", True), ("abcdefgh>abcdefgh", False)]
    assert marked(task, text + "d\n")[-1] == ("abcd", False)  # too short, and ended
    assert marked(task, "abcdefgh>hgfedcba") == [("abcdefgh>hgfedcba", True)]
    stream = TASKS["markov"]
    whole = stream.draw(random.Random(1), 45)
    assert marked(stream, whole) == [(whole[:20], True), (whole[20:40], True), (whole[40:], True)]
    p = chain(stream.alphabet)
    a, b = (stream.alphabet.index(c) for c in whole[18:20])
    never = stream.alphabet[int((p[a, b] == 0).argmax())]
    spoiled = whole[:20] + never + whole[21:]
    assert [right for _, right in marked(stream, spoiled)][:2] == [True, False]


@for_each("name, typed, question", [
    ("copy", "abcdefgh", "abcdefgh>"), ("reverse", "hhhhhhhh>x", "hhhhhhhh>"), ("sort", "abc", None),
    ("sort", "abcdefgi", None), ("repeat", "abcdef", "abcdefabcd"), ("repeat", "abca", None), ("repeat", "abcd", None),
    ("addition", "7+38", "007+038="), ("addition_reversed", "999 + 1=", "999+001="), ("addition", "1000+1", None),
    ("addition", "1+2+3", None), ("addition", "-1+2", None), ("addition", "²+1", None), ("brackets", "([()][(", None),
    ("brackets", "([()][((", "([()][(("), ("brackets", ")(()()()", None), ("brackets", "[[[[[[[[", "[[[[[[[["),
    ("modular", "A+5", "A+5="), ("modular", "46+46", "k+k="), ("modular", "47+1", None), ("modular", "", None),
    ("modular", "é+1", None), ("markov", "abc", None),
])  # fmt: skip
def test_what_somebody_types(name: str, typed: str, question: str | None) -> None:
    task = TASKS[name]
    assert task.asks(typed) == question
    if question is not None:
        assert len(question) == task.given and set(question) <= set(task.alphabet)
        if task.answer is not None:
            assert task.right(question + task.answer(question))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return corpora.load("reverse")


def batches(corpus: Corpus, context: int, **fields: int) -> Batches:
    return Batches(corpus, ModelConfig(corpus.vocab_size, context), TrainConfig(**fields))


@for_each("name", map(named, LINES))
def test_every_window_begins_where_a_problem_does(name: str) -> None:
    task, corpus = TASKS[name], corpora.load(name)
    for context in (task.length, 2 * task.length, task.length + 3):
        some = batches(corpus, context, batch_size=200)
        read = [some.at(step).inputs for step in (0, 1)]
        for split in (corpus.train, corpus.validation):
            read += [batch.inputs for batch in some.windows(split, 4 * context)]
            first, *_, last = some.windows(split, 0)
            read += [first.inputs, last.inputs]
        for inputs in read:
            for row in inputs[:50].tolist():
                text = corpus.tokenizer.decode(row)
                assert text[0] == "\n" and text[:: task.length].strip("\n") == ""
                first = text[1 : task.length]
                assert len(first) < task.length - 1 or task.right(first)
    starts = torch.cat([some.starts(step)[0] for step in range(200)])
    assert int(starts.min()) < 100 * task.length
    assert int(starts.max()) + some.length < len(corpus.train)
    assert len(starts.unique()) > 1000 or name == "modular"


def test_the_windows_side_by_side_are_the_split(corpus: Corpus) -> None:
    """Each token of the validation split is predicted once, where windows are whole problems."""
    read = torch.cat([batch.targets.flatten() for batch in batches(corpus, 36).windows(corpus.validation, 0)])
    assert torch.equal(read, corpus.validation[1:])


def test_of_a_clock_the_answers_alone_count() -> None:
    corpus = corpora.load("modular")
    batch = batches(corpus, 12, batch_size=8).at(0)
    for inputs, targets in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
        text = corpus.tokenizer.decode(inputs)
        answers = {i: corpus.tokenizer.decode([t]) for i, t in enumerate(targets) if t >= 0}
        assert list(answers) == [4, 10]  # at the equals signs
        for i, answer in answers.items():
            assert text[i] == "=" and TASKS["modular"].right(text[i - 3 : i + 1] + answer)
    assert corpus.baselines["uniform"] == pytest.approx(math.log(corpus.vocab_size))
    tokens = corpus.validation.tolist()
    counts = torch.bincount(corpus.train, minlength=corpus.vocab_size).double() + 1
    answers = [tokens[i] for i in range(5, len(tokens), 6)]
    expected = -sum(math.log(counts[t] / counts.sum()) for t in answers) / len(answers)
    assert corpus.baselines["unigram"] == pytest.approx(expected)


def test_what_a_task_cannot_be_trained_with(corpus: Corpus) -> None:
    base_model, base = task_recipe(TASKS["reverse"])
    for model, config, said in (
        ({"context": 17}, {}, "at least 18"),
        ({}, {"repeat": 0.5}, "repeat"),
        ({"causal": False, "vocab_size": 11}, {"objective": "masked"}, "objective"),
    ):
        with pytest.raises(ConfigError, match=said):
            train(dataclasses.replace(base_model, **model), dataclasses.replace(base, **config), corpus)
    with pytest.raises(CorpusError, match="char, not bpe:300"):
        corpora.load("reverse", tokenizer="bpe:300")
    with pytest.raises(CorpusError, match=r"no corpus is called 'nothing'.*reverse"):
        corpora.load("nothing")


def learned(name: str, **fields: Any) -> tuple[list[Evaluation], list[Sample]]:
    model, config = task_recipe(TASKS[name])
    quick = {"precision": "float32", "eval_tokens": 2048, "snapshot_every": 0, "look_early": False}
    records = list(
        train(model, dataclasses.replace(config, **quick | fields), corpora.load(name), device="cpu")
    )
    return only(records, Evaluation), only(records, Sample)


@pytest.mark.exhaustive
def test_copying_is_learned_in_a_hundred_steps() -> None:
    task = TASKS["copy"]
    looks, samples = learned("copy", steps=110, eval_every=110, sample_every=110, sample_length=90)
    assert looks[0].task is not None and looks[0].task.validation == 0.0
    assert looks[-1].task is not None and looks[-1].task.validation >= 0.9
    assert task.floor(18) - 0.02 < looks[-1].validation_loss < task.floor(18) + 0.1
    found = marked(task, samples[-1].prompt + samples[-1].text)
    assert len(found) == 5 and len({line for line, _ in found}) == 5
    assert sum(right for _, right in found) >= 3
    assert not any(right for _, right in marked(task, samples[0].text))


def test_a_sample_goes_on_from_what_is_asked() -> None:
    how = {"steps": 1, "sample_every": 1, "sample_length": 40, "eval_every": 0}
    assert learned("copy", **how)[1][0].prompt == "\n"
    sample = learned("copy", **how, sample_prompt="abcdefgh>")[1][0]
    lines = (sample.prompt + sample.text).rstrip("\n").split("\n")
    assert len(lines) == 2 and all(line.startswith("abcdefgh>") for line in lines)


@pytest.mark.exhaustive
@for_each("name", list(TASKS))
def test_the_shipped_models_solve_their_tasks(name: str) -> None:
    folder = Path(__file__).parents[2] / "checkpoints" / "tasks" / name
    found, (model, config) = checkpoints.load(folder), task_recipe(TASKS[name])
    task, corpus = TASKS[name], corpora.load(name)
    assert found.config == model.resolved()
    made = TrainConfig.from_dict(found.metrics["train"])
    assert made == dataclasses.replace(config, sample_every=0, snapshot_every=config.eval_every)
    assert found.tokenizer.to_dict() == corpus.tokenizer.to_dict()
    scores = task_scores(found.model, corpus, count=1000)
    assert scores is not None
    assert scores.validation == pytest.approx(found.metrics["solved"]["validation"], abs=0.003)
    assert scores.validation >= 0.98
    loss = measure(found.model, Batches(corpus, model, made), corpus.validation).nats
    assert loss == pytest.approx(found.metrics["validation_loss"], abs=2e-4)
    floor = task.floor(model.context)
    assert floor - 0.01 < loss < floor + (0.03 if task.name == "repeat" else 0.015)
    assert found.metrics["cpu_seconds"] < (60 if not task.answers_only else 300)
