"""Sentences of the view about a letter's score with itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.measure.tasks.ladder import SelfTerm
from ui.page_frame import Words

ASK = "Why is raw similarity no better than the last letter?"
WIDTH = "Numbers in a vector"
SHOWN = "Shown"
SHOWS = {"weights": "weights", "scores": "scores"}
SEED = "Draw"
RUNGS = ("last", "similarity", "two-matrices", "attention-1")  # trained, with 64 numbers
NAMES = {"similarity": "raw similarity", "one-matrix": "one matrix", "two-matrices": "queries and keys"}
OWN, OTHERS, KEPT = "score with itself", "score with others (size)", "weight that stays"
MEASURED = (
    "Untrained models: embeddings drawn from N(0, 1), matrices from N(0, 1/width). A score is q · k /"
    " √width. *Size* is the root of the mean square. The weight that stays counts further copies of the"
    " same letter as itself."
)
WORDS = Words(
    see=(
        "Three rungs before any training, reading the same letters: row by row what each letter looks at. A"
        " vector's product with itself is the sum of its squares, about as large as it has numbers; with"
        " another vector, pluses and minuses cancel."
    ),
    why=(
        "Divided by √width, the score with itself is still about √width, and the softmax gives it"
        " everything: the model sees its last letter alone. One matrix for both sides changes nothing,"
        " since Wx is compared with Wx. Queries and keys of their own take the special place away, and"
        " training can put it where it is useful."
    ),
    attempt=(
        "Set the width to 4: how much is left for others? *Q, K* under Attention works out one such score;"
        " here, *Ideas* says what each of these rungs came to."
    ),
)


def answer(terms: Sequence[SelfTerm], losses: Mapping[str, float]) -> str:
    """Says how much stays with the letter itself, and what the trained rungs made of that; `losses` (rung ->
    nats) may be empty.
    """
    raw, _, two = terms
    text = (
        f"With {raw.d_model} numbers a letter scores **{raw.self_score:.1f}** with itself (√{raw.d_model} is"
        f" {raw.root:g}), and about {raw.other_score:.1f} with others:"
        f" **{raw.self_weight:.0%}** of its weight stays."
    )
    if any(name not in losses for name in RUNGS):
        return f"{text} With queries and keys of their own it is **{two.self_weight:.0%}**."
    last, similar, apart, residual = (f"{losses[name]:.2f}" for name in RUNGS)
    return (
        f"{text} So it learned no more than the last letter tells: **{similar}** and {last} nats. With"
        f" queries and keys **{two.self_weight:.0%}** stays, and that letter is lost: **{apart}**; a residual"
        f" brings it back: {residual}."
    )


def title(each: SelfTerm) -> str:
    return f"{NAMES[each.kind]}: {each.self_weight:.0%} stays"


def alt(terms: Sequence[SelfTerm]) -> str:
    text = ", ".join(
        f"{NAMES[each.kind]} {each.self_score:.1f}, {each.self_weight:.0%} of the weight" for each in terms
    )
    return f"Untrained rungs at width {terms[0].d_model}; a letter's score with itself: {text}."
