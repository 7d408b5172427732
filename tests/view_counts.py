"""What a view costs who reads it: files, lines, names that wander. `python -m tests.view_counts` prints the table.

Counted on the tree it is run in (one that lacks it can be named: `python -m tests.view_counts FOLDER`), but for the last row,
which draws Attention > Heads here with another text and counts what is entered.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BY_KIND = re.compile(r"(words|figures)\w*\.py")
DECLARED = {"View", "view_of_parts"}  # what makes a view
Spot = tuple[Path, str]  # a module, and a name that it defines


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def lines(paths: list[Path]) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


class Room:
    """The modules of a page: what they define, and which of it leads where."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.modules = {
            path.relative_to(root).with_suffix("").as_posix().replace("/", "."): path
            for path in sorted(folder.glob("*.py"))
        }
        self.defined = {path: dict(_definitions(tree(path))) for path in self.modules.values()}
        self.imported = {path: dict(self._imports(path)) for path in self.modules.values()}

    def _imports(self, path: Path) -> Iterator[tuple[str, Spot]]:
        """Name here -> what it means there; an empty name for a whole module."""
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    name = alias.asname or alias.name
                    if (whole := self.modules.get(f"{node.module}.{alias.name}")) is not None:
                        yield name, (whole, "")
                    elif node.module in self.modules:
                        yield name, (self.modules[node.module], alias.name)

    def meant(self, path: Path, node: ast.AST) -> Spot | None:
        """What a name, or a name in a module, stands for in this room."""
        if isinstance(node, ast.Name):
            return (path, node.id) if node.id in self.defined[path] else self.imported[path].get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            there = self.imported[path].get(node.value.id)
            return (there[0], node.attr) if there is not None and not there[1] else None
        return None

    def reached(self, path: Path, start: ast.AST) -> set[Spot]:
        """Every definition of the room that a piece of code leads to."""
        found: set[Spot] = set()
        todo = [(path, start)]
        while todo:
            path, node = todo.pop()
            for part in ast.walk(node):
                spot = self.meant(path, part)
                if spot is None or spot in found or spot[1] not in self.defined[spot[0]]:
                    continue
                found.add(spot)
                todo.append((spot[0], self.defined[spot[0]][spot[1]]))
        return found

    def views(self) -> Iterator[tuple[str, set[Path]]]:
        """Each view -> its files: modules that it leads to, and their texts."""
        for path in self.modules.values():
            for node in ast.walk(tree(path)):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in DECLARED and node.args:
                    files = {path} | {spot[0] for spot in self.reached(path, node)}
                    texts = {text for one in files if (text := one.with_suffix(".md")).is_file()}
                    yield f"{path.parent.name}: {ast.unparse(node.args[0])}", files | texts


def _definitions(module: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        yield part.id, node


def wandering(paths: list[Path]) -> list[str]:
    """Public functions that are used once, in another file."""
    defined = {
        (path, node.name)
        for path in paths
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    used: Counter[str] = Counter()
    at_home: set[tuple[Path, str]] = set()
    for path in paths:
        for node in ast.walk(tree(path)):
            name = getattr(node, "id", None) or (node.attr if isinstance(node, ast.Attribute) else None)
            if name is not None:
                used[name] += 1
                at_home.add((path, name))
    return [
        f"{path}:{name}" for path, name in sorted(defined) if used[name] == 1 and (path, name) not in at_home
    ]


def sentences(paths: list[Path]) -> int:
    """Lines of Python that hold a string of three words or more, docstrings apart."""
    found: set[tuple[Path, int]] = set()
    for path in paths:
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree(path)):
            if id(node) in documented or not isinstance(getattr(node, "value", None), str):
                continue
            if isinstance(node, ast.Constant) and len(re.findall(r"[A-Za-z]{2,}", str(node.value))) >= 3:
                found |= {(path, line) for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    return len(found)


def table(root: Path) -> dict[str, Any]:
    """Returns what can be counted without running anything, row -> number."""
    python, texts = sorted((root / "pages").rglob("*.py")), sorted((root / "pages").rglob("*.md"))
    rooms = [Room(page.parent, root) for page in sorted((root / "pages").glob("*/*/page.py"))]
    files = sorted(len(found) for room in rooms for _, found in room.views())
    by_kind = [path for path in python if BY_KIND.fullmatch(path.name)]
    cached = sum(path.read_text("utf-8").count("@st.cache_") for path in python)
    return {
        "files of a view in pages/, median": statistics.median(files),
        "files of a view in pages/, nine tenths": files[int(0.9 * (len(files) - 1))],
        "words*.py and figures*.py, files": len(by_kind),
        "words*.py and figures*.py, lines": lines(by_kind),
        "Python in pages/, lines": lines(python),
        "with texts, lines": lines(python) + lines(texts),
        "public functions used once, in another file": len(wandering(python)),
        "st.cache_* in pages/": cached,
        "sentences in Python of pages/, lines": sentences(python),
    }


def entered() -> dict[str, int]:
    """Returns what one change of text on Attention > Heads enters: files and functions of ours."""
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "pages/inside/attention/page.py"), default_timeout=600).run()
    app.text_area(key="text").set_value("ROMEO:\nBut, soft!").run()
    spots: set[tuple[str, str]] = set()
    folders = tuple(f"{ROOT}/{name}/" for name in ("engine", "studies", "runs", "ui", "pages"))

    def enter(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folders) and not code.co_name.startswith("<"):
            spots.add((code.co_filename, code.co_qualname))

    threading.setprofile(enter)
    app.text_area(key="text").set_value("JULIET:\nO Romeo").run()
    threading.setprofile(None)
    assert not app.exception
    return {
        "files entered by a change of text on Attention > Heads": len({file for file, _ in spots}),
        "functions entered": len(spots),
    }


if __name__ == "__main__":
    where = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    for row, number in (table(where) | (entered() if where == ROOT else {})).items():
        print(f"{row:58} {number:>7,}")
