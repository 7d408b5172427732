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
        "It attends to the copied position, but other heads attend there as well and back it up.",
    ),
    "before": (
        "a previous-token head below it",
        "It writes the previous token into each position, and the heads above match on that. Here other heads"
        " write it as well, or it is needed less.",
    ),
    "idle": (
        "a head that does neither",
        "It attends neither to the copy nor to the previous token, but here something else it does matters"
        " more.",
    ),
}
HOLDS = {
    "copies": "It attends to what followed the same token last time; no other head does it equally well.",
    "before": "Every copying head finds its position from what this head wrote at each token.",
    "idle": "It takes no part in copying, yet ablating it hurts most: every text needs what it does.",
}


def head(model: Transformer, repeat: Repeat) -> Guess | None:
    """Returns which head is missed most at the second reading."""
    truth = attention.missed_head(model, repeat)
    if truth is None:
        return None
    names = {kind: f"{layer}.{at}" for kind, (layer, at) in attention.candidates(repeat).items()}
    choices, right = offered(
        truth,
        {
            kind: Choice(f"Head {name}, {SAID[kind][0]}", _wrong(kind, truth.right))
            for kind, name in names.items()
        },
        HOLDS[truth.right],
    )
    n = truth.numbers
    losses = ", ".join(f"{n[kind]:.2f} without head {names[kind]}" for kind in truth.offered)
    return Guess(
        "One head is ablated. Which one raises the loss of the second reading most?",
        choices,
        right,
        f"It costs {n['whole']:.2f} nats with all heads, {losses}. “Measure it” below ablates more of them.",
        {explain.MEASURE: True},
    )


def _wrong(kind: str, right: str) -> str:
    """Names the thought behind choosing a head that is missed less than the right one."""
    if kind == "idle":
        return "It attends neither to the copy nor to the previous token: the second reading hardly needs it."
    why = SAID[kind][1]
    return why if right != "idle" else f"{why} And predicting text takes more than copying."
