"""The guess before the view Fine-tuning."""

from __future__ import annotations

from engine.lab.guesses import after
from engine.model import Transformer
from ui.guess import Choice, Guess, offered

MORE = 16  # the rank that a guess sets
ADAPTER = {
    "times": Choice("In proportion to the rank", "Each rank adds a column to B and a row to A."),
    "square": Choice(
        "With the square of the rank", "B and A grow side by side: their sizes add up, and do not multiply."
    ),
    "all": Choice("To all of the model's weights", "That is full fine-tuning: an adapter stays thin."),
}


def adapter(model: Transformer, rank: int, control: str) -> Guess | None:
    """Makes a guess about the numbers that a larger adapter trains; a choice sets the `control`."""
    truth = after.adapter(model, rank, MORE)
    if truth is None:
        return None
    choices, right = offered(truth, ADAPTER)
    n = truth.numbers
    return Guess(
        f"LoRA rank {MORE} instead of {rank}: how does the number of trained parameters grow?",
        choices,
        right,
        f"{n['after']:,.0f} instead of {n['before']:,.0f}: {n['ratio']:g} times as many,"
        f" {n['after'] / n['total']:.2%} of the model's {n['total']:,.0f} weights.",
        {control: f"lora-{MORE}"},
    )
