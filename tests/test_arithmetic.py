"""Numbers on a screen are computed in engine/, where a test holds them: no sentence of a page works one out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCREEN = [path for folder in ("ui", "pages") for path in sorted((ROOT / folder).rglob("*.py"))]
REDUCES = {"sum", "mean", "std", "prod", "cumsum", "argmax", "argmin", "exp", "nanmin", "nanmax", "nanmean"}
REDUCES_ARRAYS = {"min", "max"}  # as methods; as functions they choose the place of a label


def reductions(tree: ast.AST) -> list[str]:
    """What an f-string reduces or raises in its braces.

    >>> reductions(ast.parse("f'{x.sum():.2f} {max(a, b)} {x.max()} {math.exp(a)}'"))
    ['x.sum()', 'x.max()', 'math.exp(a)']
    """
    found = []
    for string in (node for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)):
        for call in (node for node in ast.walk(string.value) if isinstance(node, ast.Call)):
            method = isinstance(call.func, ast.Attribute)
            name = getattr(call.func, "attr" if method else "id", "")
            if name in REDUCES or (method and name in REDUCES_ARRAYS):
                found.append(ast.unparse(call))
    return found


@pytest.mark.parametrize("path", SCREEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_works_out_its_numbers(path: Path) -> None:
    assert reductions(ast.parse(path.read_text("utf-8"))) == []
