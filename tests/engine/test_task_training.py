"""Training on a synthetic task: windows are problems, the loss goes to its floor, and what is solved is counted."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import checkpoints, corpora
from engine.config import ModelConfig, TrainConfig
from engine.corpora import Corpus
from engine.errors import ConfigError, CorpusError
from engine.measure.task_scores import task_scores
from engine.tasks import TASKS, marked
from engine.training.batches import Batches
from engine.training.evaluation import measure
from engine.training.records import Evaluation, Sample
from engine.training.tasks import recipe
from engine.training.train import train
from tests.engine.cases import for_each
from tests.engine.trainings import only

LINES = [name for name, task in TASKS.items() if not task.stream]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return corpora.load("reverse")


def batches(corpus: Corpus, context: int, **fields: int) -> Batches:
    return Batches(corpus, ModelConfig(corpus.vocab_size, context), TrainConfig(**fields))


@for_each("name", LINES)
def test_every_window_begins_where_a_problem_does(name: str) -> None:
    task, corpus = TASKS[name], corpora.load(name)
    for context in (task.length, 2 * task.length, task.length + 3):
        some = batches(corpus, context, batch_size=200)
        read = [some.at(step).inputs for step in (0, 1)]
        for split in (corpus.train, corpus.validation):
            read += [batch.inputs for batch in some.windows(split, 4 * context)]
            read += [batch.inputs for batch in some.windows(split, 0)]
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
    base_model, base = recipe(TASKS["reverse"])
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
    """A short training by the task's recipe, on one fixed seed."""
    model, config = recipe(TASKS[name])
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
    """Each by the recipe that the training page offers, and as well as its metrics say."""
    folder = Path(__file__).parents[2] / "checkpoints" / "tasks" / name
    found, (model, config) = checkpoints.load(folder), recipe(TASKS[name])
    task, corpus = TASKS[name], corpora.load(name)
    assert found.config == model.resolved()
    made = TrainConfig.from_dict(found.metrics["train"])
    assert made == dataclasses.replace(config, sample_every=0, snapshot_every=config.eval_every)
    assert found.tokenizer.to_dict() == corpus.tokenizer.to_dict()
    scores = task_scores(found.model, corpus, asked=1000)
    assert scores is not None
    assert scores.validation == pytest.approx(found.metrics["solved"]["validation"], abs=0.003)
    assert scores.validation >= 0.98
    loss = measure(found.model, Batches(corpus, model, made), corpus.validation).nats
    assert loss == pytest.approx(found.metrics["validation_loss"], abs=2e-4)
    floor = task.floor(model.context)
    assert floor - 0.01 < loss < floor + (0.03 if task.name == "repeat" else 0.015)
    assert found.metrics["cpu_seconds"] < (60 if not task.answers_only else 300)
