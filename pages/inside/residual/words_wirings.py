"""Sentences about the gradients of fresh models, wired in different ways."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.config import Wiring
from engine.measure.residual.gradient_by_depth import (
    EPS,
    Init,
    LastBlock,
    Plan,
    Quantity,
    gradient_flow,
    reason,
)
from engine.parts.cards.norms import NORM_CARDS
from ui.text.markdown import safe

THEORY = {
    "pre": "the identity path carries the gradient to every block: flat",
    "post": "a norm after every sum damps the path, so gradients are larger near the output",
    "none": "a product of Jacobians: vanishes or explodes with depth",
}


MEASURED = "Measuring freshly initialised models"
DEEPEST_MODEL, DEEPEST_HINT = (
    "Deepest model (blocks)",
    "More blocks take longer: about a second per 300 blocks.",
)
SEEDS, SEEDS_HINT = "Seeds", "Models of each kind; their geometric mean is plotted."
NORM, NORM_HINT = "Norm", "Without a norm, pre-norm and post-norm are the same model."
INIT, INIT_HINT = (
    "Initial weights",
    "GPT-2: all matrices have std 0.02, and those that write to the stream are also divided by √(2L)."
    " 1/√inputs preserves the scale of what passes through a matrix.",
)
INITS: dict[Init, str] = {"scaled": "as in GPT-2", "unscaled": "without 1/√(2L)", "fan_in": "1/√inputs"}
GRADIENT_OF, GRADIENT_HINT = "Gradient w.r.t.", "Weights: all parameters of a block together."
QUANTITIES: dict[Quantity, str] = {"gradients": "the stream", "weights": "each block's weights"}
DEPTH_DRAWN = "Depth in the two block-by-block figures"
DEPTH_HINT = "The measured depth that is plotted block by block."
AXES: dict[Quantity, str] = {
    "gradients": "gradient norm",
    "weights": "gradient norm of the weights",
    "activations": "norm of the stream",
}
AFTER_BLOCK = "after block (block 0 is next to the input)"
BLOCKS, RATIO = "blocks in the model", "first ÷ last block"
WIRINGS = {"pre": "pre-norm", "post": "post-norm", "none": "no residual"}
BLOCKS_ALT = "{title} at each of {depth} blocks on a logarithmic axis, one line for each wiring."
RATIO_CAPTION = (
    "For every depth: {what} at the first block, divided by that at the last. At 1 the two are equal."
)
RATIO_ALT = (
    "{what}: first block divided by last, against the number of blocks in the model; at 1 the two are equal."
)
OVERFLOWED = "{broken} of {models} models overflowed float32 (infinities or NaNs); they are not drawn."


def fresh_models(plan: Plan, count: int, corpus: str) -> str:
    return (
        f"{count} freshly initialised models: width {plan.d_model}, {plan.n_heads} heads, a batch of"
        f" {plan.batch} windows of {plan.context} characters from the corpus *{safe(corpus)}*."
    )


def theory_row(plan: Plan, wiring: Wiring, blocks: np.ndarray, lengths: np.ndarray) -> str:
    """Returns theory beside what was measured, as a row of `theory_table`."""
    remark = instead(plan, wiring, blocks, lengths)
    return f"| **{WIRINGS[wiring]}** | {THEORY[wiring]} | {seen(blocks)}{remark} |"


def theory_table(rows: Sequence[str], depth: int) -> str:
    head = f"| block | theory, at initialisation | measured here, {depth} blocks |"
    return "\n".join([head, "|---|---|---|", *rows])


def seen(blocks: np.ndarray) -> str:
    """Describes how gradients (block,) change on their way from the last block to the first.

    >>> seen(np.array([1e-6, 1.0]))
    'vanishes: the first block gets 1e-06 of the last one’s gradient'
    """
    flow = gradient_flow(blocks)
    return {
        "not finite": "not finite: it explodes beyond what float32 can hold",
        "zero": "0 everywhere: smaller than the smallest float32",
        "zero at the last": "0 at the last block",
        "zero at the first": (
            f"vanishes: exactly 0 at the first block, below the smallest float32; only {flow.reached} of"
            f" {flow.blocks} blocks get a gradient"
        ),
        "flat": f"flat: first ÷ last = {flow.ratio:.2f}",
        "fades": f"fades: first ÷ last = {flow.ratio:.2g}",
        "vanishes": f"vanishes: the first block gets {flow.ratio:.2g} of the last one’s gradient",
        "grows": f"grows towards the input: first ÷ last = {flow.ratio:.2g}",
        "explodes": f"explodes: the first block gets {flow.ratio:.2g} times the last one’s gradient",
    }[flow.fate]


def instead(plan: Plan, wiring: Wiring, blocks: np.ndarray, lengths: np.ndarray) -> str:
    """Returns a sentence where what was seen is not what theory says, or has a reason that can be seen.
    `lengths`: norm of the stream (block,).
    """
    why = reason(plan, wiring, blocks, lengths)
    if why is None:
        return ""
    words = {
        "no norm": "Not flat: with no norm in front, a write grows with the stream that it reads",
        "stream grows": (
            f"Not flat: the stream grows, from {lengths[0]:.2g} to {lengths[-1]:.2g}, and a norm divides"
            " gradients by the size of what it reads"
        ),
        "saturates": (
            f"Not flat: the stream grows, from {lengths[0]:.2g} to {lengths[-1]:.2g}, and where a value is"
            f" large, {NORM_CARDS[plan.norm].title} is almost flat"
        ),
        "as pre-norm": "Without a norm this is the same model as pre-norm",
        "own paths": (
            "Not as expected: presumably gradient that the norms damp gets through by way of the sublayers"
        ),
        "small writes": "Not as expected: each write is small compared with the stream",
        "restored": ("Not as expected: the norm before each sublayer restores the lost scale"),
        "epsilon": (
            f"The norms cannot prevent it: the stream became so small that $\\varepsilon$ = {EPS:g} dominates"
            " their divisor"
        ),
    }
    return f". {words[why]}"


def proved(last_block: LastBlock, init: str) -> str:
    """Says what Xiong et al. 2020 prove about the last block: its gradient shrinks like 1/sqrt(L) in
    pre-norm, not in post-norm.
    """
    return (
        "Xiong et al. (2020) prove it for the *last* block: in pre-norm the gradient of its weights shrinks"
        f" like $1/\\sqrt{{L}}$ with the number of blocks, in post-norm it does not. From {last_block.least}"
        f" to {last_block.depth} blocks $1/\\sqrt{{L}}$ would be a factor of {last_block.theory:.2f};"
        f" measured: pre-norm × {last_block.pre:.2f}, post-norm × {last_block.post:.2f}. "
        + (
            "These weights are initialised like theirs."
            if init == "fan_in"
            else (
                "Their weights are initialised with a std of about $1/\\sqrt{inputs}$: choose that above to"
                " see it."
            )
        )
    )
