"""The addition model of *Chain of thought* learns to call a calculator: `python -m studies.experiments tools`
trains it with five seeds and writes `checkpoints/tools.json`. Stored runs are left as they are.

A call is text. The harness, which is no part of the model, reads along, stops the model where a call ends,
computes, and writes the result into the text; the model goes on from there (Toolformer: Schick et al. 2023).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import torch

from engine.checkpoints import model_with
from engine.data import corpora
from engine.data.progress import Progress, Steps, finish
from engine.data.tokenizers import Tokenizer
from engine.model import Transformer
from engine.training.records import Snapshot
from engine.training.train import train
from studies.experiments.command import complete, folder_options, made, read_runs
from studies.experiments.thinking_aloud import recipe
from studies.tasks.carries import CALLING, COLUMNS, EQUALS, GIVEN_BACK, PLUS, tool_call

PATH = Path(__file__).resolve().parents[2] / "checkpoints" / "tools.json"
SEEDS = (0, 1, 2, 3, 4)  # two more than usual: they differ in what they learn beside their calls
LOOK_EVERY = 100  # steps
PROBLEMS, SHOWN = 100, 8  # held-out sums that are solved at a look, and of them those whose text is stored
Ran = Literal["run", "nobody", "broken"]  # who runs a call: a calculator, nobody, one that is off
RAN: tuple[Ran, ...] = get_args(Ran)
OFF = 1  # by which a broken calculator is wrong
_CALL = re.compile(r"\[(\d+)\+(\d+)\]$")
Harness = Callable[[str], str]


def calculator(off: int = 0) -> Harness:
    """Returns a harness: text so far -> what it inserts; nothing unless the text ends in a call.

    >>> calculator()("12+34=[12+34]"), calculator(off=1)("[2+2]"), calculator()("12+34=[12+")
    ('(0000046)', '(0000005)', '')
    """

    def insert(text: str) -> str:
        call = _CALL.search(text)
        return (
            "" if call is None else f"{sum(map(int, call.groups())) + off:0{COLUMNS + 1}d}".join(GIVEN_BACK)
        )

    return insert


HARNESSES: Mapping[Ran, Harness] = {"run": calculator(), "nobody": lambda text: "", "broken": calculator(OFF)}


@dataclass(frozen=True)
class Stream:
    """A text after a `question`: `by_model` and `by_harness` in turns, beginning with the model; an empty
    piece of the model where it has nothing more to write.
    """

    question: str
    pieces: tuple[str, ...]

    @property
    def by_model(self) -> str:
        return "".join(self.pieces[::2])

    @property
    def by_harness(self) -> str:
        return "".join(self.pieces[1::2])

    @property
    def line(self) -> str:
        return self.question + "".join(self.pieces)

    @property
    def sum(self) -> str:
        """The digits that end the text: the model's answer."""
        return self.line[-COLUMNS - 1 :]

    @property
    def result(self) -> str:
        """The digits in the parentheses, whoever wrote them; "" where there are none."""
        inside = re.search(r"\((\d+)\)", self.line)
        return inside[1] if inside else ""


@torch.inference_mode()
def write(
    model: Transformer, tokenizer: Tokenizer, questions: Sequence[str], harness: Harness
) -> tuple[Stream, ...]:
    """Writes lines of full length after questions, the likeliest token each time; the harness reads along,
    and what it inserts stands in the model's place.
    """
    texts = [[""] for _ in questions]  # pieces: of the model, of the harness, of the model ...
    length = CALLING.length - 1
    while True:
        open_ = [i for i, pieces in enumerate(texts) if len(questions[i]) + len("".join(pieces)) < length]
        if not open_:
            return tuple(Stream(q, tuple(pieces)) for q, pieces in zip(questions, texts, strict=True))
        # lines of one length are read together
        least = min(len("".join(texts[i])) for i in open_)
        some = [i for i in open_ if len("".join(texts[i])) == least]
        rows = torch.tensor([tokenizer.encode("\n" + questions[i] + "".join(texts[i])) for i in some])
        for i, token in zip(some, model(rows)[:, -1].argmax(-1).tolist(), strict=True):
            texts[i][-1] += tokenizer.decode([token])
            inserted = harness(questions[i] + "".join(texts[i]))
            if inserted:
                texts[i] += [inserted, ""]


@dataclass(frozen=True)
class ToolEvaluation:
    """After `step` steps, on held-out sums: the share of calls that are `copied` from the question; of
    results that the model has `made_up` where nobody runs the call; and by who runs it, in the order of RAN,
    of sums that are `right`, and that are `repeated` from the result. `streams` (RAN, sum) are some of the
    texts, after the last step alone.
    """

    step: int
    copied: float
    made_up: float
    right: tuple[float, ...]
    repeated: tuple[float, ...]
    streams: tuple[tuple[Stream, ...], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class ToolRun:
    """A training with all of its looks; `plan` is its seed, `made` says where and when."""

    plan: int
    looks: tuple[ToolEvaluation, ...] = field(repr=False)
    made: str = ""


def questions(count: int) -> list[str]:
    """Draws questions that no training has: always the same ones."""
    draws = random.Random(f"{CALLING.name}-asked")
    asked: list[str] = []
    while len(asked) < count:
        line = CALLING.draw(draws, CALLING.length - 1)
        if CALLING.for_validation(line):
            asked.append(line[: CALLING.given])
    return asked


def _numbers(question: str) -> list[str]:
    return question.rstrip(EQUALS).split(PLUS)


def evaluate(model: Transformer, tokenizer: Tokenizer, step: int, shown: int = 0) -> ToolEvaluation:
    """Solves held-out sums with each harness."""
    asked = questions(PROBLEMS)
    streams = [write(model, tokenizer, asked, HARNESSES[ran]) for ran in RAN]
    calls = [line.by_model.startswith(tool_call(*_numbers(line.question))) for line in streams[0]]

    def share(marked: Sequence[bool]) -> float:
        return sum(marked) / len(marked)

    return ToolEvaluation(
        step,
        share(calls),
        share([bool(line.result) for line in streams[RAN.index("nobody")]]),
        tuple(share([CALLING.right(each.line) for each in some]) for some in streams),
        tuple(share([each.sum == each.result for each in some]) for some in streams),
        tuple(some[:shown] for some in streams) if shown else (),
    )


def learn(seed: int, steps: int = 0) -> Steps[ToolRun]:
    """Trains the model of *Chain of thought* to call a calculator, for its number of steps or for fewer.
    Yields the looks so far.
    """
    model, training = recipe(CALLING)
    training = replace(training, seed=seed, eval_every=0, snapshot_every=LOOK_EVERY)
    training = replace(training, steps=steps or training.steps)
    corpus = corpora.load(CALLING.name)
    looks: list[ToolEvaluation] = []
    yield Progress(0, training.steps, ())
    for record in train(model, training, corpus):
        if isinstance(record, Snapshot):
            now = model_with(model.resolved(), record.state.weights())
            last = record.step == training.steps
            looks.append(evaluate(now, corpus.tokenizer, record.step, SHOWN if last else 0))
            yield Progress(record.step, training.steps, tuple(looks))
    return ToolRun(seed, tuple(looks))


def trained(seed: int) -> ToolRun:
    """Trains to the end."""
    return replace(finish(learn(seed)), made=made("tools"))


@cache
def shipped() -> tuple[ToolRun, ...]:
    """Reads the runs that come with the app, once. Raises CheckpointError for an unreadable file."""
    return stored()


def stored(path: Path = PATH) -> tuple[ToolRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "tools", ToolRun)


def main(arguments: Sequence[str] | None = None) -> None:
    def ends(run: ToolRun) -> str:
        return ", ".join(f"{ran} {share:.2f}" for ran, share in zip(RAN, run.looks[-1].right, strict=True))

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, SEEDS, stored, trained, ends)
