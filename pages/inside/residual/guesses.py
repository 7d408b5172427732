"""Guesses before the views of the residual stream."""

from __future__ import annotations

from engine.experiments.no_residual import Pair
from engine.lab.guesses import training
from ui.guess import Choice, Guess, offered

SAID = {
    "level": Choice(
        "It keeps up: shallow models do fine without them",
        "Even one block without a residual connection replaces what it reads, the token itself included.",
    ),
    "behind": Choice(
        "It learns, but lags behind",
        "Some of the token gets through each block, but how much depends on the depth and on the norms.",
    ),
    "stuck": Choice(
        "It only learns character frequencies",
        "Identical vectors cannot be distinguished, but so few blocks do not make all tokens the same.",
    ),
}
HOLDS = {
    "level": "With so few blocks both learn equally well.",
    "behind": "With so few blocks, some of each token still gets through.",
    "stuck": "Block by block the tokens become the same, and little is left to learn from.",
}


def depth(pair: Pair) -> Guess:
    """Makes a guess about the pair of another depth: `pair` is that one."""
    truth = training.without_residuals(pair)
    choices, right = offered(truth, SAID, HOLDS[truth.right])
    n = truth.numbers
    blocks = "1 block" if pair.depth == 1 else f"{pair.depth} blocks"
    return Guess(
        f"Now with {blocks}: how well does the model without residual connections learn?",
        choices,
        right,
        f"After {pair.steps} steps the loss is {n['without']:.2f} nats without them and {n['with']:.2f} with"
        f" them; character frequencies alone give {n['counting']:.2f}. The lines now show {blocks}.",
        {"residual_depth": pair.depth, "residual_shown": "losses"},
    )
