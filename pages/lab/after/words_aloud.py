"""Sentences (Markdown) of the three ways to answer, from values that they are given."""

from __future__ import annotations

from collections.abc import Sequence

from engine.data.tasks.parity import BITS, PARITIES
from engine.experiments.thinking_aloud import ALOUD, SOLVED, Accuracy, mean_end, recipe
from ui.page_frame import Words

MODES = {"training": "Training", "attempts": "Best of n"}
ALOUD_QUESTION = "Why does it help to think step by step?"
ALOUD_WORDS = Words(
    see=(
        f"Three models of one size learn the parity of {BITS} bits: 1 where the number of ones is odd. One"
        " answers at once; one after as many dots as the third writes steps; the third writes the parity of"
        " the first bit, of the first two, and so on. Left: the loss on answers. Right: how often the last"
        " bit is right."
    ),
    why=(
        "Parity depends on every bit at once, so a part of the bits gives no hint and no gradient points"
        " the way. Written out, each step needs one bit and the step before (a scratchpad: Nye et al. 2021;"
        " chain of thought: Wei et al. 2022; why it is learned: Wies et al. 2023, Kim and Suzuki 2024)."
        " Dots give as many positions to compute in, but hold nothing to read."
    ),
    attempt=(
        "Press *Race* to train all three now. Two blocks can represent parity without steps, so a longer"
        " run may still find it: continue one on its own page. Dots can help after special training on"
        " other tasks (Pfau et al. 2024)."
    ),
)
MODE_HINT = "Training: longer answers. Best of n: many answers to one question, from a model as it is."
LABELS = {"parity_at_once": "at once", "parity_dots": "with dots", "parity_aloud": "thinking aloud"}


def answer(scores: Sequence[Accuracy]) -> str:
    """Says how many new problems each way solves."""
    by_task = {each.task: each for each in scores}
    aloud, others = by_task.get(ALOUD), [each for each in scores if each.task != ALOUD]
    if aloud is None or not others:
        return "Nothing has been validated yet."
    if aloud.solved and all(each.guesses for each in others):
        lead = "Writing out" if len(aloud.shares) > 1 else "In this race, writing out"
        return (
            f"{lead} its steps, the model solves **{aloud.end:.0%}** of new problems; answering at"
            f" once, or after as many dots, it does no better than a coin toss (**{mean_end(others):.0%}**)."
        )
    rest = " and ".join(f"**{each.end:.0%}** {LABELS[each.task]}" for each in others)
    return f"So far the model solves **{aloud.end:.0%}** of new problems thinking aloud, {rest}."


def accuracy_alt(scores: Sequence[Accuracy]) -> str:
    ends = ", ".join(f"{each.title} {each.end:.0%}" for each in scores)
    return f"Share of new problems whose last bit is right, by step; at the end: {ends or 'nothing yet'}."


def measured(scores: Sequence[Accuracy]) -> str:
    """Says when each was solved, and by which recipe."""
    said = []
    for each in scores:
        seeds = len(each.shares)
        of = f"{seeds} seeds" if seeds > 1 else "1 seed"
        low, high = each.shares[:, -1].min(), each.shares[:, -1].max()
        ends = f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"
        at = each.solved_at
        fails = "never reaches" if each.shares.max() < SOLVED else "does not stay at"
        when = f"{fails} {SOLVED:.0%}" if at is None else f"at least {SOLVED:.0%} from step {at:,} on"
        said.append(f"- *{each.title}*, {of}: **{ends}** at the end; {when}.")
    return "\n".join([*said, "", _recipe()])


def _recipe() -> str:
    model, train = recipe(PARITIES[ALOUD])
    return (
        f"{model.n_layers} blocks, {model.n_heads} heads, width {model.d_model}, RoPE; AdamW with a"
        f" learning rate of {train.learning_rate:g}, {train.steps:,} steps of {train.batch_size} problems."
        " Each point is 100 held-out problems, the same for every seed; only the answer counts in the loss."
        " Stored by `python -m engine.experiments races thinking`."
    )
