"""Code exercises as notebooks, each from one source in exercises/sources: Markdown with Python.

    python -m studies.exercises.notebooks        writes exercises/*.ipynb anew

A block opens with ```python and one word: `stub` is what a student gets, `check` what must hold, `solution`,
at the end, one way to do it; without a word it is code that is simply there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "exercises"
NAMES = (
    "round-trip", "bpe-merge", "pe-heatmap", "schemes", "block", "gpt", "tying", "sampling", "cache",
    "without-the-mask", "gpt2-weights", "nanogpt",
)  # fmt: skip
_BLOCK = re.compile(r"^```python ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST = """\
# Run this first. It takes the Glassformer folder around this notebook, else the installed package, else it
# installs PACKAGE, as in Colab: the path or the address of a wheel.
import importlib.util
import subprocess
import sys
from pathlib import Path

PACKAGE = ""
here = Path.cwd()
root = next((folder for folder in (here, *here.parents) if (folder / "engine" / "model.py").is_file()), None)
if root:
    sys.path.insert(0, str(root))
else:
    if not importlib.util.find_spec("glassformer"):
        if not PACKAGE:
            raise SystemExit("Write the path or the address of Glassformer's wheel into PACKAGE, above.")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", PACKAGE], check=True)
    import glassformer.engine  # from now on `import engine` gives the same modules"""
SOLVED = (
    "## One solution\nThis is folded. Open it when your own passes, or when you are stuck; run it, then the"
    " checks."
)


@dataclass(frozen=True)
class Cell:
    """A cell. `kind` is `text`, or the word of a block: `stub`, `check`, `solution`, or ''."""

    kind: str
    source: str


def source_of(name: str) -> str:
    return (FOLDER / "sources" / f"{name}.md").read_text("utf-8")


def title_of(name: str) -> str:
    return source_of(name).partition("\n")[0].removeprefix("# ")


def cells(source: str) -> list[Cell]:
    r"""Splits a source into texts and blocks, in order.

    >>> [(cell.kind, cell.source) for cell in cells("# A\n```python stub\nx = 1\n```\n")]
    [('text', '# A'), ('stub', 'x = 1')]
    """
    result, last = [], 0
    for match in _BLOCK.finditer(source):
        result.append(Cell("text", source[last : match.start()].strip()))
        result.append(Cell(match[1], match[2].rstrip()))
        last = match.end()
    result.append(Cell("text", source[last:].strip()))
    return [cell for cell in result if cell.source]


def stub_of(name: str) -> str:
    """Returns the code that a student completes."""
    return "\n\n\n".join(cell.source for cell in cells(source_of(name)) if cell.kind == "stub")


def counts(name: str) -> tuple[int, int]:
    """Counts (functions and classes to write, cells that check them)."""
    kinds = [cell.kind for cell in cells(source_of(name))]
    return len(re.findall(r"^(?:def|class) ", stub_of(name), re.MULTILINE)), kinds.count("check")


def task_of(name: str) -> str:
    """Returns the introduction: the text before the first code, without its title."""
    return cells(source_of(name))[0].source.partition("\n")[2].strip()


def notebook(name: str) -> str:
    """Returns the notebook (nbformat 4.5) as text; the same source gives the same text."""
    title, *rest = cells(source_of(name))
    ordered = [title, Cell("", FIRST)]
    for cell in rest:
        ordered += [Cell("text", SOLVED), cell] if cell.kind == "solution" else [cell]
    made = {
        "cells": [_cell(place, part) for place, part in enumerate(ordered)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _cell(number: int, cell: Cell) -> dict[str, object]:
    source = cell.source.splitlines(keepends=True)
    shared: dict[str, object] = {"id": f"cell-{number}", "source": source}
    if cell.kind == "text":
        return {"cell_type": "markdown", "metadata": {}, **shared}
    folded = {"jupyter": {"source_hidden": True}} if cell.kind == "solution" else {}
    return {"cell_type": "code", "execution_count": None, "metadata": folded, "outputs": [], **shared}


def main() -> None:
    for name in NAMES:
        (FOLDER / f"{name}.ipynb").write_text(notebook(name), "utf-8")


if __name__ == "__main__":
    main()
