"""What share of a synthetic task's problems a model solves: it is given the question, writes the answer, and
that is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.data.corpus import Corpus
from engine.data.tasks.task import Task
from engine.data.tokenizers import Tokenizer
from engine.errors import TaskError
from engine.model import Transformer
from engine.probe import Probe, identity
from engine.training.records import TaskScores

ASKED = 100  # problems of each split, spread evenly over it


@dataclass(frozen=True)
class Answered:
    """A problem as a model finished it: `line` is the question and what the model wrote, `wanted` the answer
    that is right ('' where there are several).
    """

    line: str
    asked: int
    right: bool
    wanted: str

    @property
    def question(self) -> str:
        return self.line[: self.asked]

    @property
    def written(self) -> str:
        return self.line[self.asked :]


def lines_of(tokens: Tensor, period: int, count: int) -> Tensor:
    """Up to `count` problems of a split, spread evenly, each with the line break before it and the one that
    ends it: (count, period + 1).
    """
    there = (len(tokens) - 1) // period
    chosen = torch.linspace(0, there - 1, min(count, there)).long() * period
    return tokens[chosen[:, None] + torch.arange(period + 1)]


@torch.inference_mode()
def finish(model: Transformer, given: Tensor, count: int, probe: Probe = identity) -> Tensor:
    """The likeliest `count` tokens after each row of `given` (batch, position), one after the other:
    (batch, position + count). A `probe` may change the forward pass.
    """
    device = next(model.parameters()).device
    found = given.to(device)
    for _ in range(count):
        logits = model(found[:, -model.config.context :], probe)  # (batch, position, vocab)
        found = torch.cat([found, logits[:, -1:].argmax(-1)], dim=1)
    return found.cpu()


def answered(
    model: Transformer, tokenizer: Tokenizer, task: Task, lines: Tensor, probe: Probe = identity
) -> list[Answered]:
    """The problems of `lines` (batch, period + 1), as `lines_of` gives them, with the model's answers. A
    token that is no letter, as a mask is, makes an answer wrong.
    """
    begin = 1 + task.asked  # the line break before is given too
    ids = finish(model, lines[:, :begin], task.length - 1 - task.asked, probe)
    known = tokenizer.vocab_size
    texts = ["".join(tokenizer.decode([i]) if i < known else "?" for i in row) for row in ids[:, 1:].tolist()]
    return [
        Answered(text, task.asked, task.right(text), task.answer(text[: task.asked]) if task.answer else "")
        for text in texts
    ]


def share_right(found: Sequence[Answered]) -> float:
    """0 to 1."""
    return sum(one.right for one in found) / len(found)


def ask(model: Transformer, tokenizer: Tokenizer, task: Task, typed: str) -> Answered:
    """What a model answers to a question that somebody typed. Raises TaskError where that is none."""
    question = task.asks(typed.strip())
    if question is None:
        raise TaskError(f"“{typed.strip()[:40]}” is no question of this task: type {task.form}")
    ids = tokenizer.encode("\n" + question)
    return answered(model, tokenizer, task, torch.tensor([ids]))[0]


@torch.inference_mode()
def likeliest_named(
    model: Transformer, corpus: Corpus, task: Task, tokens: Tensor, windows: int = 20
) -> float:
    """Of a stream: at what share of the places the letter that the model thinks likeliest is the one that is
    likeliest in the source, given all letters before.
    """
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


def task_scores(model: Transformer, corpus: Corpus, asked: int = ASKED) -> TaskScores | None:
    """Of both splits; None for a text that is no task, and for a model that is no writer or too short for a
    problem. The model is left in the mode it was in.
    """
    task = corpus.task
    if task is None or not model.config.causal or model.config.context < max(task.length, 3):
        return None
    training = model.training
    model.parts.mode(model, False)
    try:
        shares = [_share(model, corpus, task, tokens, asked) for tokens in (corpus.train, corpus.validation)]
    finally:
        model.parts.mode(model, training)
    return TaskScores(*shares)


def _share(model: Transformer, corpus: Corpus, task: Task, tokens: Tensor, asked: int) -> float:
    if task.stream:
        return likeliest_named(model, corpus, task, tokens)
    found = answered(model, corpus.tokenizer, task, lines_of(tokens, task.length, asked))
    return share_right(found)
