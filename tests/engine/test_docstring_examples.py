"""Examples in docstrings that are no doctests run too, on small models; those of pages and controls, which need a
browser, call what there is with arguments that it takes.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.progress import finish
from engine.data.tokenizers import bpe
from runs.race import Entrant
from studies.lab.doctor.case import Case
from tests.engine.helpers import VERSE, loud
from ui import page_frame

ROOT = Path(__file__).resolve().parents[2]
COMMAND, MANY = "python ", 9
# they train first
SLOW = tuple(
    f"studies.{name}"
    for name in ("after.new_text", "after.preferences", "after.reward", "circuits.in_context")
)


def examples() -> Iterator[tuple[str, str]]:
    """(module, code) of each indented block of a module's docstring that is no command of a shell."""
    for room in ("engine", "studies", "runs", "ui"):
        for file in sorted((ROOT / room).rglob("*.py")):
            said = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
            if ">>> " in said:
                continue
            block: list[str] = []
            for line in [*said.split("\n"), "end"]:
                if line.startswith("    ") or (block and not line):
                    block.append(line)
                elif block:
                    code = textwrap.dedent("\n".join(block)).strip()
                    block = []
                    if not code.startswith(COMMAND):
                        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(
                            ".__init__"
                        )
                        yield name, code


class Short(ast.NodeTransformer):
    """Each loop once, and more of a list in the place of dots."""

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        node.body.append(ast.Break())
        return node

    def visit_List(self, node: ast.List) -> ast.List:
        self.generic_visit(node)
        if (plain := [each for each in node.elts if not _dots(each)]) != node.elts:
            node.elts = plain * MANY
        return node


def _dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def names() -> dict[str, Any]:
    """What the examples take as given."""
    config = ModelConfig(WORDS.vocab_size, context=256, d_model=16, n_layers=2, n_heads=2, position="rope")
    model = loud(config)
    return {
        "model": model,
        "tokenizer": WORDS,
        "case": Case(model),
        "old": VERSE * 20,
        "new": VERSE[::-1] * 20,
        "text": corpora.from_text(VERSE * 20),
        "small": ModelConfig(vocab_size=len(set(VERSE)), context=8, d_model=16, n_layers=1, n_heads=2),
        "large": ModelConfig(vocab_size=len(set(VERSE)), context=8, d_model=32, n_layers=1, n_heads=2),
        "finish": finish, "corpora": corpora, "ModelConfig": ModelConfig, "TrainConfig": TrainConfig, "Entrant": Entrant,
    }  # fmt: skip


WORDS = bpe.train(VERSE + " hot cold big small" * 50, 320)
EVERY = list(examples())


@pytest.mark.parametrize(
    "module, code",
    [
        pytest.param(*each, id=each[0], marks=[pytest.mark.exhaustive] * (each[0] in SLOW))
        for each in EVERY
        if not each[0].startswith("ui.")
    ],
)
def test_an_example_of_the_engine_runs(module: str, code: str) -> None:
    tree = ast.fix_missing_locations(Short().visit(ast.parse(code)))
    space = vars(importlib.import_module(module)) | names()
    exec(compile(tree, module, "exec"), space)


@pytest.mark.parametrize(
    "module, code", [pytest.param(*each, id=each[0]) for each in EVERY if each[0].startswith("ui.")]
)
def test_an_example_of_the_screen_calls_what_there_is(module: str, code: str) -> None:
    there = vars(page_frame) | vars(importlib.import_module(module))
    try:
        tree = ast.parse(code)
    except SyntaxError:  # parts of a tuple
        tree = ast.parse(f"[\n{code}\n]")
    known = 0
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if called in there and called != "partial":  # which has no signature
            known += 1
            words = {word.arg: 0 for word in call.keywords if word.arg is not None}
            inspect.signature(there[called]).bind(*call.args, **words)
    assert known, "it calls nothing of its module"


def test_there_are_examples() -> None:
    assert len(EVERY) > 10
