"""Addition, answered in three ways: at once, after as many dots, or after every column's carry and digit; and
with a calculator that somebody else runs.

The first digit of a sum depends on every column, through the carries; written out, each column needs its two
digits and the carry before. Long addition with its carries is the example of Nye et al. 2021 ("Show Your
Work: Scratchpads for Intermediate Computation with Language Models"); dots in its place are Pfau et al. 2024.

The carry stands before the digit, as in the number that a column comes to. In the other order, tried with
three seeds, one had not learned two of its columns when the other two had long been right in all.

The call of a tool inside a text is Schick et al. 2023 ("Toolformer: Language Models Can Teach Themselves to
Use Tools"): `[12+34]`, and behind it in parentheses what the tool gave.
"""

from __future__ import annotations

import math
import random

from studies.tasks.parity import DOT
from studies.tasks.task import Sources, Task

COLUMNS = 6
TEN, PLUS, EQUALS = "0123456789", "+", "="
CARRIES = "⁰¹"  # a carry of 0 or 1, as it is written above a column
CALL, GIVEN_BACK = "[]", "()"  # around what a tool is called with, and around its result


def column_steps(first: str, second: str) -> str:
    """Returns each column's carry and digit, from the last column, of two numbers of one length.

    >>> column_steps("285", "047")
    '¹2¹3⁰3'
    """
    steps, carry = [], 0
    for a, b in zip(reversed(first), reversed(second), strict=True):
        carry, digit = divmod(int(a) + int(b) + carry, 10)
        steps.append(f"{CARRIES[carry]}{digit}")
    return "".join(steps)


def _sum_sources(columns: int) -> Sources:
    """Returns the places that each digit of a sum at once depends on: its column and those to its right."""
    firsts = (0, *range(columns))  # the sum's first digit is the carry of the first column
    return tuple((*range(i, columns), *range(columns + 1 + i, 2 * columns + 1)) for i in firsts)


def _step_sources(columns: int) -> Sources:
    """Returns the places that each step and digit of a sum is made of: its column and the carry."""
    given = 2 * columns + 2
    steps: list[tuple[int, ...]] = []
    for i in range(columns):
        column = (columns - 1 - i, 2 * columns - i, *((given + 2 * i - 2,) if i else ()))
        steps += [column, column]
    last = given + 2 * columns - 2  # the carry of the first column
    return (*steps, (last,), *((last + 1 - 2 * i,) for i in range(columns)))


def tool_call(first: str, second: str) -> str:
    """Returns the call of a calculator, as a model writes it.

    >>> tool_call("12", "34")
    '[12+34]'
    """
    return f"{CALL[0]}{first}{PLUS}{second}{CALL[1]}"


def long_addition(
    name: str,
    title: str,
    rule: str,
    columns: int,
    *,
    dots: bool = False,
    aloud: bool = False,
    calls: bool = False,
) -> Task:
    """Makes a task: two numbers of `columns` random digits, and their sum with one digit more, first digit
    first. With `dots`, 2 * columns dots stand before it, which are given; `aloud`, every column's carry and
    digit, which the model writes and is taught; if it `calls`, a call of a calculator and its result, which
    the model is taught as all text.

    An answer is right where its sum is, whatever was written before.
    """
    filler = DOT * (2 * columns) if dots else ""
    terms = 2 * columns + 2  # characters of "first+second="
    given = terms + len(filler)
    written = 2 * columns if aloud else 3 * columns + 6 if calls else 0
    length = given + written + columns + 2  # the sum and the line break
    read = _step_sources(columns) if aloud else _sum_sources(columns)
    signs = CALL + GIVEN_BACK if calls else ""

    def numbers(line: str) -> tuple[str, str]:
        return line[:columns], line[columns + 1 : terms - 1]

    def question(first: str, second: str) -> str:
        return f"{first}{PLUS}{second}{EQUALS}{filler}"

    def total(line: str) -> str:
        first, second = map(int, numbers(line))
        return f"{first + second:0{columns + 1}d}"

    def answer(line: str) -> str:
        steps = column_steps(*numbers(line)) if aloud else ""
        call = tool_call(*numbers(line)) + total(line).join(GIVEN_BACK) if calls else ""
        return steps + call + total(line)

    def draw(draws: random.Random, _: int) -> str:
        asked = question(*("".join(draws.choices(TEN, k=columns)) for _ in range(2)))
        return asked + answer(asked)

    def right(line: str) -> bool:
        first, second = numbers(line)
        known = len(first) == len(second) == columns and set(first + second) <= set(TEN)
        begins = known and len(line) == length - 1 and line.startswith(question(first, second))
        return begins and line[given + written :] == total(line)

    def asks(typed: str) -> str | None:
        parts = typed.partition(EQUALS)[0].replace(" ", "").split(PLUS)
        if len(parts) != 2 or not all(0 < len(part) <= columns and set(part) <= set(TEN) for part in parts):
            return None
        return question(*(part.zfill(columns) for part in parts))

    digit = math.log(10)
    return Task(
        name=name,
        title=title,
        rule=rule,
        alphabet="".join(sorted({*TEN, PLUS, EQUALS, *filler, *(CARRIES if aloud else ""), *signs})),
        length=length,
        given=given,
        entropies=(*[digit] * columns, 0.0, *[digit] * columns, *[0.0] * (length - terms + 1)),
        draw=draw,
        right=right,
        answer=answer,
        sources=None if calls else lambda line: read,
        form=f"two numbers below {10**columns:,} with a + between them",
        asks=asks,
        key=lambda line: PLUS.join(sorted(numbers(line))),
        answers_only=True,
    )


_ALL = (
    long_addition("sum_at_once", "At once", "Write the sum.", COLUMNS),
    long_addition("sum_dots", "With dots", "Write dots, then the sum.", COLUMNS, dots=True),
    long_addition(
        "sum_aloud", "Chain of thought", "Write carries and digits, then the sum.", COLUMNS, aloud=True
    ),
)
LONG_ADDITIONS: dict[str, Task] = {task.name: task for task in _ALL}
CALLING = long_addition(
    "sum_called", "With a calculator", "Call a calculator, then write the sum.", COLUMNS, calls=True
)
