"""What the view of the reasons says."""

from __future__ import annotations

from engine.training.reasons import DRAWS, Interface, Lessons, Writing
from ui.look import Words

QUESTION = "Why did models that only continue win?"
REASONS = {
    "lessons": "A lesson at every token",
    "interface": "One way to ask",
    "cache": "What was read is kept",
    "work": "All of it works",
}


def table(found: Lessons, written: Writing, tasks: Interface, share: float) -> dict[str, list[str]]:
    """What each family has of each reason."""
    return {
        "measured": [
            "losses from one text",
            "tasks of the lab",
            f"work to write {written.written} tokens more",
            "parameters that write a token",
        ],
        "Encoder": [
            f"{found.encoder:.1f}",
            "another output for each task",
            f"{written.again / 1e9:,.0f} GFLOP: all is read again",
            "it writes none",
        ],
        "Decoder": [
            f"{found.decoder}",
            f"{tasks.tasks} as continuations, each at least {tasks.least:.1%} right",
            f"{written.kept / 1e9:,.0f} GFLOP",
            "100%",
        ],
        "Encoder-decoder": [
            f"{found.both}, the target's",
            "pairs of source and target only",
            "the source is kept, too",
            f"{share:.0%}",
        ],
    }


def won(tokens: int, percent: int, found: Lessons, written: Writing) -> str:
    """The two that weigh most (Markdown)."""
    return (
        f"From {tokens} tokens a decoder draws **{found.decoder} lessons**, an encoder with {percent}% hidden"
        f" {found.encoder:.1f}: **{found.times:.1f} times** as many. And it writes more cheaply: who looks"
        f" both ways reads all again for each token, **{written.times:.0f} times** the work."
    )


WHY = Words(
    see=(
        "Four reasons that are given for the victory of GPT's family, a row each, with what can be counted"
        " in this app. Sizes: 12 layers, 768 wide, a vocabulary of 32,000."
    ),
    why=(
        "Between 2018 and 2020 the three were rivals; by 2023 nearly every large model was a decoder. The"
        " reasons lie in training and in use, not in what such a model could understand."
    ),
    attempt=(
        "Hide more from the encoder: lessons grow, but each has less to go by. Make the text longer and"
        " see what reading again costs."
    ),
)
BY_HAND = (
    f"**Lessons**: the batches that training draws, {DRAWS:,} texts with places hidden by chance; a"
    f" decoder predicts"
    " the next token at every place. T5 hides 15%, too, and writes only what was hidden (Raffel et al."
    " 2020); here the encoder-decoder translates the first half of the text into the second.\n\n"
    "**Work**: a token that looks at $n$ costs $f(n)$ FLOPs. With a cache $T f(T) + \\sum_n f(n)$; without,"
    " $\\sum_n n f(n)$, for $n$ from $T$ to $2T - 1$.\n\n"
    "**One way to ask**: the page Tasks trains one and the same decoder to copy, sort, add and more; what"
    " it solves of problems it never saw is in `checkpoints/tasks`. **All of it works**: once the source"
    " is read, an encoder's parameters wait. That every law of scaling was first measured on decoders"
    " (Kaplan et al. 2020) is a reason, too, and none that is measured here."
)
