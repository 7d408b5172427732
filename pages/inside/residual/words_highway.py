"""Sentences of the view of residual connections, on and off."""

from __future__ import annotations

import math
from typing import Literal

from engine.experiments.no_residual import Pair
from ui.text.markdown import safe
from ui.text.numbers import counted, number

Shown = Literal["losses", "gradients", "alike"]
BLOCKS, BLOCK_NORM, SHOW = "Blocks", "Norm in the blocks", "Show"
SHOWN: dict[Shown, str] = {"losses": "loss", "alike": "similarity", "gradients": "gradient"}
AGAIN, AGAIN_MEASURED = "Retrain both models now", "Training both models"
WIRINGS_TITLE = "Pre-norm, post-norm and none, before any training"
SHOWN_HINT = (
    "Loss: during training. Similarity: between two tokens' vectors after each block, before the first step."
    " Without norms, the gradient is offered as well."
)
GRADIENT_TITLE = "The gradient after each block, before the first step"
MADE_BY = (
    "The curves above ship with the app; `python -m engine.experiments no-residual` makes them. Width 64, 4"
    " heads, batches of 8 windows of 64 characters of Tiny Shakespeare, AdamW at a learning rate of 0.001,"
    " one seed."
)
STORED = "Two stored models, with and without residuals, one seed each; no model of yours is shown."
AGAIN_HINT = "Takes 10 seconds with 1 block, a minute with 8."


def pair_alt(pair: Pair, shown: str) -> str:
    """Describes the two lines."""
    what = {
        "losses": f"training loss over {counted(pair.steps, 'step')}",
        "gradients": "norm of the gradient after each block, before training",
        "alike": "mean cosine between two tokens' vectors after each block, before training",
    }[shown]
    return (
        f"Two lines, with residual connections and without: {what}, of a model of"
        f" {counted(pair.depth, 'block')}."
    )


def why_residual(pair: Pair, shown: str) -> str:
    """Returns the answer, from whichever figure is shown."""
    return {"losses": _by_loss, "gradients": _by_gradient, "alike": _by_likeness}[shown](pair)


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"


LITTLE = 0.01  # of the last block's gradient: less than that at the first block is next to nothing


def _by_loss(pair: Pair) -> str:
    alike, single = pair.replaced.last_alike, pair.depth == 1
    blur = "blur all tokens into nearly one vector" if alike > 0.9 else "make the tokens more similar"
    verb = blur.replace("blur ", "blurs ").replace("make ", "makes ") if single else blur
    no_way_back = (
        ", and next to no gradient reaches the first block" if pair.replaced.reached < LITTLE else ""
    )
    end = {
        "nothing": "has learned nothing",
        "counts": "knows little more than how often each character occurs",
        "less": "has learned less",
        "more": "has learned more",
    }[pair.learned]
    return (
        f"Without residual connections, {_blocks(pair.depth)} {verb} (cosine **{alike:.2f}**, against"
        f" **{pair.added.last_alike:.2f}**){no_way_back}. After {counted(pair.steps, 'step')} that model"
        f" {end}:"
        f" **{pair.replaced.loss:.2f} nats**, against **{pair.added.loss:.2f}**."
    )


def _by_gradient(pair: Pair) -> str:
    added, bare = pair.added.reached, pair.replaced.reached
    if pair.depth == 1:
        return "With **1** block the gradient has no depth to cross: choose more blocks."
    known = (
        f"With residual connections the first of {pair.depth} blocks gets **{added:.1f} times** the gradient"
        " of the last"
    )
    if math.isnan(bare) or bare == 0:
        return (
            f"{known}. Without them it gets **0**: the gradient underflows float32, and nothing is learned."
        )
    if bare < LITTLE:
        return f"{known}; without them **{number(bare)} times**: next to nothing."
    return (
        f"{known}; without them **{bare:.1f} times**. With norms in each block the gradient survives either"
        " way; the likelier cause of the failure is that all tokens become alike."
    )


def _by_likeness(pair: Pair) -> str:
    added, bare, after = pair.added.last_alike, pair.replaced.last_alike, _blocks(pair.depth)
    if bare > 0.9 > added:
        return (
            "Without residual connections each block passes on only averages of the text: before any"
            f" training, {after} make all tokens look the same, cosine **{bare:.2f}**. With them a block only"
            f" *adds* to what it reads, and every token keeps its own vector: **{added:.2f}**."
        )
    return (
        "Without residual connections each block passes on only averages of the text: before any training,"
        f" two tokens have a cosine of **{bare:.2f}** after {after}. With them a block only *adds* to what it"
        f" reads: **{added:.2f}**."
    )


def trained_again(now: Pair, then: Pair, corpus: str) -> str:
    """Compares the live result with the shipped one."""
    return (
        f"Trained now on *{safe(corpus)}*: {now.added.loss:.3f} nats with residual connections,"
        f" {now.replaced.loss:.3f} without. Shipped: {then.added.loss:.3f} and {then.replaced.loss:.3f}."
    )
