"""What nothing of the app names is not kept."""

import ast
from collections import Counter
from collections.abc import Iterable

from tests import source
from tests.source import EVERYTHING

SPARE = {
    "beam_pair": "the encoder-decoder's beam search; for notebooks",
    "write_pair": "what an encoder-decoder writes for a source; for notebooks",
}


def named(nodes: Iterable[ast.AST]) -> list[str]:
    """Every name that code reads, imports or writes as a string."""
    found = []
    for node in nodes:
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


def test_everything_that_is_defined_is_used() -> None:
    used = Counter(name for path in EVERYTHING for name in named(source.nodes(path)))
    unused = {
        name: f"{source.name(path)} defines {name}"
        for path in EVERYTHING
        for name in defined(source.tree(path))
        if not used[name]
    }
    dead = [words for name, words in unused.items() if name not in SPARE]
    assert not dead, "\n".join(dead)
    stale = SPARE.keys() - unused.keys()
    assert not stale, f"these are used, or gone: {sorted(stale)}"


def test_no_branch_does_nothing() -> None:
    """An `if` whose body is `pass` was left behind by something."""
    wrong = [
        f"{source.name(path)}:{node.lineno}"
        for path in EVERYTHING
        for node in source.nodes(path)
        if isinstance(node, ast.If) and all(isinstance(line, ast.Pass) for line in node.body)
    ]
    assert not wrong, wrong
