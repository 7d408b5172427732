"""What the views of Attention say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ui.look import Words
from ui.subject import Subject

T = TypeVar("T")


def with_heads(something: T, otherwise: T) -> Callable[[Subject], T]:
    """Something that is told only where a model has heads: without a mixer the view has said that there is
    nothing to see.
    """
    return lambda subject: otherwise if subject.config.mixer == "none" else something


def heads(subject: Subject) -> Words | None:
    reach = (
        ", and nothing above the diagonal has any: those tokens come later."
        if subject.config.causal
        else ". This model has no mask, so it looks both ways."
    )
    found = Words(
        see=(
            "One row for each token that looks, one column for each token it can look at. A row's weights sum"
            f" to 1{reach}"
        ),
        why=(
            "The pattern says *from where* information moves. What is moved is another matter: that is `v`"
            " and $W_O$, in “Step by step”."
        ),
        attempt=(
            "Look for a strong line just below the diagonal (a head that reads the previous token) and a"
            " strong first column (a head that rests there). Or let the heads be sorted by that. With a run"
            " of yours, drag the step back: at first all heads spread alike."
        ),
    )
    return with_heads(found, None)(subject)


STEPS = with_heads(
    Words(
        see="One stage of one head for the whole text, then every number of the chosen row.",
        why=(
            "Nothing here is more than multiplication, addition and one exponential. All that a head knows is"
            " in the four matrices."
        ),
        attempt=(
            "Go from “÷ √d” to “softmax”: small differences of scores become large differences of weight. "
            "Choose a token early in the text: few keys, large weights."
        ),
    ),
    None,
)

SWITCHES = with_heads(
    Words(
        see=(
            "Left, the candidates before and after. Right, how far apart the two predictions are at each"
            " position: KL(before ‖ after), in nats. 0 means no change."
        ),
        why="A pattern shows where a head looks. Only an intervention shows whether the model *needs* it.",
        attempt=(
            "Switch one head off after the other and find one that this text does not need. Then remove the"
            " position: which heads relied on it?"
        ),
    ),
    None,
)

NUMBERS = with_heads(
    Words(
        see=(
            "One number for each head. Induction and duplicate tokens are measured on random tokens read"
            " twice, where nothing but copying can help; all others on the text above."
        ),
        why=(
            "Two heads that look alike on one text may follow different rules. Numbers make models, and steps"
            " of a training, comparable."
        ),
        attempt=(
            "Choose “Previous token”, then “Induction”. In a model that can copy, a head that reads the"
            " previous token sits below an induction head. With “When Mary and John …” a real model has name"
            " movers."
        ),
    ),
    None,
)

SCALING = Words(
    see=(
        "Without scaling the scores spread like $\\sqrt{d_k}$, and the softmax soon picks one key. The"
        " mean slope falls from the start; the norm of the gradient first *rises*, while a few keys share"
        " it all, and then falls as well. With $1/\\sqrt{d_k}$ all stay level."
    ),
    why=(
        "A softmax that is certain before it has learned anything can hardly be taught: where one weight"
        " is 1, no change of a score changes anything."
    ),
    attempt=(
        "Set the scale to 1/d_k: now large heads start out perfectly even instead, and every key looks"
        " alike. The square root is what sits between."
    ),
)

SHARED_KEYS = Words(
    see=(
        "Above, the query heads; below, the heads that have keys and values. One colour is one group:"
        " those query heads compare with the same keys."
    ),
    why=(
        "Reading the cache, not computing, is what limits how fast large models write. Sharing keys makes"
        " it smaller; the queries stay different."
    ),
    attempt=(
        "LLaMA-2 70B has 64 query heads and 8 key-value heads. Then choose your own numbers, and go down"
        " to 1: multi-query attention."
    ),
)
