"""What the views of the residual stream say."""

from __future__ import annotations

import math

import numpy as np

from engine.measure.attribution import Versus
from engine.measure.norm_example import Habit, Normed
from engine.measure.pushes import Pushes
from engine.measure.settling import Climb
from engine.measure.stream import Summary
from engine.training.residuals import Pair
from ui.look import Words
from ui.text.markdown import safe
from ui.text.numbers import minus, nats

QUESTIONS = {
    "lens": "What if it stopped half-way?",
    "push": "Which part pushed the answer?",
    "norms": "Who makes the stream longer?",
    "highway": "Why residual connections?",
}

LENS = Words(
    see=(
        "What the model would answer if it stopped here: the final norm and the unembedding applied to"
        " the stream after each block. The idea is nostalgebraist's (2020). KL is $\\sum_v"
        " p_{final}(v)\\,\\ln\\frac{p_{final}(v)}{p_{here}(v)}$, in nats."
    ),
    why=(
        "All layers write in one common language, so a half-finished thought can be read. Easy tokens are"
        " settled early; the others use all layers."
    ),
    attempt=(
        "Colour by KL, then slide a run of yours through its training. With tied embeddings, look at the"
        " bottom row: the embedding alone says the very token that it is."
    ),
)

PUSH = Words(
    see=(
        "The logit is $u \\cdot norm(x)$, and $x$ is a sum of writes. With the norm's divisor frozen, it"
        " is the sum of one number for each writer: $z_h W_{O,h} \\cdot d$ for a head, $w \\cdot d$ for"
        " the others, with $d$ the target's unembedding seen through the norm."
    ),
    why=(
        "It says who is responsible for an answer, head by head. Only direct pushes count: help given to"
        " another head shows up under that head."
    ),
    attempt=(
        "Compare with the mean of all tokens: what lifts every logit alike drops out. Then choose a token"
        " that the model finds unlikely."
    ),
)

NORMS = Words(
    see=(
        "The Euclidean norm of the stream after each write, the norm of each write, the cosine with what"
        " it is added to, and each writer's share of the final stream."
    ),
    why=(
        "Before a sublayer reads, the norm brings the stream to a standard size. So a write counts by its"
        " size *relative* to the stream: where the stream has grown long, a late layer must write more to"
        " turn it."
    ),
    attempt=(
        "Compare an untrained model with a trained one: at the start no write stands out, since the"
        " matrices that write begin alike, scaled by $1/\\sqrt{2L}$. Training makes some writers louder"
        " than others."
    ),
)

HIGHWAY = Words(
    see=(
        "Two models from the same weights, on the same text. One *adds* what each sublayer makes to what it"
        " read, $x + f(x)$; the other puts it in its place, $f(x)$. *Likeness*: the mean cosine of two"
        " tokens'"
        " vectors, 1 where all tokens look the same."
    ),
    why=(
        "Adding gives what is known, and the gradient on its way back, a path that nothing multiplies: the"
        " slope of $x + f(x)$ is $1 + f'$ (He et al. 2015). Without it, attention hands on averages of the"
        " text, and all tokens become alike (Dong et al. 2021). The LSTM's cell state (1997) does the same"
        " over time: it adds to what it keeps. And each block only has to say what should *change*, given"
        " all that was written before: the stream is its condition."
    ),
    attempt=(
        "Choose 1 block, then 2: two are already enough to forget the tokens. Then take the norms away and"
        " look at the gradient. Pre-norm, post-norm and what Xiong et al. (2020) prove stand under *Measure it*."
    ),
)

# The lens -----------------------------------------------------------------------------------------


def lens_answer(found: Climb, read: str, word: str, before: str, names: list[str], causal: bool) -> str:
    """When the final guess came up. `read` is the end of the text so far, `word` the final guess, `before`
    the guess that it took the place of, `names` what the depths are called.
    """
    where = f"After “{safe(read)}”" if causal else f"At “{safe(read)}”"
    if found.settled == 0:
        return (
            f"{where} nothing has to be worked out: the embedding alone says “{safe(word)}”, and it stays the"
            f" guess to the end, with probability **{found.final:.2f}**."
        )
    return (
        f"{where} the answer comes up **{names[found.settled].removesuffix(' = output')}**: one step"
        f" earlier the model would have said"
        f" “{safe(before)}”, and “{safe(word)}” had probability {found.earlier:.2f}; it ends with"
        f" **{found.final:.2f}**."
    )


# Who pushed ---------------------------------------------------------------------------------------


def push_answer(found: Pushes, target: str, read: str, causal: bool) -> str:
    """Who pushes most, and who pushes down."""
    where = f"after “{safe(read)}”" if causal else f"at “{safe(read)}”"
    most, least = found.most, found.least
    most_by, least_by = (minus(f"{push.value:+.2f}") for push in (most, least))
    first = f"For “{safe(target)}” {where}, **{most.label}** pushes hardest: **{most_by}** nats."
    if least.value < 0:
        return f"{first} {least.label} pushes against it, {least_by}."
    return f"{first} No part pushes against it."


def compared(versus: Versus, other: str) -> str:
    """What a logit is compared with, behind its name."""
    if versus is None:
        return ""
    return " − mean" if versus == "mean" else f" − “{other}”"


# Norms --------------------------------------------------------------------------------------------


def norms_answer(found: Summary, replaces: bool) -> str:
    """How long the stream gets, and by whom."""
    if replaces:
        return (
            f"Nothing is added here: what stands between the sublayers goes from a length of"
            f" **{found.first:.2f}** to **{found.last:.2f}**, and the longest that one of them makes is"
            f" {found.longest}'s, {found.length:.2f}."
        )
    goes = "grows" if found.last > found.first else "goes"
    return (
        f"On average a token's vector {goes} from a length of **{found.first:.2f}** at the embedding to"
        f" **{found.last:.2f}** at the end; the longest write is **{found.longest}**'s, {found.length:.2f}."
    )


def shares_told(found: Summary) -> str:
    """Whose the final stream is."""
    told = ", ".join(f"{label} {share:+.0%}" for label, share in found.largest)
    if not found.negative:
        return f"Largest shares of the final stream: {told}. No writer's mean share is negative."
    return f"Largest shares of the final stream: {told}. Negative on average: {few(found.negative)}."


def few(names: tuple[str, ...] | list[str], most: int = 6) -> str:
    """A list that stays one line.

    >>> few(["a", "b"]), few(list("abcd"), 2)
    ('a, b', 'a, b and 2 others')
    """
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more} others"


NORMS_DIFFER = (
    "The same four numbers, without gain and bias. LayerNorm takes the mean off and divides by the spread"
    " around"
    " it; RMSNorm divides by the root of the mean square and takes nothing off. Add 10 to every number:"
    " LayerNorm"
    " gives the same as before, RMSNorm does not. RMSNorm saves the mean and the bias, and models train as"
    " well"
    " with it."
)
WHERE_NORMS_STAND = """
**Where the norm stands**

| | pre-norm | post-norm |
|---|---|---|
| formula | $x \\leftarrow x + f(\\text{norm}(x))$ | $x \\leftarrow \\text{norm}(x + f(x))$ |
| the stream | grows, and runs through untouched | is brought back to one size after every sum |
| the gradient | has a path without any norm | passes a norm at every sublayer |
| training | deep models train without a warm-up | deep ones need a warm-up, or stall (Xiong et al. 2020) |
| at the end | one more norm before the output | none is needed |
| first in | GPT-2 (2019) | the Transformer of 2017, BERT |
"""
_WIRINGS = {"pre": "pre-norm", "post": "post-norm", "parallel": "pre-norm, both sublayers at once"}
_NORM_NAMES = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "none": "no norm"}


def norms_worked(found: Normed) -> tuple[tuple[str, str], tuple[str, str]]:
    """(title, LaTeX) of both norms, on the example's numbers."""
    x = _row(found.x)
    layer = (
        f"x &= {x}\\\\ \\mu &= {found.mean:g}, \\quad \\sigma^2 = {found.variance:g}\\\\"
        f" \\frac{{x - \\mu}}{{\\sqrt{{\\sigma^2}}}} &= {_row(found.layernorm)}"
    )
    rms = (
        f"x &= {x}\\\\ \\text{{rms}} &= \\sqrt{{\\tfrac1n\\textstyle\\sum x_i^2}} = {found.rms:.3f}\\\\"
        f" \\frac{{x}}{{\\text{{rms}}}} &= {_row(found.rmsnorm)}"
    )
    return ("LayerNorm", _aligned(layer)), ("RMSNorm", _aligned(rms))


def _aligned(lines: str) -> str:
    return f"\\begin{{aligned}}{lines}\\end{{aligned}}"


def _row(values: np.ndarray) -> str:
    return "[" + ",\\ ".join(f"{value:.3g}" for value in values.tolist()) + "]"


def who_has_which(found: tuple[Habit, ...]) -> str:
    """A table of the published models of the app by their norms."""
    rows = [
        f"| {_WIRINGS[habit.wiring]} | {_NORM_NAMES[habit.norm]} | {', '.join(habit.models)} |"
        for habit in found
    ]
    return "\n".join(
        [
            "**Who has which**, of the published models of this app",
            "",
            "| wiring | norm | models |",
            "|---|---|---|",
            *rows,
        ]
    )


# With and without residual connections ------------------------------------------------------------

SHOWN_HINT = "Loss: while both learn. Gradient and likeness: before the first step, after each block."
MADE_BY = (
    "The lines above were made once, by `python -m engine.training.residuals`: width 64, 4 heads, windows of"
    " 64 letters of Tiny Shakespeare, 8 at a time, AdamW at 0.001, one seed."
)
AGAIN_HINT = "Takes from 10 seconds with 1 block to a minute with 8."


def pair_alt(pair: Pair, shown: str) -> str:
    """What the two lines are, for who does not see them."""
    what = {
        "losses": f"training loss over {pair.steps} steps",
        "gradients": "norm of the gradient after each block, before the training",
        "alike": "mean cosine between two tokens' vectors after each block, before the training",
    }[shown]
    return f"Two lines, with residual connections and without: {what}, of a model of {pair.depth} blocks."


def why_residual(pair: Pair, shown: str) -> str:
    """The answer, from whichever figure is shown."""
    return {"losses": _by_loss, "gradients": _by_gradient, "alike": _by_likeness}[shown](pair)


def _by_loss(pair: Pair) -> str:
    with_them, without = nats(pair.added.loss), nats(pair.replaced.loss)
    end = {
        "nothing": "and have learned nothing: that is guessing.",
        "counts": "and know no more than how often each letter occurs.",
        "less": "and have learned less.",
        "more": "and have learned as much.",
    }[pair.learned]
    return (
        f"Because what is added to is not lost. After {pair.steps} steps, {pair.depth} blocks that *add* to"
        f" what"
        f" they read are at **{with_them}**. The same blocks without residual connections stay at"
        f" **{without}**, {end}"
    )


def _by_gradient(pair: Pair) -> str:
    kept, lost = pair.added.reached, pair.replaced.reached
    known = (
        f"With residual connections the first of {pair.depth} blocks gets **{kept:.2g} times** the gradient"
        f" of"
        " the last"
    )
    if math.isnan(lost) or lost == 0:
        return f"{known}. Without them **0** arrives: it is too small for a float32, and nothing is learned."
    if lost < 0.01:
        return f"{known}; without them **{lost:.1g} times**: next to nothing arrives, and nothing is learned."
    return (
        f"{known}; without them **{lost:.2g} times**. The norms in each block keep it up either way: what is"
        " lost here is something else, see *likeness*."
    )


def _by_likeness(pair: Pair) -> str:
    kept, lost = pair.added.last_alike, pair.replaced.last_alike
    if lost > 0.9 > kept:
        return (
            f"Without residual connections, two tokens look the same after {pair.depth} blocks: cosine"
            f" **{lost:.2f}**, since each block hands on only averages of the text. With them every token"
            f" keeps"
            f" its own vector: **{kept:.2f}**."
        )
    return (
        f"After {pair.depth} blocks two tokens have a cosine of **{kept:.2f}** with residual connections, and"
        f" **{lost:.2f}** without."
    )


def trained_again(now: Pair, then: Pair, corpus: str) -> str:
    """What came out here, beside what is shipped."""
    return (
        f"Trained now on *{safe(corpus)}*: {now.added.loss:.3f} nats with residual connections,"
        f" {now.replaced.loss:.3f} without. Shipped: {then.added.loss:.3f} and {then.replaced.loss:.3f}."
    )
