"""Problems of a synthetic task, solved by a model: it reads a question and writes the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.data.corpus import Corpus
from engine.data.tokenizers import Tokenizer
from engine.errors import TaskError
from engine.model import Transformer
from engine.probe import Probe, identity
from engine.training.records import TaskScores
from studies.tasks.task import Task

PROBLEMS = 100  # of each split that are solved at an evaluation, spread evenly over it


@dataclass(frozen=True)
class Answered:
    """A completed problem: `line` is question, then answer; `wanted` the right one, '' for several."""

    line: str
    question_length: int
    right: bool
    wanted: str

    @property
    def question(self) -> str:
        return self.line[: self.question_length]

    @property
    def written(self) -> str:
        return self.line[self.question_length :]


def lines_of(tokens: Tensor, period: int, count: int) -> Tensor:
    """Returns (count, period + 1): problems spread evenly over a split, each between line breaks."""
    there = (len(tokens) - 1) // period
    chosen = torch.linspace(0, there - 1, min(count, there)).long() * period
    return tokens[chosen[:, None] + torch.arange(period + 1)]


@torch.inference_mode()
def finish(model: Transformer, given: Tensor, count: int, probe: Probe = identity) -> Tensor:
    """Appends the likeliest token `count` times to `given` (batch, position). A `probe` may intervene."""
    device = next(model.parameters()).device
    ids = given.to(device)
    for _ in range(count):
        logits = model(ids[:, -model.config.context :], probe)  # (batch, position, vocab)
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    return ids.cpu()


def answered(
    model: Transformer, tokenizer: Tokenizer, task: Task, lines: Tensor, probe: Probe = identity
) -> list[Answered]:
    """Returns the problems of `lines` with the model's answers; one with a non-letter is wrong."""
    begin = 1 + task.given  # the line break before is given too
    ids = finish(model, lines[:, :begin], task.length - 1 - task.given, probe)
    known = tokenizer.vocab_size
    texts = ["".join(tokenizer.decode([i]) if i < known else "?" for i in row) for row in ids[:, 1:].tolist()]
    return [
        Answered(text, task.given, task.right(text), task.answer(text[: task.given]) if task.answer else "")
        for text in texts
    ]


def share_right(answers: Sequence[Answered]) -> float:
    return sum(answer.right for answer in answers) / len(answers)


def ask(model: Transformer, tokenizer: Tokenizer, task: Task, typed: str) -> Answered:
    """Returns the model's answer to a typed question. Raises TaskError for a text that is no question."""
    question = task.asks(typed.strip())
    if question is None:
        raise TaskError(f"“{typed.strip()[:40]}” is not a question for this task: type {task.form}")
    ids = tokenizer.encode("\n" + question)
    return answered(model, tokenizer, task, torch.tensor([ids]))[0]


@torch.inference_mode()
def likeliest_named(
    model: Transformer, corpus: Corpus, task: Task, tokens: Tensor, windows: int = 20
) -> float:
    """Returns the share of positions at which the model's likeliest letter is the source's."""
    assert task.answer is not None
    some = lines_of(tokens, model.config.context, windows)[:, :-1]  # (windows, context)
    named = model(some.to(next(model.parameters()).device))[..., : corpus.vocab_size].argmax(-1).cpu()
    hits = [
        corpus.tokenizer.decode([name]) == task.answer(corpus.tokenizer.decode(row[i - 1 : i + 1]))
        for row, names in zip(some.tolist(), named.tolist(), strict=True)
        for i, name in enumerate(names)
        if i  # two letters decide
    ]
    return sum(hits) / len(hits)


def task_scores(model: Transformer, corpus: Corpus, count: int = PROBLEMS) -> TaskScores | None:
    """Returns the shares solved; None for no task, or a model that cannot write a whole problem."""
    task = corpus.task
    if not isinstance(task, Task) or not model.config.causal or model.config.context < max(task.length, 3):
        return None
    training = model.training
    model.parts.mode(model, False)
    try:
        shares = [_share(model, corpus, task, tokens, count) for tokens in (corpus.train, corpus.validation)]
    finally:
        model.parts.mode(model, training)
    return TaskScores(*shares)


def _share(model: Transformer, corpus: Corpus, task: Task, tokens: Tensor, count: int) -> float:
    if task.stream:
        return likeliest_named(model, corpus, task, tokens)
    return share_right(answered(model, corpus.tokenizer, task, lines_of(tokens, task.length, count)))
