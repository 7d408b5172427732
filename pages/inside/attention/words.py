"""Sentences of the views of Attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from engine.ledger.growth import Headed
from engine.measure.attention.attention_targets import NEAREST
from engine.measure.attention.head_patterns import STRONG, Counts, Habit, extremes, followers
from engine.measure.attention.heads import HeadNumbers, HeadValue
from engine.measure.attention.single_head import WrittenOut
from ui import widgets
from ui.model_bar import Subject
from ui.page_frame import Ask, Words
from ui.text.markdown import safe
from ui.text.numbers import counted, minus

# Heads ------------------------------------------------------------------------------------------

HEADS_QUESTION = "Who attends to whom?"
SORT, HEAD_TYPE, BLOCK, STRONG_ONLY = "Sort by", "head type", "block", "Strong only"
SHOW_AS, ARCS = "Show as", "Arcs"
FORMS = ("Heatmap", ARCS)
ARCS_HINT = (
    "Left: the token that attends. Right: what it attends to. Point at a token, or use the arrow keys."
    " Weights below 0.02 are drawn only for the token you point at."
)
STRONG_HINT = (
    f"Only heads with at least {STRONG:.0%} of their weight on one pattern, and twice the uniform share."
    " Heads that attend broadly, locally, within their own word or to the first token are left out."
)
DOING: dict[Habit, tuple[str, str]] = {  # "Of 16 heads, 1 reads ..., 7 read ..."
    "previous": ("attends to the previous token", "attend to the previous token"),
    "word_start": ("attends to the start of its word", "attend to the start of their word"),
    "breaks": ("attends to spaces and punctuation", "attend to spaces and punctuation"),
    "same": ("attends to earlier copies of the token", "attend to earlier copies of the token"),
    "itself": ("attends to the token itself", "attend to the token itself"),
    "induction": ("performs induction", "perform induction"),
    "duplicate": ("attends to duplicate tokens", "attend to duplicate tokens"),
    "name_mover": ("copies names", "copy names"),
    "own_word": ("attends within its own word", "attend within their own word"),
    "broad": ("attends broadly", "attend broadly"),
    "near": ("attends locally", "attend locally"),
    "first": ("attends to the first token", "attend to the first token"),
}
DOES: dict[Habit, str] = {  # "Head 2 of layer 1 ..."
    "previous": "gives **{value}** of its weight to the previous token",
    "word_start": "gives **{value}** of its weight to the start of its word, or the space before it",
    "breaks": "gives **{value}** of its weight to spaces and punctuation",
    "same": "gives **{value}** of its weight to earlier copies of the token",
    "itself": "gives **{value}** of its weight to the token itself",
    "induction": (
        "gives **{value}** of its weight to what followed the token's last occurrence, on random text"
    ),
    "duplicate": "gives **{value}** of its weight to earlier copies of the token, on random text",
    "name_mover": "spends **{value}** of the last token's weight on tokens that it copies",
    "own_word": "gives **{value}** of its weight to tokens of the query's own word",
    "broad": "attends broadly, with **{value}** of the maximum entropy",
    "near": f"gives **{{value}}** of its weight to tokens at most {NEAREST} positions away",
    "first": "gives **{value}** of its weight to the first token",
}
MENTIONED = 3  # habits in one sentence
NAMED_HEADS = 4  # of one habit
ARCS_ALT = (
    "Block {layer}: lines from the tokens that attend, on the left, to those they attend to, on the"
    " right; the stronger the line, the larger the weight."
)


def specialities(counts: Counts, head: tuple[int, int], habit_here: tuple[Habit, float] | None) -> str:
    """Says what heads specialise in, and what the marked one does (Markdown)."""
    ranks = sorted(((count, habit) for habit, count in counts.by_habit.items() if count), key=lambda x: -x[0])
    parts = [f"**{count}** {DOING[habit][count > 1]}" for count, habit in ranks[:MENTIONED]]
    rest = counts.heads - sum(count for count, _ in ranks[:MENTIONED])
    if rest:
        parts.append(f"{rest} {'does' if rest == 1 else 'do'} something else")
    here = f"Head {head[0]}.{head[1]} {_does(habit_here)}."
    return f"Of {counted(counts.heads, 'head')}, {', '.join(parts)}. {here}"


def _does(habit: tuple[Habit, float] | None) -> str:
    if habit is None:
        return f"shows no clear pattern: none accounts for **{STRONG:.0%}** of its weight"
    return DOES[habit[0]].format(value=f"{habit[1]:.0%}")


def none_strong(least: float) -> str:
    return f"No head gives this pattern {least:.0%} of its weight, so all are shown."


def grid_alt(layers: int, heads: int, chosen: int | None) -> str:
    """Describes the small pictures of all heads, or of some that are sorted."""
    if chosen is not None:
        return (
            f"The patterns of {counted(chosen, 'head')}, sorted, as small pictures: queries run down,"
            " keys across."
        )
    return (
        f"The patterns of {counted(layers, 'block')} with {counted(heads, 'head')} each, as small"
        " pictures: queries run down, keys"
        " across; a stronger colour means more weight."
    )


def pattern_alt(layer: int, head: int) -> str:
    return (
        f"Pattern of head {layer}.{head}: the weight that each token (down) gives to each token it can see"
        " (to the right), from 0 to 1."
    )


def where_recorded(layer: int, head: int, tokens: int) -> str:
    return f"This is `blocks.{layer}.pattern[{head}]`: {tokens} × {tokens} weights."


SEVERAL_HEADS = (
    "**Eight heads are not eight times the work.** The width is *divided* among the heads: each compares"
    " shorter vectors, so the total below stays the same. What grows is the number of patterns."
)


def cost_table(cuts: Sequence[Headed], tokens: int) -> pd.DataFrame:
    """Returns one row for each number of heads."""
    rows = {
        "head width": [f"{cut.d_head}" for cut in cuts],
        f"attention FLOPs per token, text of {tokens}": [f"{cut.flops:,}" for cut in cuts],
    }
    heads = [f"{cut.heads} {'head' if cut.heads == 1 else 'heads'}" for cut in cuts]
    return pd.DataFrame(rows, index=pd.Index(heads, name=""))


PUBLISHED_HEADS = (
    "More heads soon stop helping. Published results for a translation model of fixed size, split into"
    " different numbers of heads (Vaswani et al. 2017, Table 3, rows A; BLEU, higher is better): 1 head 24.9,"
    " 4 heads 25.5, 8 heads 25.8, 16 heads 25.8, 32 heads 25.4.\n\n"
    "Clark et al. 2019 (“What does BERT look"
    " at?”) found similar heads in BERT. Some attend to the token before or after, some to punctuation, some"
    " to the separator token (a sink), some broadly; a few follow syntax, from a noun to its determiner, from"
    " a direct object to its verb, or from a mention to its antecedent."
)


def shown() -> str:
    """Returns what the view shows of each head: PATTERNS, or one of MEASURES."""
    return widgets.settled(shown_titles(), "attention_number")


def shown_titles() -> dict[str, str]:
    return {PATTERNS: "patterns"} | {name: measure.title for name, measure in MEASURES.items()}


def question(_: Subject) -> str:
    return HEADS_QUESTION if shown() == PATTERNS else MEASURES_QUESTION


def heads(subject: Subject) -> Words:
    reach = (
        ", and the causal mask leaves nothing above the diagonal."
        if subject.config.causal
        else ". This model has no causal mask, so it attends in both directions."
    )
    if shown() != PATTERNS:
        return MEASURED
    return Words(
        see=(
            "One row for each token that attends (query), one column for each token it attends to (key). Each"
            f" row of weights sums to 1{reach} Hover over a thumbnail to enlarge it; click to select it."
        ),
        why=(
            "The pattern says *where* information comes from; `v` and $W_O$, in “Step by step”, decide"
            " *what* is moved. So what makes a token match (its key) and what it delivers (its value) can"
            " differ: in “the cat sat on the ___” the verb may match because it is a verb, and deliver what"
            " people sit on."
        ),
        attempt=(
            "Look for a line just below the diagonal (the previous token) and for columns (spaces, or the"
            " first token). With a run of your own, drag the step slider back: at first every head attends"
            f" almost uniformly. A pattern counts if it gets at least {STRONG:.0%} of the weight and twice"
            " the uniform share; “own word” counts only if clearly less weight falls outside the word than"
            " distance alone would explain."
        ),
    )


# Step by step -----------------------------------------------------------------------------------

STEPS_QUESTION = "How does a head turn tokens into weights?"
LOOKS = "Query token"


def step_by_step(labels: Sequence[str], w: WrittenOut, query: int, key: int) -> str:
    """Says how one weight comes about (Markdown)."""
    looks, there = safe(labels[query]), safe(labels[key])
    product, score = (minus(f"{value:.2f}") for value in (w.raw, w.masked))
    return (
        f"“{looks}” gives “{there}” **{w.weight:.0%}** of its weight: their dot product q·k is **{product}**,"
        f" the score **{score}**, and a softmax over the {counted(w.seen, 'visible token')} does the rest."
    )


STEPS = Words(
    see="One stage of one head, for the whole text; under *By hand*, every number of the chosen row.",
    why=(
        "Attention is nothing but matrix products and a softmax. Everything a head has learned is in its four"
        " matrices."
    ),
    attempt=(
        "Go from “÷ √d” to “softmax”: small differences in score become large differences in weight. Then"
        " choose a token early in the text: with few keys, each gets a large weight."
    ),
)

# Measures of the heads --------------------------------------------------------------------------

MEASURES_QUESTION = "Which head scores highest?"
SHOWN = "Show"
PATTERNS = "patterns"


class Measure(NamedTuple):
    """A number of each head: its name, its unit, the largest value that it can have (None where there is no
    bound) and its meaning.
    """

    title: str
    unit: str
    top: float | None
    meaning: str


def _share(title: str, meaning: str) -> Measure:
    return Measure(title, "share", 1.0, meaning)


MEASURES = {  # by the field of HeadNumbers, or the place
    "entropy": Measure(
        "Entropy", "nats", None, "How widely the weight is spread; 0 means that all of it is on one token."
    ),
    "relative_entropy": _share(
        "Relative entropy",
        "Entropy divided by its maximum, $\\ln n$ for $n$ visible tokens; 1 means uniform.",
    ),
    "distance": Measure(
        "Distance", "tokens", None, "Mean distance from the query to the keys, weighted by attention."
    ),
    "previous": _share("Previous token", "Weight on the previous token."),
    "first": _share("First token", "Weight on position 0, from all later positions: the “sink” score."),
    "word_start": _share(
        "Start of the word", "Weight on the first token of the word, and on the space before it."
    ),
    "own_word": _share("Own word", "Weight on the tokens of the query's own word."),
    "near": _share("Nearby", f"Weight on tokens at most {NEAREST} positions away."),
    "breaks": _share("Spaces and punctuation", "Weight on tokens without a letter or digit."),
    "same": _share("Same token", "Weight on earlier occurrences of the same token."),
    "itself": _share("Itself", "Weight on the token's own position."),
    "induction": _share(
        "Induction", "On random tokens read twice: weight on the token that followed the previous occurrence."
    ),
    "duplicate": _share(
        "Duplicate token",
        "On random tokens read twice: weight on earlier occurrences of the same token (Wang et al. 2023).",
    ),
    "name_mover": _share(
        "Name mover",
        "Share of the last token's weight on earlier tokens that the head copies: unembedded on its own, the"
        " head's output there ranks that same token among the likeliest (Wang et al. 2023).",
    ),
}
ONE_TOKEN = "The text has only one token: measuring attention needs more."
STAND_OUT = "**Heads that stand out**"
COLUMNS = {
    "relative_entropy": "rel. entropy",
    "name_mover": "name mover",
    "word_start": "word start",
    "own_word": "own word",
    "breaks": "spaces",
    "near": "nearby",
}


def most_of(measure: Measure, most: HeadValue, mean: float) -> str:
    """Returns the head with the most of a number, and the mean over all (Markdown)."""
    shown, usual = (
        f"{x:.0%}" if measure.unit == "share" else f"{x:.2f} {measure.unit}" for x in (most.value, mean)
    )
    return (
        f"Head {most.layer}.{most.head} scores highest on {measure.title.lower()}, at **{shown}**; the mean"
        f" over all heads is **{usual}**."
    )


def measure_alt(measure: Measure, least: float, most: float) -> str:
    return (
        f"{measure.title} of every head, one cell for each block and head: from {least:.3g} to {most:.3g}"
        f" {measure.unit}."
    )


def measured_how(repeated: int) -> str:
    return (
        "Click a column heading to sort. Entropy is in nats, distance in tokens; all others are shares from 0"
        " to 1. Values are means over the queries of this text. Name mover uses only its last token;"
        f" induction and duplicate use {repeated} random tokens read twice, the default sequence in Circuits."
    )


def not_measured(field: str, can_repeat: bool) -> str:
    """Says why a number is not there."""
    if field == "name_mover":
        return (
            "This model is an encoder: its last token does not predict the next one, so no name mover can be"
            " measured."
        )
    if can_repeat:
        return "Reading the random tokens."
    return (
        f"{MEASURES[field].title} needs at least two different tokens read twice, and this model's context or"
        " vocabulary is too small for that."
    )


def standing_out(numbers: HeadNumbers, causal: bool) -> list[str]:
    """Returns the sentences that name heads, each with what was measured."""
    lines = []
    for group in followers(numbers):
        single, several = DOING[group.habit]
        if not group.heads:
            most = group.most
            lines.append(f"No head clearly {single}: the closest is {_name(most)}, with {most.value:.0%}.")
            continue
        named = ", ".join(f"{_name(head)} ({head.value:.0%})" for head in group.heads[:NAMED_HEADS])
        more = len(group.heads) - NAMED_HEADS
        lines.append(
            f"**{named[0].upper()}{named[1:]}** {single if len(group.heads) == 1 else several}."
            + (f" So do {more} more." if more > 0 else "")
        )
    ends = extremes(numbers)
    if ends is not None:
        even, decided, farthest = (
            f"**H{_name(end)[1:]}**" for end in (ends.even, ends.decided, ends.farthest)
        )
        lines += [
            f"{even} attends most uniformly ({ends.even.value:.0%} of the maximum entropy).",
            f"{decided} is the most focused ({ends.decided.value:.0%}; {ends.nats:.2f} nats).",
            f"{farthest} attends farthest{' back' if causal else ''}: {ends.farthest.value:.1f} tokens on"
            " average.",
        ]
    return lines or [ONE_TOKEN]


def _name(head: HeadValue) -> str:
    return f"head {head.layer}.{head.head}"


MEASURED = Words(
    see=(
        "One number for each head. Induction and duplicate tokens are measured on random tokens read twice,"
        " where nothing but copying can help; all others on the text above."
    ),
    why=(
        "Two heads with similar patterns on one text may follow different rules. Numbers let you compare"
        " models, or the steps of a run. *Attention sinks* under Circuits explains why many heads attend to"
        " the first token."
    ),
    attempt=(
        "Choose “Previous token”, then “Induction”. A model that can copy has a previous-token head in a"
        " block below its induction head. On “When Mary and John …” a real model shows name movers."
    ),
)

ASKS = (Ask(HEADS_QUESTION), Ask(MEASURES_QUESTION, MEASURED, (("attention_number", "entropy"),)))
