"""Sentences of the views of Embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.config import ModelConfig
from engine.measure.embeddings.analogies import Analogy
from engine.measure.embeddings.separation import Separation, SeparationCurve
from engine.measure.embeddings.table import Lookup, Readout, reach
from engine.measure.embeddings.token_classes import Vocabulary
from engine.measure.embeddings.token_map import Alike, FrequencyLinks, TokenMap
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted, minus, number

FIRST_TEXT = "To be or not to be"  # letters that come again

LOOKUP_ASKED = "How does an id become a vector?"
MAP_ASKED = "Do similar tokens get similar vectors?"
ANALOGIES_ASKED = "Does king − man + woman give queen?"

LOOKUP = Words(
    see=(
        "Left: the embedding matrix $E$, with a row for each token of the vocabulary. Right: the model's"
        " input, a copy of the row of each token in the text, $X = E[ids]$, of shape (T, d)."
    ),
    why=(
        "A network computes with vectors, and an id is only a label. The rows are learned like all other"
        " weights: they become whatever helps to predict the next token."
    ),
    attempt=(
        "Choose a character that occurs twice: both fetch the same row. Then see what the position adds to"
        " it. With your own run, drag the step slider and watch the rows emerge from noise."
    ),
)

MAP = Words(
    see=(
        "Every token as a point. The axes are the directions in which the rows of $E$ differ most: the"
        " principal components of the centred rows (Pearson 1901). Dotted lines lead to the nearest tokens by"
        " cosine, $\\cos(a, b) = \\frac{(e_a - \\bar e)\\cdot(e_b - \\bar e)}{|e_a - \\bar e|\\,|e_b - \\bar"
        " e|}$. The answer gives the mean cosine of two tokens of the *same* class minus that of two tokens"
        " of *different* classes."
    ),
    why=(
        "Tokens used in similar contexts get similar gradients. But a 2-D projection keeps only part of the"
        " variance, so points that are near in the picture need not be near in the full space. The list of"
        " neighbours uses all dimensions. And any cloud of points seems to show a pattern, so the number is"
        " compared with shuffled labels (a permutation test): the model was never told what a vowel is."
    ),
    attempt=(
        "Click on “e”, “T” and “.”. Colour by frequency: how much of the first axis is just frequency? Then"
        " choose an untrained model: are there clusters? In a run of your own, find the step at which the"
        " score rises above chance."
    ),
)

ANALOGIES = Words(
    see=(
        "Bars: the tokens whose rows of $E$ have the largest cosine with $e_b - e_a + e_c$. All rows are"
        " centred and normalised to length 1. The three inputs are grey."
    ),
    why=(
        "“King − man + woman = queen” made word vectors famous (Mikolov et al. 2013). The three input words"
        " were excluded; otherwise the nearest word is nearly always one of them. And often the answer is"
        " simply a neighbour of $c$, without any arithmetic (Linzen 2016). Both are reported here."
    ),
    attempt=(
        "Open the list of all analogies. Then type four words of your own. How many still work in an"
        " untrained model?"
    ),
)

NOT_FINITE = (
    "The embedding of this model contains inf or NaN: training diverged, so there is nothing to draw. Choose"
    " an earlier step, or another model."
)

RANKS = "Ranks count from 1, with the inputs excluded. Empty: this model splits one of the words."
TOKEN_HINT = "The token whose neighbours are shown. You can also click a point or a bar."
TYPED_HINT = "A word is read with the space before it; in quotes, exactly as typed."

# The lookup -------------------------------------------------------------------------------------

TO_POSITIONS = "Positions: how order is encoded"

# What a scheme of positions does, where it adds nothing to the row.
_ENTERS = {
    "none": ("This model has no position encoding: the rows go straight into the first block."),
    "rope": (
        "With RoPE nothing is added here: queries and keys are rotated by position inside every attention"
        " layer."
    ),
    "alibi": "With ALiBi nothing is added here: the attention scores get a penalty for distance.",
    "t5": (
        "With T5's relative bias nothing is added here: the attention scores get a learned bias for each"
        " distance."
    ),
}


def position_added(scheme: str, lookup: Lookup) -> str:
    """Says what a scheme adds to the row, or where positions enter instead."""
    if lookup.added is None:
        return _ENTERS.get(scheme, "Nothing is added here for the position.")
    what = (
        "a trained vector for each position" if scheme == "learned" else "sines and cosines of the position"
    )
    return (
        f"Then the position is added: {what}. Largest difference between the sum and block 0's input:"
        f" {number(lookup.sum_difference)}."
    )


def lookup_alt(shown: int, rows: int, tokens: int) -> str:
    return (
        f"Left: the embedding matrix, {shown} of its {counted(rows, 'row')}. Right: the input,"
        f" {counted(tokens, 'row')}, each"
        " copied from the row of its token; lines join each row to its copies."
    )


def row_in_numbers(shown: int, width: int) -> str:
    return (
        f"**The row in numbers**: the first {shown} of {width} dimensions, and the norm of the whole vector."
    )


def as_product(lookup: Lookup) -> tuple[tuple[str, str, str], ...]:
    """Returns two cards (label, number, arithmetic): the lookup as a product with one-hot rows."""
    (length, width), vocab = lookup.rows.shape, lookup.vocab_size
    return (
        (
            "Lookup minus one-hot product",
            number(lookup.onehot_difference),
            f"The largest difference from $\\text{{one-hot}}(ids)\\,E$: ({length} × {vocab:,}) · ({vocab:,} ×"
            f" {width}) → ({length} × {width}). Each row of the left matrix is zero except for a single 1, so"
            " the product copies a row.",
        ),
        (
            "Multiplications saved",
            f"{lookup.multiplications:,}",
            f"$T \\cdot V \\cdot d = {length} \\cdot {vocab:,} \\cdot {width}$ for the product; copying rows"
            " needs none. The gradient is sparse too: the lookup gives a gradient only to the rows of the"
            " tokens in a batch.",
        ),
    )


def row_read(lookup: Lookup, token: str, position: int, width: int) -> str:
    """Returns the answer of the view; `token` stands at `position`."""
    row, count = lookup.ids[position], lookup.occurrences(position)
    times = "twice" if count == 2 else f"{count} times"
    again = (
        "It occurs here only once."
        if count == 1
        else f"It occurs {times} in this text and fetches the same row each time."
    )
    return (
        f"**“{safe(token)}” is id {row}, so the model reads row {row} of the table $E$: {width} learned"
        f" numbers.** {again}"
    )


def looked_up(config: ModelConfig, lookup: Lookup) -> str:
    """Says how large the table is, how much of it the text takes, and whether it serves twice."""
    size = (
        f"$E$ has {lookup.vocab_size:,} rows of width {config.d_model}: **{lookup.parameters:,} parameters**."
    )
    distinct = f", {lookup.different} of them distinct" if len(lookup.ids) > 1 else ""
    text = f"This text fetches {counted(len(lookup.ids), 'row')}{distinct}."
    tied = (
        "The embedding is *tied* here: the same matrix, transposed, is the unembedding that gives the logits,"
        " $logits = norm(x)\\,E^T$ (Press and Wolf 2017). So its rows are used twice, and every step updates"
        " all of them."
        if config.tie_embeddings
        else (
            "It is not tied here: the unembedding is a separate matrix of the same shape, with"
            f" {lookup.parameters:,} parameters of its own."
        )
    )
    ratio = ""
    if lookup.mean_lengths is not None:
        row, position = lookup.mean_lengths
        ratio = f" In this text the mean norm is {row:.2f} for token vectors, {position:.2f} for positions."
    return f"{size} {text}{ratio} {tied}"


def separability(readout: Readout) -> str:
    """Says how well a linear readout recovers token and position from their sum."""
    return (
        f"**Can content and position be told apart again?** Of all {readout.sums:,} sums of a token and a"
        f" position vector, a linear readout recovers the token in **{readout.tokens:.0%}** and the"
        f" position in **{readout.positions:.0%}**. The mean absolute cosine of the two is"
        f" {readout.cosine:.2f}; at 0 they would be orthogonal, and nothing would be lost in the sum."
    )


# The map ----------------------------------------------------------------------------------------


def left_out(known: Vocabulary) -> str:
    """Returns a sentence about the tokens that were never met; empty where there are none."""
    if not known.never_met:
        return ""
    return (
        f"{known.never_met:,} tokens that never occur in the training text are left out, since they were"
        " never trained as input."
    )


def looked_at(token: str, number: int, kind: str, count: int | None) -> str:
    """Describes the chosen token; `count` is how often it stands in the training text."""
    times = "" if count is None else f" It occurs {count:,} times in the text."
    return f"“{safe(token)}” is id {number}; class: {safe(kind)}.{times}"


def drawn_in_part(known: Vocabulary, drawn: int, which: str) -> str:
    """Says that the picture has room for a part of a large vocabulary only."""
    return (
        f"{drawn:,} of {len(known.met):,} tokens are drawn, the {which}; the axes and the neighbours use them"
        f" all. {left_out(known)}"
    )


def near_to(token: str, kind: str, neighbours: Alike, separation: Separation) -> str:
    """Returns the answer of the view: how much more alike tokens of one class are than by chance, and of what
    class the tokens nearest to one of the class `kind` are.
    """
    near = (
        f"Of the {neighbours.of} nearest neighbours of “{safe(token)}”, **{neighbours.same}** share its class"
        f" ({safe(kind)}); {neighbours.expected:.1f} expected by chance."
    )
    if not np.isfinite(separation.difference):
        return near
    chance, more = (
        separation.by_chance,
        f"{signed(separation.difference)} in mean cosine",
    )
    if chance.like_chance:
        return (
            f"**Same-class pairs differ from others by {more}, no more than chance would give:**"
            f" {chance.reached} of"
            f" {chance.count} label shuffles reach it. {near}"
        )
    return (
        f"**Same-class pairs are more similar than others, by {more};** the highest of {chance.count} label"
        f" shuffles is {signed(chance.highest)}. {near}"
    )


def mapped(token_map: TokenMap, components: int, chance: float, token: str, hits: int, near: int) -> str:
    """Says how far the picture can be trusted. `chance` is the share that random numbers would keep; `hits`
    of the `near` nearest tokens are near in the picture.
    """
    share = token_map.share(components)
    mean = (
        ""
        if token_map.overlap is None
        else f" On average over all tokens: {token_map.overlap[components - 2]:.1f}."
    )
    return (
        f"**This projection keeps {share:.1%} of the variance and loses the other {1 - share:.1%}.** A"
        f" random matrix of this shape would keep {chance:.1%} in its first {components} components. Of the"
        f" {near} nearest neighbours of “{safe(token)}”, {hits} are among the {near} nearest dots.{mean}"
    )


def linked(links: FrequencyLinks) -> str:
    """Says how much of each component is frequency."""
    text = ", ".join(f"component {i + 1}: {r:+.2f}" for i, r in enumerate(links.components) if np.isfinite(r))
    return minus(
        f"Correlation with log₁₀(1 + count): {text or 'nothing varies'}; row norm: {links.lengths:+.2f}. A"
        " rare token's row is seldom updated."
    )


COLOUR_HINT = "Frequency: how often the token occurs in the training text, on a log scale."
AXES = {"newest": "of the newest step", "own": "of this step"}
AXES_HINT = (
    "The newest step's axes stay fixed while you move the scrubber, so every change in the picture is a"
    " change of the embedding. A step's own axes show the most variance; they are aligned with those of the"
    " newest step."
)
NOT_COUNTED = (
    ":material/info: This model's training text is not on this server, so tokens cannot be counted: colours"
    " show the class."
)
NO_FREQUENCY = (
    "Token frequencies in the training text are not known, so their effect on the picture cannot be shown."
)
VARIANCE = "**Variance explained per component**"
ALT_VARIANCE = (
    "Bars: share of the variance of each of the first principal components; dotted: the same for random"
    " numbers of this shape."
)


def map_alt(tokens: int, by_frequency: bool, word: str) -> str:
    return (
        f"{counted(tokens, 'token')} by the first components of their embedding, coloured by"
        f" {'frequency' if by_frequency else 'class'}; “{word}” is marked."
    )


def components(rows: int, width: int) -> str:
    return (
        f"This step's own components. Dotted: Gaussian random numbers, {rows:,} × {width}; even they have a"
        " first component."
    )


# Classes ----------------------------------------------------------------------------------------

ONE_CLASS = (
    "All tokens that occur belong to one class, or each to its own, so there are not two kinds of pairs to"
    " compare."
)
BY_CLASS = "Mean cosine of the centred rows. A class of one token has no pairs of its own."
ALT_SHUFFLES = (
    "Dots: within minus across for shuffled labels, one dot for each shuffle; diamond: for the true classes."
)
ALT_CURVE = (
    "Line: within minus across at each snapshot; bands: the middle 95% of shuffled labels; the dashed line"
    " marks the step that is shown."
)
ALT_COSINES = (
    "Heatmap of the cosine between every pair of tokens, sorted by class: where a class forms a cluster, its"
    " square on the diagonal is orange."
)


def signed(value: float) -> str:
    """Returns a mean cosine; there is none of a class with one token."""
    return minus(f"{value:+.3f}") if np.isfinite(value) else "no pair"


def difference(separation: Separation) -> str:
    """Returns the two means whose difference is taken."""
    return (
        f"${separation.within:+.4f}$ (mean cosine of two tokens of one class) minus"
        f" ${separation.across:+.4f}$ (of different classes). Each dot is one of {separation.by_chance.count}"
        " shuffles of the labels."
    )


def risen(curve: SeparationCurve) -> str:
    """Says from which snapshot on the number stays above the bands."""
    if curve.risen is None:
        claim = "At the newest step measured, the classes do not stand out from the bands."
    elif curve.risen == curve.steps[0]:
        claim = "The classes are above the bands at every step measured."
    else:
        claim = f"From step {curve.risen:,} the classes stay above the bands."
    return f"Bands: the middle 95% of the shuffles. {claim}"


def fresh(separation: Separation) -> str:
    """Returns the number of a fresh model of this shape."""
    return (
        f"An untrained model of this shape scores {signed(separation.difference)}. Train one on the Train"
        " page to see the curve over training."
    )


def cosine_map(known: Vocabulary, drawn: int, pairs: int, cosines: tuple[float, float]) -> str:
    """Says how to read the matrix of `drawn` tokens; `cosines` are those of a token with its own capital, and
    with another's, over `pairs`.
    """
    case, some = "", ""
    if pairs > 1:
        same, another = cosines
        case = (
            f" A lower-case letter and its own capital (“a”, “A”): mean cosine {signed(same)} over {pairs}"
            f" pairs; with another letter's capital: {signed(another)}."
        )
    if drawn < len(known.met):
        which = "most frequent" if known.counts is not None else "first"
        some = f" The {drawn} {which} of {len(known.met):,} tokens."
    return f"Orange: similar; blue: opposed. A square on the diagonal is one class.{case}{some}"


def shuffled(separation: Separation) -> str:
    """Returns the number against both kinds of shuffles, and the class that stands out most."""
    chance, matched = separation.by_chance, separation.by_frequency
    how_many, reach = (
        ("none" if not chance.reached else str(chance.reached)),
        ("reaches" if chance.reached < 2 else "reach"),
    )
    text = (
        f"**The true classes score {signed(separation.difference)}; {how_many} of {chance.count} shuffles"
        f" {reach} that** (the highest: {signed(chance.highest)})."
    )
    if matched is not None:
        text += (
            f" Labels shuffled among tokens of similar frequency score {signed(matched.mean)} on average"
            f" (highest {signed(matched.highest)}): "
        )
        if matched.reached:
            text += "frequency alone can explain it."
        elif not chance.reached:
            text += "frequency can explain that part, not the rest."
        else:
            text += "frequency alone explains less."
    if separation.most is not None and not chance.like_chance:
        name, difference = separation.most
        text += f" Tightest class with more than two tokens: **{safe(name)}**, {signed(difference)}."
    return text


def answered(analogy: Analogy, names: Sequence[str], near: Sequence[str]) -> str:
    """Says what the arithmetic gives; `names` are those of a, b, c and the expected, `near` of
    the nearest.
    """
    a, b, c, expected = (f"“{safe(name)}”" for name in names)
    top = f"“{safe(near[0])}”"
    itself = f"{top}, one of its own inputs" if analogy.nearest in analogy.terms else top
    verdict = (
        "so the arithmetic helps"
        if analogy.needs_arithmetic
        else "so the arithmetic is not needed"
        if analogy.rank == analogy.rank_near_c
        else "so the arithmetic hurts"
    )
    return (
        f"**{b} − {a} + {c} is nearest to {itself}.** Excluding the inputs, {expected} ranks"
        f" **{ordinal(analogy.rank)}**; among the neighbours of {c} it ranks {ordinal(analogy.rank_near_c)},"
        f" {verdict}."
    )


def ordinal(rank: int) -> str:
    """
    >>> ordinal(1), ordinal(12), ordinal(22), ordinal(4103)
    ('first', '12th', '22nd', '4,103rd')
    """
    if rank == 1:
        return "first"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th") if rank % 100 not in (11, 12, 13) else "th"
    return f"{rank:,}{ending}"


LISTED_IDS = 24  # ids in the sentence


def scale_note(lookup: Lookup, matrix: np.ndarray, rows: np.ndarray) -> str:
    """Says what the colours of the drawn `rows` mean, and how many rows are not drawn."""
    others = lookup.vocab_size - lookup.different
    left_out = (
        ""
        if len(rows) == len(matrix)
        else f" The other {others:,} rows of $E$ are not drawn, since this text does not use them."
    )
    end = reach(matrix[rows])
    return (
        f"Blue below zero, orange above; the scale ends at ±{end:.3f}, which covers 99.5% of the"
        f" entries.{left_out} The same token always fetches the same row, whatever its position."
    )


def listed_ids(ids: tuple[int, ...]) -> str:
    more = f", … {len(ids)} in all" if len(ids) > LISTED_IDS else ""
    return f"[{', '.join(map(str, ids[:LISTED_IDS]))}{more}]"
