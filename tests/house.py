"""The map of the tree in docs/architecture.md, made from the tree: `python -m tests.house` writes it anew."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.test_source import TOPICS

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
WIDTH = 24
SHOWN = (
    "engine",
    "studies",
    "ui",
)  # their modules and packages; of the packages in DEEP what lies in them, too
DEEP = ("studies/weights", "studies/lab")


def summary(path: Path) -> str:
    """The first sentence of a module's docstring, in one line."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")


def lines(folder: Path, depth: int = 1) -> list[str]:
    """A line for each module and package of a folder, packages first."""
    rows = []
    for path in sorted(folder.iterdir(), key=lambda p: (p.is_file(), p.name)):
        package = path / "__init__.py"
        if package.exists():
            rows.append(f"{'  ' * depth}{path.name}/".ljust(WIDTH) + summary(package))
            if path.relative_to(ROOT).as_posix() in DEEP:
                rows += [row for row in lines(path, depth + 1) if row.split()[0].endswith("/")]
        elif path.suffix == ".py" and path.name != "__init__.py":
            rows.append(f"{'  ' * depth}{path.name}".ljust(WIDTH) + summary(path))
    return [row.rstrip() for row in rows]


def house() -> str:
    """The trees of the folders SHOWN, each with its first sentence."""
    blocks = ["\n".join([f"{name}/", *lines(ROOT / name)]) for name in SHOWN]
    return "```\n" + "\n".join(blocks) + "\n```"


def topics() -> str:
    """The topics of studies/ and those that each may import, a line for each."""
    return "```\n" + "\n".join(f"{name:{WIDTH}}{others}" for name, others in TOPICS.items()) + "\n```"


def updated(text: str) -> str:
    """The document with both maps as they are now, each between its two comments."""
    for name, block in (("house", house()), ("topics", topics())):
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        text = before + start + block + "\n" + end + after
    return text


if __name__ == "__main__":
    ARCHITECTURE.write_text(updated(ARCHITECTURE.read_text("utf-8")), "utf-8")
