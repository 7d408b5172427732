"""Parity, answered in three ways: at once, after as many dots, or with the running parity written out.

The parity of bits is 1 where an odd number of them is 1. It hangs on every bit at once, so no part of the
question gives a hint of it; written out, each step needs one bit and the step before. A scratchpad helps: Nye
et al. 2021 and Wei et al. 2022 (chain of thought); dots in its place are Pfau et al. 2024; why a
Transformer learns parity step by step and not at once, Wies et al. 2023 and Kim and Suzuki 2024.
"""

from __future__ import annotations

import math
import random
from itertools import accumulate
from operator import xor

from studies.tasks.lines import ARROW
from studies.tasks.task import Sources, Task

BITS = 16
ZERO, ONE, DOT = "0", "1", "."


def running_parity(bits: str) -> str:
    """Returns the parity of the first bit, of the first two, and so on; the last one is that of all.

    >>> running_parity("0110")
    '0100'
    """
    return "".join(str(parity) for parity in accumulate(map(int, bits), xor))


def _asks(typed: str, count: int) -> str:
    """Returns the bits of what somebody typed; nothing where they are not as many as that."""
    bits = typed.partition(ARROW)[0].replace(" ", "")
    return bits if len(bits) == count and set(bits) <= {ZERO, ONE} else ""


def parity(name: str, title: str, rule: str, count: int, *, dots: bool = False, aloud: bool = False) -> Task:
    """Makes a task: `count` random bits, an arrow, and their parity. With `dots`, count - 1 dots stand before
    it, which are given; `aloud`, the count - 1 running parities, which the model writes and is taught.

    An answer is right where its last bit is, whatever was written before.
    """
    filler = DOT * (count - 1) if dots else ""

    def question(bits: str) -> str:
        return bits + ARROW + filler

    given = len(question(ZERO * count))

    def answer(line: str) -> str:
        parities = running_parity(line[:count])
        return parities if aloud else parities[-1]

    def draw(draws: random.Random, _: int) -> str:
        asked = question("".join(draws.choices((ZERO, ONE), k=count)))
        return asked + answer(asked)

    length = given + (count if aloud else 1) + 1

    def right(line: str) -> bool:
        bits = _asks(line[:count], count)
        known = bool(bits) and len(line) == length - 1 and line.startswith(question(bits))
        return known and line[-1] == running_parity(bits)[-1]

    def sources(line: str) -> Sources:
        """Returns each symbol's sources: its bit and the parity before it; at once, all bits."""
        if not aloud:
            return (tuple(range(count)),)
        return tuple((i, given + i - 1) if i else (0,) for i in range(count))

    def asks(typed: str) -> str | None:
        bits = _asks(typed, count)
        return question(bits) if bits else None

    return Task(
        name=name,
        title=title,
        rule=rule,
        alphabet="".join(sorted({ZERO, ONE, ARROW, *filler})),
        length=length,
        given=given,
        entropies=(*[math.log(2)] * count, *[0.0] * (length - count)),
        draw=draw,
        right=right,
        answer=answer,
        sources=sources,
        form=f"{count} bits, each 0 or 1",
        asks=asks,
        key=lambda line: line[:count],
        answers_only=True,
    )


_ALL = (
    parity("parity_at_once", "At once", "Is the number of ones odd? Write 1 or 0.", BITS),
    parity(
        "parity_dots", "With dots", "Write dots, then 1 where the number of ones is odd.", BITS, dots=True
    ),
    parity(
        "parity_aloud", "Chain of thought", "Write the parity of the first bit, of two, ...", BITS, aloud=True
    ),
)
PARITIES: dict[str, Task] = {task.name: task for task in _ALL}
