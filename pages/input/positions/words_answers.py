"""The sentences that say what the figures of Positions show; Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.config import Position
from engine.measure.positions.alibi import slope_rule
from engine.measure.positions.extrapolation import (
    HELD,
    TIMES,
    Curve,
    Reach,
    Stopgap,
    far_buckets,
    reach_of,
)
from engine.measure.positions.schemes import SCHEMES
from engine.measure.positions.t5_buckets import Buckets, LearnedBias
from engine.model import Transformer
from engine.weights.checkpoints import Checkpoint
from pages.input.positions.schemes import TITLES
from pages.input.positions.shared import signed
from ui.text.numbers import minus

Variant = tuple[Position, Stopgap | None]  # a scheme as it is, or with a stopgap
STOPGAPS: dict[str, tuple[Position, Stopgap]] = {
    "Learned: table repeated": ("learned", "repeat"),
    "Learned: last row held": ("learned", "hold"),
    "RoPE: larger base (NTK)": ("rope", "ntk"),
    "T5: unmet buckets filled": ("t5", "far"),
}
NAMES = TITLES | {"none": "no positions"}  # as they stand in a sentence


def name_of(variant: Variant) -> str:
    """Returns a variant's name in the legend and in the table."""
    scheme, kind = variant
    if kind is None:
        return SCHEMES[scheme].title
    return next(name for name, stopgap in STOPGAPS.items() if stopgap == variant)


def alibi_sentence(heads: int, distance: int, least: float, most: float) -> str:
    """Says what ALiBi leaves of a weight at the distance: `least` by the steepest head, `most` by the
    flattest.
    """
    if heads == 1:
        return (
            f"Distance is penalised, and nothing is learned: {distance} tokens back, the only head keeps"
            f" **{least:.2%}** of a weight."
        )
    return (
        f"Some heads are local, others long-range, and no slope is learned: {distance} tokens back, the"
        f" steepest of {heads} heads keeps **{least:.2%}** of a weight, the flattest **{most:.2%}**."
    )


def buckets_sentence(bucket_map: Buckets, buckets: int, both: bool) -> str:
    sides = " on either side" if both else ""
    shares = (
        f"Short distances are encoded exactly, long ones logarithmically: 0 to {bucket_map.exact - 1} have a"
        f" bucket each{sides}, the next {bucket_map.exact} buckets get wider and wider, and the last takes"
        f" everything beyond **{bucket_map.open_from}**."
    )
    if not bucket_map.unused:
        return shares
    return (
        f"{shares} **{len(bucket_map.ranges)} of {buckets}** buckets are ever used: bucket {buckets // 2},"
        " for 'later at distance 0', is never reached."
    )


def reach_sentence(
    reach: Reach[Position],
    context: int,
    times: int,
    ends: bool,
    best: Mapping[Position, float],
    seeds: int,
) -> str:
    """Says which schemes hold beyond their training and which do not. `ends`: the learned table is among
    them. `best`: the schemes of least validation loss, in nats, those that seeds do not tell apart. With
    several `seeds` the numbers are medians.
    """
    holding, failing = (_listed(some) for some in (reach.held, reach.lost))
    of = f"; medians of {seeds} seeds" if seeds > 1 else ""
    ahead = " and ".join(f"{TITLES[name]} (**{loss:.2f}**)" for name, loss in best.items())
    within = f"Within {context}, {ahead} {'is' if len(best) == 1 else 'are'} best (nats{of})."
    far = f"from {context} to {times * context} characters"
    last = ", and a learned table has no rows there" if ends else ""
    if holding:
        single = len(reach.held) == 1
        who = f"Only **{holding}** extrapolates {far}" if single else f"**{holding}** extrapolate {far}"
        return f"{who}{f'; the loss (nats) rises for {failing}' if failing else ''}{last}. {within}"
    if failing:
        return f"None of these extrapolates {far}; the loss (nats) rises for {failing}{last}. {within}"
    return f"Beyond {context} characters a learned table has no row. {within}"


def _listed(some: Mapping[Position, float]) -> str:
    return ", ".join(f"{NAMES[name]} ({signed_plus(far)})" for name, far in some.items())


def signed_plus(value: float, digits: int = 2) -> str:
    """Returns a number with its sign, a plus too.

    >>> signed_plus(0.5), signed_plus(-0.25, 3)
    ('+0.50', '−0.250')
    """
    return minus(f"{value:+.{digits}f}")


def unmet_buckets(model: Transformer) -> str:
    """Why T5's far buckets matter, in this model's numbers."""
    far = far_buckets(model)
    if far is None:
        return "All of T5's buckets were used in training."
    return (
        f"With T5, distances up to {model.config.context - 1} fall into buckets 0 to {far.last}; training"
        f" never used buckets {far.last + 1} to {far.end}. These still have their random initial values,"
        f" at most {far.unmet:.2f} in size, whereas bucket {far.last} has learned {far.met:+.2f} (mean"
        f" over heads). Compared with that, a bias near 0 gives keys further away e^{-far.met:.2f} ≈"
        f" {far.factor:.0f} times the weight."
    )


def bench_summary(models: dict[Position, Checkpoint], curves: dict[Variant, Curve], context: int) -> str:
    """Says which hold and which break, as measured on the shipped models, of a single seed."""
    reach = reach_of({v: [c] for v, c in curves.items()})
    held, lost = (
        ", ".join(f"{name_of(v)} ({far:+.2f})" for v, far in some.items())
        for some in (reach.held, reach.lost)
    )
    words = (
        f"**With {held or 'none of these'}, the same characters predicted at position {TIMES * context}"
        " instead"
        f" of {context} cost at most {HELD} nats more.** "
    )
    words += f"They cost more with {lost}. " if lost else ""
    words += f"A learned table has no row beyond {context}. " if ("learned", None) in curves else ""
    words += "These are the shipped models, one seed each; the figure on top has several. "
    if "none" in models:
        words += "Without positions, only the causal mask encodes order: “Why” measures how much it leaks."
    return words


def slope_power(slope: float) -> str:
    """A slope as a fraction, where it is a whole power of two, else as a power.

    >>> slope_power(0.25), slope_power(2**-0.5), slope_power(2.0)
    ('1/4', '2^(−0.5)', '2')
    """
    exponent = math.log2(slope)
    if exponent != round(exponent):
        return minus(f"2^({exponent:.4g})")
    return f"1/{2 ** -round(exponent)}" if exponent < 0 else f"{2 ** round(exponent)}"


def slope_rule_words(heads: int) -> str:
    split = slope_rule(heads)
    power = split.power
    rule = f"The paper's rule for {power} heads: slopes 2^(−8/{power}), 2^(−16/{power}), …, 2^(−8)."
    if not split.rest:
        return f"{rule} For 8 heads these are 1/2, 1/4, …, 1/256."
    return (
        f"{heads} is not a power of two. {rule} The other {split.rest} come from the rule for {2 * power}"
        " heads: every other one of its slopes, steepest first."
    )


MOST_TOLD = 8  # heads in the sentence


def t5_lesson(learned_bias: LearnedBias) -> str:
    """Which heads look near and which far, read off the trained part of the bias."""
    text = "; ".join(
        f"head {h}: distance {learned_bias.favours[h]}, {signed_plus(learned_bias.alibi_slope[h], 3)}"
        for h in range(min(len(learned_bias.favours), MOST_TOLD))
    )
    words = (
        f"Between distance 0 and {learned_bias.last}, head {learned_bias.loudest} varies the most: its bias"
        f" spans **{learned_bias.spread[learned_bias.loudest]:.2f}**, a factor of about"
        f" {float(f'{learned_bias.factor:.2g}'):,.0f} between weights. The distance each head favours, and"
        f" the mean decrease of its bias per token (ALiBi's slope): {text}."
    )
    if learned_bias.unmet is None:
        return words
    new = learned_bias.unmet
    return (
        words + f" The {new.buckets} buckets from distance {new.distance} upwards are never used within the"
        f" context: they average {signed(new.mean)}, whereas distance {learned_bias.last} has"
        f" {signed(new.met_mean)}. So a text longer than the context uses untrained values."
    )
