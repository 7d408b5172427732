"""Guesses about tokens: the next merge, the pieces of a picture, the nearest row of the embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.tokenizers.bpe_watch import Pair, Watched
from engine.lab.guesses.truth import Truth, closest
from engine.measure.embeddings.token_map import nearest

CHOICES = 3


@dataclass(frozen=True)
class NextMerge:
    """`pairs`: those that are offered, the one that is merged next among them at `right`; `counts` how often
    each stands after the merge that is shown. None: it is not among the first any more.
    """

    pairs: tuple[Pair, ...]
    counts: tuple[int | None, ...]
    right: int


def next_merge(seen: Watched, step: int) -> NextMerge | None:
    """Which pair is merged after merge `step`, counted from 0. Offered beside it are the runners-up of
    `step`, the most frequent first. None at the last merge, and where fewer than two pairs are left.
    """
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
    """Into how many tokens one picture on the screen is cut: "one", one for each "character" it is made of
    (code points), one for each "byte" in UTF-8, or "other", what came out.
    """
    found = len(encode(text))
    guesses = {
        "one": 1.0,
        "character": float(len(text)),
        "byte": float(len(text.encode("utf-8"))),
    }
    named = next((name for name, guess in guesses.items() if guess == found), None)
    return closest(found, guesses if named else {"other": float(found)} | guesses, within=0.0)


@dataclass(frozen=True)
class Nearest:
    """`token` whose nearest is asked for; `offered` ids, the nearest at `right`, and the `cosine` of each
    with it, in the same order. `names` say what each is: "nearest", "back" (the token from which one came),
    "beside" (the next in the list of ids), "farthest".
    """

    token: int
    offered: tuple[int, ...]
    names: tuple[str, ...]
    cosine: tuple[float, ...]
    right: int


def nearest_row(matrix: np.ndarray, token: int, met: np.ndarray) -> Nearest | None:
    """A guess about the second neighbour of `token` in matrix (vocab, d_model), among the rows `met`: which
    is nearest to that? None where there are too few to choose from.
    """
    if len(met) < 2 * CHOICES:
        return None
    other = int(nearest(matrix, token, met, 2)[0][-1])
    ids, cosines = nearest(matrix, other, met, len(met))
    order = [int(i) for i in ids]
    known = dict(zip(order, map(float, cosines), strict=True))
    places = [int(i) for i in met if int(i) != other]
    beside = min(places, key=lambda i: (abs(i - other), i))
    found: dict[int, str] = {}
    for one, name in ((order[0], "nearest"), (token, "back"), (beside, "beside"), (order[-1], "farthest")):
        if one in known and len(found) < CHOICES:
            found.setdefault(one, name)
    offered = tuple(sorted(found))
    right = offered.index(order[0])
    return Nearest(other, offered, tuple(found[i] for i in offered), tuple(known[i] for i in offered), right)
