"""Deliberate faults: their records, how one is declared, and the lines in which it differs."""

from __future__ import annotations

import ast
import inspect
import textwrap
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from engine.config import ModelConfig, TrainConfig
from engine.parts.registry import HEALTHY, PARTS, swapped
from studies.lab.raw_values import QueriesAndKeys, SharedQKRawValues

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
# Of `on_train`: AdamW in the place of Muon; fewer and smaller steps where a model is deep, for time.
ADAMW = {"optimizer": "adamw", "learning_rate": 3e-3}
DEEP = {"batch_size": 8, "steps": 150}
Settings = tuple[ModelConfig, TrainConfig, str]  # with the name of the parts


@dataclass(frozen=True)
class Diff:
    """Lines of source as `diff` shows them. `location` is the file and the function in it; `lines` are
    (sign, line): "-" stands in the healthy source alone, "+" in the faulty one, " " in both.
    """

    location: str
    lines: tuple[tuple[str, str], ...]

    @property
    def removed(self) -> tuple[str, ...]:
        return tuple(line for sign, line in self.lines if sign == "-")

    @property
    def added(self) -> tuple[str, ...]:
        return tuple(line for sign, line in self.lines if sign == "+")

    @property
    def text(self) -> str:
        """The lines as a diff file writes them."""
        return "\n".join(f"{sign} {line}".rstrip() for sign, line in self.lines)


@dataclass(frozen=True, eq=False)
class Fault:
    """A mistake that a Transformer can be made with, and often still trains.

    It is `parts` (a name in PARTS), other fields of the configurations (`model`, `train`), or both.
    `on_model` and `on_train` go to the healthy and the faulty model alike, so that the mistake shows (a
    depth, a dropout). Only the first `characters` of the text are used, 0 for all. `sources` are pairs of
    functions, a healthy one and the faulty one that replaces it.
    """

    name: str
    title: str
    symptom: str  # what is seen, as measured on the setting that it is shown on
    story: str  # where it happens, and why
    fix: str
    texts: str = ""  # what a text's own code has or says, where it differs
    parts: str = "healthy"
    model: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    on_model: Mapping[str, Any] = field(default_factory=dict)
    on_train: Mapping[str, Any] = field(default_factory=dict)
    characters: int = 0
    sources: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = ()

    def healthy(self, model: ModelConfig = LAB_MODEL, train: TrainConfig = LAB_TRAIN) -> Settings:
        """Returns the settings that the fault is compared with."""
        return replace(model, **self.on_model), replace(train, **self.on_train), "healthy"

    def faulty(self, model: ModelConfig = LAB_MODEL, train: TrainConfig = LAB_TRAIN) -> Settings:
        """Returns the same settings with the fault in them."""
        model, train, _ = self.healthy(model, train)
        return replace(model, **self.model), replace(train, **self.train), self.parts

    @cached_property
    def diff(self) -> Diff:
        """The lines of the real sources that make the fault, or the settings where no source differs."""
        if not self.sources:
            return _of_settings(self)
        lines: list[tuple[str, str]] = []
        for healthy, faulty in self.sources:
            lines += _compared(body(healthy), body(faulty))
        first = self.sources[0][0]
        file = Path(inspect.getsourcefile(first) or "").resolve().relative_to(ROOT).as_posix()
        return Diff(f"{file}, {', '.join(healthy.__qualname__ for healthy, _ in self.sources)}", tuple(lines))


FAULTS: dict[
    str, Fault
] = {}  # in the order of declarations; studies.lab.faults.FAULTS is in that of words.toml
# No fault but a rung of the ladder (studies.tasks.rungs): attention before values had a matrix.
PARTS["raw_values"] = swapped(
    HEALTHY, "raw_values", mixers={"shared_qk": SharedQKRawValues, "attention": QueriesAndKeys}
)
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
T = TypeVar("T", bound=Callable[..., Any])


def variant(name: str, part: str) -> Callable[[T], T]:
    """Declares other parts, in which the decorated function or class replaces a healthy one.

    `part` is a field of Parts ("mask"), or an entry of one ("mixers.attention").
    """

    def declare(replacement: T) -> T:
        registry, _, entry = part.partition(".")
        PARTS[name] = swapped(HEALTHY, name, **{registry: {entry: replacement} if entry else replacement})
        return replacement

    return declare


def fault(name: str, part: str, *methods: str, **fields: Any) -> Callable[[T], T]:
    """Declares a fault: a `variant` whose words stand in words.toml under its name.

    `methods` are those in which a class differs from the healthy one; `fields` are further fields of Fault.
    """

    def declare(replacement: T) -> T:
        registry, _, entry = part.partition(".")
        healthy = getattr(HEALTHY, registry)
        if entry:
            sources = tuple((getattr(healthy[entry], m), getattr(replacement, m)) for m in methods)
        else:
            sources = ((healthy, replacement),)
        settings_fault(name, parts=name, sources=sources, **fields)
        return variant(name, part)(replacement)

    return declare


def settings_fault(name: str, **fields: Any) -> None:
    """Declares a fault by fields of Fault alone: other settings of the model or of its training."""
    words: dict[str, Any] = {key: " ".join(text.split()) for key, text in WORDS[name].items()}
    FAULTS[name] = Fault(name, **words, **fields)


def body(function: Callable[..., Any]) -> list[str]:
    """Returns the lines of a function without its signature and docstring.

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
    """Returns the lines that differ, with `around` lines before and after them."""
    lines: list[tuple[str, str]] = []
    for group in SequenceMatcher(None, healthy, faulty, autojunk=False).get_grouped_opcodes(around):
        for kind, a, b, c, d in group:
            if kind == "equal":
                lines += [(" ", line) for line in healthy[a:b]]
            else:
                lines += [("-", line) for line in healthy[a:b]] + [("+", line) for line in faulty[c:d]]
    return tuple(lines)


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
