"""Regular expressions as automata over characters, and lifted to tokens (Willard & Louf 2023).

A state is what may still come; after a character it is the expression's derivative (Brzozowski 1964). A text
ends with the first accepting state: no text of a grammar here begins another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from engine.errors import ConfigError

DEAD = -1  # the state of a text that nothing can save
ALPHABET = "\n" + "".join(map(chr, range(32, 127)))


class Letter(NamedTuple):
    characters: frozenset[str]


class Then(NamedTuple):
    first: Node
    rest: Node


class Either(NamedTuple):
    ways: frozenset[Node]


class Empty(NamedTuple):
    """The empty text."""


Node = Letter | Then | Either | Empty
NOTHING = Either(frozenset())  # matches no text at all


def then(first: Node, rest: Node) -> Node:
    if NOTHING in (first, rest):
        return NOTHING
    if isinstance(first, Then):
        return Then(first.first, then(first.rest, rest))
    return rest if isinstance(first, Empty) else Then(first, rest)


def either(nodes: Iterable[Node]) -> Node:
    flat = frozenset(way for node in nodes for way in (node.ways if isinstance(node, Either) else (node,)))
    return next(iter(flat)) if len(flat) == 1 else Either(flat)


@lru_cache(10_000)
def accepts(node: Node) -> bool:
    """True if the empty text matches."""
    match node:
        case Then(first, rest):
            return accepts(first) and accepts(rest)
        case Either(ways):
            return any(map(accepts, ways))
    return isinstance(node, Empty)


@lru_cache(100_000)
def after(node: Node, character: str) -> Node:
    """Returns what may come after a character: the derivative."""
    match node:
        case Letter(characters):
            return Empty() if character in characters else NOTHING
        case Then(first, rest):
            ways = [then(after(first, character), rest)]
            return either([*ways, after(rest, character)] if accepts(first) else ways)
        case Either(ways):
            return either(after(way, character) for way in ways)
    return NOTHING


class Parser:
    """Reads literals, classes such as [a-z], groups (a|b), and ? {m} {m,n}; a backslash takes the next
    character as it is. Raises ConfigError.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0

    def whole(self) -> Node:
        node = self.alternatives()
        if self.at < len(self.pattern):
            raise ConfigError("pattern", self.pattern, f"cannot be read from character {self.at} on")
        return node

    def take(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1]

    def sees(self, signs: str) -> bool:
        return self.at < len(self.pattern) and self.pattern[self.at] in signs

    def until(self, sign: str) -> str:
        end = self.pattern.find(sign, self.at)
        if end < 0:
            raise ConfigError("pattern", self.pattern, f"lacks a {sign}")
        begin, self.at = self.at, end + 1
        return self.pattern[begin:end]

    def alternatives(self) -> Node:
        ways = [self.sequence()]
        while self.sees("|"):
            self.take()
            ways.append(self.sequence())
        return either(ways)

    def sequence(self) -> Node:
        nodes: list[Node] = []
        while self.at < len(self.pattern) and not self.sees("|)"):
            nodes.append(self.counted(self.single()))
        result: Node = Empty()
        for node in reversed(nodes):
            result = then(node, result)
        return result

    def single(self) -> Node:
        sign = self.take()
        if sign == "(":
            node = self.alternatives()
            self.until(")")
            return node
        if sign == "[":
            signs = self.until("]")
            spans = [
                range(ord(signs[at]), ord(signs[at + 2]) + 1)
                for at in range(len(signs) - 2)
                if signs[at + 1] == "-"
            ]
            return Letter(frozenset(signs.replace("-", "")) | {chr(n) for span in spans for n in span})
        return Letter(frozenset(self.take() if sign == "\\" else sign))

    def counted(self, node: Node) -> Node:
        if not self.sees("?{"):
            return node
        sign = self.take()
        least, _, most = ("0", "", "1") if sign == "?" else self.until("}").partition(",")
        result: Node = Empty()
        for turn in range(int(most or least), 0, -1):
            result = then(node, result)
            if turn > int(least):
                result = either([Empty(), result])
        return result


class TokenGrammar:
    """A regular expression over the tokens of a vocabulary: `words` are their texts by id, empty for one
    that stands for none. Raises ConfigError for a pattern that cannot be read, or that they cannot write.
    """

    start = 0

    def __init__(self, pattern: str, words: Sequence[str]) -> None:
        self.words = words
        single = {word for word in words if len(word) == 1}
        alphabet = [c for c in ALPHABET if c in single]
        nodes = [Parser(pattern).whole()]
        known, steps = {nodes[0]: 0}, []
        for node in nodes:  # which grows meanwhile
            row = {}
            for character in alphabet if not accepts(node) else ():
                if (to := after(node, character)) != NOTHING:
                    if to not in known:
                        known[to] = len(nodes)
                        nodes.append(to)
                    row[character] = known[to]
            steps.append(row)
        self.ends = frozenset(state for state, node in enumerate(nodes) if accepts(node))
        alive = set(self.ends)
        while more := {n for n, row in enumerate(steps) if n not in alive and alive & set(row.values())}:
            alive |= more
        self._steps = [{c: to for c, to in row.items() if to in alive} for row in steps]
        self._allowed: dict[int, np.ndarray] = {}
        if self.start not in alive:
            raise ConfigError("pattern", pattern, "cannot be written with the tokens of this model")

    def read(self, state: int, text: str) -> tuple[int, int]:
        """Returns the state after more text, read no further than to an end, and how many characters that
        took; DEAD where it leaves the grammar.
        """
        for at, character in enumerate(text):
            if state in self.ends:
                return state, at
            if (state := self._steps[state].get(character, DEAD)) == DEAD:
                return DEAD, at
        return state, len(text)

    @cached_property
    def _by_first(self) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = defaultdict(list)
        for token, word in enumerate(self.words):
            groups[word[:1]].append(token)
        return groups

    def allowed(self, state: int) -> np.ndarray:
        """Returns the ids of the tokens that may come in a state, and the state after each: (token, 2)."""
        if state not in self._allowed:
            ids = [token for c in self._steps[state] for token in self._by_first.get(c, ())]
            read = [(token, *self.read(state, self.words[token])) for token in ids]
            rows = [(token, to) for token, to, used in read if to != DEAD and used == len(self.words[token])]
            self._allowed[state] = np.array(rows, dtype=np.int64).reshape(-1, 2)
        return self._allowed[state]
