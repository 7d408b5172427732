"""Worked examples that fade: a table of named numbers, of which more and more are left to the reader: none, a
number, its row, all of them. Each is checked as an exercise is, and has three hints: a nudge, a suggestion,
the way (Renkl and Atkinson, 2003).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from studies.exercises.exercise import Mistake, Verdict, check, distinct
from studies.exercises.forms import Form

Level = Literal["nothing", "number", "row", "all"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class Given:
    """A number, or a text, that is shown at every level."""

    label: str
    text: str


@dataclass(frozen=True)
class Cell:
    """A number that can be left to the reader, with what the usual mistakes make of it. `hints` are a nudge,
    a suggestion, and the way to it with its numbers. All texts are Markdown.
    """

    label: str
    form: Form
    answer: Any
    mistakes: tuple[Mistake, ...]
    hints: tuple[str, str, str]

    @classmethod
    def of(
        cls, label: str, form: Form, answer: Any, mistakes: Iterable[Mistake], hints: tuple[str, str, str]
    ) -> Cell:
        """Returns a cell with those mistakes that can be told apart."""
        return cls(label, form, answer, distinct(form, answer, mistakes), hints)

    @property
    def text(self) -> str:
        """The right answer as it is shown."""
        return self.form.text(self.answer)


@dataclass(frozen=True)
class Row:
    """A step of the example: its title and what it gives."""

    title: str
    cells: tuple[Cell | Given, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(cell.label for cell in self.cells)


@dataclass(frozen=True)
class Judgement:
    """Judges what was filled in: a verdict for each of the `blanks` that holds an answer, by its id."""

    blanks: Mapping[str, Cell]
    verdicts: Mapping[str, Verdict]

    @property
    def right(self) -> int:
        return sum(verdict.right for verdict in self.verdicts.values())

    @property
    def complete(self) -> bool:
        return self.right == len(self.blanks)

    @property
    def first_wrong(self) -> str | None:
        """The id of the first wrong answer: later ones often follow from it."""
        return next((id_ for id_, verdict in self.verdicts.items() if not verdict.right), None)

    @property
    def at(self) -> str | None:
        """The id of the first blank that is not right yet: hints are about it."""
        return next((id_ for id_ in self.blanks if not self._right(id_)), None)

    def _right(self, id_: str) -> bool:
        return id_ in self.verdicts and self.verdicts[id_].right


@dataclass(frozen=True)
class WorkedExample:
    """A worked example: what is `given` (Markdown), and its steps. A cell has the id "row-column", counted
    from 0; `number` is the one that is left to the reader first, and `row` the index of the row that is next.
    `result` says what the last step comes to.
    """

    given: str
    rows: tuple[Row, ...]
    number: str
    row: int
    result: str = ""

    @cached_property
    def cells(self) -> Mapping[str, Cell]:
        """All that can be left to the reader, by id."""
        return {
            f"{at}-{column}": cell
            for at, row in enumerate(self.rows)
            for column, cell in enumerate(row.cells)
            if isinstance(cell, Cell)
        }

    @property
    def digest(self) -> str:
        """Eight digits for these numbers: an answer to others is none to these."""
        said = repr((self.given, [(cell.label, cell.answer) for cell in self.cells.values()]))
        return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    def name(self, id_: str) -> str:
        """Returns the step and the label of a cell (Markdown)."""
        return f"{self.rows[int(id_.partition('-')[0])].title}, {self.cells[id_].label}"

    def blanks(self, level: Level) -> Mapping[str, Cell]:
        """Returns the cells that are blank at a level, in their order."""
        if level == "number":
            return {self.number: self.cells[self.number]}
        if level == "row":
            return {id_: cell for id_, cell in self.cells.items() if id_.startswith(f"{self.row}-")}
        return self.cells if level == "all" else {}

    def shown(self, level: Level, complete: bool) -> tuple[Row, ...]:
        """Returns the rows that are shown: what follows from a blank appears once all are right."""
        last = max((int(id_.partition("-")[0]) for id_ in self.blanks(level)), default=len(self.rows))
        return self.rows if complete else self.rows[: last + 1]

    def judge(self, level: Level, answers: Mapping[str, object]) -> Judgement:
        """Judges the answers to a level's blanks, by id; an empty one is none yet."""
        blanks = self.blanks(level)
        given = {id_: answers.get(id_) for id_ in blanks}
        return Judgement(
            blanks,
            {id_: check(blanks[id_], text) for id_, text in given.items() if str(text or "").strip()},
        )
