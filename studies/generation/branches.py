"""One prompt, many continuations: what a model wrote, and what a reader wanted instead, as a tree of tokens.

Every token below the prompt is either the one that the model drew there or one that was picked in its place.
The draw at a depth uses that depth's number of the seed, whatever stands before: so a pick changes only what
follows it, and a path's picks and its length are enough to write it again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch

from engine.config import SampleConfig
from engine.errors import ShapeError
from engine.model import Transformer
from engine.sample.decoder import Held
from engine.sample.generate import Drawn, steps
from engine.sample.stages import warp
from engine.training.numerics import perplexity
from studies.generation.outcome import likeliest_ids
from studies.generation.single_row import Products

SHOWN = 8  # alternatives that are kept with each token
Pick = tuple[int, int]  # (depth, token)


@dataclass(frozen=True)
class Written:
    """One token of the tree: `p` is the model's own probability, `q` what the settings made of it."""

    index: int
    parent: int | None  # index; None directly after the prompt
    depth: int  # tokens after the prompt up to this one: the first has 1
    token: int
    drawn: int  # what the model drew here
    begin: int  # first position of the whole text that the model saw
    log_p: float  # natural logarithm of this token's p; NaN where the model has diverged
    q: float
    # (token, p, q), the largest p first; this token and the drawn one always among them
    alternatives: tuple[tuple[int, float, float], ...]

    @property
    def picked(self) -> bool:
        """True if a reader chose the token instead of the drawn one."""
        return self.token != self.drawn


@dataclass(frozen=True)
class Tree:
    """`nodes`, in the order in which they were written, keep their places; `gone` are those deleted."""

    prompt: tuple[int, ...]
    nodes: tuple[Written, ...] = ()
    gone: frozenset[int] = field(default_factory=frozenset)

    def __len__(self) -> int:
        return len(self.nodes) - len(self.gone)

    def has(self, index: int | None) -> bool:
        """True if the text can go on from there: a token not deleted, or None, the prompt's end."""
        return index is None or (0 <= index < len(self.nodes) and index not in self.gone)

    @cached_property
    def _below(self) -> dict[int | None, tuple[Written, ...]]:
        result: dict[int | None, list[Written]] = {}
        for node in self.nodes:
            if node.index not in self.gone:
                result.setdefault(node.parent, []).append(node)
        return {parent: tuple(nodes) for parent, nodes in result.items()}

    def children(self, index: int | None) -> tuple[Written, ...]:
        """Returns the tokens that follow one, oldest first."""
        return self._below.get(index, ())

    def child(self, index: int | None, token: int) -> Written | None:
        return next((node for node in self.children(index) if node.token == token), None)

    def leaves(self) -> tuple[int, ...]:
        """Returns where the branches end, oldest first."""
        return tuple(
            node.index for node in self.nodes if node.index not in self.gone and node.index not in self._below
        )

    def path(self, index: int | None) -> tuple[Written, ...]:
        nodes: list[Written] = []
        while index is not None:
            nodes.append(self.nodes[index])
            index = self.nodes[index].parent
        return tuple(reversed(nodes))

    def tokens(self, index: int | None) -> tuple[int, ...]:
        return self.prompt + tuple(node.token for node in self.path(index))

    def picks(self, index: int | None) -> tuple[Pick, ...]:
        return tuple((node.depth, node.token) for node in self.path(index) if node.picked)

    def end(self, index: int | None) -> int | None:
        """Returns the end of the oldest branch that goes through a token."""
        while below := self.children(index):
            index = below[0].index
        return index

    def delete(self, leaf: int) -> Tree:
        """Returns the tree without the tokens of this branch alone. Raises ShapeError for no leaf."""
        if leaf not in self.leaves():
            raise ShapeError(f"no branch ends at token {leaf}")
        gone = set(self.gone)
        place: int | None = leaf
        while place is not None and all(node.index in gone for node in self.children(place)):
            gone.add(place)
            place = self.nodes[place].parent
        return replace(self, gone=frozenset(gone))


def grow(
    tree: Tree,
    model: Transformer,
    sampling: SampleConfig,
    after: int | None,
    count: int,
    products: Products | None = None,
    *,
    stop: Collection[int] = (),
    held: Held | None = None,
    seconds: float = math.inf,
) -> tuple[Tree, int | None]:
    """Draws `count` tokens after a token (None: after the prompt), fewer at a token of `stop` or after so
    many `seconds`: (tree, the last one's index). Tokens already there are walked over. `products` and `held`
    are as in `steps`. Raises ShapeError for a token that is not in the tree.
    """
    until = time.monotonic() + seconds
    _check(tree, after)
    nodes, place = list(tree.nodes), after
    ids = tree.tokens(after)
    written = len(ids) - len(tree.prompt)
    for record in steps(
        model, ids, count, sampling, written=written, products=products, stop=stop, held=held
    ):
        known = tree.child(place, record.token) if place is None or place < len(tree.nodes) else None
        if known is None:
            known = _written(record, record.token, sampling, ids, len(nodes), place, len(tree.prompt))
            nodes.append(known)
        place, ids = known.index, (*ids, known.token)
        if time.monotonic() > until:
            break
    return replace(tree, nodes=tuple(nodes)), place


def pick(
    tree: Tree,
    model: Transformer,
    sampling: SampleConfig,
    after: int | None,
    token: int,
    *,
    held: Held | None = None,
) -> tuple[Tree, int]:
    """Puts a token after another (None: after the prompt), whatever the model would draw: (tree, its index).
    Raises ShapeError for a place that is not in the tree, or a token that is not in the vocabulary.
    """
    _check(tree, after)
    if not 0 <= token < model.config.vocab_size:
        raise ShapeError(f"token {token} is not in the vocabulary of {model.config.vocab_size}")
    if (known := tree.child(after, token)) is not None:
        return tree, known.index
    ids = tree.tokens(after)
    record = next(steps(model, ids, 1, sampling, written=len(ids) - len(tree.prompt), held=held))
    node = _written(record, token, sampling, ids, len(tree.nodes), after, len(tree.prompt))
    return replace(tree, nodes=(*tree.nodes, node)), node.index


def follow(
    tree: Tree,
    model: Transformer,
    sampling: SampleConfig,
    picks: Iterable[Pick],
    length: int,
    most: int,
    *,
    held: Held | None = None,
) -> tuple[Tree, int | None, bool]:
    """Writes a branch again from its picks, at most `most` tokens now: (tree, where it is, whether done)."""
    wanted = dict(picks)
    place: int | None = None
    depth = 0
    while depth < length:
        if depth + 1 in wanted:
            known = tree.child(place, wanted[depth + 1])
        else:
            known = next((node for node in tree.children(place) if not node.picked), None)
        if known is None:
            if most <= 0:
                return tree, place, False
            run = next((d for d in range(depth + 1, length + 1) if d in wanted), length + 1) - depth - 1
            if run:
                count = min(run, most)
                tree, place = grow(tree, model, sampling, place, count, held=held)
            else:
                count = 1
                tree, place = pick(tree, model, sampling, place, wanted[depth + 1], held=held)
            depth, most = depth + count, most - count
        else:
            place, depth = known.index, known.depth
    return tree, place, True


@dataclass(frozen=True)
class Likelihood:
    """How probable a text is to the model itself: temperature 1, no token removed."""

    tokens: int
    total: float  # sum of the tokens' natural log-probabilities

    @property
    def nats(self) -> float:
        """-total / tokens: nats per token, the loss on this text. NaN for no tokens."""
        return -self.total / self.tokens if self.tokens else math.nan

    @property
    def perplexity(self) -> float:
        """e^nats: among as many equally likely tokens the text would be as surprising."""
        return perplexity(self.nats)


def likelihood(path: Sequence[Written]) -> Likelihood:
    """Multiplies the probabilities of a path's tokens, each given all before it."""
    return Likelihood(len(path), sum(node.log_p for node in path))


def ended_by(parts: Sequence[bytes], stop: str) -> int | None:
    """Returns how many tokens it takes until a text holds `stop`; None when it never does, or `stop` is
    empty. parts: each token's bytes.

    >>> ended_by([b"To", b" be", b", o", b"r not"], ", or"), ended_by([b"To", b" be"], "x")
    (4, None)
    """
    wanted = stop.encode("utf-8", "surrogatepass")
    at = b"".join(parts).find(wanted) if wanted else -1
    if at < 0:
        return None
    ends = np.cumsum([len(part) for part in parts])
    return int(np.searchsorted(ends, at + len(wanted))) + 1


def _check(tree: Tree, after: int | None) -> None:
    if not tree.prompt or not tree.has(after):
        raise ShapeError(
            f"token {after} is not in the tree"
            if tree.prompt
            else "a text needs at least one token to go on from"
        )


def _written(
    record: Drawn,
    token: int,
    sampling: SampleConfig,
    before: Sequence[int],
    index: int,
    parent: int | None,
    prompt: int,
) -> Written:
    """Extracts from a record the numbers of `token`, of the drawn token and of the likeliest."""
    previous = torch.tensor(before) if sampling.repetition_penalty != 1 else None
    log_p = record.logits.double().log_softmax(-1).numpy()
    if math.isfinite(float(log_p.max())):
        p = np.exp(log_p)
        q = warp(record.logits, sampling, previous).double().softmax(-1).numpy()
    else:  # the model has diverged
        p = q = np.zeros(len(log_p))
        log_p = np.full(len(log_p), math.nan)
    likely = likeliest_ids(p, SHOWN).tolist()
    likely += [i for i in dict.fromkeys((token, record.token)) if i not in likely]
    alternatives = tuple((i, float(p[i]), float(q[i])) for i in likely)
    depth, own, warped = record.position + 1 - prompt, float(log_p[token]), float(q[token])
    return Written(index, parent, depth, token, record.token, record.begin, own, warped, alternatives)
