"""Sources with more than one right continuation: balanced brackets, and a Markov chain."""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate

import numpy as np

from studies.tasks.task import Sources, Task


@cache
def ways(kinds: int, depth: int, left: int) -> int:
    """Counts the ways in which `left` brackets of so many kinds can end a word that has `depth` open.

    >>> ways(1, 0, 6), ways(2, 0, 4), ways(2, 1, 2)
    (5, 8, 0)
    """
    if depth < 0 or depth > left:
        return 0
    if left == 0:
        return 1
    return kinds * ways(kinds, depth + 1, left - 1) + ways(kinds, depth - 1, left - 1)


@lru_cache(maxsize=1024)
def opening(kinds: int, depth: int, left: int) -> float:
    """Returns the probability that the next of `left` brackets opens, where every word is equally likely."""
    return kinds * ways(kinds, depth + 1, left - 1) / ways(kinds, depth, left)


def bracket_entropies(kinds: int, size: int) -> list[float]:
    """Returns the nats of each bracket of a word given those before: (size,)."""
    chance, entropies = {0: 1.0}, []
    for left in range(size, 0, -1):
        total, after = 0.0, defaultdict[int, float](float)
        for depth, p in chance.items():
            up = opening(kinds, depth, left)
            total -= p * sum(q * math.log(q / of) for q, of in ((up, kinds), (1 - up, 1)) if q)
            after[depth + 1] += p * up
            after[depth - 1] += p * (1 - up)
        chance = {depth: p for depth, p in after.items() if p}
        entropies.append(total)
    return entropies


def partners(word: str, kinds: Sequence[str]) -> dict[int, int] | None:
    """Maps each closing position to its opening one; None where a bracket has no partner of its kind.

    >>> partners("[()]", ("()", "[]")), partners("(]", ("()", "[]"))
    ({2: 1, 3: 0}, None)
    """
    closes = {kind[1]: kind[0] for kind in kinds}
    waiting: list[int] = []
    opened = {}
    for i, bracket in enumerate(word):
        if bracket not in closes:
            waiting.append(i)
        elif waiting and word[waiting[-1]] == closes[bracket]:
            opened[i] = waiting.pop()
        else:
            return None
    return None if waiting else opened


def brackets(name: str, title: str, rule: str, kinds: tuple[str, ...], pairs: int) -> Task:
    """Makes a task: balanced words of `pairs` brackets; any second half that closes them is right."""
    size, n = 2 * pairs, len(kinds)

    def draw(draws: random.Random, _: int) -> str:
        word, open_ = "", ""
        for left in range(size, 0, -1):
            if draws.random() < opening(n, len(open_), left):
                kind = kinds[draws.randrange(n)]
                word, open_ = word + kind[0], open_ + kind[1]
            else:
                word, open_ = word + open_[-1], open_[:-1]
        return word

    def right(line: str) -> bool:
        known = len(line) == size and set(line) <= set("".join(kinds))
        return known and partners(line, kinds) is not None

    def sources(line: str) -> Sources:
        opened = partners(line, kinds) or {}
        return tuple((opened[i],) if i in opened else () for i in range(pairs, size))

    def asks(typed: str) -> str | None:
        """Returns the question of a typed text; None where its open brackets cannot all be closed."""
        closing = {kind[0]: kind[1] for kind in kinds}
        open_ = ""
        for bracket in typed:
            if bracket in closing:
                open_ += closing[bracket]
            elif open_ and open_[-1] == bracket:
                open_ = open_[:-1]
            else:
                return None
        return typed if len(typed) == pairs else None

    return Task(
        name=name,
        title=title,
        rule=rule,
        alphabet="".join(sorted("".join(kinds))),
        length=size + 1,
        given=pairs,
        entropies=(*bracket_entropies(n, size), 0.0),
        draw=draw,
        right=right,
        sources=sources,
        form=f"{pairs} brackets that start a balanced string",
        asks=asks,
        key=lambda line: line[:pairs],
    )


# What can follow two letters, likeliest first; every two letters have one of these.
FOLLOWING = ((0.9, 0.07, 0.03), (0.7, 0.2, 0.1), (0.5, 0.3, 0.2))


def chain(letters: str, seed: int = 0) -> np.ndarray:
    """Returns p(next | last but one, last), (letters, letters, letters): three may follow any two."""
    draws, n = random.Random(f"chain-{seed}"), len(letters)
    p = np.zeros((n, n, n))
    for first in range(n):
        for second in range(n):
            p[first, second, draws.sample(range(n), 3)] = draws.choice(FOLLOWING)
    return p


def stationary(p: np.ndarray) -> np.ndarray:
    """Returns the frequency of each pair of neighbouring letters in a long text: (letters, letters)."""
    n = len(p)
    pairs = np.full((n, n), 1 / n**2)
    for _ in range(2000):
        pairs = np.einsum("ab,abc->bc", pairs, p)
    return pairs / pairs.sum()


def entropy(p: np.ndarray) -> np.ndarray:
    """Returns the entropy over the last axis, in nats."""
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)


def markov(name: str, title: str, rule: str, letters: str, seed: int = 0) -> Task:
    """Makes a stream in which two letters decide what can follow. The floor is its entropy rate (Shannon
    1948, section 7), but for the first letter of a window, before which only one letter is known.
    """
    p = chain(letters, seed)
    pairs = stationary(p)
    after_one = np.einsum("ab,abc->bc", pairs, p)
    after_one = after_one / after_one.sum(1, keepdims=True)
    first = float((pairs.sum(0) * entropy(after_one)).sum())
    rate = float((pairs * entropy(p)).sum())

    def draw(draws: random.Random, count: int) -> str:
        sums = [[list(accumulate(map(float, row))) for row in table] for table in p]
        last = len(letters) - 1
        a, b = divmod(draws.choices(range(len(letters) ** 2), pairs.ravel().tolist())[0], len(letters))
        states = [a, b]
        while len(states) < count:
            total = sums[a][b]  # from here on as Random.choices does it, in a third of its time
            a, b = b, bisect(total, draws.random() * total[-1], 0, last)
            states.append(b)
        return "".join(letters[i] for i in states[:count])

    def right(text: str) -> bool:
        if not set(text) <= set(letters):
            return False
        ids = [letters.index(c) for c in text]
        return all(p[a, b, c] > 0 for a, b, c in zip(ids, ids[1:], ids[2:], strict=False))

    def answer(text: str) -> str:
        a, b = (letters.index(c) for c in text[-2:])
        return letters[int(p[a, b].argmax())]

    return Task(
        name=name,
        title=title,
        rule=rule,
        alphabet="".join(sorted(letters)),
        length=1,
        given=0,
        entropies=(first, rate),
        draw=draw,
        right=right,
        answer=answer,
    )
