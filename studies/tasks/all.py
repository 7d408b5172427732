"""All synthetic tasks, by their names in links."""

from __future__ import annotations

from dataclasses import replace

from studies.tasks.lines import adding, remainders, repeating, rewriting
from studies.tasks.parity import PARITIES
from studies.tasks.sources import brackets, markov
from studies.tasks.task import Task

SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijk"  # for the numbers from 0 to 46
MODULUS = len(SIGNS)  # a prime
LETTERS = "abcdefgh"

_ALL = (
    rewriting("copy", "Copy", "Write the characters once more.", LETTERS, 8, lambda q: range(len(q))),
    rewriting(
        "reverse", "Reverse", "Write the characters backwards.", LETTERS, 8, lambda q: range(len(q))[::-1]
    ),
    rewriting(
        "sort",
        "Sort",
        "Write the characters in alphabetical order.",
        LETTERS,
        8,
        lambda q: sorted(range(len(q)), key=lambda i: q[i]),
        alike=True,
    ),
    repeating(
        "repeat", "Repeat", "Find where the pattern restarts and continue it.", "abcdefghijklmnop", 5, 9, 24
    ),
    adding("addition", "Addition", "Write the sum, first digit first.", 3, backwards=False),
    adding(
        "addition_reversed", "Addition, ones first", "Write the sum, last digit first.", 3, backwards=True
    ),
    brackets("brackets", "Brackets", "Close every bracket, the last one opened first.", ("()", "[]"), 8),
    remainders("modular", "Modular addition", f"Add on a {MODULUS}-hour clock.", SIGNS, held_out=0.35),
    markov("markov", "Markov source", "Two characters decide what can follow.", "abcdef"),
)

TASKS: dict[str, Task] = {task.name: task for task in _ALL}
ALOUD = "parity_aloud"
# With the one whose model is shipped for its heads, and that is raced beside others (PARITIES).
MODELLED = TASKS | {ALOUD: replace(PARITIES[ALOUD], title="Parity, step by step")}
