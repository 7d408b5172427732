"""Sentences (Markdown) of examples in a prompt of SmolLM2, from values that they are given."""

from __future__ import annotations

from engine.lab.guesses.after import FEW, MOST
from engine.measure.circuits.examples_in_prompt import COUNTS, EXCHANGED, RIGHT, FewShot
from pages.lab.after.prompts import WordTask
from ui.page_frame import Words

FEW_SHOT = Words(
    see=(
        "A *few-shot* prompt: lines of examples, then a word alone. Left, the share of words whose likeliest"
        " next token is the right answer, by number of examples; a thin line is one draw of examples and"
        " their order. Dashed, the probability of the right answer. On the right, the first draw's likeliest"
        " token after every word, correct ones in bold; a stronger colour means a likelier right"
        " answer."
    ),
    why=(
        "No weight changes. Without an example the model cannot know the task; a few lines specify it"
        " (Brown et al. 2020). Its answers come from pre-training. Swapped answers show what matters in"
        " the examples: sometimes only their form and kind of answer (Min et al. 2022), sometimes the rule"
        " that links the two."
    ),
    attempt=(
        "Swap the answers of the antonyms, then of the capitals. A capital follows from the country"
        " and the kind of answer; an antonym needs the rule. Find words whose answer goes from blank to"
        " synonym to antonym."
    ),
)
WAYS = {"right": "right", "exchanged": "swapped"}
WAYS_HINT = "Swapped: every example has another example's answer. The query word stays the same."
MEASURING = "Testing SmolLM2 on words"
NOT_HERE = (
    "SmolLM2 is not installed here, so there is no language model to ask. You can train a layer instead."
)


def answer(task: WordTask, few: FewShot, way: int) -> str:
    """Says how often it is right without an example and after the most, or what exchanged answers do."""
    right, other = (few.mean_accuracy[each] for each in (RIGHT, EXCHANGED))
    most = COUNTS[-1]
    if way == EXCHANGED:
        share = other[-1] / right[-1] if right[-1] else 0.0
        does = (
            "The examples' own answers hardly matter here"
            if share >= MOST
            else "Wrong examples mislead the model completely"
            if share < FEW
            else "Wrong examples mislead the model"
        )
        return (
            f"{does}: with answers swapped it gives {task.answer} for **{other[-1]:.0%}** of words"
            f" after {most} examples, otherwise for **{right[-1]:.0%}**."
        )
    learns = (
        "Examples alone tell the model the task" if right[-1] > 2 * right[0] else "Examples change little"
    )
    return (
        f"{learns}: with none it gives {task.answer} for **{right[0]:.0%}** of words, with {most} for"
        f" **{right[-1]:.0%}** (mean of {few.accuracy.shape[1]} draws), and no weight changed."
    )


def measured(few: FewShot) -> str:
    """Says what was measured."""
    ways, draws, counts = few.accuracy.shape
    return (
        f"{len(few.pairs)} words, each asked after {', '.join(map(str, COUNTS))} others, in {draws} draws:"
        f" {ways * draws * len(few.pairs) * counts:,} answers. An answer is right if it is the likeliest next"
        " token. Minimum and maximum are over the draws."
    )


def alt(task: WordTask, few: FewShot, way: int) -> str:
    shares = few.mean_accuracy[way]
    each = ", ".join(f"{count}: {share:.0%}" for count, share in zip(COUNTS, shares, strict=True))
    return f"Share of words to which the model gives {task.answer}, by examples in the prompt: {each}."


def answers_alt(task: WordTask) -> str:
    return f"The likeliest token after each word by examples, over the probability of {task.answer}."
