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
BESIDE = "Compare the bigram with"
TEXT = "the text"
APART = "distance: after th vs after sh"
LOSS = "validation loss (nats per character)"
RUNGS = {name: LADDER[name].title for name in SEEING}
MEASURED = (
    "How far apart the two distributions are: the total variation distance, half the sum of the absolute"
    " differences. It is 0 for equal distributions and 1 if they share no character. Frequencies are counted"
    " in the training text; a model's probabilities are means over 256 positions of held-out text."
)
WORDS = Words(
    see=(
        "The next character after one or two others: its frequency in the text and its probability in the"
        " models. The first four charts show what a bigram model can know. In the last two it sees only the"
        " *h*, so its bars are the same."
    ),
    why=(
        "The lowest rung has one row of logits per character. Training only reproduces the counts. To know"
        " more, a model must use earlier characters, which is what attention is for."
    ),
    attempt=(
        "Compare it with *Attention ×1*: without positions it knows that a *t* occurred, but not that it came"
        " right before the *h*, so it hardly distinguishes the two."
    ),
)


def name(source: str) -> str:
    return LADDER[source].title


def answer(expectations: Expectations, other: str) -> str:
    """Compares the text, the bigram model, and the rung beside it, after th and after sh."""
    first, second = DOUBLE
    shares = [
        [expectations.of(source, context, "e") for context in DOUBLE] for source in ("text", TABLE, other)
    ]
    text, table, seeing = ([f"{share:.0%}" for share in each] for each in shares)
    bigram = f"A bigram model sees only the h, so it gives e **{table[0]}** after both {first} and {second}"
    in_text = f"the text has **{text[0]}** and **{text[1]}**"
    if expectations.apart(other) < ALIKE:
        return f"{bigram}; {in_text}. {name(other)} does hardly any better: {seeing[0]} and {seeing[1]}."
    return f"{bigram}; {in_text}, *{name(other).lower()}* **{seeing[0]}** and **{seeing[1]}**."


ALIKE = 0.05  # a rung that tells the two apart by less than this hardly tells them apart


def alt(expectations: Expectations, other: str) -> str:
    text = ", ".join(
        f"after {last}: e {expectations.of('text', last, 'e'):.0%} in the text,"
        f" {expectations.of(TABLE, last, 'e'):.0%} for the bigram, {expectations.of(other, last, 'e'):.0%}"
        f" for {name(other)}"
        for last in DOUBLE
    )
    return f"Shares of the next character after t, e, a space, n, th and sh; {text}."


def made(expectations: Expectations) -> str:
    return f"Made by {safe('; '.join(dict.fromkeys(expectations.made.values())))}."
