"""Texts beside the modules of pages: each that is asked for is there and gets exactly its fields, in all branches, and each
that is there is asked for. And what a page says stands in its text: no sentence is written in a module that has one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import pytest

from pages.input.positions import turns
from pages.inside.feedforward import contexts
from pages.models.reference import export
from tests import source
from ui import content

VIEWS = [path for path in source.files("pages", "ui") if path.with_suffix(".md").is_file()]
SENTENCE = re.compile(r"(?:[A-Za-z’'-]{2,}[ ,;:]+){3,}[A-Za-z’'-]{2,}")  # four words in a row
# Names of parts and of code, which are no sentences.
NO_SENTENCES = {export.OPEN, contexts.STYLE, turns.BAR}


class Asked(NamedTuple):
    """A place that fills a section in: its possible names, `*` for what is only known later, and its fields."""

    line: int
    names: tuple[str, ...]
    fields: frozenset[str]
    open: bool  # with **fields


def names_of(node: ast.expr, function: ast.AST | None) -> list[str]:
    """The names of sections that an expression can be. Raises ValueError for one of which nothing is known."""
    match node:
        case ast.Constant(value=str(name)):
            return [name]
        case ast.IfExp():
            return names_of(node.body, function) + names_of(node.orelse, function)
        case ast.JoinedStr():
            parts = (one.value if isinstance(one, ast.Constant) else "*" for one in node.values)
            return ["".join(map(str, parts))]
        case ast.Subscript(value=ast.Dict(values=values)):
            return [name for value in values for name in names_of(value, function)]
        case ast.Name(id=wanted) if function is not None:
            given = [
                one.value
                for one in ast.walk(function)
                if isinstance(one, ast.Assign)
                and any(isinstance(target, ast.Name) and target.id == wanted for target in one.targets)
            ]
            if given:
                return [name for value in given for name in names_of(value, function)]
    raise ValueError(f"line {node.lineno}: which sections can {ast.unparse(node)} be?")


def variants_of(path: Path, view: ast.Call) -> list[str]:
    """The variants that a view's text may have: all that its function of that name returns."""
    given = {keyword.arg: keyword.value for keyword in view.keywords}
    if isinstance(given.get("variant"), ast.Constant):
        return ["", *names_of(given["variant"], None)]
    functions = {node.name: node for node in source.nodes(path) if isinstance(node, ast.FunctionDef)}
    function = functions.get(getattr(given.get("variant"), "id", ""))
    returned = (
        (node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value)
        if function
        else ()
    )
    return ["", *(name for value in returned for name in names_of(value, function))]


def asked(path: Path) -> Iterator[Asked]:
    """Every place of a module that fills a section of its text in."""
    inside = {
        inner: outer
        for outer in source.nodes(path)
        if isinstance(outer, ast.FunctionDef)
        for inner in ast.walk(outer)
    }
    for node in source.nodes(path):
        match node:
            case ast.Call(func=ast.Name(id="TEXT"), args=[name]):
                names, keywords = names_of(name, inside.get(node)), node.keywords
            case ast.Subscript(value=ast.Name(id="TEXT"), slice=name):
                names, keywords = names_of(name, inside.get(node)), []
            case ast.Call(func=ast.Attribute(value=ast.Name(id="Words"), attr="of"), args=[_, *variant]):
                names = [
                    f"{word} {each}".strip()
                    for each in (names_of(variant[0], inside.get(node)) if variant else [""])
                    for word in content.WORDS
                ]
                keywords = [ast.keyword(None)]  # they are given by name, if at all
            case ast.Call(func=ast.Attribute(value=ast.Name(id="Guess"), attr="of"), args=given):
                own = len(given) > 5 or any(each.arg == "choices" for each in node.keywords)
                names = ["reply *", "right *", "right", *([] if own else ["choice *"])]
                keywords = [ast.keyword(None)]  # the numbers of what is right
            case ast.Call(func=ast.Name(id="View"), args=[_, ast.Name(id="TEXT"), *_]):
                sections = (*content.WORDS, "question")
                names = [f"{each} {one}".strip() for one in variants_of(path, node) for each in sections]
                keywords = [ast.keyword(None)]  # likewise
            case _:
                continue
        fields = frozenset(keyword.arg for keyword in keywords if keyword.arg)
        yield Asked(node.lineno, tuple(names), fields, any(keyword.arg is None for keyword in keywords))


def fields_of(text: str) -> frozenset[str]:
    """
    >>> sorted(fields_of("{loss:.1f} at {heads} {heads:head|heads}"))
    ['heads', 'loss']
    """
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@pytest.mark.parametrize("path", VIEWS, ids=source.name)
def test_every_section_is_asked_for_and_gets_its_fields(path: Path) -> None:
    sheet = content.Sheet.read(path.with_suffix(".md").read_text("utf-8"))
    there = {name: fields_of(section.text) for name, section in sheet.sections.items()}
    used, wrong = set(), []
    for each in asked(path):
        found = {name for pattern in each.names for name in there if fnmatchcase(name, pattern)}
        missing = [p for p in each.names if not each.open and not any(fnmatchcase(n, p) for n in there)]
        wrong += [f"line {each.line}: there is no section {name!r}" for name in missing]
        used |= found
        if each.open:
            continue
        for name in found:
            if lacking := there[name] - each.fields:
                wrong.append(f"line {each.line}: {name!r} gets no {', '.join(sorted(lacking))}")
        if found and (spare := each.fields - set().union(*(there[name] for name in found))):
            wrong.append(f"line {each.line}: no section wants {', '.join(sorted(spare))}")
    wrong += [f"nobody asks for {name!r}" for name in there if name not in used]
    assert not wrong, f"{source.name(path)}\n" + "\n".join(wrong)


@pytest.mark.parametrize("path", VIEWS, ids=source.name)
def test_what_a_view_says_stands_in_its_text(path: Path) -> None:
    documented = {
        id(node.body[0].value)
        for node in source.nodes(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    said = [
        f"line {node.lineno}: {node.value!r}"
        for node in source.nodes(path)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documented
        and SENTENCE.search(node.value)
        and node.value not in NO_SENTENCES
    ]
    assert not said, f"{source.name(path)}\n" + "\n".join(said)


def test_lines_of_texts_are_short_enough_to_read() -> None:
    wrong = [
        f"{source.name(path)}: {line[:60]}"
        for folder in ("pages", "ui")
        for path in (source.ROOT / folder).rglob("*.md")
        for line in path.read_text("utf-8").splitlines()
        if len(line) > 120 and " " in line.strip()
    ]
    assert not wrong, "\n".join(wrong)
