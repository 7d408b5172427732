"""Sentences of the view about dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.experiments.dropout_runs import MODEL, TRAINING, DropoutRun, Ends
from engine.measure.feedforward.dropout import DroppedSum, PassSpread
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import minus

ASK = "What does dropout do?"
SHOWN = "Shown"
SHARE = "Share dropped, p"
TOKEN = "Token after which the model predicts"
TEXT = "Text to train on"
WORDS = Words(
    see=(
        "*Sum*: what the last feed-forward network contributes to the logit of the model's guess through the"
        " final norm, whose divisor is held: a sum of $d$ products, under thousands of random masks."
        " *Prediction*: the next token in forward passes with different masks, dropped where training drops:"
        " in the embedding, the attention patterns and the output of each sublayer. *Training*: losses of"
        " stored runs, measured without dropout."
    ),
    why=(
        "In training, each entry is set to 0 with probability $p$ and the others are divided by $1-p$"
        " (Srivastava et al. 2014). The mean of a sum stays the same, and its variance grows by"
        " $\\frac{p}{1-p}\\sum t_i^2$. A model cannot rely on any single entry, which makes memorising"
        " harder. When the model is used, nothing is dropped."
    ),
    attempt=(
        "Raise *p* and compare the two histograms: without the division the sum shrinks. Then train on the"
        " whole text: does dropout still help? In [Train](/train) *What if* adds it to any preset; the"
        " [bug lab](/bugs?bugs_view=cost&fault=dropout_left_on) forgets to switch it off."
    ),
    texts=(
        "The chapter and the coding lab put dropout after each sublayer, the lab at 0.1 and on the attention"
        " weights too. Models that read their text about once, as most large ones do, are trained without:"
        " GPT-2 still has 0.1, LLaMA none."
    ),
)

NO_SUM = (
    "In this model the last feed-forward network reaches the logit through a nonlinear step: a norm that"
    " squashes each number, or an output head with a layer of its own. Its contribution is no sum of terms."
    " *Prediction* shows what dropout does here."
)
READING = "Reading the text with other masks"


def sum_answer(dropped: DroppedSum, name: str) -> str:
    """Says what masks do to the mean and the spread of the sum."""
    return (
        f"Dropping **{dropped.share:.0%}** of {len(dropped.terms)} terms and dividing the rest by"
        f" {1 - dropped.share:g} keeps the mean: {_n(dropped.mean)} for a contribution of"
        f" **{_n(dropped.total)}** to “{safe(name)}”. A single mask is off by **{dropped.deviation:.2f}**;"
        f" undivided, the mean is {_n(dropped.plain_mean)}."
    )


def sum_alt(dropped: DroppedSum, name: str) -> str:
    return (
        f"Histograms of the contribution to the logit of {name} under {len(dropped.scaled):,} masks: divided"
        f" by 1 − p around {_n(dropped.mean)}, not divided around {_n(dropped.plain_mean)};"
        f" {_n(dropped.total)} without dropout."
    )


def _n(value: float) -> str:
    return minus(f"{value:.2f}")


def prediction_answer(name: str, spread: PassSpread, share: float) -> str:
    """Says how far passes with other masks differ in the probability of the likeliest token."""
    return (
        f"With **p = {share:g}**, {len(spread.passes)} forward passes give “{safe(name)}” between"
        f" **{spread.lowest[0]:.0%}** and **{spread.highest[0]:.0%}**; without dropout it is"
        f" {spread.exact[0]:.0%}. When the model is used, dropout is off."
    )


def prediction_alt(names: Sequence[str], spread: PassSpread) -> str:
    """Lists the tokens with their range."""
    parts = (
        f"{name} {p:.0%}, in the passes {low:.0%} to {high:.0%}"
        for name, p, low, high in zip(names, spread.exact, spread.lowest, spread.highest, strict=True)
    )
    return f"Probabilities without dropout: {'; '.join(parts)}."


def training_answer(finals: Sequence[Ends], passes: float) -> str:
    """Names the best share on held-out text, and what it does to the two losses."""
    bare, *dropped = finals
    best = min(finals, key=lambda each: each.validation)
    read = f"After {passes:.0f} epochs" if passes >= 2 else f"After {passes:.1f} epochs"
    losses = "; ".join(
        f"p = {each.dropout:g}: {each.train:.2f} in training, **{each.validation:.2f}** held out"
        for each in (bare, dropped[-1])
    )
    verdict = "no dropout is best" if best is bare else f"**p = {best.dropout:g}** is best"
    return f"{read}, {verdict} on held-out text. {losses} (medians of {bare.seeds} seeds)."


def training_alt(finals: Sequence[Ends]) -> str:
    parts = (
        f"dropout {each.dropout:g}: training {each.train:.2f}, held out {each.validation:.2f}"
        f" ({each.spread[0]:.2f} to {each.spread[1]:.2f})"
        for each in finals
    )
    return f"Losses at the end, nats per character, medians of seeds. {'; '.join(parts)}."


def ends_table(finals: Sequence[Ends]) -> dict[str, list[Any]]:
    """Returns columns: a row for each share."""
    return {
        "dropout": [each.dropout for each in finals],
        "seeds": [each.seeds for each in finals],
        "training, median": [each.train for each in finals],
        "held out, median": [each.validation for each in finals],
        "held out, range": [f"{each.spread[0]:.3f}–{each.spread[1]:.3f}" for each in finals],
        "lowest on the way": [each.lowest for each in finals],
    }


def on_the_way(finals: Sequence[Ends]) -> str:
    """Says how low each share came before it overfitted."""
    lowest = ", ".join(f"{each.lowest:.2f} with p = {each.dropout:g}" for each in finals)
    return (
        f"The lowest held-out loss on the way: {lowest} (medians). Where it was lower than at the end,"
        " stopping early is the other remedy."
    )


def made(run: DropoutRun) -> str:
    """Says what was trained, and where."""
    return (
        f"{MODEL.n_layers} blocks, width {MODEL.d_model}, context {MODEL.context}; {TRAINING.steps:,} steps"
        f" of {TRAINING.batch_size} windows at a constant rate of {TRAINING.learning_rate:g}. Held out: the"
        f" last tenth of Tiny Shakespeare, for both texts. {safe(run.made)}"
    )
