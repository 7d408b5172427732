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
        " their order. Dashed, the probability of the right answer. Right, the first draw's likeliest token"
        " after every word, right ones bold; darker means that the right answer is likelier."
    ),
    why=(
        "No weight changes. Without an example the model cannot know what is wanted; a few lines say so"
        " (Brown et al. 2020). What it answers, it learned in pre-training. Exchanged answers tell which part"
        " of the examples counts: sometimes only their form and kind of answer (Min et al. 2022), sometimes"
        " the rule that links the two."
    ),
    attempt=(
        "Exchange the answers for the antonyms, then for the capitals. A capital can be had from the country"
        " and the kind of answer; an antonym needs the rule. Find words that change from a token of layout to"
        " a synonym to the antonym."
    ),
)
WAYS = {"right": "right", "exchanged": "exchanged"}
WAYS_HINT = "Exchanged: every example has the answer of another example. The word at the end stays."
MEASURING = "Asking SmolLM2 every word"
NOT_HERE = (
    "SmolLM2 is not installed here, so there is no model of words to ask. A layer can be trained instead."
)


def answer(task: WordTask, few: FewShot, way: int) -> str:
    """Says how often it is right without an example and after the most, or what exchanged answers do."""
    right, other = (few.accuracy[each].mean(0) for each in (RIGHT, EXCHANGED))
    most = COUNTS[-1]
    if way == EXCHANGED:
        kept = other[-1] / right[-1] if right[-1] else 0.0
        does = (
            "The examples' own answers hardly matter here"
            if kept >= MOST
            else "Wrong examples mislead the model completely"
            if kept < FEW
            else "Wrong examples mislead the model"
        )
        return (
            f"{does}: with their answers exchanged it gives {task.answer} of **{other[-1]:.0%}** of words"
            f" after {most} examples, otherwise of **{right[-1]:.0%}**."
        )
    learns = (
        "Examples alone tell the model the task" if right[-1] > 2 * right[0] else "Examples change little"
    )
    return (
        f"{learns}: without one it gives {task.answer} of **{right[0]:.0%}** of words, after {most} of"
        f" **{right[-1]:.0%}** (mean of {few.accuracy.shape[1]} draws), and no weight changed."
    )


def measured(few: FewShot) -> str:
    """Says what was measured."""
    ways, draws, counts = few.accuracy.shape
    return (
        f"{len(few.pairs)} words, each asked after {', '.join(map(str, COUNTS))} others, in {draws} draws:"
        f" {ways * draws * len(few.pairs) * counts:,} answers. An answer is right if it is the likeliest next"
        " token. Minimum and maximum are those of the draws."
    )


def alt(task: WordTask, few: FewShot, way: int) -> str:
    shares = few.accuracy[way].mean(0)
    each = ", ".join(f"{count}: {share:.0%}" for count, share in zip(COUNTS, shares, strict=True))
    return f"Share of words to which the model gives {task.answer}, by examples in the prompt: {each}."


def answers_alt(task: WordTask) -> str:
    return f"The likeliest token after each word by examples, over the probability of {task.answer}."
