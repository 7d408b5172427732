"""The facts of a view that its page of the site is made of, and the file that holds those of all views."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".site"  # ignored by git
FACTS, PICTURES = WORK / "views.json", WORK / "pictures"


@dataclass(frozen=True)
class Link:
    """A link into the app: its title, what it belongs to, and the address below the app's own."""

    title: str
    of: str
    address: str


@dataclass(frozen=True)
class Facts:
    """A view as it opens. `answer` and the values of `words` are Markdown as the app shows it, `code` full
    names of functions and classes with the names that document them, `terms` ids of the glossary.
    """

    section: str
    page: str  # its title
    url: str  # of the page; nothing for Home
    id: str
    title: str
    address: str
    question: str
    answer: str
    model: str
    words: Mapping[str, str]
    code: Mapping[str, str]
    scenes: tuple[Link, ...]
    exercises: tuple[Link, ...]
    terms: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.url or 'home'}/{self.id}"


def write(facts: Sequence[Facts], path: Path = FACTS) -> None:
    """Writes the facts of all views."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(each) for each in facts], indent=1, ensure_ascii=False), "utf-8")


def read(path: Path = FACTS) -> list[Facts]:
    """Returns the facts of all views, in the order of the menu. Raises FileNotFoundError before `write`."""
    return [
        Facts(
            **entry
            | {name: tuple(Link(**link) for link in entry[name]) for name in ("scenes", "exercises")}
            | {"terms": tuple(entry["terms"])}
        )
        for entry in json.loads(path.read_text("utf-8"))
    ]
