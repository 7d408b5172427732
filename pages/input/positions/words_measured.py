"""Sentences below the figures of Positions, and in the folds; Markdown."""

from __future__ import annotations

from engine.config import ModelConfig
from engine.measure.positions.alibi import Effect, FarthestKey, Slopes
from engine.measure.positions.extrapolation import BLOCK, TAIL, TIMES
from ui.text.markdown import safe

STEEPER_SLOPES = (
    "1 gives the paper's slopes. In our trials, small models with contexts of 64 or 128, as here, learned"
    " better with slopes 4 times as steep."
)
BOTH_WAYS = "Without a mask, distance counts both ways: this head cannot tell before from after."
NO_ATTENTION = (
    "This model has no attention layer: its tokens never attend to each other, so there is no pattern to"
    " change. Choose another model above."
)
NO_MODELS = (
    "The models of this view are missing: `python -m engine.experiments positions` trains them into"
    " `checkpoints/positions`."
)
EXCESS_HINT = "The loss, or its excess over the same model's loss with a sliding window."
WINDOWS_HINT = (
    "Number of windows to read, each 4 contexts long. More windows take longer (about a second per hundred"
    " windows per scheme) but narrow the bands."
)
STOPGAPS_HINT = (
    "Ways to extend a scheme without retraining; drawn dashed, since they are not part of any scheme."
)
NO_SHAKESPEARE = "Tiny Shakespeare is not on this machine, and these models were trained on no other text."


def slopes_and_reach(slopes: Slopes, heads: int, context: int) -> str:
    """Says how far the heads of ALiBi reach within a context."""
    return (
        f"Slopes run from **{slopes.steepest:.4g}** to **{slopes.flattest:.4g}**. **{slopes.within(context)}"
        f" of {heads}** {'head falls' if heads == 1 else 'heads fall'} to 1 percent within the context of"
        f" {context:,}; at its far end the flattest head keeps {slopes.farthest(context):.1%}."
    )


def farthest_key(far: FarthestKey, side: str) -> str:
    """Says what the farthest key of a picture loses; `side` is a sentence on later keys."""
    return (
        f"The farthest key in this picture has its score lowered by **{far.penalty:.4g}**, which multiplies"
        f" its weight, before normalisation, by e^(−{far.penalty:.4g}) = {far.factor:.2g}. {side}"
    )


def distances(effect: Effect, head: int) -> str:
    return (
        f"The bias favours nearby tokens: head {head} attends **{effect.distance_before:.2f}** tokens back on"
        f" average without it and **{effect.distance_after:.2f}** with it. A high enough score still"
        " outweighs the bias."
    )


def all_heads(layer: int) -> str:
    return f"**All heads of layer {layer}**, each with its own slope: mean attention distance over the text"


def alibi_example(context: int) -> str:
    return f"The small model (checkpoints/positions/alibi, context {context})"


def costs(here: ModelConfig, published: ModelConfig) -> str:
    return (
        f"Parameters are computed. Here: context {here.context}, width {here.d_model}, {here.n_heads} heads;"
        f" GPT-2 small: context {published.context:,}, width {published.d_model}, {published.n_heads} heads."
        " A learned table costs context × width, T5 one number per bucket (32) and head."
    )


def sliding(context: int) -> str:
    return (
        f" Dotted: the same model, with a window of {context} sliding by {TAIL}, so that each prediction sees"
        f" {context - TAIL + 1} to {context} characters."
    )


def points(width: int, base: str, context: int) -> str:
    """Says what a point is the mean of; `base` explains the dotted lines."""
    return (
        f"Points are means over {width} position{'s' * (width > 1)}, bands one standard error, taken over"
        f" blocks of {BLOCK} neighbouring windows.{base} Bumps that repeat every {context} positions come"
        " from the text: the same characters recur there, with more context."
    )


def measured_now(windows: int, context: int) -> str:
    return (
        f"Measured now, on this machine: {windows:,} windows of {TIMES * context} characters of Tiny"
        " Shakespeare's validation split."
    )


def table_ends(context: int) -> str:
    return (
        f":material/info: The learned curve ends at {context}: the table has no row for position {context}."
    )


def numbers(context: int) -> str:
    return (
        f"Validation loss: on the whole split, in windows of {context}, measured at training time. Then the"
        f" loss on the last {TAIL} characters of {context}, and how much more the same characters cost at the"
        f" end of {2 * context} and of {TIMES * context}, ± one standard error. One run each, with the same"
        " seed and batches: small differences between schemes may be chance, and so may how high a curve"
        " climbs once it fails."
    )


def recorded(problem: str, date: object) -> str:
    return (
        f"{problem} These curves were measured when the models were trained, on {date}: the whole validation"
        f" split, in bins of {TAIL} positions."
    )


def ones(pairs: str, width: int, start: float) -> str:
    return (
        f"q = k = ones: q·k = 2 Σᵢ cos(distance · θᵢ) over {pairs}, divided by √{width}. At distance 0 it is"
        f" √{width} = {start:.3f}."
    )


def t5_example(context: int) -> str:
    return f"a small model trained with T5's bias (checkpoints/positions/t5, context {context})"


def bucket_formula(exact: int) -> str:
    return (
        "bucket = exact + ⌊ln(distance / exact) / ln(maximum / exact) · exact⌋, where “exact” distances have"
        f" a bucket of their own: here {exact}. A model rarely needs exact long distances."
    )


def learned_numbers(title: str, buckets: int, heads: int, numbers: int, context: int) -> str:
    return (
        f"**{safe(title)}**: {buckets} buckets × {heads} heads = {numbers} learned numbers, shared by all"
        f" layers (Raffel et al. 2020). Dotted: the end of its context of {context}. Buckets entirely beyond"
        " it are never used in training and keep their initial values."
    )


def no_room(exact: int, requested: int, far: int) -> str:
    return (
        f":material/info: {exact} distances have a bucket each, so a maximum of {requested} leaves no buckets"
        f" for longer distances: {far} is used instead."
    )


def no_bias(other: str) -> str:
    return (
        f"{other}, so it has no such bias. Choose “t5” under Positions on the Train page, train for a few"
        " seconds, and inspect it here."
    )
