"""The source as the tests that read it see it: each file read and parsed once."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def files(*folders: str) -> list[Path]:
    """Returns the Python files of folders of the repository, sorted within each.

    >>> name(files("engine", "ui")[0])
    'engine/__init__.py'
    """
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


APP = ROOT / "app.py"
ENGINE = files("engine")
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
