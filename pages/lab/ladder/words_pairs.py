"""Sentences of the view about a bigram model."""

from __future__ import annotations

from engine.experiments.bigram_expectations import (
    DOUBLE,
    SEEING,
    TABLE,
    Expectations,
)
from engine.presets.ladder import LADDER
from ui.page_frame import Words
from ui.text.markdown import safe

ASK = "What can a bigram model not see?"
BESIDE = "Beside the bigram model"
TEXT = "the text"
APART = "after th and after sh apart by"
LOSS = "loss on held-out text (nats)"
RUNGS = {name: LADDER[name].title for name in SEEING}
MEASURED = (
    "How far apart the two are: half the sum of all differences of shares (total variation): 0 where they"
    " go on alike, 1 where they have no character in common. Shares of the text are counted in what is"
    " learned"
    " from; those of a model are its mean probabilities at 256 positions of held-out text."
)
WORDS = Words(
    see=(
        "What comes next after one character, and after two: how often in the text, and how probable for the"
        " models. The first four charts are what a bigram model can know. In the last two it has read *h*"
        " both times, so its bars are the same."
    ),
    why=(
        "The lowest rung holds one row for each character: what follows it. Training finds nothing else than"
        " counting would. Whoever wants to know more must look further back: that is what attention is for."
    ),
    attempt=(
        "Set *Attention, 1 layer* beside it: without positions it knows that a *t* was there, but not that"
        " it stands right before the *h*, and hardly tells the two apart."
    ),
)


def name(source: str) -> str:
    return LADDER[source].title


def answer(expectations: Expectations, other: str) -> str:
    """Compares the text, the bigram model, and the rung beside it, after th and after sh."""
    first, second = DOUBLE
    shares = [[expectations.of(source, given, "e") for given in DOUBLE] for source in ("text", TABLE, other)]
    text, table, seeing = ([f"{share:.0%}" for share in each] for each in shares)
    blind = f"A bigram model sees only the h, so e gets **{table[0]}** after both “{first}” and “{second}”"
    counted = f"The text says **{text[0]}** and **{text[1]}**"
    if expectations.apart(other) < ALIKE:
        return f"{blind}. {counted}; *{name(other)}* hardly does better: {seeing[0]} and {seeing[1]}."
    return f"{blind}. {counted}; *{name(other)}* **{seeing[0]}** and **{seeing[1]}**."


ALIKE = 0.05  # a rung that tells the two apart by less than this hardly tells them apart


def alt(expectations: Expectations, other: str) -> str:
    text = ", ".join(
        f"after {given}: e {expectations.of('text', given, 'e'):.0%} in the text,"
        f" {expectations.of(TABLE, given, 'e'):.0%} for the table, {expectations.of(other, given, 'e'):.0%}"
        f" for {name(other)}"
        for given in DOUBLE
    )
    return f"Shares of the next character after t, e, a blank, a line break, th and sh; {text}."


def made(expectations: Expectations) -> str:
    return f"Made by {safe(expectations.made)}."
