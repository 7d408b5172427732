"""Guesses about tokens: the next merge, the pieces of a picture, the nearest row of the embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from studies.embeddings.token_map import nearest
from studies.guesses import Truth, closest
from studies.tokens.bpe_watch import Pair, Watched

CHOICES = 3


@dataclass(frozen=True)
class NextMerge:
    """The next merge: `pairs` offered, the right one at `right`, and their `counts` after this merge."""

    pairs: tuple[Pair, ...]
    counts: tuple[int | None, ...]
    right: int


def next_merge(seen: Watched, step: int) -> NextMerge | None:
    """Returns the pair merged after merge `step`, from 0, among the runners-up of `step`, or None."""
    merges = seen.tokenizer.merges
    if not 0 <= step < len(merges) - 1:
        return None
    now = merges[step + 1]
    after = {now.pair: now.count} | dict(seen.runners_up[step + 1])
    others = [pair for pair, _ in seen.runners_up[step] if pair != now.pair]
    if not others:
        return None
    offered = sorted([now.pair, *others[: CHOICES - 1]])  # by their ids, which tell nothing
    return NextMerge(tuple(offered), tuple(after.get(pair) for pair in offered), offered.index(now.pair))


def picture(text: str, encode: Callable[[str], Sequence[int]]) -> Truth | None:
    """Classifies the number of tokens of one emoji on the screen: "one", one per "character" (code point),
    one per "byte" of its UTF-8, or "other", the count itself.
    """
    result = len(encode(text))
    guesses = {"one": 1.0, "character": float(len(text)), "byte": float(len(text.encode("utf-8")))}
    named = next((name for name, guess in guesses.items() if guess == result), None)
    return closest(result, guesses if named else {"other": float(result)} | guesses, within=0.0)


@dataclass(frozen=True)
class Nearest:
    """A question about the nearest neighbour of `token`: `offered` ids, the nearest at `right`, and the
    `cosine` of each with it, in the same order. `names` say what each is: "nearest", "back" (the token from
    which one came), "beside" (the next in the list of ids), "farthest".
    """

    token: int
    offered: tuple[int, ...]
    names: tuple[str, ...]
    cosine: tuple[float, ...]
    right: int


def nearest_row(matrix: np.ndarray, token: int, met: np.ndarray) -> Nearest | None:
    """Asks for the nearest neighbour of `token`'s second neighbour among the rows `met`, or None."""
    if len(met) < 2 * CHOICES:
        return None
    other = int(nearest(matrix, token, met, 2)[0][-1])
    ids, cosines = nearest(matrix, other, met, len(met))
    order = [int(i) for i in ids]
    known = dict(zip(order, map(float, cosines), strict=True))
    places = [int(i) for i in met if int(i) != other]
    beside = min(places, key=lambda i: (abs(i - other), i))
    result: dict[int, str] = {}
    for each, name in ((order[0], "nearest"), (token, "back"), (beside, "beside"), (order[-1], "farthest")):
        if each in known and len(result) < CHOICES:
            result.setdefault(each, name)
    offered = tuple(sorted(result))
    right = offered.index(order[0])
    return Nearest(other, offered, tuple(result[i] for i in offered), tuple(known[i] for i in offered), right)
