"""The forms of answers: numbers, pieces of a word, one option, several options, steps in order.

Each form can `read` an answer (raising ExerciseError with a sentence), tell whether two values are the
`same`, whether they are so `near` that one answer could be both, and write a value as `text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from engine.errors import ExerciseError
from studies.exercises import reading

LETTERS = "ABCDEFGHIJKLMNOP"


@dataclass(frozen=True)
class Numbers:
    """`count` numbers (None: any), to `decimals` places; none are whole numbers."""

    count: int | None = 1
    decimals: int = 0
    unit: str = ""

    @property
    def ask(self) -> str:
        what = "one number" if self.count == 1 else "numbers separated by spaces"
        unit = f" in {self.unit}" if self.unit else ""
        places = f", to {self.decimals} decimal place{'s' * (self.decimals > 1)}" if self.decimals else ""
        return f"{what}{unit}{places}"

    def read(self, given: object) -> tuple[float, ...]:
        return reading.numbers(given, self.count, self.unit, whole=not self.decimals)

    def same(self, value: Any, other: Any) -> bool:
        """True if a given value is the wanted one, `other`."""
        return self._within(value, other, 1.0, other)

    def near(self, value: Any, other: Any) -> bool:
        return self._within(value, other, 2.5, (*value, *other))

    def rounds(self, given: object, wanted: Any) -> bool:
        """True if an answer, as it was written, is the wanted number in fewer decimals than are asked for.

        >>> Numbers(1, 3).rounds("1.0", (0.997,)), Numbers(1, 3).rounds("1.000", (0.997,))
        (True, False)
        """
        written = re.fullmatch(r"[^.]*\d(?:\.(\d*))?[^.\d]*", str(given))
        if self.count != 1 or not self.decimals or written is None:
            return False
        places = len(written[1] or "")
        return places < self.decimals and self.read(given)[0] == round(wanted[0], places)

    def _within(self, value: Any, other: Any, times: float, wanted: Any) -> bool:
        """Whole numbers are exact. Where others are wanted, one unit of the last place that is asked for is
        allowed, and a little: rounding on the way is no mistake.
        """
        if len(value) != len(other):
            return False
        whole = not self.decimals and not any(number % 1 for number in wanted)
        far = 0.0 if whole else 1.05 * times * 10 ** -(self.decimals or 2)
        return all(abs(a - b) <= far + 1e-9 * max(abs(a), abs(b)) for a, b in zip(value, other, strict=True))

    def text(self, value: Any) -> str:
        """
        >>> Numbers().text((1048576,)), Numbers(2, 2).text((0.5, -0.251))
        ('1,048,576', '[0.50, -0.25]')
        """
        comma = "," if self.count == 1 else ""  # in a list commas stand between the numbers
        each = [f"{number:{comma}.{self.decimals}f}" for number in value]
        result = each[0] if self.count == 1 else f"[{', '.join(each)}]"
        return f"{result} {self.unit}".strip()


@dataclass(frozen=True)
class Pieces:
    """The pieces of `word`, or an asked-for pair of none. `other` is the sentence for other pieces."""

    other: str
    word: str = ""
    ask: ClassVar[str] = "pieces separated by spaces"

    def read(self, given: object) -> tuple[str, ...]:
        return reading.pieces(given)

    def fault(self, pieces: tuple[str, ...]) -> str:
        """Returns a sentence about pieces that are not the wanted ones."""
        if self.word and "".join(pieces) != self.word:
            return f"Joined together, the pieces must spell `{self.word}`."
        if not self.word and len(pieces) != 2:
            return "A pair is two pieces: write a space between them."
        return self.other

    def same(self, value: Any, other: Any) -> bool:
        return tuple(value) == tuple(other)

    near = same

    def text(self, value: Any) -> str:
        return f"`{' '.join(value)}`"


@dataclass(frozen=True)
class Choice:
    """One of the options."""

    options: tuple[str, ...]
    ask: ClassVar[str] = "one of these"

    def read(self, given: object) -> str:
        if given not in self.options:
            raise ExerciseError("choose one of the answers, then press Check")
        return str(given)

    def same(self, value: Any, other: Any) -> bool:
        return bool(value == other)

    near = same

    def text(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class Pick:
    """Some of the options, in any order."""

    options: tuple[str, ...]
    ask: ClassVar[str] = "all that apply, and no others"

    def read(self, given: object) -> frozenset[str]:
        result = frozenset(given) if isinstance(given, list | tuple | set | frozenset) else frozenset()
        if not result or not result <= set(self.options):
            raise ExerciseError("choose one or more of the answers, then press Check")
        return result

    def same(self, value: Any, other: Any) -> bool:
        return frozenset(value) == frozenset(other)

    near = same

    def text(self, value: Any) -> str:
        return ", ".join(option for option in self.options if option in value)


@dataclass(frozen=True)
class Order:
    """Steps to put in order. `needs`: step -> the steps that must stand before it; a step that is not in it
    is a distractor, and `wrong` says why it has no place.
    """

    steps: tuple[str, ...]
    needs: Mapping[str, tuple[str, ...]]
    wrong: Mapping[str, str]

    @property
    def letters(self) -> str:
        return LETTERS[: len(self.steps)]

    @property
    def ask(self) -> str:
        return f"the letters of the {len(self.needs)} steps that are needed, in order"

    def letter(self, step: str) -> str:
        return LETTERS[self.steps.index(step)]

    def read(self, given: object) -> tuple[str, ...]:
        return tuple(self.steps[LETTERS.index(each)] for each in reading.letters(given, self.letters))

    def fault(self, steps: tuple[str, ...]) -> str:
        """Returns a sentence about a wrong order; '' for a proof."""
        for step in steps:
            if step not in self.needs:
                return f"Step {self.letter(step)} does not belong: {self.wrong[step]}"
        for place, step in enumerate(steps):
            late = next((each for each in self.needs[step] if each not in steps[:place]), None)
            if late is not None and late in steps:
                return f"Step {self.letter(step)} uses step {self.letter(late)}, which comes later."
        missing = len(self.needs) - len(steps)
        if missing:
            return f"So far so good, but {missing} {'step is' if missing == 1 else 'steps are'} missing."
        return ""

    def same(self, value: Any, other: Any) -> bool:
        """True for any order that the needs allow."""
        return value == other or not (self.fault(tuple(value)) or self.fault(tuple(other)))

    def near(self, value: Any, other: Any) -> bool:
        return bool(value == other)

    def text(self, value: Any) -> str:
        """Writes an order of steps as letters, as an answer is typed."""
        return " ".join(self.letter(step) for step in value)


Form = Numbers | Pieces | Choice | Pick | Order
