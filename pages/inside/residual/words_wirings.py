"""Sentences about the gradients of fresh models, wired in different ways."""

from __future__ import annotations

import numpy as np

from engine.config import Wiring
from engine.measure.residual.gradient_by_depth import (
    EPS,
    LastBlock,
    Plan,
    gradient_flow,
    reason,
)
from engine.parts.cards.norms import NORM_CARDS

THEORY = {
    "pre": "the identity path carries the gradient to every block: flat",
    "post": "a norm after every sum damps the path, so gradients are larger near the output",
    "none": "a product of Jacobians: vanishes or explodes with depth",
}


def seen(blocks: np.ndarray) -> str:
    """Describes how gradients (block,) change on their way from the last block to the first.

    >>> seen(np.array([1e-6, 1.0]))
    'vanishes: the first block gets 1e-06 of the last one’s gradient'
    """
    found = gradient_flow(blocks)
    return {
        "not finite": "not finite: it explodes beyond what float32 can hold",
        "zero": "0 everywhere: smaller than the smallest float32",
        "zero at the last": "0 at the last block",
        "zero at the first": (
            f"vanishes: exactly 0 at the first block, below the smallest float32; only {found.reached} of"
            f" {found.blocks} blocks get a gradient"
        ),
        "flat": f"flat: first ÷ last = {found.ratio:.2f}",
        "fades": f"fades: first ÷ last = {found.ratio:.2g}",
        "vanishes": f"vanishes: the first block gets {found.ratio:.2g} of the last one’s gradient",
        "grows": f"grows towards the input: first ÷ last = {found.ratio:.2g}",
        "explodes": f"explodes: the first block gets {found.ratio:.2g} times the last one’s gradient",
    }[found.fate]


def instead(plan: Plan, wiring: Wiring, blocks: np.ndarray, lengths: np.ndarray) -> str:
    """Returns a sentence where what was seen is not what theory says, or has a reason that can be seen.
    `lengths`: norm of the stream (block,).
    """
    found = reason(plan, wiring, blocks, lengths)
    if found is None:
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
    return f". {words[found]}"


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
