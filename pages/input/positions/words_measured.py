"""Sentences below the figures of Positions, and in the folds; Markdown."""

from __future__ import annotations

from engine.config import ModelConfig
from engine.measure.positions.extrapolation import BLOCK, TAIL, TIMES

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
