"""Sentences of the views of √d_k and of queries and keys."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from engine.measure.attention.scaling import SampleQuery, TokenComparison, Way
from ui.page_frame import Words

# √d_k -------------------------------------------------------------------------------------------

SCALING_QUESTION = "Why divide by the square root of d_k?"
SEED_HINT = "Another number, another query and other keys."
SCALING_SETTING = (
    "One random query, 16 random keys; every entry normal with variance 1. This is about the formula,"
    " whatever"
    " the model."
)


def scaling_alt(query: SampleQuery, divided: bool) -> str:
    if divided:
        return (
            f"One query's weights over 16 keys at d_k = {query.width}, of scores divided by the square root:"
            f" the largest is {query.most_scaled:.1%}."
        )
    return (
        f"One query's weights over 16 keys at d_k = {query.width}, of the scores as they are: the largest is"
        f" {query.most_plain:.1%}."
    )


def scaled(query: SampleQuery) -> str:
    """Says what the same scores become, both ways (Markdown)."""
    if query.width == 1:
        return (
            "At d_k = 1 there is nothing to divide: both sides give the best key"
            f" **{query.most_plain:.1%}**. Make d_k larger."
        )
    return (
        f"A score adds up {query.width} products, so it spreads by about √{query.width} = {query.spread:.1f},"
        f" and the softmax makes of {query.spread:.1f} a factor e^{query.spread:.1f}: one key takes"
        f" **{query.most_plain:.1%}** of the weight, and the nearer that is to 1, the less is learned about"
        " the others. Divided by √d_k scores spread by about 1 at any width, and it takes"
        f" **{query.most_scaled:.1%}**."
    )


SCALING_CURVES = (
    "Averages: {queries} random queries, each choosing among {keys} keys. Line colours: without a scale, with"
    " it; dashed, theory."
)
SCALING_CURVES_ALT = (
    "Four panels over d_k: spread of the scores, entropy of the softmax and two sizes of its gradient,"
    " without"
    " and with the chosen scale."
)


def gradients(crossing: int | None) -> str:
    """Says why the chart of ‖∂p/∂s‖ first goes the other way."""
    first = (
        "Here it never is larger."
        if crossing is None
        else f"Here it is larger up to about d_k = {crossing}, and falls after that."
    )
    return (
        "**Is the gradient without the scale not larger?** At first, yes: its norm ‖∂p/∂s‖ counts the few"
        " keys"
        f" that still compete, and those react strongly. {first} That is no argument against the scale: the"
        " *mean* slope, over all keys, falls from the start, so most keys learn nothing, and every step of a"
        " training makes scores larger still."
    )


SCALING = Words(
    see=(
        "The same 16 scores twice. Left, the softmax takes them as they are; right, divided by √d_k. Scores"
        " that"
        " lie 8 apart differ by a factor e⁸, about 3,000, in weight."
    ),
    why=(
        "A softmax that is certain before it has learned anything can hardly be taught: where one weight"
        " is 1, no change of a score changes anything (Vaswani et al. 2017, 3.2.1)."
    ),
    attempt=(
        "Move d_k from 1 to 512: left, one key wins ever more; right, nothing much happens. In “Measure it”,"
        " set"
        " the scale to 1/d_k: now large heads start out perfectly even instead."
    ),
)

# Queries and keys -------------------------------------------------------------------------------

SELF_QUESTION = "Why not compare the tokens as they are?"
SELF_TITLES = ("as they are: e·e", "one matrix: (eW)·(eW)", "two: (eW_Q)·(eW_K)")
SELF_TOKENS = ("the", "old", "cat", "sat", "on", "my", "red", "mat")
SELF_SETTING = (
    "A random vector for each word, every entry normal with variance 1, and random matrices: how a training"
    " begins. Scores are divided by √d."
)


def self_alt(title: str, comparison: TokenComparison) -> str:
    return f"A map of weights, 8 words against 8, {title}: a word gives itself {comparison.self_weight:.0%}."


def self_term(comparisons: Mapping[Way, TokenComparison], width: int) -> str:
    """Says how much a token gives to itself, three ways (Markdown)."""
    raw, shared, separate = comparisons["raw"], comparisons["shared"], comparisons["separate"]
    return (
        f"Nothing is as much like a token as itself: its own score is **{raw.self_score:.1f}** (about"
        f" √{width}),"
        f" the others spread by {raw.other_spread:.1f}, so it gives itself **{raw.self_weight:.0%}**. One"
        f" shared"
        f" matrix keeps that (**{shared.self_weight:.0%}**); with W_Q and W_K apart it is"
        f" **{separate.self_weight:.0%}**, and a token is free to ask for another."
    )


def self_table(comparisons: Mapping[Way, TokenComparison]) -> pd.DataFrame:
    """Returns one row for each way."""
    rows = {
        "score with itself, mean": [f"{comparison.self_score:.2f}" for comparison in comparisons.values()],
        "spread of the scores with others": [
            f"{comparison.other_spread:.2f}" for comparison in comparisons.values()
        ],
        "weight on itself, mean": [f"{comparison.self_weight:.4f}" for comparison in comparisons.values()],
    }
    return pd.DataFrame(rows, index=pd.Index(SELF_TITLES, name="")).T


SELF_BY_HAND = (
    "$e \\cdot e = \\sum_i e_i^2$ is a sum of $d$ squares, each 1 on average: it is about $d$, and divided by"
    " $\\sqrt{d}$ about $\\sqrt{d}$: 16 at $d = 256$. $e \\cdot f$ with another token is a sum of $d$"
    " products"
    " whose mean is 0: divided by $\\sqrt{d}$ it spreads by about 1, whatever $d$ is.\n\n"
    "With one matrix $W$ for both sides, $(eW) \\cdot (eW) = |eW|^2$ is still a square, never negative and"
    " largest for the token itself. With two, $(eW_Q) \\cdot (eW_K)$ is a product like any other.\n\n"
    "A third matrix, $W_V$, parts *who is found* from *what is said*: in “the cat sat on the ___” the verb is"
    " found because it is a verb, and says what one can sit on."
)
SELF = Words(
    see=(
        "Each row is a word that looks, each column a word it looks at; dark is much weight. Left, the"
        " diagonal."
    ),
    why=(
        "Attention that only returns the token itself moves nothing. Queries and keys make a question and a"
        " label"
        " out of the same vector."
    ),
    attempt=(
        "Make d small: then the self-term is weak, and all three look alike. The rungs “similarity” and"
        " “shared"
        " QK” of the Ladder train models with the first two."
    ),
)
