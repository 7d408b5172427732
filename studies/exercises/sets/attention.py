"""Attention by hand: a score, a row of weights, one head, several heads (Vaswani et al. 2017, 3.2)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from random import Random

from studies.exercises.arithmetic import NOTHING, Row, dot, matrix, mixed, shown, softmax, times
from studies.exercises.exercise import Exercise, Mistake, mistakes, see
from studies.exercises.forms import Numbers

UNSCALED = "You forgot to divide the scores by $\\sqrt{d_k}$."
LATE = "You masked after the softmax: the weights no longer sum to 1."
Vectors = tuple[tuple[Row, str], ...]  # what usual mistakes make of a row of numbers, and their hints


def _row(rng: Random, length: int, low: int = -3, high: int = 4) -> list[int]:
    return [rng.randint(low, high) for _ in range(length)]


def scaled_wrongly(product: float, d: int) -> tuple[Mistake, ...]:
    """Returns the usual mistakes of a score, from its dot product over `d` numbers."""
    return mistakes(
        ((product,), "You forgot to divide by $\\sqrt{d_k}$: that is the bare dot product."),
        ((product / d,), "You divided by $d_k$ itself. Divide by its square root."),
        ((product * math.sqrt(d),), "You multiplied by $\\sqrt{d_k}$ instead of dividing."),
    )


def masked_wrongly(scores: Row, hidden: Collection[int]) -> Vectors:
    """Returns the weights of scores of which some are `hidden`, as the usual mistakes make them."""
    whole = softmax(scores)
    late = tuple(0.0 if key in hidden else w for key, w in enumerate(whole))
    zeros = softmax([0.0 if key in hidden else s for key, s in enumerate(scores)])
    return (
        (late, "You masked after the softmax: what is left no longer sums to 1."),
        (whole, "The mask is missing: hidden tokens get weight, too."),
        (zeros, "You masked with 0 instead of $-\\infty$: $e^0$ is 1, not 0."),
    )


def split_wrongly(q: Row, k: Row, heads: int) -> Vectors:
    """Returns the dot products of the heads, (head,), as the usual mistakes make them."""
    return (
        (
            tuple(dot(q[head::heads], k[head::heads]) for head in range(heads)),
            "You took every other number. A head has a contiguous slice: the first $d/H$, the next $d/H$.",
        ),
        ((dot(q, k),) * heads, "Each head used all $d$ numbers. It only has $d/H$ of them."),
    )


def score(rng: Random) -> Exercise:
    d = rng.choice([2, 3, 5, 6])
    q, k = _row(rng, d), _row(rng, d)
    product = dot(q, k)
    root = math.sqrt(d)
    return Exercise(
        f"The query of one token is $q = {shown(q)}$, the key of another $k = {shown(k)}$, with $d_k = {d}$."
        " What score does attention give this key before the softmax?",
        Numbers(1, 2),
        (product / root,),
        (
            f"The dot product: $q \\cdot k = {product}$.",
            f"Divided by $\\sqrt{{{d}}} = {root:.3f}$: **{product / root:.2f}**.",
        ),
        scaled_wrongly(product, d),
        see("attention", attention_view="scores"),
        {"q": q, "k": k},
    )


def row(rng: Random) -> Exercise:
    places = rng.choice([4, 5])
    at = rng.randint(1, places - 2)  # something is hidden, and something is left to share
    scores = [rng.randint(-4, 6) / 2 for _ in range(places)]
    kept = [s if key <= at else NOTHING for key, s in enumerate(scores)]
    weights = softmax(kept)
    short = softmax([s if key < at else NOTHING for key, s in enumerate(scores)])
    powers = " + ".join(f"e^{{{s:g}}}" for s in scores[: at + 1])
    return Exercise(
        f"The scores of token {at + 1} of {places} with all tokens are ${shown(scores, 1)}$, already divided"
        f" by $\\sqrt{{d_k}}$. Apply the causal mask and the softmax: what are its {places} weights?",
        Numbers(places, 2),
        weights,
        (
            f"Token {at + 1} may see tokens 1 to {at + 1}. The others get $-\\infty$: ${shown(kept, 1)}$.",
            f"The softmax divides each $e^s$ by ${powers} ="
            f" {sum(math.exp(s) for s in scores[: at + 1]):.3f}$; $e^{{-\\infty}} = 0$.",
            f"The weights: **{shown(weights, 2)}**. They sum to 1.",
        ),
        mistakes(
            *masked_wrongly(scores, range(at + 1, places)),
            (short, "Off by one: a token may attend to itself too."),
        ),
        see("attention", attention_view="mask"),
        {"scores": scores, "at": at},
    )


def single_head(rng: Random) -> Exercise:
    """Asks for the middle token of three, so that the mask hides one position and leaves two."""
    x = [_row(rng, 2, -1, 2) for _ in range(3)]
    w_q, w_k, w_v = ([_row(rng, 2, -1, 2) for _ in range(2)] for _ in range(3))
    q, k, v = ([times(row, w) for row in x] for w in (w_q, w_k, w_v))
    root = math.sqrt(2)

    def out(query: Row, keys: Sequence[Row], values: Sequence[Row], scale: float = root) -> tuple[float, ...]:
        return mixed(softmax([dot(query, key) / scale for key in keys]), values)

    scores = [dot(q[1], key) / root for key in k]
    weights = softmax(scores[:2])
    late = mixed(softmax(scores)[:2], v[:2])
    return Exercise(
        f"Three tokens, $d = 2$: $x = {matrix(x)}$. One head with $W_Q = {matrix(w_q)}$, $W_K ="
        f" {matrix(w_k)}$, $W_V = {matrix(w_v)}$ (row by row; a token is a row, $q = x W_Q$), a causal mask,"
        " no $W_O$. What is the head's output for the **second** token?",
        Numbers(2, 2),
        out(q[1], k[:2], v[:2]),
        (
            f"$q_2 = {shown(q[1])}$; the keys it may attend to: $k_1 = {shown(k[0])}$, $k_2 ="
            f" {shown(k[1])}$.",
            f"Scores $q_2 \\cdot k / \\sqrt{{2}}$: ${shown(scores[:2], 2)}$; the third is masked.",
            f"Softmax: ${shown(weights, 3)}$.",
            f"Values $v_1 = {shown(v[0])}$, $v_2 = {shown(v[1])}$, weighted and summed:"
            f" **{shown(out(q[1], k[:2], v[:2]), 2)}**.",
        ),
        mistakes(
            (out(q[1], k[:2], v[:2], 1.0), UNSCALED),
            (out(k[1], q[:2], v[:2]), "You swapped them: the query is the second token's."),
            (out(q[1], k, v), "The mask is missing: the third token must not be seen."),
            (late, LATE),
            (out(q[1], k[:2], x[:2]), "You averaged the tokens themselves. Average the values, $x W_V$."),
        ),
        see("attention", attention_view="heads"),
        {"x": x, "w_q": w_q, "w_k": w_k, "w_v": w_v},
    )


def split(rng: Random) -> Exercise:
    q, k = _row(rng, 4, 0, 9), _row(rng, 4, 0, 9)
    heads = (dot(q[:2], k[:2]), dot(q[2:], k[2:]))
    root = math.sqrt(2)
    return Exercise(
        f"$q = {shown(q)}$ and $k = {shown(k)}$, with $d = 4$ and $H = 2$ heads. What dot product does each"
        " head compute? (Unscaled: two numbers, head 1 first.)",
        Numbers(2),
        heads,
        (
            f"Each head has $d / H = 2$ numbers: head 1 the first two, ${shown(q[:2])} \\cdot {shown(k[:2])}"
            f" = {heads[0]}$.",
            f"Head 2 the last two: ${shown(q[2:])} \\cdot {shown(k[2:])} = {heads[1]}$.",
            f"**{shown(heads)}**. Their sum {sum(heads)} is what a single head would have.",
        ),
        mistakes(
            *split_wrongly(q, k, 2),
            (heads[::-1], "Those are the right numbers in the wrong order: head 1 comes first."),
            (
                (heads[0] / root, heads[1] / root),
                "You divided by $\\sqrt{d_k}$; here you are asked for the bare dot product.",
            ),
        ),
        see("shapes", shapes_view="hand"),
        {"q": q, "k": k},
    )


def spread(rng: Random) -> Exercise:
    d, heads = rng.choice([(64, 4), (128, 8), (256, 4), (320, 5), (512, 8), (768, 12), (1024, 4), (288, 6)])
    wide = d // heads
    return Exercise(
        f"All entries of $q$ and $k$ are independent, with mean 0 and variance 1. A model has $d = {d}$ and"
        f" $H = {heads}$ heads. What is the standard deviation of a score $q \\cdot k$ of **one head**,"
        " before it is scaled?",
        Numbers(1, 2),
        (math.sqrt(wide),),
        (
            f"One head has $d_k = {d} / {heads} = {wide}$ numbers.",
            f"A dot product sums {wide} products of variance 1: its variance is {wide}.",
            f"Standard deviation: $\\sqrt{{{wide}}}$ = **{math.sqrt(wide):.2f}**. That is why scores are"
            " divided by it.",
        ),
        mistakes(
            ((wide,), "That is the variance. The standard deviation is its square root."),
            ((math.sqrt(d),), "You used $d$, but a head only has $d/H$ numbers."),
            ((1.0,), "That is the standard deviation *after* dividing by $\\sqrt{d_k}$."),
            ((d,), "You used $d$, but a head only has $d/H$; and that is a variance."),
        ),
        see("attention", attention_view="scores"),
        {"d": d, "heads": heads},
    )


def self_term(rng: Random) -> Exercise:
    d = rng.choice([16, 25, 36, 49, 64, 81, 100, 144, 196, 256, 324, 400])
    return Exercise(
        "Attention without $W_Q$ and $W_K$: the score of two tokens is $e_i \\cdot e_j / \\sqrt{d}$. The"
        f" embeddings have $d = {d}$ entries of mean 0 and variance 1. What is a token's score **with"
        " itself**, on average?",
        Numbers(1, 1),
        (math.sqrt(d),),
        (
            f"$e \\cdot e$ is a sum of {d} squares, each 1 on average: {d}.",
            f"Divided by $\\sqrt{{{d}}} = {math.sqrt(d):.0f}$: **{math.sqrt(d):.1f}**, while scores with"
            " others have mean 0 and standard deviation 1: the softmax puts its weight on the diagonal.",
        ),
        mistakes(
            ((d,), "You forgot to divide by $\\sqrt{d}$."),
            ((1.0,), "You divided by $d$. Divide by its square root."),
            ((0.0,), "That is the mean with *other* tokens. With itself, all terms are squares."),
        ),
        see("attention", attention_view="scores", attention_scores="self"),
        {"d": d},
    )


def rewritten(rng: Random) -> Exercise:
    like = rng.choice([0.5, 0.6, 0.8])
    old, new = _row(rng, 2, 2, 6), _row(rng, 2, -6, -2)
    result = tuple(like * b + (1 - like**2) * a for a, b in zip(old, new, strict=True))
    added = tuple(a + like * b for a, b in zip(old, new, strict=True))
    return Exercise(
        f"A memory of fixed size holds the value $v_1 = {shown(old)}$ under the key $k_1$. By the **delta"
        f" rule** $v_2 = {shown(new)}$ is written under a key $k_2$ with $k_1 \\cdot k_2 = {like}$; both keys"
        " have length 1. What does $k_1$ give back now?",
        Numbers(2, 2),
        result,
        (
            f"Before, $k_2$ gives $(k_2 \\cdot k_1)\\, v_1 = {like} \\cdot {shown(old)}$, and gives it back.",
            f"So $k_2$'s share becomes $v_2 - {like} v_1$, and $k_1$ reads it by {like}:"
            f" $v_1 + {like} (v_2 - {like} v_1)$.",
            f"That is {1 - like**2:.2f} $v_1$ + {like} $v_2$ = **({result[0]:.2f}, {result[1]:.2f})**.",
        ),
        mistakes(
            (added, "That is adding: the delta rule first takes back what $k_2$ gives."),
            (tuple(map(float, old)), "The new pair is read, too: the keys are not orthogonal."),
            (tuple(map(float, new)), "That is what $k_2$ gives back. $k_1$ is another key."),
            (
                tuple((1 - like) * a + like * b for a, b in zip(old, new, strict=True)),
                "What is taken back is read by $k_1$ once more: the factor of $v_1$ has a square.",
            ),
        ),
        see("attention", attention_view="memory"),
        {"old": old, "new": new, "like": like},
    )


TASKS = (
    ("score", "A scaled score", score),
    ("row", "A row under the mask", row),
    ("one-head", "One head by hand", single_head),
    ("split", "Two heads", split),
    ("spread", "Why √d", spread),
    ("self-term", "A token's score with itself", self_term),
    ("rewritten", "The delta rule", rewritten),
)
