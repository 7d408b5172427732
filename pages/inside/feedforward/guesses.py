"""The guess before the trainings of Dropout."""

from __future__ import annotations

from collections.abc import Sequence

from engine.experiments.dropout_runs import WHOLE, Ends
from engine.lab.guesses import training
from ui.guess import Choice, Guess, offered

SAID = {
    "helps": Choice("It lowers it", "A model that overfits has something to gain from noise."),
    "nothing": Choice("Hardly at all", "Seeds would differ by as much."),
    "costs": Choice("It raises it", "A model that does not overfit only learns more slowly with noise."),
}
HOLDS = {
    "helps": "The model memorises so little text, and the noise gets in the way of that.",
    "nothing": "The seeds differ by as much.",
    "costs": "The text is not even read once: there is nothing to overfit, and noise only slows learning.",
}


def dropout(finals: Sequence[Ends], characters: int) -> Guess | None:
    """Makes a guess about the largest share on the other text; a choice shows that text."""
    truth = training.dropped(finals)
    if truth is None:
        return None
    choices, right = offered(truth, SAID, HOLDS[truth.right])
    n = truth.numbers
    text = "the whole text" if characters == WHOLE else f"only {characters:,} characters"
    return Guess(
        f"Now the model trains on {text}. What does dropout {n['share']:g} do to the loss on held-out text?",
        choices,
        right,
        f"Held-out loss at the end: {n['without']:.2f} nats without dropout, {n['with']:.2f} with"
        f" {n['share']:g} (medians of {n['seeds']:.0f} seeds). The lines now show this text.",
        {"dropout_text": characters},
    )
