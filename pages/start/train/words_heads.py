"""What is said of heads that form while a run trains. Every function returns whole sentences (Markdown), from
values that it is given.
"""

from __future__ import annotations

from engine.measure.habits import Named
from engine.measure.head_scores import Grown

QUESTION = "Watch it happen: when does a head learn to copy?"


READS = "**What it reads**: some windows repeat their beginning (│)"


def before(share: float, guess: float, steps: int) -> str:
    """Before the first run."""
    return (
        f"**{share:.0%}** of the windows repeat their own beginning. Before it learns, a letter that comes"
        f" again costs as much as a new one: {guess:.2f} nats. Press **Train**, and see when in {steps:,}"
        " steps that changes."
    )


def _name(head: Named) -> str:
    return f"{head.layer}.{head.head}"


def none_yet(found: Grown) -> str:
    """No head copies."""
    return (
        f"At step **{found.step:,}** no head copies yet: head {_name(found.head)} gives most,"
        f" **{found.head.value:.2f}** of its weight, to the place after the first occurrence. Random letters"
        f" cost {found.first_loss:.2f} nats, and **{found.second_loss:.2f}** when they come again."
    )


def copies(found: Grown) -> str:
    """A head copies: since when, and what that does to the loss."""
    return (
        f"At step **{found.step:,}** head **{_name(found.head)}** looks at the place after the first"
        f" occurrence with **{found.head.value:.2f}** of its weight; at step {found.since:,},"
        f" {found.seconds:.0f} s of training before, with {found.before:.2f}. Random letters cost"
        f" {found.first_loss:.2f} nats, and **{found.second_loss:.2f}** when they come again."
    )


def scores_alt(found: Grown) -> str:
    """For who cannot see the chart."""
    return (
        f"Scores of every head by step, and the loss of random letters read once and again. At step"
        f" {found.step:,} head {_name(found.head)} copies with {found.head.value:.2f} of its weight."
    )


def pattern_title(head: Named, step: int) -> str:
    """Above the small pattern."""
    return f"What head **{_name(head)}** looks at, step {step:,}: random letters, then the same again"


def pattern_alt(head: Named, step: int) -> str:
    """For who cannot see it."""
    return (
        f"Weights of head {_name(head)} at step {step:,} on random letters read twice: in the second reading"
        " a head that copies shows a diagonal one place after the first occurrence."
    )
