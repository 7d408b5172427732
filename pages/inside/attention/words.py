"""Sentences of the views of Attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from engine.ledger.heads import Cut
from engine.measure.attention.attention_targets import NEAREST
from engine.measure.attention.habits import STRONG, Counts, Habit, extremes, followers
from engine.measure.attention.heads import HeadNumbers, HeadValue
from engine.measure.attention.single_head import WrittenOut
from ui import widgets
from ui.model_bar import Subject
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import minus

# Heads ------------------------------------------------------------------------------------------

HEADS_QUESTION = "Which tokens attend to which?"
STRONG_HINT = (
    f"Only heads that give a habit {STRONG:.0%} of their weight, and twice an even share; none that looks"
    " broadly, nearby, at its own word or at the first token."
)
DOING: dict[Habit, tuple[str, str]] = {  # "Of 16 heads, 1 reads ..., 7 read ..."
    "previous": ("reads the token before", "read the token before"),
    "word_start": ("reads the start of its word", "read the start of their word"),
    "breaks": ("reads blanks and punctuation", "read blanks and punctuation"),
    "same": ("reads the same token earlier", "read the same token earlier"),
    "itself": ("reads the token itself", "read the token itself"),
    "induction": ("does induction", "do induction"),
    "duplicate": ("finds duplicates", "find duplicates"),
    "name_mover": ("moves names", "move names"),
    "own_word": ("stays within its own word", "stay within their own word"),
    "broad": ("looks broadly", "look broadly"),
    "near": ("looks nearby", "look nearby"),
    "first": ("rests on the first token", "rest on the first token"),
}
DOES: dict[Habit, str] = {  # "Head 1.2 ..."
    "previous": "gives **{value}** of its weight to the token before",
    "word_start": "gives **{value}** of its weight to the start of its word, or the blank before it",
    "breaks": "gives **{value}** of its weight to blanks and punctuation",
    "same": "gives **{value}** of its weight to the same token earlier",
    "itself": "gives **{value}** of its weight to the token itself",
    "induction": "gives **{value}** of its weight to what followed the same token before, on random text",
    "duplicate": "gives **{value}** of its weight to the same token before, on random text",
    "name_mover": "copies with **{value}** of its last token's weight",
    "own_word": "gives **{value}** of its weight to the word it is in",
    "broad": "looks broadly, at **{value}** of the largest possible entropy",
    "near": f"gives **{{value}}** of its weight to tokens at most {NEAREST} positions away",
    "first": "rests on the first token with **{value}** of its weight",
}
MENTIONED = 3  # habits in one sentence
NAMED_HEADS = 4  # of one habit


def specialities(counts: Counts, head: tuple[int, int], habit_here: tuple[Habit, float] | None) -> str:
    """Says what heads specialise in, and what the marked one does (Markdown)."""
    ranks = sorted(((count, habit) for habit, count in counts.by_habit.items() if count), key=lambda x: -x[0])
    parts = [f"**{count}** {DOING[habit][count > 1]}" for count, habit in ranks[:MENTIONED]]
    rest = counts.heads - sum(count for count, _ in ranks[:MENTIONED])
    if rest:
        parts.append(f"{rest} {'does' if rest == 1 else 'do'} something else")
    here = f"Head {head[0]}.{head[1]} {_does(habit_here)}."
    return f"Of {counts.heads} heads, {', '.join(parts)}. {here}"


def _does(habit: tuple[Habit, float] | None) -> str:
    if habit is None:
        return f"gives no one habit **{STRONG:.0%}** of its weight"
    return DOES[habit[0]].format(value=f"{habit[1]:.0%}")


def none_strong(least: float) -> str:
    return f"No head gives it {least:.0%}: all are shown."


def pattern_alt(layer: int, head: int) -> str:
    return (
        f"Pattern of head {layer}.{head}: the weight that each token (down) gives to each token it"
        " sees (to the right), from 0 to 1."
    )


def where_recorded(layer: int, head: int, tokens: int) -> str:
    return f"This is `blocks.{layer}.pattern[{head}]`: {tokens} × {tokens} weights."


SEVERAL_HEADS = (
    "**Eight heads are not eight times the work.** The width is *divided* among the heads: each compares"
    " shorter keys, so the sums below stay the same. What grows is the number of patterns."
)


def cost_table(cuts: Sequence[Cut]) -> pd.DataFrame:
    """Returns one row for each number of heads."""
    rows = {
        "width of a head": [f"{cut.d_head}" for cut in cuts],
        f"FLOPs of attention for one token among {cuts[0].tokens}": [f"{cut.flops:,}" for cut in cuts],
    }
    heads = [f"{cut.n_heads} {'head' if cut.n_heads == 1 else 'heads'}" for cut in cuts]
    return pd.DataFrame(rows, index=pd.Index(heads, name=""))


PUBLISHED_HEADS = (
    "More heads soon stop helping. Published for a translation model, the same size cut differently (Vaswani"
    " et al. 2017, Table 3, rows A; BLEU, more is better): 1 head 24.9, 4 heads 25.5, 8 heads 25.8, 16 heads"
    " 25.8, 32 heads 25.4.\n\n"
    "Clark et al. 2019 (“What does BERT look at?”) found the same kinds of heads in BERT: heads on the token"
    " before or after, on punctuation, on the separator token where they rest, broad ones, and a few that"
    " follow grammar."
)


def shown() -> str:
    """Returns what the view shows of each head: PATTERNS, or one of MEASURES."""
    return widgets.chosen(shown_titles(), "attention_number")


def shown_titles() -> dict[str, str]:
    return {PATTERNS: "patterns"} | {name: measure.title for name, measure in MEASURES.items()}


def question(_: Subject) -> str:
    return HEADS_QUESTION if shown() == PATTERNS else MEASURES_QUESTION


def heads(subject: Subject) -> Words:
    reach = (
        ", and nothing above the diagonal has any: those tokens come later."
        if subject.config.causal
        else ". This model has no mask, so it looks both ways."
    )
    if shown() != PATTERNS:
        return MEASURED
    return Words(
        see=(
            "One row for each token that attends, one column for each token it can attend to. A row's"
            " weights sum"
            f" to 1{reach} Point at a small picture: it is shown large. A click keeps it."
        ),
        why=(
            "The pattern says *from where* information moves. What is moved is another matter: that is `v`"
            " and $W_O$, in “Step by step”. So the key that finds a token and the value that it delivers"
            " can differ:"
            " in “the cat sat on the ___” the verb is found for being a verb, and delivers what one sits on."
        ),
        attempt=(
            "Look for a line just below the diagonal (the token before) and for columns (blanks, or the first"
            " token). With a run of yours, drag the step back: at first all heads spread alike. A habit"
            f" counts from {STRONG:.0%} of the weight on, and twice what an even spread would give; its own"
            " word only where a head puts clearly less outside than its distances alone would."
        ),
    )


# Step by step -----------------------------------------------------------------------------------

STEPS_QUESTION = "How does a head turn tokens into weights?"
LOOKS = "The token that attends (query)"


def step_by_step(labels: Sequence[str], w: WrittenOut, query: int, key: int) -> str:
    """Says how one weight comes about (Markdown)."""
    looks, there = safe(labels[query]), safe(labels[key])
    product, score = (minus(f"{value:.2f}") for value in (w.raw, w.masked))
    return (
        f"How much “{looks}” attends to “{there}”: their product q·k is **{product}**, the score made of it"
        f" **{score}**, and the softmax over all {w.seen} tokens that it sees turns this score into"
        f" **{w.weight:.0%}** of the weight."
    )


STEPS = Words(
    see="One stage of one head for the whole text, then every number of the chosen row.",
    why=(
        "Nothing here is more than multiplication, addition and one exponential. All that a head knows is"
        " in the four matrices."
    ),
    attempt=(
        "Go from “÷ √d” to “softmax”: small differences of scores become large differences of weight. "
        "Choose a token early in the text: few keys, large weights."
    ),
)

# Measures of the heads --------------------------------------------------------------------------

MEASURES_QUESTION = "Which head does this most?"
SHOWN = "Shown"
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
    "entropy": Measure("Entropy", "nats", None, "How widely the weight is spread. 0: all on one token."),
    "relative_entropy": _share(
        "Relative entropy",
        "Entropy over the largest possible, $\\ln n$ for $n$ visible tokens. 1: perfectly even.",
    ),
    "distance": Measure(
        "Distance",
        "tokens",
        None,
        "Mean distance from the token that attends to what it attends to, weighted.",
    ),
    "previous": _share("Previous token", "Weight on the token just before."),
    "first": _share("First token", "Weight on position 0, from all later positions: the “sink” score."),
    "word_start": _share(
        "Start of the word", "Weight on the first token of the word, and on the blank before it."
    ),
    "own_word": _share("Own word", "Weight on the tokens of the word that the token is in."),
    "near": _share("Nearby", f"Weight on tokens that are at most {NEAREST} positions away."),
    "breaks": _share("Blanks and punctuation", "Weight on tokens without letter or digit."),
    "same": _share("Same token", "Weight on the same token where it stood before."),
    "itself": _share("Itself", "Weight on the token's own position."),
    "induction": _share(
        "Induction", "On random tokens read twice: weight on the token that followed last time."
    ),
    "duplicate": _share(
        "Duplicate token",
        "On random tokens read twice: weight on the same token where it stood before (Wang et al. 2023).",
    ),
    "name_mover": _share(
        "Name mover",
        "Of the last token's weight, what lies on earlier tokens that the head copies: what it writes there,"
        " sent to the output by itself, makes that very token one of the likeliest (Wang et al. 2023).",
    ),
}
ONE_TOKEN = "The text has one token only: give it more, and there is something to measure."
STAND_OUT = "**Heads that stand out**"
COLUMNS = {
    "relative_entropy": "rel. entropy",
    "name_mover": "name mover",
    "word_start": "word start",
    "own_word": "own word",
}


def most_of(measure: Measure, most: HeadValue, mean: float) -> str:
    """Returns the head with the most of a number, and the mean over all (Markdown)."""
    shown, usual = (
        f"{x:.0%}" if measure.unit == "share" else f"{x:.2f} {measure.unit}" for x in (most.value, mean)
    )
    return (
        f"{measure.title} is highest in head **{most.layer}.{most.head}**, **{shown}**; an average head has"
        f" **{usual}**."
    )


def measure_alt(measure: Measure, least: float, most: float) -> str:
    return (
        f"{measure.title} of every head, one cell for each layer and head: from {least:.3g} to {most:.3g}"
        f" {measure.unit}."
    )


def measured_how(repeated: int) -> str:
    return (
        "A click on a column's name sorts. Entropy in nats, distance in tokens, all others shares from 0 to"
        " 1; means over the queries of this text, the name mover's of its last token, induction and duplicate"
        f" of {repeated} random tokens read twice, those that Circuits reads first."
    )


def not_measured(field: str, can_repeat: bool) -> str:
    """Says why a number is not there."""
    if field == "name_mover":
        return "This model is an encoder: its last token predicts nothing, and no head moves a name there."
    if can_repeat:
        return "The random tokens are being read."
    return (
        f"{MEASURES[field].title} needs a sequence of at least two different tokens twice; this model's"
        " context or alphabet is too small for that."
    )


def standing_out(numbers: HeadNumbers, causal: bool) -> list[str]:
    """Returns the sentences that name heads, each with what was measured."""
    lines = []
    for found in followers(numbers):
        one, several = DOING[found.habit]
        if not found.heads:
            most = found.most
            lines.append(f"No head clearly {one}: the most is {most.value:.0%}, in {_name(most)}.")
            continue
        named = ", ".join(f"{_name(head)} ({head.value:.0%})" for head in found.heads[:NAMED_HEADS])
        more = len(found.heads) - NAMED_HEADS
        lines.append(
            f"**{named[0].upper()}{named[1:]}** {one if len(found.heads) == 1 else several}."
            + (f" So do {more} more." if more > 0 else "")
        )
    ends = extremes(numbers)
    if ends is not None:
        even, decided, farthest = (
            f"**L{_name(end)[1:]}**" for end in (ends.even, ends.decided, ends.farthest)
        )
        lines += [
            f"{even} spreads most evenly ({ends.even.value:.0%} of the largest possible entropy).",
            f"{decided} is the most decided ({ends.decided.value:.0%}; {ends.nats:.2f} nats).",
            f"{farthest} looks farthest{' back' if causal else ''}: {ends.farthest.value:.1f} tokens on"
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
        "Two heads that look alike on one text may follow different rules. Numbers make models, and steps of"
        " a training, comparable. Why many heads rest on the first token, *Attention sinks* under Circuits"
        " says."
    ),
    attempt=(
        "Choose “Previous token”, then “Induction”. In a model that can copy, a head that reads the previous"
        " token sits below an induction head. With “When Mary and John …” a real model has name movers."
    ),
)

# Shared keys ------------------------------------------------------------------------------------

SHARED_KEYS_QUESTION = "What does sharing keys save?"


def shared_alt(n_heads: int, n_kv: int) -> str:
    return (
        f"{n_heads} query heads in a row above {n_kv} key-value heads; lines lead from each query head to the"
        " keys it reads."
    )


def shared(kind: str, n_heads: int, n_kv: int, per_token: str, less: float) -> str:
    """Says what sharing saves (Markdown)."""
    heads = "head" if n_kv == 1 else "heads"
    first = (
        f"{n_heads} query heads read the keys and values of **{n_kv}** {heads} ({kind}): while it writes, the"
        f" model keeps **{per_token} for each token**"
    )
    if not less:
        return f"{first}. Nothing is shared here, so nothing is saved."
    return f"{first}, **{less:.1%} less** than with {n_heads}."


SHARED_KEYS = Words(
    see=(
        "Above, the query heads; below, the heads that have keys and values. One colour is one group:"
        " those query heads compare with the same keys: each its own (multi-head), shared by a group"
        " (grouped-query), or one set for all (multi-query)."
    ),
    why=(
        "Reading the cache, not computing, is what limits how fast large models write. Sharing keys makes"
        " it smaller; the queries stay different."
    ),
    attempt=(
        "LLaMA-2 70B has 64 query heads and 8 key-value heads. Then choose your own numbers, and go down"
        " to 1: multi-query attention."
    ),
)
