"""Tasks with one right answer: a question drawn at random, a rule, and what follows from it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from studies.tasks.task import Sources, Task

ARROW = ">"
# of a question: from which of its places each letter of the answer comes
Order = Callable[[str], Sequence[int]]


def rewriting(
    name: str, title: str, rule: str, letters: str, count: int, order: Order, alike: bool = False
) -> Task:
    """Makes a task: `count` random letters, an arrow, and the same letters in another order. `alike`: any
    position that holds the letter serves as its source, since the rule looks at letters and not at positions.
    """

    def answer(line: str) -> str:
        return "".join(line[i] for i in order(line[:count]))

    def draw(draws: random.Random, _: int) -> str:
        question = "".join(draws.choices(letters, k=count)) + ARROW
        return question + answer(question)

    def right(line: str) -> bool:
        question = line[:count]
        known = len(question) == count and set(question) <= set(letters)
        return known and line == question + ARROW + answer(question)

    def sources(line: str) -> Sources:
        question = line[:count]
        if not alike:
            return tuple((i,) for i in order(question))
        return tuple(tuple(j for j in range(count) if question[j] == question[i]) for i in order(question))

    def asks(typed: str) -> str | None:
        question = typed.partition(ARROW)[0]
        return question + ARROW if len(question) == count and set(question) <= set(letters) else None

    return Task(
        name=name,
        title=title,
        rule=rule,
        alphabet="".join(sorted({*letters, ARROW})),
        length=2 * count + 2,
        given=count + 1,
        entropies=(*[math.log(len(letters))] * count, *[0.0] * (count + 2)),
        draw=draw,
        right=right,
        answer=answer,
        sources=sources,
        form=f"{count} characters from {letters[0]} to {letters[-1]}",
        asks=asks,
        key=lambda line: line[:count],
    )


def repeating(
    name: str, title: str, rule: str, letters: str, shortest: int, longest: int, length: int
) -> Task:
    """Makes a task: a piece of `shortest` to `longest` different letters, each length equally likely, over
    and over until the line is full. The answer begins where the piece is certain to have begun again.
    """
    given = longest + 1

    def again(line: str) -> int:
        """Returns the position at which the first letter comes again; 0 where it does not."""
        return line.find(line[0], 1, given) if line else 0

    def answer(line: str) -> str:
        period = again(line)
        return "".join(line[i % period] for i in range(given, length))

    def draw(draws: random.Random, _: int) -> str:
        period = draws.randint(shortest, longest)
        piece = draws.sample(letters, period)
        return "".join(piece[i % period] for i in range(length))

    def right(line: str) -> bool:
        period = again(line)
        known = shortest <= period <= longest and set(line) <= set(letters) and len(line) == length
        return (
            known
            and len(set(line[:period])) == period
            and all(line[i] == line[i - period] for i in range(period, length))
        )

    def sources(line: str) -> Sources:
        period = again(line)
        return tuple(tuple(range(i - period, -1, -period)) for i in range(given, length))

    def asks(typed: str) -> str | None:
        known = shortest <= len(typed) <= longest and set(typed) <= set(letters)
        return (typed * given)[:given] if known and len(set(typed)) == len(typed) else None

    def entropy(position: int) -> float:
        """Returns the nats of the letter at a position: new while the piece goes on, then its first one."""
        if position < shortest:
            return math.log(len(letters) - position)
        if position > longest:
            return 0.0
        goes_on = (longest - position + 1) / (longest - shortest + 1)  # it had not ended before this position
        ends = 1 / (longest - position + 1)  # ... and ends here
        new = 1 - ends
        surprise = -ends * math.log(ends) - (new * math.log(new / (len(letters) - position)) if new else 0.0)
        return goes_on * surprise

    return Task(
        name=name,
        title=title,
        rule=rule,
        alphabet="".join(sorted(letters)),
        length=length + 1,
        given=given,
        entropies=(*map(entropy, range(length)), 0.0),
        draw=draw,
        right=right,
        answer=answer,
        sources=sources,
        form=f"{shortest} to {longest} different characters from {min(letters)} to {max(letters)}",
        asks=asks,
        key=lambda line: line[: again(line)],
    )


def adding(name: str, title: str, rule: str, digits: int, backwards: bool) -> Task:
    """Makes a task: two numbers of one to so many digits, each length equally likely, and their sum with one
    digit more, all filled up with zeros; the sum's digits in order or, `backwards`, the ones first.

    Short numbers are what it is learned from: of two random digits each alone says nothing of the last digit
    of their sum, but beside a zero it says all.
    """
    given, ten = 2 * digits + 2, "0123456789"

    def answer(line: str) -> str:
        total = f"{int(line[:digits]) + int(line[digits + 1 : 2 * digits + 1]):0{digits + 1}d}"
        return total[::-1] if backwards else total

    def draw(draws: random.Random, _: int) -> str:
        first, second = (draws.randrange(10 ** draws.randint(1, digits)) for _ in range(2))
        question = f"{first:0{digits}d}+{second:0{digits}d}="
        return question + answer(question)

    def right(line: str) -> bool:
        first, second = line[:digits], line[digits + 1 : 2 * digits + 1]
        known = len(first) == len(second) == digits and set(first + second) <= set(ten)
        return known and line == f"{first}+{second}={answer(line)}"

    def sources(line: str) -> Sources:
        """Returns the two digits of each column; for the sum's first, a carry, those of the highest."""
        columns = range(digits + 1) if backwards else range(digits, -1, -1)  # counted from the ones
        highest = (min(column, digits - 1) for column in columns)
        return tuple((digits - 1 - column, 2 * digits - column) for column in highest)

    def asks(typed: str) -> str | None:
        parts = typed.partition("=")[0].replace(" ", "").split("+")
        if len(parts) != 2 or not all(0 < len(part) <= digits and set(part) <= set(ten) for part in parts):
            return None
        return f"{parts[0]:0>{digits}}+{parts[1]:0>{digits}}="

    def zeros(count: int) -> float:
        """Returns the probability that a number begins with `count` zeros."""
        return sum(10.0 ** -max(0, count - position) for position in range(digits)) / digits

    def entropy(position: int) -> float:
        """Returns the nats of a number's digit: after a digit other than zero all ten are equally likely."""
        so_far, zero = zeros(position), zeros(position + 1) / zeros(position)
        after_zeros = -zero * math.log(zero) - (1 - zero) * math.log((1 - zero) / 9)
        return (1 - so_far) * math.log(10) + so_far * after_zeros

    number = [entropy(position) for position in range(digits)]
    return Task(
        name=name,
        title=title,
        rule=rule,
        alphabet="".join(sorted(ten + "+=")),
        length=3 * digits + 4,
        given=given,
        entropies=(*number, 0.0, *number, 0.0, *[0.0] * (digits + 2)),
        draw=draw,
        right=right,
        answer=answer,
        sources=sources,
        form=f"two numbers below {10**digits:,} with a + between them",
        asks=asks,
        key=lambda line: "+".join(sorted((line[:digits], line[digits + 1 : 2 * digits + 1]))),
    )


def _sign(typed: str, signs: str) -> str:
    """The sign of a number, as it is or written in digits; '' for none.

    >>> _sign("12", "0123456789ABC"), _sign("C", "0123456789ABC"), _sign("13", "0123456789ABC")
    ('C', 'C', '')
    """
    if len(typed) == 1:
        return typed if typed in signs else ""
    number = int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 4 else len(signs)
    return signs[number] if number < len(signs) else ""


def remainders(name: str, title: str, rule: str, signs: str, held_out: float) -> Task:
    """Makes a task: a + b modulo len(signs), every pair once, the answer's loss alone (Power et al. 2022)."""
    modulus = len(signs)

    def answer(line: str) -> str:
        return signs[(signs.index(line[0]) + signs.index(line[2])) % modulus]

    def problem(a: str, b: str) -> str:
        return f"{a}+{b}={answer(f'{a}+{b}')}"

    def right(line: str) -> bool:
        known = len(line) == 5 and line[0] in signs and line[2] in signs
        return known and line == problem(line[0], line[2])

    def asks(typed: str) -> str | None:
        parts = typed.partition("=")[0].replace(" ", "").split("+")
        terms = [_sign(part, signs) for part in parts]
        return f"{terms[0]}+{terms[1]}=" if len(terms) == 2 and all(terms) else None

    single = math.log(modulus)
    return Task(
        name=name,
        title=title,
        rule=rule,
        alphabet="".join(sorted(signs + "+=")),
        length=6,
        given=4,
        entropies=(single, 0.0, single, 0.0, 0.0, 0.0),
        draw=lambda draws, _: problem(*draws.choices(signs, k=2)),
        right=right,
        answer=answer,
        sources=lambda line: ((0, 2),),
        form=f"two numbers below {modulus} with a + between them",
        asks=asks,
        key=lambda line: "+".join(sorted((line[0], line[2]))),
        everything=lambda: [problem(a, b) for a in signs for b in signs],
        held_out=held_out,
        answers_only=True,
    )
