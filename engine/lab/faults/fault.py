"""What a deliberate fault is: other parts or other settings, and what is known of it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from engine.config import ModelConfig, TrainConfig

ROOT = Path(__file__).resolve().parents[3]
# What a fault is shown on, where nothing else is said: small enough for half a minute on one slow core.
LAB_MODEL = ModelConfig(context=64, d_model=64, n_layers=2, n_heads=4, position="rope")
LAB_TRAIN = TrainConfig(
    steps=200,
    batch_size=16,
    optimizer="muon",
    learning_rate=3e-3,
    warmup_steps=20,
    precision="float32",
    eval_every=50,
    eval_tokens=4096,
    look_early=True,
    sample_every=100,
    sample_length=240,
    snapshot_every=50,
    sample_prompt="ROMEO:\n",
)
Settings = tuple[ModelConfig, TrainConfig, str]  # with the name of the parts


@dataclass(frozen=True)
class Diff:
    """Lines of source as a program for differences shows them. `place` is the file, and the function in it;
    `lines` are (sign, line): "-" stands in the healthy one alone, "+" in the faulty one, " " in both.
    """

    place: str
    lines: tuple[tuple[str, str], ...]

    @property
    def removed(self) -> tuple[str, ...]:
        return tuple(line for sign, line in self.lines if sign == "-")

    @property
    def added(self) -> tuple[str, ...]:
        return tuple(line for sign, line in self.lines if sign == "+")

    @property
    def text(self) -> str:
        """As it stands in a file of differences."""
        return "\n".join(f"{sign} {line}".rstrip() for sign, line in self.lines)


@dataclass(frozen=True, eq=False)
class Fault:
    """A mistake that a Transformer can be made with, and often still trains.

    It is `parts` (a name of `engine.lab.faults.PARTS`), or other fields of the configurations (`model`,
    `train`), or both. `on_model` and `on_train` are what healthy and faulty ones are both given, so that it
    shows: a depth, a dropout. Of the text only the first `letters` are used, 0 for all. `sources` are healthy
    functions, each with the one that stands in its place.
    """

    name: str
    title: str
    symptom: str  # what is seen, as measured on the setting that it is shown on
    story: str  # where it happens, and why
    fix: str
    parts: str = "healthy"
    model: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    on_model: Mapping[str, Any] = field(default_factory=dict)
    on_train: Mapping[str, Any] = field(default_factory=dict)
    letters: int = 0
    sources: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = ()

    def healthy(self, model: ModelConfig = LAB_MODEL, train: TrainConfig = LAB_TRAIN) -> Settings:
        """What the fault is compared with."""
        return replace(model, **self.on_model), replace(train, **self.on_train), "healthy"

    def faulty(self, model: ModelConfig = LAB_MODEL, train: TrainConfig = LAB_TRAIN) -> Settings:
        """The same with the fault in it."""
        model, train, _ = self.healthy(model, train)
        return replace(model, **self.model), replace(train, **self.train), self.parts

    @property
    def diff(self) -> Diff:
        """The lines that make it, of the real sources; of settings, where nothing else is another."""
        if not self.sources:
            return _of_settings(self)
        lines: list[tuple[str, str]] = []
        for healthy, faulty in self.sources:
            lines += _compared(body(healthy), body(faulty))
        first = self.sources[0][0]
        file = Path(inspect.getsourcefile(first) or "").resolve().relative_to(ROOT).as_posix()
        return Diff(f"{file}, {', '.join(healthy.__qualname__ for healthy, _ in self.sources)}", tuple(lines))


def body(function: Callable[..., Any]) -> list[str]:
    """The lines of a function without its head and what it says of itself.

    >>> body(body)[-1]
    'return lines[first:]'
    """
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    (tree,) = ast.parse("\n".join(lines)).body
    assert isinstance(tree, ast.FunctionDef)
    start = tree.body[1 if ast.get_docstring(tree) else 0]
    before = tree.body[0].end_lineno if ast.get_docstring(tree) else start.lineno - 1
    lines = textwrap.dedent("\n".join(lines[before or 0 :])).splitlines()
    first = next(i for i, line in enumerate(lines) if line)
    return lines[first:]


def _compared(healthy: list[str], faulty: list[str], around: int = 1) -> tuple[tuple[str, str], ...]:
    """What is another, with `around` lines before and after it."""
    found: list[tuple[str, str]] = []
    for group in SequenceMatcher(None, healthy, faulty, autojunk=False).get_grouped_opcodes(around):
        for kind, a, b, c, d in group:
            if kind == "equal":
                found += [(" ", line) for line in healthy[a:b]]
            else:
                found += [("-", line) for line in healthy[a:b]] + [("+", line) for line in faulty[c:d]]
    return tuple(found)


def _of_settings(fault: Fault) -> Diff:
    lines: list[tuple[str, str]] = []
    kinds = []
    for before, after, changes in zip(
        fault.healthy(), fault.faulty(), (fault.model, fault.train), strict=False
    ):
        for name in changes:
            lines += [
                ("-", f"{name} = {getattr(before, name)!r}"),
                ("+", f"{name} = {getattr(after, name)!r}"),
            ]
        kinds += [type(before).__name__] if changes else []
    return Diff(" and ".join(kinds), tuple(lines))
