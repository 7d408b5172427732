"""Numbers on a screen are computed in engine/, where a test holds them: no sentence of a page works one out."""

import ast
from collections.abc import Iterable

from tests import source

REDUCES = {"sum", "mean", "std", "prod", "cumsum", "argmax", "argmin", "exp", "nanmin", "nanmax", "nanmean"}
REDUCES_ARRAYS = {"min", "max"}  # as methods; as functions they choose the place of a label


def reductions(nodes: Iterable[ast.AST]) -> list[tuple[int, str]]:
    """(line, call) of what f-strings reduce or raise in their braces.

    >>> reductions(ast.walk(ast.parse("f'{x.sum():.2f} {max(a, b)} {x.max()} {math.exp(a)}'")))
    [(1, 'x.sum()'), (1, 'x.max()'), (1, 'math.exp(a)')]
    """
    found = []
    for string in (node for node in nodes if isinstance(node, ast.FormattedValue)):
        for call in (node for node in ast.walk(string.value) if isinstance(node, ast.Call)):
            method = isinstance(call.func, ast.Attribute)
            name = getattr(call.func, "attr" if method else "id", "")
            if name in REDUCES or (method and name in REDUCES_ARRAYS):
                found.append((call.lineno, ast.unparse(call)))
    return found


def test_no_sentence_computes_its_numbers() -> None:
    wrong = [
        f"{source.name(path)}:{line} {call}"
        for path in source.SCREEN
        for line, call in reductions(source.nodes(path))
    ]
    assert not wrong, "\n".join(wrong)
