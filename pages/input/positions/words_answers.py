"""The sentences that say what the figures of Positions show; Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from engine.config import Position
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
from engine.model import Transformer
from engine.weights.checkpoints import Checkpoint
from pages.input.positions.schemes import TITLES
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
