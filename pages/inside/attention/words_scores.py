"""Sentences of the views of √d_k and of queries and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from engine.measure.attention.scaling import (
    KEYS,
    QUERIES,
    AmongZeros,
    SampleQuery,
    ScoreScaling,
    theory,
)
from engine.measure.tasks.ladder import SelfTerm
from ui.page_frame import Words
from ui.text.numbers import scientific

# √d_k -------------------------------------------------------------------------------------------

SCALING_QUESTION = "Why divide by the square root of d_k?"
PART = "Part of the formula"
WIDTH, SEED = "Head width d_k", "Seed"
SCALE, CUSTOM, EXPONENT = "Scale", "custom", "Exponent a of the scale 1/d_kᵃ"
UNSCALED, ZEROS = "no scaling", "Number of zeros"
SEED_HINT = "A different seed draws a different query and keys."
SCALING_SETTING = (
    "One random query and 16 random keys, every entry drawn from N(0, 1). This is about the formula, not"
    " about any one model."
)


def scaling_alt(query: SampleQuery, divided: bool) -> str:
    if divided:
        return (
            f"One query's weights over 16 keys at d_k = {query.width}, with the scores divided by the square"
            f" root: the largest is {query.most_scaled:.1%}."
        )
    return (
        f"One query's weights over 16 keys at d_k = {query.width}, with unscaled scores: the largest is"
        f" {query.most_plain:.1%}."
    )


def scaled(query: SampleQuery) -> str:
    """Says what the same scores become, both ways (Markdown)."""
    if query.width == 1:
        return (
            f"At d_k = 1 there is nothing to divide: both sides give the top key **{query.most_plain:.1%}**."
            " Make d_k larger."
        )
    then = "so the softmax saturates: one key takes" if query.most_plain > 0.9 else "and one key takes"
    return (
        f"A dot product of {query.width} terms has standard deviation √{query.width} = {query.spread:.1f},"
        f" {then} **{query.most_plain:.1%}** of the weight. Dividing by √d_k restores a standard deviation"
        f" of 1 at any width, and that key gets **{query.most_scaled:.1%}**."
    )


SCALING_CURVES = (
    f"Averages over {QUERIES} random queries, each with {KEYS} keys. One line is unscaled, the other scaled;"
    " dashed lines show theory."
)
SCALING_CURVES_ALT = (
    "Four panels over d_k: spread of the scores, entropy of the softmax and two measures of its gradient,"
    " without and with the chosen scale."
)
MEASURED_AT = "**Measured at $d_k$ = {width}**"


def scaled_by(exponent: float) -> str:
    """Names a scale 1/d_k^exponent."""
    return {0.0: UNSCALED, 0.5: "scaled by 1/√d_k", 1.0: "scaled by 1/d_k"}.get(
        exponent, f"scaled by 1/d_k^{exponent:g}"
    )


def numbers_table(plain: ScoreScaling, chosen: ScoreScaling, width: int, exponent: float) -> pd.DataFrame:
    """Returns a row for each number at one d_k: unscaled, scaled, and what theory says."""
    expected = theory(width, exponent)
    rows = [
        (
            "spread of the scores",
            plain.spread,
            chosen.spread,
            f"√d_k = {expected.plain_spread:.3f}, scaled {expected.spread:.3f}",
        ),
        (
            "entropy of the softmax (nats)",
            plain.entropy,
            chosen.entropy,
            f"at most ln {KEYS} = {expected.entropy:.3f}",
        ),
        ("norm of the gradient, ‖∂p/∂s‖", plain.jacobian, chosen.jacobian, "0 lets nothing through"),
        (
            "mean slope, |∂pᵢ/∂sⱼ|",
            plain.slope,
            chosen.slope,
            f"at most 2(1 − 1/{KEYS})/{KEYS}² = {expected.slope:.6f}",
        ),
    ]
    columns = {UNSCALED: [f"{a[0]:.4g}" for _, a, _, _ in rows]}
    columns[scaled_by(exponent)] = [f"{b[0]:.4g}" for _, _, b, _ in rows]  # the same where nothing is scaled
    columns["for comparison"] = [compared for *_, compared in rows]
    return pd.DataFrame(columns, index=pd.Index([name for name, *_ in rows], name=""))


def spread_worked(width: int, spread: float) -> tuple[str, str, str]:
    """Returns title, number and arithmetic of the spread at one width."""
    root = theory(width, 0.0).plain_spread
    how = f"measured on a million pairs; in theory $\\sqrt{{{width}}} = {root:.2f}$"
    return f"Spread at d_k = {width}", f"{spread:.2f}", how


def among_worked(score: int, zeros: int, among: AmongZeros) -> tuple[str, str, str]:
    """Returns title, number and arithmetic of the weight of a score among zeros."""
    power = f"e^{{{score}}}"
    how = f"${power} / ({power} + {zeros})$, ${power} = {among.exponential:.0f}$"
    return f"A score of {score} among {zeros} zeros", f"{among.weight:.5f}", how


def each_zero(score: int, zeros: int, among: AmongZeros) -> str:
    return (
        f"Each of the zeros gets 1 / (e¹⁴ + {zeros}) = {scientific(among.each_zero)}. Divided by √128, the"
        f" same score is {among.divided:.2f} and takes {among.divided_weight:.4f} of the weight among {zeros}"
        " zeros."
    )


def gradients(crossing: int | None) -> str:
    """Says why the chart of ‖∂p/∂s‖ first goes the other way."""
    first = (
        "Here it is never larger."
        if crossing is None
        else f"Here it is larger up to about d_k = {crossing}, and smaller after that."
    )
    return (
        "**Isn't the unscaled gradient larger?** At first, yes: its norm ‖∂p/∂s‖ is dominated by the few keys"
        f" that still compete, and those react strongly. {first} That is no argument against scaling: the"
        " *mean* slope over all keys falls from the start, so most keys get almost no gradient, and training"
        " makes the scores larger still."
    )


SCALING = Words(
    see=(
        "The same 16 scores twice. Left, the softmax takes them unscaled; right, divided by √d_k. The softmax"
        " turns a gap of 8 into a factor of e⁸ ≈ 3,000."
    ),
    why=(
        "A softmax that is saturated at initialisation hardly learns: where one weight is 1, changing a score"
        " changes almost nothing, so gradients vanish (Vaswani et al. 2017, section 3.2.1)."
    ),
    attempt=(
        "Move d_k from 1 to 512: left, one key takes ever more weight; right, little changes. In “Measure"
        " it”, set the scale to 1/d_k: now wide heads start out almost uniform."
    ),
    texts=(
        "A coding lab prints softmax(14, 0, …) as (0.9999, 0.00003, …). A score that is 14 lower gets e⁻¹⁴ ="
        " 8.3 × 10⁻⁷ times the weight; *By hand* shows the arithmetic."
    ),
)

# Queries and keys -------------------------------------------------------------------------------

SELF_QUESTION = "Why not compare the embeddings directly?"
RUNG_NAMES = {"similarity": "raw similarity", "one-matrix": "one matrix", "two-matrices": "queries and keys"}
SELF_WIDTH = "Width d_model"
SELF_SHOWN = "Show"
SELF_SHOWS = {"weights": "weights", "scores": "scores"}
SELF_DRAW = "Seed"
OWN, OTHERS, KEPT = "score with itself", "score with others (RMS)", "weight on itself"
SELF_MEASURED = (
    "Untrained models: embeddings drawn from N(0, 1), matrices from N(0, 1/width). A score is q · k / √width."
    " *RMS* is the root mean square. Weight on itself includes other occurrences of the same character."
)
TRAINED = ("last", "similarity", "two-matrices", "attention-1")  # rungs, with 64 numbers


def self_title(term: SelfTerm) -> str:
    return f"{RUNG_NAMES[term.kind]}: {term.self_weight:.0%} on the same character"


def self_alt(terms: Sequence[SelfTerm]) -> str:
    text = ", ".join(
        f"{RUNG_NAMES[t.kind]} {t.self_score:.1f}, {t.self_weight:.0%} of the weight" for t in terms
    )
    return f"Untrained models at width {terms[0].d_model}; a character's score with itself: {text}."


def self_answer(terms: Sequence[SelfTerm]) -> str:
    """Says how much weight stays with a character itself, compared as it is and by queries and keys."""
    raw, _, two = terms
    return (
        f"Raw similarity favours the token itself: **{raw.self_weight:.0%}** of its weight, shared with its"
        f" earlier copies, since its score with itself is **{raw.self_score:.1f}** and with others about"
        f" {raw.other_score:.1f}. Separate W_Q and W_K remove that bias: **{two.self_weight:.0%}**."
    )


def self_trained(losses: Mapping[str, float]) -> str:
    """Says what the trained rungs of the ladder made of that; `losses` (rung -> nats) may be empty."""
    if any(name not in losses for name in TRAINED):
        return ""
    last, similar, apart, residual = (f"{losses[name]:.2f}" for name in TRAINED)
    return (
        "In the Ladder, vectors start small and about equally similar, so raw similarity stays close to"
        f" plain averaging: **{similar}** nats, where a bigram model reaches {last}. Queries and keys gain"
        f" something: **{apart}**; a residual connection brings the current character back: {residual}."
    )


SELF_BY_HAND = (
    "$e \\cdot e = \\sum_i e_i^2$ is a sum of $d$ squares, each 1 on average, so it is about $d$; divided by"
    " $\\sqrt{d}$, about $\\sqrt{d}$: 16 at $d = 256$. $e \\cdot f$ with another token is a sum of $d$"
    " products whose mean is 0: divided by $\\sqrt{d}$, its spread is about 1 at any $d$.\n\nWith one matrix"
    " $W$ for both sides, $(eW) \\cdot (eW) = |eW|^2$ is still a square, never negative and largest for the"
    " token itself. With two, $(eW_Q) \\cdot (eW_K)$ is an ordinary dot product.\n\nA third matrix, $W_V$,"
    " separates *which token is found* from *what it delivers*: in “the cat sat on the ___” the verb may"
    " match because it is a verb, and deliver what people sit on."
)
SELF = Words(
    see=(
        "Three untrained models, reading the same characters: each row shows what one position"
        " attends to. A vector's dot product with itself is the sum of its squared entries, about as large"
        " as its width; with another vector, positive and negative terms cancel."
    ),
    why=(
        "Divided by √width, the score with itself is still about √width, and the softmax gives it almost"
        " everything, so each position sees only its own character. A single matrix for both sides does not"
        " help, since Wx is still compared with Wx. Separate queries and keys remove this bias, and training"
        " can bring it back where it is useful."
    ),
    attempt=(
        "Set the width to 4: how much is left for the others? *Rungs* in the Ladder shows the loss that each"
        " of the three reaches after training."
    ),
)
