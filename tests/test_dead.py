"""What nothing of the app names is not kept."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = [path for folder in ("engine", "ui", "pages") for path in sorted((ROOT / folder).rglob("*.py"))] + [
    ROOT / "app.py"
]
SPARE = {
    "count_parameters": "what the counts of engine/ledger are held against in tests",
    "finish": "runs a slow measurement to its end, in notebooks and tests; the app draws its progress instead",
    "open_model": "opens a published model; its tests call it, no page does yet",
    "beam_pair": "of the encoder-decoder; for the pages on it, as are the next four",
    "train_labels": "trains a classifier on the pooled vector",
    "train_pairs": "trains an encoder-decoder",
    "write_pair": "what it writes for a source",
    "position_bias": "what a scheme adds to the scores, of any model; for the pages on positions",
}


def named(tree: ast.AST) -> list[str]:
    """Every name that code reads, imports or writes as a string."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.append(node.id)
        elif isinstance(node, ast.Attribute):
            found.append(node.attr)
        elif isinstance(node, ast.alias):
            found.append(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def defined(tree: ast.Module) -> list[str]:
    """Every function, class and constant at the top of a module.

    >>> defined(ast.parse("A = 1\\ndef f(): pass\\nclass C: pass"))
    ['A', 'f', 'C']
    """
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.append(node.target.id)
    return [name for name in found if not name.startswith("__")]


def test_nothing_is_dead() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in FILES}
    used = Counter(name for tree in trees.values() for name in named(tree))
    dead = {
        f"{path.relative_to(ROOT)}: {name}"
        for path, tree in trees.items()
        for name in defined(tree)
        if not used[name] and name not in SPARE
    }
    assert not dead


def test_no_block_does_nothing() -> None:
    """An `if` whose body is `pass` was left behind by something."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.If):
                assert not all(isinstance(line, ast.Pass) for line in node.body), f"{path}:{node.lineno}"
