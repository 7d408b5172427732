"""Sentences (Markdown) of the view of reward, from values that they are given."""

from __future__ import annotations

from collections.abc import Sequence

from engine.measure.slices import seed_median
from engine.training.post_training.reward import ASKED, HALF, TRIES, Group, Plan, Rewarded, RewardEvaluation
from ui.page_frame import Words
from ui.text.numbers import minus

LEARN_FROM = "Learn from"
QUESTION = "What does a model learn from reward alone?"
REWARDS: dict[Rewarded, str] = {"right": "a correct sum", "ends in 0": "a sum that ends in 0"}
CLEAR = 0.05  # a share that changes by less is not said to have changed
NOTHING = "No run is stored here: press *Train*."
SEED_HINT = "Seeds 0, 1 and 2 are stored: the group shown is from one of them. Any seed can be trained here."
TRAIN = "Train seed {}"
DOING = "Half-training it, then training on reward"
LEASH_HINT = (
    "Adds the Kullback-Leibler divergence from the first model to the loss, with this weight: it keeps the"
    " model close to where it began."
)
REWARD = Words(
    see=(
        f"A small model is first taught sums of two numbers by example, until about {HALF:.0%} of its"
        " answers are right. From then on it is never shown a correct answer. Each step asks 16 questions"
        " and draws a group of answers to each. An answer's *advantage* is its reward minus its group's mean."
        " Answers with a positive advantage are made likelier, those with a negative one less likely."
        " Right: one group of the first step."
    ),
    why=(
        "This is how models are trained where an answer can be checked but not shown: REINFORCE (Williams"
        " 1992) with the group's mean as baseline, as in GRPO (Shao et al. 2024). A group whose answers all"
        " have the same reward teaches nothing. Compare pass@1 with pass@8: reward mostly"
        " makes the model reliably do what it could already do sometimes (Yue et al. 2025). And a model"
        " learns what is rewarded, not what was meant: *reward hacking*."
    ),
    attempt=(
        "Guess what a reward for sums that end in 0 does to the share of correct sums, then choose it."
        " Raise the KL penalty: how much of the damage does it prevent? Change the seed"
        " before you believe any of it."
    ),
)
MEASURED = (
    f"On {ASKED} sums that it was never taught: *first_try*, the share of drawn answers that are right;"
    " *greedy*, with the likeliest digit each time; *any_of*, questions with at least one right among"
    f" {TRIES} drawn answers; *reward*, the mean reward; *divergence* from the first model, in nats per"
    " digit."
)


def answer(plan: Plan, runs: Sequence[Sequence[RewardEvaluation]]) -> str:
    """Says what reward has changed: in one run, or by the median of several."""
    before, after = ([run[at] for run in runs] for at in (0, -1))
    first, reward = (seed_median(getattr(look, name) for look in after) for name in ("first_try", "reward"))
    began = seed_median(look.first_try for look in before)
    of = f", median of {len(runs)} seeds" if len(runs) > 1 else " in this run"
    if plan.rewarded == "right":
        better = all(a.first_try > b.first_try + CLEAR for a, b in zip(after, before, strict=True))
        says = "Reward alone makes answers more reliable" if better else "Reward does not help reliably"
        any_of = seed_median(look.any_of for look in after)
        return (
            f"{says}: the first try is right for **{first:.0%}** of new sums ({began:.0%} before{of}); at"
            f" least one of {TRIES} tries, for **{any_of:.0%}**."
        )
    fell = all(a.first_try < b.first_try - CLEAR for a, b in zip(after, before, strict=True))
    says = "The model learned what was rewarded, not what was meant" if fell else "The reward was learned"
    return (
        f"{says}: **{reward:.0%}** of its answers end in 0, and **{first:.0%}** are right ({began:.0%}"
        f" before{of})."
    )


def by_hand(group: Group) -> str:
    """Returns the formula, and the advantages of the group that is shown."""
    mean = group.mean
    right = minus(f"{1 - mean:.2f}"), minus(f"{-mean:.2f}")
    return (
        r"$$\nabla L = -\frac{1}{QG}\sum_{q}\sum_{i=1}^{G} A_{qi}\,\nabla\log p(a_{qi}\mid q), \qquad"
        r" A_{qi} = r_{qi} - \frac{1}{G}\sum_j r_{qj}$$"
        f"\n\nIn the group shown the mean reward is {mean:.2f}: a"
        f" rewarded answer has advantage {right[0]}, any other {right[1]}."
    )


def alt(runs: Sequence[Sequence[RewardEvaluation]]) -> str:
    ends = "; ".join(
        f"first try {run[-1].first_try:.0%}, one of {TRIES} {run[-1].any_of:.0%}, reward {run[-1].reward:.0%}"
        for run in runs
    )
    return f"Shares of right sums and mean reward by step of training. At the end: {ends}."


def group_alt(group: Group) -> str:
    each = ", ".join(
        f"{a} {minus(f'{v:+.2f}')}" for a, v in zip(group.answers, group.advantages, strict=True)
    )
    return f"Advantages of the answers to {group.question}: {each}."
