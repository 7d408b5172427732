"""Source code by what it names: from a few definitions to all of the engine's that they need, and no more.

Every name that the code reads is followed to where the engine defines it. A class takes those methods and
fields along that are read by name somewhere in what was taken; what a part says of itself for figures and
ledgers is read by nothing here, and stays behind.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from engine.errors import PretrainedError

OURS = ("engine.", "studies.")
REGISTERS = "studies.lab.faults"  # whose decorators enter what they decorate in a table
Definition = tuple[str, str]  # module, name


@dataclass
class Gathered:
    """`order` are definitions, each after what it needs. `imports` bind the names of other libraries; `types`
    are names of the engine that stand in annotations alone.
    """

    order: list[Definition] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)  # names of methods and fields

    def sources(self) -> list[str]:
        return [source(definition, self.read) for definition in self.order]


def gather(roots: list[Definition], given: frozenset[str]) -> Gathered:
    """Returns all that the roots need but `given` names. Raises PretrainedError for two of one name."""
    read: set[str] = set()
    while True:  # a method that is read for the first time may read others
        gathered = Gathered(read=set(read))
        for root in roots:
            _visit(root, gathered, given, set())
        if gathered.read == read:
            break
        read = gathered.read
    gathered.types -= {name for _, name in gathered.order} | given
    return gathered


def _visit(wanted: Definition, gathered: Gathered, given: frozenset[str], open_: set[Definition]) -> None:
    if wanted in open_ or wanted in gathered.order:
        return
    open_.add(wanted)
    module, name = wanted
    tree = _pruned(wanted, gathered.read)
    gathered.read |= _attributes(tree, module)
    for used in sorted(_names(tree)):
        target = resolve(module, used)
        if isinstance(target, str):
            gathered.imports.add(target)
        elif target is not None and used not in given:
            _visit(target, gathered, given, open_)
    for used in sorted(_hinted(tree)):
        target = resolve(module, used)
        if isinstance(target, str):
            gathered.imports.add(target)
        elif target is not None:
            gathered.types.add(used)
    if name in {taken for _, taken in gathered.order}:
        raise PretrainedError(f"two parts of the engine are called {name}: one file cannot hold both")
    gathered.order.append(wanted)


def source(wanted: Definition, read: set[str]) -> str:
    """Returns a definition as it stands in its module, without the members that nothing reads."""
    lines = _text(wanted[0]).splitlines()
    whole, kept = _definition(wanted), _pruned(wanted, read)
    gone: set[int] = set()
    if isinstance(whole, ast.ClassDef) and isinstance(kept, ast.ClassDef):
        for before, node in zip([None, *whole.body], whole.body, strict=False):
            if node not in kept.body:
                start = whole.lineno if before is None else before.end_lineno or 0
                gone |= set(range(start + 1, (node.end_lineno or 0) + 1))
    first, last = _span(whole)
    text = [line for i, line in enumerate(lines[first - 1 : last], first) if i not in gone]
    empty = isinstance(kept, ast.ClassDef) and not kept.body
    return "\n".join([*text, "    pass"] if empty else text).rstrip()


@cache
def resolve(module: str, name: str) -> Definition | str | None:
    """Returns where the engine defines what a module calls by a name; or the statement that imports it from
    another library; None for Python's own, and for what is bound inside a function.
    """
    tree = _tree(module)
    if any(name in _bound(node) for node in tree.body):
        return module, name
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            if (alias.asname or alias.name.partition(".")[0]) != name:
                continue
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS):
                return resolve(node.module or "", alias.name)
            text = f" as {alias.asname}" if alias.asname else ""
            start = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
            return f"{start}import {alias.name}{text}"
    return None


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    single = [node.target] if isinstance(node, ast.AnnAssign) else []
    targets = node.targets if isinstance(node, ast.Assign) else single
    return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]


def _definition(wanted: Definition) -> ast.stmt:
    """Returns a definition without the decorators that enter it in the table of faults."""
    node = next(node for node in _tree(wanted[0]).body if wanted[1] in _bound(node))
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        node.decorator_list = [each for each in node.decorator_list if not _registers(wanted[0], each)]
    return node


def _registers(module: str, decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    where = resolve(module, called.id) if isinstance(called, ast.Name) else None
    return isinstance(where, tuple) and where[0].startswith(REGISTERS)


def _pruned(wanted: Definition, read: set[str]) -> ast.stmt:
    node = _definition(wanted)
    if not isinstance(node, ast.ClassDef):
        return node
    # of a record all fields stay
    fields = ast.AnnAssign if any("NamedTuple" in _names(base) for base in node.bases) else ()
    body = [each for i, each in enumerate(node.body) if isinstance(each, fields) or _stays(each, i, read)]
    return ast.ClassDef(node.name, node.bases, node.keywords, body, node.decorator_list)


def _stays(node: ast.stmt, index: int, read: set[str]) -> bool:
    if isinstance(node, ast.FunctionDef):
        called = node.name in read or node.name.startswith("__") or node.name == "forward"
        return called and not _is_abstract(node)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return any(name in read for name in _bound(node))
    return index == 0  # what the class says of itself


def _is_abstract(node: ast.FunctionDef) -> bool:
    """True for a method that subclasses must write: it raises NotImplementedError."""
    last = node.body[-1]
    return isinstance(last, ast.Raise) and getattr(last.exc, "id", "") == "NotImplementedError"


def _span(node: ast.stmt) -> tuple[int, int]:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)]), node.end_lineno or node.lineno


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """All of a tree but its annotations."""
    yield tree
    for name, value in ast.iter_fields(tree):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _running(child)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in _running(tree) if isinstance(node, ast.Name)}


def _hinted(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - _names(tree)


def _attributes(tree: ast.AST, module: str) -> set[str]:
    """Names of methods and fields that are read, but for those of other libraries' modules."""
    return {
        node.attr
        for node in _running(tree)
        if isinstance(node, ast.Attribute)
        and not (isinstance(node.value, ast.Name) and isinstance(resolve(module, node.value.id), str))
    }


@cache
def _text(module: str) -> str:
    return inspect.getsource(importlib.import_module(module))


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_text(module))
