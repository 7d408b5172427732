"""Guesses before the views of Sampling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.lab.guesses import sampling
from engine.sample.outcome import likeliest_ids
from ui.guess import Choice, Guess, offered


def nucleus(logits: np.ndarray) -> Guess | None:
    """Returns how many tokens top-p 0.9 keeps of logits (vocab,)."""
    truth = sampling.nucleus(logits)
    if truth is None:
        return None
    n = truth.numbers
    count = f"{n['found']:,.0f}"
    replies = {
        "sum": f"Summed from the most likely down, {count} is the smallest set that reaches 90%.",
        "each": "That counts tokens with at least 10%. The 0.9 applies to the sum, not to each token.",
        "share": (
            "That is 90% of the vocabulary. The 0.9 is a share of the probability mass, not of the tokens."
        ),
        "below": "Their sum is still below 90%: the token that crosses the threshold is also kept.",
    }
    in_order = sorted(truth.offered, key=n.__getitem__)
    choices, right = offered(truth, {name: Choice(f"{n[name]:,.0f}", replies[name]) for name in in_order})
    return Guess(
        f"Temperature 1, top-p 0.9: how many of these {len(logits):,} tokens can still be drawn?",
        choices,
        right,
        f"{count} of them hold {n['mass']:.1%}. Press “Nucleus 0.9” above the sliders at temperature 1 to"
        " see the rest removed.",
    )


def colder(logits: np.ndarray, vocabulary: Sequence[str]) -> Guess | None:
    """Makes a guess about half the temperature and the two likeliest of logits (vocab,)."""
    truth = sampling.colder(logits)
    if truth is None:
        return None
    n = truth.numbers
    first, second = (vocabulary[i] for i in likeliest_ids(logits, 2))
    replies = {
        "squared": "Halving the temperature doubles the difference of their logits, which squares the ratio.",
        "doubled": "The temperature divides the logits, not the probabilities, so the ratio is not doubled.",
        "same": (
            "The order stays the same, but not the ratio: the difference of their logits is divided as well."
        ),
    }
    choices, right = offered(
        truth,
        {name: Choice(f"{n[name]:.2f} times", replies[name]) for name in ("same", "doubled", "squared")},
    )
    return Guess(
        f"At τ = 1 “{first}” is {n['same']:.2f} times as likely as “{second}”. And at τ = 0.5?",
        choices,
        right,
        f"At τ = 0.5 it is {n['found']:.2f} times as likely: compare the first two bars under τ = 1 and τ ="
        " 0.5.",
    )
