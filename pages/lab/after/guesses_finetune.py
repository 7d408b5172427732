"""The guesses before the view Fine-tuning: about rehearsal, where stored runs tell, else about the rank."""

from __future__ import annotations

from collections.abc import Sequence

from engine.experiments.finetune_runs import FinetuneRun
from engine.lab.guesses import after
from engine.model import Transformer
from engine.training.post_training.lessons import Topic
from ui.guess import Choice, Guess, offered

MORE = 16  # the rank that a guess sets
ADAPTER = {
    "times": Choice("In proportion to the rank", "Each rank adds a column to B and a row to A."),
    "square": Choice(
        "With the square of the rank", "B and A grow side by side: their sizes add up, and do not multiply."
    ),
    "all": Choice("To all of the model's weights", "That is full fine-tuning: an adapter stays thin."),
}

REHEARSED = {
    "kept": Choice("About as likely as before", "Nothing would be forgotten."),
    "half": Choice("Less likely, but not lost", "Old and new would share the answer."),
    "lost": Choice("Hardly likely at all", "The new sentences would win: there are more of them."),
}
HOLDS = {
    "kept": "Every step also pulls towards the old facts, so they keep their answers.",
    "half": "Rehearsal prevents part of the forgetting.",
    "lost": "So few old sentences cannot hold their own against the new ones.",
}


def rehearsed(
    topic: Topic, now: bool, without: Sequence[FinetuneRun], rehearsing: Sequence[FinetuneRun], control: str
) -> Guess | None:
    """Makes a guess about the first old fact, from stored runs without and with rehearsal; a choice
    switches it on, in the `control`. None where it is on `now`.
    """
    if now or not (without and rehearsing):
        return None
    at = -1 - len(topic.known)
    ends = ([run.values[-1][at] for run in runs] for runs in (without, rehearsing))
    truth = after.rehearsed(without[0].values[0][at], *ends)
    if truth is None:
        return None
    choices, right = offered(truth, REHEARSED, HOLDS[truth.right])
    n, old = truth.numbers, topic.known[0].answer.strip()
    return Guess(
        f"Each step reads {len(topic.rehearsed)} sentences on old facts, too: how likely is {old} then?",
        choices,
        right,
        f"{n['before']:.0%} before; after {without[0].steps[-1]} steps {n['without']:.0%} without rehearsal,"
        f" {n['rehearsed']:.0%} with it. Medians of {len(rehearsing)} stored runs: press Fine-tune.",
        {control: True},
    )


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
