"""What the views of Embeddings say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.config import ModelConfig
from engine.measure.analogies import Analogy
from engine.measure.embeddings import Lookup
from engine.measure.separation import Course, Separation
from engine.measure.token_classes import Vocabulary
from engine.measure.token_map import FrequencyLinks, TokenMap
from ui.look import Words
from ui.text.markdown import safe
from ui.text.numbers import minus

SENTENCE = (
    "A model cannot compute with letters. Each token has a row of a matrix $E$: a vector of learned numbers,"
    " all that the blocks are given of it."
)

LOOKUP = Words(
    see=(
        "On the left the embedding matrix $E$, a row for each token of the vocabulary. On the right the"
        " input of the model: for each token of the text a copy of its row, $X = E[ids]$, of shape"
        " (T, d)."
    ),
    why=(
        "A network computes with numbers, and an id is only a name. The rows are learned like all other"
        " weights: they become whatever helps to predict."
    ),
    attempt=(
        "Choose a letter that comes twice: both take the same row. Then look at what the position adds to"
        " it. With a run of yours, drag the step and see the rows grow out of noise."
    ),
)

MAP = Words(
    see=(
        "Every token as a point. The axes are the directions in which the rows of $E$ differ most: the"
        " principal components of the rows, their mean taken off (Pearson 1901). Dotted lines lead to the"
        " nearest tokens by cosine, $\\cos(a, b) = \\frac{(e_a - \\bar e)\\cdot(e_b - \\bar e)}{|e_a -"
        " \\bar e|\\,|e_b - \\bar e|}$."
    ),
    why=(
        "Tokens that are used alike are pushed the same way by the gradient. But a flat picture keeps"
        " only a part of the differences, so near in the picture is not always near in truth. The list of"
        " neighbours uses all dimensions."
    ),
    attempt=(
        "Click on “e”, “T” and “.”. Colour by frequency: how much of the first axis is only that? Then"
        " take an untrained model: are there groups?"
    ),
)

ANALOGIES = Words(
    see=(
        "Rows of $E$, their mean taken off and made of length 1: $e_b - e_a + e_c$, and the tokens whose row"
        " has the largest cosine with it. The three that were put in are grey."
    ),
    why=(
        "“King − man + woman = queen” made word vectors famous (Mikolov et al. 2013). It was counted with the"
        " three words left out: with them in, the nearest is nearly always one of the three. And often the"
        " answer is simply a neighbour of $c$, without any arithmetic (Linzen 2016). Here all is counted."
    ),
    attempt=(
        "Open the list of all of them. Then type your own four words, and an untrained model: what is left?"
    ),
)

CLASSES = Words(
    see=(
        "One number: the mean cosine of two tokens of the *same* class, minus that of two tokens of"
        " *different* classes. 0 means that the classes are not to be seen. Grey and violet: the same"
        " number with the labels shuffled, freely, and among eight tokens of like frequency only."
    ),
    why=(
        "In a cloud of points everybody finds a pattern. A claim needs a number that could have come out"
        " otherwise. Nobody told the model what a vowel is."
    ),
    attempt=(
        "Take an untrained model: the diamond lies among the shuffles. Then a trained one. In a run of"
        " yours, find the step at which the classes rise above chance."
    ),
)

NOT_FINITE = (
    "The embedding of this model holds numbers that are none (inf or NaN): its training went astray, and"
    " there is nothing to draw. Choose an earlier step, or another model."
)

# The lookup -------------------------------------------------------------------------------------

# What a scheme of positions does, where it adds nothing to the row.
_ENTERS = {
    "none": (
        "This model is told nothing about positions: what the lookup gives is what the first block reads."
    ),
    "rope": (
        "With RoPE nothing is added here: queries and keys are turned by position inside every attention."
    ),
    "alibi": "With ALiBi nothing is added here: a penalty for distance goes on the attention scores.",
    "t5": (
        "With T5's relative bias nothing is added here: a learned number for each distance goes on the"
        " attention scores."
    ),
}


def enters(position: str) -> str:
    """What becomes of positions in a scheme that adds nothing to the row."""
    return _ENTERS.get(position, "Nothing is added here for the position.")


def added(position: str) -> str:
    """What a scheme adds to the row."""
    return (
        "a trained vector for each position" if position == "learned" else "sines and cosines of the position"
    )


def looked_up(config: ModelConfig, found: Lookup) -> str:
    """The answer of the view."""
    size = (
        f"$E$ has {found.vocab_size:,} rows of {config.d_model} numbers: **{found.parameters:,} parameters**."
    )
    text = f"This text takes {len(found.ids)} rows, {found.different} of them different."
    tied = (
        "The embedding is *tied* here: the same matrix, transposed, reads out the logits at the other end,"
        " $logits = norm(x)\\,E^T$ (Press and Wolf 2017). So its rows serve twice, and every step teaches all"
        " of them."
        if config.tie_embeddings
        else (
            "It is not tied here: the logits are read out by another matrix of the same shape, with"
            f" {found.parameters:,} parameters of its own."
        )
    )
    ratio = ""
    if found.mean_lengths is not None:
        row, position = found.mean_lengths
        ratio = f" In this text a token's vector is {row:.2f} long on average, a position's {position:.2f}."
    return f"{size} {text}{ratio} {tied}"


# The map ----------------------------------------------------------------------------------------


def left_out(known: Vocabulary) -> str:
    """A sentence about the tokens that were never met; empty where there are none."""
    if not known.never_met:
        return ""
    return (
        f"{known.never_met:,} tokens that never occur in the text of the training are left out: nothing has"
        " taught them."
    )


def mapped(found: TokenMap, components: int, chance: float, token: str, hits: int, near: int) -> str:
    """How far the picture can be trusted. `chance` is the share that random numbers would keep; `hits` of
    the `near` nearest tokens are near in the picture.
    """
    share = found.share(components)
    mean = (
        "" if found.overlap is None else f" On average over all tokens: {found.overlap[components - 2]:.1f}."
    )
    return (
        f"**The picture keeps {share:.1%} of the variance; {1 - share:.1%} is not in it.** Random numbers of"
        f" this shape would have {chance:.1%} on their own first {components} components. Of the {near}"
        f" tokens nearest to “{safe(token)}”, {hits} are among the {near} nearest dots.{mean}"
    )


def linked(links: FrequencyLinks) -> str:
    """How much of each component is frequency."""
    said = ", ".join(f"component {i + 1}: {r:+.2f}" for i, r in enumerate(links.components) if np.isfinite(r))
    return minus(
        f"Correlation with log₁₀(1 + count): {said or 'nothing varies'}; of the rows' lengths:"
        f" {links.lengths:+.2f}. A rare token is seldom taught by the lookup."
    )


# Classes ----------------------------------------------------------------------------------------


def signed(value: float) -> str:
    """A mean cosine; there is none of a class with one token."""
    return minus(f"{value:+.3f}") if np.isfinite(value) else "no pair"


def risen(found: Course) -> str:
    """From which snapshot on the number stays above the bands."""
    if found.risen is None:
        return "At the newest step measured, the classes do not stand out from the bands."
    if found.risen == found.steps[0]:
        return "The classes are above the bands at every step measured."
    return f"The classes stay above the bands from step {found.risen:,} on."


def separated(found: Separation) -> str:
    """The answer of the view: the number, against both kinds of shuffles."""
    chance, matched = found.by_chance, found.by_frequency
    how_many, reach = (
        ("none" if not chance.reached else str(chance.reached)),
        ("reaches" if chance.reached < 2 else "reach"),
    )
    said = (
        f"**The true classes score {found.difference:+.3f}; {how_many} of {chance.count} shuffles"
        f" {reach} that** (the highest: {chance.highest:+.3f})."
    )
    if chance.like_chance:
        said += " That is what chance gives: no claim about classes can be made of this model."
    if matched is not None:
        said += (
            f" Labels shuffled among tokens of like frequency score {matched.mean:+.3f} on average"
            f" (highest {matched.highest:+.3f}): "
        )
        if matched.reached:
            said += "frequency alone can give as much."
        elif not chance.reached:
            said += "so much would be frequency alone, and the rest is more than that."
    if found.most is not None and not chance.like_chance:
        name, difference = found.most
        said += (
            f" Most of one kind, among classes of more than two tokens: **{safe(name)}**, {difference:+.3f}."
        )
    return said


def answered(found: Analogy, names: Sequence[str], near: Sequence[str]) -> str:
    """What the arithmetic gives; `names` are those of a, b, c and the expected, `near` of the nearest."""
    a, b, c, expected = (f"“{safe(name)}”" for name in names)
    top = f"“{safe(near[0])}”"
    itself = f"{top}, one of the three that went in" if found.nearest in found.terms else top
    left_out = f"With the three left out, {expected} comes **{ordinal(found.rank)}**"
    alone = f"among the neighbours of {c} alone it is {ordinal(found.rank_near_c)}"
    verdict = (
        "the sum brings it nearer"
        if found.needs_arithmetic
        else "the sum is not needed for that"
        if found.rank == found.rank_near_c
        else "the sum takes it farther away"
    )
    return f"{b} − {a} + {c} lands nearest to {itself}. {left_out}; {alone}: {verdict}."


def ordinal(place: int) -> str:
    """
    >>> ordinal(1), ordinal(12), ordinal(22), ordinal(4103)
    ('first', '12th', '22nd', '4,103rd')
    """
    if place == 1:
        return "first"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th") if place % 100 not in (11, 12, 13) else "th"
    return f"{place:,}{ending}"
