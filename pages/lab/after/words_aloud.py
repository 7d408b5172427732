"""Sentences (Markdown) of the three ways to answer, from values that they are given."""

from __future__ import annotations

from collections.abc import Sequence

from engine.data.tasks.carries import COLUMNS
from engine.data.tasks.parity import BITS
from engine.experiments.thinking_aloud import CARRIES, SOLVED, Accuracy, Problem, mean_end, recipe
from ui.page_frame import Words

COMPUTE = "More compute"
QUESTION = "Why does it help to think step by step?"
WHICH_HEAD = "Which head reads the next bit?"
PARITY = Words(
    see=(
        f"Three equal-sized models learn the parity of {BITS} bits: 1 where the number of ones is odd. One"
        " answers at once; one first writes as many dots as the third writes steps; the third writes the"
        " parity of the first bit, of the first two, and so on. In the examples *parity* shows where the"
        " answer begins; no model reads that word. Left: the loss on answers. Right: how often the last bit"
        " is right."
    ),
    why=(
        "Parity depends on every bit at once, so no subset of bits gives a hint and no gradient points the"
        " way. In the written-out form, each step needs one bit and the step before (a scratchpad: Nye et al."
        " 2021; chain of thought: Wei et al. 2022; why it is learned: Wies et al. 2023, Kim and Suzuki 2024)."
        " Dots give just as many positions to compute in but carry no information."
    ),
    attempt=(
        "Press *Race* to train all three now. Two blocks can represent parity without steps, so a longer"
        " run may still find it: continue one on its own page. Dots can help after special training on"
        " other tasks (Pfau et al. 2024)."
    ),
)
ADDITION = Words(
    see=(
        f"Three equal-sized models learn to add two numbers of {COLUMNS} digits. One writes the sum at once;"
        " one first writes as many dots as the third writes steps; the third writes each column's carry (the"
        " small 0 or 1) and digit, from the last column to the first, and then the sum. In the examples"
        " *sum* shows where that begins; no model reads the word. Left: the loss on answers. Right: how often"
        " the whole sum is right."
    ),
    why=(
        "A digit of a sum depends on its column and, through the carries, on all columns to its right."
        " When the model answers at once, the first digit comes before any column has been added. In the"
        " written-out form, a step needs two digits and the carry before it, and the sum is copied from the"
        " steps: the scratchpad of Nye et al. 2021 (*Show Your Work*), whose example is long addition. Dots"
        " (Pfau et al. 2024) give just as many positions to compute in but carry no information."
    ),
    attempt=(
        "Press *Race* to train all three now. Addition at once is harder to learn, not impossible: continue"
        " one of the others on its own page, and look at which digits of its sums are right first."
    ),
)
POSITIONS = {"rope": "RoPE", "learned": "learned positions"}
COMPUTE_HINT = (
    "Parity, addition: training on longer answers. Best of n: many answers to one question, with no further"
    " training."
)
# by task title
LABELS = {"At once": "at once", "With dots": "with dots", "Chain of thought": "chain of thought"}


def answer(scores: Sequence[Accuracy]) -> str:
    """Says how many new problems each way solves."""
    aloud = next((each for each in scores if each.task == each.problem.ways[-1]), None)
    others = [each for each in scores if each is not aloud]
    if aloud is None or not others:
        return "Nothing has been validated yet."
    lead = "Writing out" if len(aloud.shares) > 1 else "In this race, writing out"
    if aloud.solved and aloud.problem.race == CARRIES and not any(each.solved for each in others):
        return _adds(lead, aloud, others)
    if aloud.solved and all(each.guesses for each in others):
        return (
            f"{lead} its steps (chain of thought), the model solves **{aloud.end:.0%}** of new problems;"
            f" answering at once, or after as many dots, it does no better than a coin toss"
            f" (**{mean_end(others):.0%}**)."
        )
    rest = " and ".join(f"**{each.end:.0%}** {LABELS[each.title]}" for each in others)
    return f"So far the model solves **{aloud.end:.0%}** of new problems with a chain of thought, {rest}."


def _adds(lead: str, aloud: Accuracy, others: Sequence[Accuracy]) -> str:
    """Says how many new sums are right, where only the model that writes its steps solves them: of the other
    runs the best.
    """
    best = max(float(each.shares[:, -1].max()) for each in others)
    most = f"gets more than **{best:.0%}**" if best else "gets any of them right"
    return (
        f"{lead} each column's carry and digit (chain of thought), the model gets **{aloud.end:.0%}** of new"
        f" sums right; at once or with dots, no run of the same length {most}."
    )


def accuracy_alt(scores: Sequence[Accuracy]) -> str:
    ends = ", ".join(f"{each.title} {each.end:.0%}" for each in scores)
    right = "sum" if scores and scores[0].problem.race == CARRIES else "last bit"
    return f"Share of new problems whose {right} is right, by step; at the end: {ends or 'nothing yet'}."


def measured(scores: Sequence[Accuracy]) -> str:
    """Says when each was solved, and by which recipe."""
    lines = []
    for each in scores:
        seeds = len(each.shares)
        of = f"{seeds} seeds" if seeds > 1 else "1 seed"
        low, high = each.shares[:, -1].min(), each.shares[:, -1].max()
        ends = f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"
        at = each.solved_at
        fails = "never reaches" if each.shares.max() < SOLVED else "does not stay at"
        when = f"{fails} {SOLVED:.0%}" if at is None else f"at least {SOLVED:.0%} from step {at:,} on"
        lines.append(f"- *{each.title}*, {of}: **{ends}** at the end; {when}.")
    return "\n".join([*lines, "", _recipe(scores[0].problem)]) if scores else ""


def _recipe(problem: Problem) -> str:
    model, train = recipe(problem.tasks[problem.ways[-1]])
    return (
        f"{model.n_layers} blocks, {model.n_heads} heads, width {model.d_model}, {POSITIONS[model.position]};"
        f" AdamW with a learning rate of {train.learning_rate:g}, {train.steps:,} steps of"
        f" {train.batch_size} problems."
        " Each point is 100 held-out problems, the same for every seed; only the answer counts in the loss."
        f" Stored by `python -m engine.experiments races {problem.race}`."
    )
