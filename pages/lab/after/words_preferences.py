"""Sentences (Markdown) of the view of preferences, from values that they are given."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from engine.measure.slices import seed_median
from engine.training.post_training.preferences import (
    CHARACTERS,
    PAIRS,
    SAMPLES,
    Kind,
    Plan,
    PreferenceEvaluation,
)
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import minus

QUESTION = "How does a model learn a preference?"
TASTES: dict[Kind, str] = {
    "short": "the shorter sentence",
    "long": "the longer sentence",
    "with": "with a word",
    "without": "without a word",
}
CHANCE = 0.6  # of held-out pairs: what not every seed ranks right counts as chance
NOTHING = "No run is stored for this: press *Train*."
TRAIN = "Train"
DOING = "Drawing pairs and training on them"
BETA_HINT = (
    "Scales the log-ratios in the loss. With a larger beta, a small change in probabilities is enough, so"
    " the model stays closer to the frozen one."
)
SEED_HINT = "Seeds 0, 1 and 2 are stored. Any seed can be trained here: about 20 seconds."
PREFERENCES = Words(
    see=(
        "A small model has learned Shakespeare. It is shown pairs of texts, one chosen and one rejected, and"
        " a frozen copy of it is the reference. The *margin* is beta times the difference of two log-ratios:"
        " how much likelier the chosen text has become than in the frozen model, minus the same for the"
        " rejected one. A pair is ranked right if its margin is positive. Thin lines are single seeds."
    ),
    why=(
        "Direct preference optimisation (DPO: Rafailov et al. 2023) needs neither a reward model nor samples"
        " while it trains. Its loss depends only on the difference between the two texts: the log-probability"
        " of the chosen text may fall too, as long as that of the rejected one falls further (Pal et al."
        " 2024). Held-out pairs show what it learned beyond its training pairs."
    ),
    attempt=(
        "Change beta: how short do sentences get, and how far do log-probabilities fall? Prefer the longer"
        " sentence: samples get longer, but are held-out pairs ranked right? Type a word and press *Train*."
    ),
)
MEASURED = (
    f"At most {PAIRS} pairs, a quarter of them held out. A text is a first sentence after *ROMEO:*, cut at"
    f" {CHARACTERS} characters: the model's own samples for length, speeches from its training text for"
    f" a word. *measured* is the mean over {SAMPLES} new samples: characters, or the share with the word."
    " Stored by `python -m engine.experiments preferences`."
)


def answer(plan: Plan, runs: Sequence[Sequence[PreferenceEvaluation]]) -> str:
    """Says what the model writes now and how it ranks held-out pairs: of one run, or the median of several;
    and whether even chosen texts became less likely.
    """
    before, after = ([run[at] for run in runs] for at in (0, -1))
    began, ends = (seed_median(look.measured for look in looks) for looks in (before, after))
    of = f", median of {len(runs)} seeds" if len(runs) > 1 else " in this run"
    if plan.taste.of_word:
        now = f"**{ends:.0%}** of new samples contain “{safe(plan.taste.word)}” ({began:.0%} before{of})"
    else:
        now = f"New sentences are **{ends:.0f}** characters long ({began:.0f} before{of})"
    ranked = seed_median(look.held_out.ranked for look in after)
    if all(look.held_out.ranked > CHANCE for look in after):
        return f"{now}, and **{ranked:.0%}** of held-out pairs are ranked right. {_fell(after)}"
    return (
        f"{now}, but held-out pairs are ranked hardly better than by chance: **{ranked:.0%}**. {_fell(after)}"
    )


def _fell(after: Sequence[PreferenceEvaluation]) -> str:
    """Says which log-probabilities of chosen texts fell, where those of rejected texts fell further."""
    for scores, where in (
        ([look.training for look in after], ""),
        ([look.held_out for look in after], " on held-out pairs"),
    ):
        if all(each.rejected < each.chosen < 0 for each in scores):
            return f"Both log-probabilities fell{where}, that of the rejected text further."
        if all(each.chosen < 0 and each.rejected < 0 for each in scores):
            return f"Both log-probabilities fell{where}."
    return "The chosen text became likelier than the rejected one."


def by_hand(plan: Plan, look: PreferenceEvaluation) -> str:
    """Returns the loss, and its arithmetic with the means of the held-out pairs."""
    s = look.held_out
    chosen, rejected, margin = (minus(f"{value:.2f}") for value in (s.chosen, s.rejected, s.margin))
    weight = 1 / (1 + exp(s.margin))
    return (
        r"$$L = -\log\sigma(m), \qquad"
        r" m = \beta\Big[\log\frac{p(y_w)}{p_0(y_w)} - \log\frac{p(y_l)}{p_0(y_l)}\Big], \qquad"
        r" \nabla L = -\beta\,\sigma(-m)\,[\nabla\log p(y_w) - \nabla\log p(y_l)]$$"
        f"\n\nOn held-out pairs the mean log-ratios are {chosen} and {rejected}, so the margin is m ="
        f" {plan.beta:g} ({chosen} − ({rejected})) = {margin}. A pair with this margin pulls with a weight of"
        f" σ(−m) = {weight:.2f}; at the first step it was 0.50."
    )


def samples(before: Sequence[str], after: Sequence[str], steps: int) -> str:
    """Returns a table of texts that the model wrote before and after, line breaks as strokes."""
    rows = [f"| {_verse(first)} | **{_verse(then)}** |" for first, then in zip(before, after, strict=False)]
    return "\n".join([f"| ROMEO, before | after {steps} steps |", "|-|-|", *rows])


def _verse(text: str) -> str:
    return safe(" / ".join(line for line in text.strip().split("\n") if line))


def alt(runs: Sequence[Sequence[PreferenceEvaluation]]) -> str:
    """Returns what the curves end at, for those who do not see them."""
    ends = "; ".join(
        f"margin {minus(f'{run[-1].training.margin:.2f}')}, held out"
        f" {minus(f'{run[-1].held_out.margin:.2f}')}, ranked right {run[-1].held_out.ranked:.0%}"
        for run in runs
    )
    return f"Margin, ranking, log-probabilities and samples by step of DPO. At the end: {ends}."
