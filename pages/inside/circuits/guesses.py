"""Guesses before the views of Circuits."""

from __future__ import annotations

from engine.lab.guesses import attention
from engine.measure.circuits.induction import Repeat
from engine.model import Transformer
from ui import explain
from ui.guess import Choice, Guess, offered

SAID = {
    "copies": (
        "the best induction head",
        "It looks where the copy stands; but others look there, too, and stand in for it.",
    ),
    "before": (
        "a head below it that reads the token before",
        "It writes beside each token which one came before; without that the heads above find no place. Here"
        " others write it, too, or it is needed less.",
    ),
    "idle": (
        "a head that does neither",
        "It looks neither at the copy nor at the token before, but here something else in it is missed more.",
    ),
}
HOLDS = {
    "copies": "It attends to what followed the same token last time; nobody else does it as well.",
    "before": "All heads that copy find their place by what it wrote beside each token.",
    "idle": "It takes part in no copying, and is missed all the same: what it does every text needs.",
}


def head(model: Transformer, repeat: Repeat) -> Guess | None:
    """Returns which head is missed most at the second reading."""
    truth = attention.missed_head(model, repeat)
    if truth is None:
        return None
    names = {kind: f"{layer}.{at}" for kind, (layer, at) in attention.candidates(repeat).items()}
    choices, right = offered(
        truth,
        {kind: Choice(f"{name}, {SAID[kind][0]}", _wrong(kind, truth.right)) for kind, name in names.items()},
        HOLDS[truth.right],
    )
    n = truth.numbers
    losses = ", ".join(f"{n[kind]:.2f} without {names[kind]}" for kind in truth.offered)
    return Guess(
        "One head alone is switched off. Without which one does the second reading cost most?",
        choices,
        right,
        f"It costs {n['whole']:.2f} nats with all heads, {losses}. “Measure it” below switches more"
        " of them off.",
        {explain.MEASURE: True},
    )


def _wrong(kind: str, right: str) -> str:
    """Names the thought behind choosing a head that is missed less than the right one."""
    if kind == "idle":
        return "It looks neither at the copy nor at the token before: the second reading hardly needs it."
    return SAID[kind][1] if right != "idle" else f"{SAID[kind][1]} And copying is not all that a text needs."
