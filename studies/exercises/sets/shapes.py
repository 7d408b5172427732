"""Shapes on the way through a Transformer (CURRICULUM: the walk (1,3,4) -> (1,3,2,2) -> ... -> (1,3,4))."""

from __future__ import annotations

from random import Random

from studies.exercises.exercise import Exercise, mistakes, see
from studies.exercises.forms import Numbers

ANY = Numbers(None)


def _sizes(rng: Random) -> tuple[int, int, int, int, int]:
    """(batch, length, heads, numbers a head, width): all different, so that no mistake hides."""
    batch, length, heads, wide = rng.sample([2, 3, 4, 5, 6, 7, 8, 10, 12], 4)
    return batch, length, heads, wide, heads * wide


def queries(rng: Random) -> Exercise:
    b, t, h, w, d = _sizes(rng)
    return Exercise(
        f"A batch of {b} texts of {t} tokens, $d = {d}$, $H = {h}$ heads. The queries are split among the"
        " heads so that each head has its own part. What shape do they have then?",
        ANY,
        (b, h, t, w),
        (
            f"After $W_Q$: ({b}, {t}, {d}). Each head gets $d / H = {w}$ numbers: ({b}, {t}, {h}, {w}).",
            f"Heads and positions are swapped: **({b}, {h}, {t}, {w})**. Now each head has its own ({t},"
            f" {w}).",
        ),
        mistakes(
            ((b, t, h, w), "The split is right. Heads and positions still have to be swapped."),
            ((b, h, t, d), "Each head has $d/H$ numbers, not all $d$."),
            ((b, t, d), "That is before the split."),
            ((h, t, w), "That is one text. There is a whole batch of them."),
        ),
        see("shapes", shapes_view="pass"),
        {"batch": b, "length": t, "heads": h, "d": d},
    )


def scores(rng: Random) -> Exercise:
    b, t, h, w, d = _sizes(rng)
    return Exercise(
        f"A batch of {b} texts of {t} tokens, $d = {d}$, $H = {h}$ heads. What shape do the scores $Q K^T$ of"
        " a layer have?",
        ANY,
        (b, h, t, t),
        (
            f"Queries ({b}, {h}, {t}, {w}) times keys, transposed: ({b}, {h}, {w}, {t}).",
            f"The sum runs over the {w} numbers: **({b}, {h}, {t}, {t})**, a square for each head of each"
            " text.",
        ),
        mistakes(
            ((b, t, t), "Each head has its own square: the heads are missing."),
            ((b, h, w, w), "You multiplied the wrong way round: the sum ran over positions."),
            ((b, h, t, w), "That is the shape of the queries. A score belongs to *two* positions."),
            ((h, t, t), "That is one text. There is a whole batch of them."),
        ),
        see("shapes", shapes_view="pass"),
        {"batch": b, "length": t, "heads": h, "d": d},
    )


def walk(rng: Random) -> Exercise:
    """Asks for the shape at one of five places of the walk."""
    b, t, h, w, d = _sizes(rng)
    vocab, d_ff = rng.choice([65, 256, 1024, 50257]), 4 * d
    where, right, how, mistake = rng.choice(
        [
            (
                "inside the feed-forward network, between its two matrices",
                (b, t, d_ff),
                f"$W_1$ goes from {d} to {d_ff}; positions stay as they are",
                ((b, t, d), "That is before $W_1$ and after $W_2$. In between it is wider."),
            ),
            (
                "the logits",
                (b, t, vocab),
                f"the unembedding goes from {d} to {vocab}, at every position",
                ((b, vocab), "There are logits at *every* position, not only at the last."),
            ),
            (
                "attention's output, the heads joined again",
                (b, t, d),
                f"{h} heads of {w} numbers are concatenated: {d}",
                ((b, h, t, w), "That is before the heads are joined."),
            ),
            (
                "the embedded tokens with their positions added",
                (b, t, d),
                f"every id becomes {d} numbers; adding positions changes no shape",
                ((b, t, 2 * d), "Positions are added, not concatenated to the embedding."),
            ),
        ]
    )
    return Exercise(
        f"A batch of {b} texts of {t} tokens, $d = {d}$, $H = {h}$, $d_{{ff}} = {d_ff}$, $V = {vocab}$. What"
        f" shape does this have: {where}?",
        ANY,
        right,
        (f"The tokens' ids: ({b}, {t}).", f"Here {how}: **({', '.join(map(str, right))})**."),
        mistakes(mistake, (right[1:], "The batch is missing.")),
        see("shapes", shapes_view="pass"),
        {"batch": b, "length": t, "heads": h, "d": d, "d_ff": d_ff, "vocab": vocab, "where": where},
    )


TASKS = (
    ("queries", "The queries of the heads", queries),
    ("scores", "The shape of the scores", scores),
    ("walk", "A shape along the way", walk),
)
