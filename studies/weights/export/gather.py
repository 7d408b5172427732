"""Source code by what it names: from a few definitions to all of the engine's that they need, and no more.

Every name that the code reads is followed to where the engine defines it. A class takes those methods and
fields along that are read by name somewhere in what was taken; what a part says of itself for figures and
ledgers is read by nothing here, and stays behind.

The syntax tree is what this needs. A template of each part would be a second engine, kept equal by hand, and
faults are parts, too. Whole classes bring what they say of themselves, half as long again; whole modules are
longer still. At run time an object knows its module, but a constant does not, and nothing knows its imports.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterable, Iterator
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
        gathered, begun = Gathered(read=set(read)), set[Definition]()
        for root in roots:
            _visit(root, gathered, given, begun)
        if gathered.read == read:
            break
        read = gathered.read
    names = [name for _, name in gathered.order]
    if twice := [name for name in names if names.count(name) > 1]:
        raise PretrainedError(f"two parts of the engine are called {twice[0]}: one file cannot hold both")
    gathered.types -= {*names, *given}
    return gathered


def _visit(wanted: Definition, gathered: Gathered, given: frozenset[str], begun: set[Definition]) -> None:
    if wanted in begun:
        return
    begun.add(wanted)
    module, node = wanted[0], _definition(wanted)
    if isinstance(node, ast.ClassDef):
        members = _members(node, gathered.read)
        node = ast.ClassDef(node.name, node.bases, node.keywords, members, node.decorator_list)
    gathered.read |= _attributes(node, module)
    running = _names(_running(node))
    for name in sorted(_names(ast.walk(node))):
        target = resolve(module, name)
        if isinstance(target, str):
            gathered.imports.add(target)
        elif target is not None and name not in running:
            gathered.types.add(name)
        elif target is not None and name not in given:
            _visit(target, gathered, given, begun)
    gathered.order.append(wanted)


def source(wanted: Definition, read: set[str]) -> str:
    """Returns a definition as it stands in its module, without the members that nothing reads."""
    lines, node = _text(wanted[0]).splitlines(), _definition(wanted)
    first = min(each.lineno for each in (node, *getattr(node, "decorator_list", []))) - 1
    if not isinstance(node, ast.ClassDef):
        return "\n".join(lines[first : node.end_lineno])
    members, text, end = _members(node, read), lines[first : node.lineno], node.lineno
    for each in node.body:
        begin, end = end, each.end_lineno or end
        text += lines[begin:end] if each in members else []
    return "\n".join(text if members else [*text, "    pass"])


@cache
def resolve(module: str, name: str) -> Definition | str | None:
    """Returns where the engine defines what a module calls by a name; or the statement that imports it from
    another library; None for Python's own, and for what is bound inside a function.
    """
    if any(name in _bound(node) for node in _tree(module).body):
        return module, name
    for node in ast.walk(_tree(module)):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            if (alias.asname or alias.name.partition(".")[0]) != name:
                continue
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS):
                return resolve(node.module or "", alias.name)
            start = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
            return f"{start}import {ast.unparse(alias)}"
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


def _members(node: ast.ClassDef, read: set[str]) -> list[ast.stmt]:
    """Returns what a class takes along: its docstring, the members that are read, all fields of a record."""
    always = (ast.Expr, ast.AnnAssign) if "NamedTuple" in _names(node.bases) else ast.Expr
    return [each for each in node.body if isinstance(each, always) or _is_read(each, read)]


def _is_read(node: ast.stmt, read: set[str]) -> bool:
    if isinstance(node, ast.FunctionDef):
        called = node.name in read or node.name.startswith("__") or node.name == "forward"
        return called and not _is_abstract(node)
    return any(name in read for name in _bound(node))


def _is_abstract(node: ast.FunctionDef) -> bool:
    """True for a method that subclasses must write: it raises NotImplementedError."""
    last = node.body[-1]
    return isinstance(last, ast.Raise) and getattr(last.exc, "id", "") == "NotImplementedError"


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """All of a tree but its annotations."""
    yield tree
    hints = (getattr(tree, "annotation", None), getattr(tree, "returns", None))
    for child in ast.iter_child_nodes(tree):
        if child not in hints:
            yield from _running(child)


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name)}


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
