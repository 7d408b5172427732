"""Sentences (Markdown) of the view of many answers to one question, from values that they are given."""

from __future__ import annotations

from math import comb

from engine.measure.slices import seed_median
from engine.measure.tasks.attempts import COUNTS, MOST, SEEDS, Attempts, Votes
from engine.training.post_training.reward import ASKED, HALF
from ui.page_frame import Words

QUESTION = "How much do more answers help?"
CLEAR = 0.05  # a share that is higher by less is not said to be higher
DOING = "Half-training three models, then drawing answers"
HINT = "Sampling temperature: the lower, the more alike the answers."
QUESTION_HINT = f"One of {ASKED} held-out sums, first seed."
ATTEMPTS = Words(
    see=(
        f"Small models, taught sums until {HALF:.0%} of their answers are right, answer every held-out sum"
        f" {MOST} times. *Verifier*: at least one of n answers is right, and a check would find it (pass@n)."
        " *Majority vote*: the most frequent of n answers is right. Thin lines are single seeds, the thick"
        " line their median. Right: the votes for one sum."
    ),
    why=(
        "Test-time compute makes a model better without training it. A verifier, such as a program's"
        " tests, gains most (pass@k: Chen et al. 2021; repeated sampling: Brown et al. 2024). A majority"
        " vote needs none (self-consistency: Wang et al. 2023), but it can only choose what is already the"
        " most frequent answer. Two votes are no better than one: ties break at random."
    ),
    attempt=(
        "Lower the temperature: a single answer gets better, but which curve gets worse at n = 64? Find a sum"
        " for which the vote is wrong, though the right answer is among the 64."
    ),
)


def answer(attempts: Attempts) -> str:
    """Says what most answers gain over a single one, by medians of the seeds."""
    single, vote, verified = (
        seed_median(values.tolist())
        for values in (attempts.single, attempts.majority[:, -1], attempts.verifier[:, -1])
    )
    alike = (attempts.majority[:, -1] < attempts.single + CLEAR).any()
    gains = "a majority vote hardly gains" if alike else "a majority vote gains less"
    return (
        f"With a verifier, {MOST} answers solve **{verified:.1%}** of new sums, where a single one solves"
        f" **{single:.0%}** (medians of {len(SEEDS)} seeds); {gains}: **{vote:.0%}**."
    )


def votes(each: Votes) -> str:
    """Says what the votes for a sum come to."""
    top, count = each.answers[0]
    right = dict(each.answers).get(each.right, 0)
    if top == each.right:
        return f"The vote is right: {count} of {MOST}."
    if right:
        return f"The vote is wrong; a verifier would find the {right} right ones."
    return "No answer is right: neither a vote nor a verifier helps."


def by_hand(each: Votes, k: int = COUNTS[3]) -> str:
    """Returns the estimate of pass@k, and its arithmetic for the sum that is shown."""
    c = dict(each.answers).get(each.right, 0)
    estimate = 1 - comb(MOST - c, k) / comb(MOST, k)
    return (
        r"$$\text{pass@}k = 1 - \binom{n-c}{k}\Big/\binom{n}{k}$$"
        f"\n\nFor the sum shown c = {c} of n = {MOST} answers are right: pass@{k} = {estimate:.3f}, the mean"
        f" over all choices of {k} answers. Using 1 − (1 − c/n)^k instead would be biased. The vote is"
        f" counted in {MOST // k} groups of {k} that do not overlap."
    )


def alt(attempts: Attempts) -> str:
    """Returns what the curves end at, for those who do not see them."""
    ends = "; ".join(
        f"one answer {s:.0%}, vote {m:.0%}, verifier {v:.0%}"
        for s, m, v in zip(attempts.single, attempts.majority[:, -1], attempts.verifier[:, -1], strict=True)
    )
    return f"Share of right sums by number of answers. With {MOST}, by seed: {ends}."


def votes_alt(each: Votes) -> str:
    """Returns the votes for a sum as a sentence."""
    counted = ", ".join(f"{answer} {count} times" for answer, count in each.answers[:8])
    return f"Answers to {each.question}{each.right}: {counted}."
