"""The question and the answer of each view of Parameters, computed from what is shown."""

from __future__ import annotations

from collections.abc import Callable

from engine.config import GATED
from engine.ledger import TRAINED_IN, Flops
from engine.ledger.block import BlockParameters
from engine.ledger.fits import Fit, totals, uses
from engine.ledger.hand_count import Term, counted
from engine.ledger.shares import Difference
from pages.models.parameters.choice import Choice
from ui.text.markdown import safe, whole
from ui.text.numbers import flop, gigabytes, percent, short

HELD = {  # where a component's parameters are, after a share
    "embedding": "in the embedding",
    "position": "in the positions",
    "norm_embed": "in the norm of the embedding",
    "norm1": "in the first norms",
    "attention": "in attention",
    "norm_cross": "in the norms before cross-attention",
    "cross_attention": "in cross-attention",
    "norm2": "in the second norms",
    "feedforward": "in the feed-forward networks",
    "norm_final": "in the final norm",
    "pooler": "in the pooler",
    "unembedding": "in the unembedding",
}

BLOCK_ASKED = "Where are the parameters of one block?"
TWO_ASKED = "Where do two models have their parameters?"
ASKS = {  # what stands in the gap is the model
    "where": "How many parameters does {} have, and where?",
    "flops": "How much compute does one token take in {}?",
    "memory": "How much memory does {} need?",
}


def name(choice: Choice) -> str:
    return safe(whole(choice.title))


def question(of: str) -> Callable[[Choice], str]:
    """Returns a question of ASKS about the model that is chosen."""
    return lambda choice: ASKS[of].format(name(choice))


def listed(of: str) -> str:
    """Returns a question of ASKS for lists of views, where no model is chosen."""
    return ASKS[of].format("a model")


def where_they_are(choice: Choice, parts: dict[str, int], elsewhere: int) -> str:
    total = choice.ledger.total
    shares = ", ".join(f"{percent(count, total)} {HELD[part]}" for part, count in parts.items())
    rest = f", {percent(elsewhere, total)} elsewhere" if elsewhere else ""
    return f"{name(choice)} has **{total:,} parameters**: {shares}{rest}."


def larger(choice: Choice, other: Choice, totals: Difference) -> str:
    if not totals.difference:
        return f"{name(choice)} and {name(other)} have the same number of parameters: **{totals.first:,}**."
    bigger, smaller = (choice, other) if totals.difference < 0 else (other, choice)
    most, least = sorted((totals.first, totals.second), reverse=True)
    return (
        f"{name(bigger)} is **{totals.times:,.3g} times as large** as {name(smaller)}: {short(most)}"
        f" parameters against {short(least)}."
    )


def work_of_a_token(choice: Choice, flops: Flops, crossing: int | None) -> str:
    text = (
        f"In a text of {flops.tokens:,} tokens, each token costs **{flop(flops.forward)}** in the forward"
        f" pass, {percent(flops.scores, flops.forward)} of that for attention scores and weighted sums"
    )
    if crossing is None:
        return f"{text}; that share never reaches half."
    return f"{text}; beyond **{crossing:,} tokens** it is more than half."


def memory_needed(choice: Choice, dtype: str, batch: int, tokens: int, device: str | None) -> str:
    """Says what writing and training take, and the smallest device on which the model writes."""
    sums = totals(uses(choice.ledger, dtype, batch, tokens))
    texts = f"{batch:,} texts" if batch > 1 else "a text"
    fits = (
        f"{'an' if device.startswith('8') else 'a'} {device} is enough"
        if device
        else "no device here has that much"
    )
    text = (
        f"To write {texts} of {tokens:,} tokens in {dtype}, {name(choice)} needs"
        f" **{gigabytes(sums['to write'])}**: {fits}"
    )
    if dtype not in TRAINED_IN:
        return f"{text}."
    return f"{text}. Training on a batch of that size takes **{gigabytes(sums['to train'])}**."


def fits_line(fit: Fit) -> str:
    """Says what can be done with a model in a given memory: in as many bits as fit."""
    if fit.writes_in is None:
        return (
            f"its weights fit in {fit.holds_in}, but not with this KV cache."
            if fit.holds_in
            else f"not even in int4, {gigabytes(fit.least_weights)} of weights."
        )
    return f"runs in {fit.writes_in}" + (
        f", and can be trained in {fit.trains_in}."
        if fit.trains_in
        else f"; training would need {gigabytes(fit.least_training)}."
    )


def in_a_block(choice: Choice, block: BlockParameters) -> str:
    """Says what share of a block its feed-forward network has, and why."""
    c = choice.config
    if not block.feedforward:
        return f"A block of {name(choice)} has {block.total:,} parameters, and no feed-forward network."
    matrices, times = 3 if c.ffn in GATED else 2, f"{c.d_ff / c.d_model:.3g}"
    return (
        f"**{block.share:.1%}** of the {block.total:,} parameters of a block of {name(choice)} are in its"
        f" feed-forward network, which is {times} times as wide as the stream. Full attention has $4d^2$, the"
        f" network ${matrices} \\cdot {times}\\,d^2$."
    )


def by_hand(choice: Choice, terms: tuple[Term, ...]) -> str:
    main, total = counted(terms), choice.ledger.total
    products = "One term accounts for" if len(terms) == 1 else f"{len(terms)} terms account for"
    return (
        f"{products} **{main:,}** of the {total:,} parameters of {name(choice)}, or {percent(main, total)};"
        " the rest are biases and the gains of norms."
    )
