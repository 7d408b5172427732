"""The source as the tests that read it see it: each file read and parsed once."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from ui import content

ROOT = Path(__file__).resolve().parents[1]


def files(*folders: str) -> list[Path]:
    """Returns the Python files of folders of the repository, sorted within each.

    >>> name(files("engine", "ui")[0])
    'engine/__init__.py'
    """
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


APP = ROOT / "app.py"
ENGINE = files("engine", "studies", "runs")  # what has no screen
SCREEN = [*files("ui", "pages"), APP]
EVERYTHING = [*ENGINE, *SCREEN]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def text(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


def scripts() -> list[Path]:
    """Returns the browser's modules, without those of others."""
    there = (path for folder in ("ui/assets", "pages") for path in (ROOT / folder).rglob("*.js"))
    return sorted(path for path in there if path.parent.name != "vendor")


def shown() -> Iterator[tuple[str, str]]:
    """Yields every string with a blank in it that a screen may show, with its file: of pages, ui, the lab, presets,
    cards, errors and the run service without docstrings; of texts, TOML files, courses and the browser's modules.
    """
    folders = ("pages", "ui", "studies/lab", "engine/presets", "studies/costs/cards", "runs")
    for path in [*files(*folders), ROOT / "engine" / "errors.py"]:
        documented = {id(node) for node in map(_docstring, nodes(path)) if node is not None}
        for node in nodes(path):
            if isinstance(node, ast.Constant) and " " in str(node.value) and id(node) not in documented:
                yield f"{name(path)}:{node.lineno}", str(node.value)
    for path in sorted(each for folder in folders for each in (ROOT / folder).rglob("*.md")):
        sheet = content.Sheet.read(text(path))
        said = [sheet.title, sheet.question, *(section.text for section in sheet.sections.values())]
        yield from ((name(path), each) for each in said)
    for path in sorted(each for folder in folders for each in (ROOT / folder).rglob("*.toml")):
        yield from ((name(path), each) for each in _leaves(tomllib.loads(text(path))))
    for path in sorted((ROOT / "scenes").glob("*.yaml")):
        yield from ((name(path), each) for each in _leaves(yaml.safe_load(text(path))))
    for path in scripts():
        code = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", text(path), flags=re.DOTALL)
        yield from ((name(path), each) for each in re.findall(r"[\"`]([^\"`\n]* [^\"`\n]*)[\"`]", code))


def _docstring(node: ast.AST) -> ast.Constant | None:
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    documents = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    if documents and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return first.value
    return None


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
