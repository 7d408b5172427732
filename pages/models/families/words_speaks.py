"""Sentences of the view of who speaks."""

from __future__ import annotations

from collections.abc import Sequence

from engine.measure.families.classifier import WordAblation
from ui.page_frame import Words
from ui.text.markdown import safe

QUESTION = "Which words decide a classification?"
FIRST = "Good night, sweet lady: would that I were king!"
TYPED, ANOTHER = "Who would say this? Type a line", "A held-out line"
SHIPPED = "Who speaks? (trained)"
NONE = "This copy of the app lacks the model for this view: train one under Train, Data, Pairs."
NOT_YET = "That run is no longer on this server, or has no snapshot yet."
OTHER_KIND = "That run does not learn from labels."
MEASURING = "Reading the held-out texts …"
COUNTED, FREQUENT, COUNTING, MODEL = (
    "held-out texts",
    "always the most frequent speaker",
    "counting words (naive Bayes)",
    "this model",
)


def named(label: str) -> str:
    """Returns a speaker, as they are called outside a script.

    >>> named("KING RICHARD II")
    'King Richard II'
    """
    return " ".join(part if part == "II" else part.title() for part in label.split())


def speaker_sentence(spoken: WordAblation, true: str | None) -> str:
    """Says who speaks, and by which word it is recognised (Markdown)."""
    first, second = spoken.order[:2]
    word, without = spoken.words[spoken.heaviest], float(spoken.without[spoken.heaviest, first])
    who = named(spoken.labels[first])
    text = (
        f"“{safe(word)}” matters most: without it **{safe(who)}** goes from **{spoken.shares[first]:.0%}** to"
        f" **{without:.0%}**. Second is {safe(named(spoken.labels[second]))} with"
        f" {spoken.shares[second]:.0%}; a uniform guess gives each {1 / len(spoken.labels):.1%}."
    )
    if true is not None:
        right = true == spoken.labels[first]
        text += f" {'Right' if right else 'Wrong'}: {safe(named(true))} says it."
    if spoken.unknown:
        listed = ", ".join(f"“{safe(unknown)}”" for unknown in spoken.unknown[:3])
        more = "" if len(spoken.unknown) <= 3 else f" and {len(spoken.unknown) - 3} more"
        text += f" Mapped to the unknown token: {listed}{more}."
    return text


def alt(spoken: WordAblation) -> str:
    shares = ", ".join(f"{named(spoken.labels[i])} {spoken.shares[i]:.0%}" for i in spoken.order)
    return (
        f"Who would say the text: {shares}. Beside it, what each of {len(spoken.words)} words adds to that."
    )


def measured(texts: Sequence[int], right: float) -> str:
    return (
        f"It names the right speaker for **{right:.1%}** of **{texts[0]:,}** held-out passages, 1 to 8 lines"
        " long."
    )


def lengths(lines: Sequence[int]) -> list[str]:
    return ["all", *(f"{line} line" if line == 1 else f"{line} lines" for line in lines)]


SPEAKS = Words(
    see=(
        "Left, the probability of each of eight speakers. Right, a column for each word: the change when that"
        " word is left out. Orange: the word makes this speaker more probable; blue: less."
    ),
    why=(
        "An encoder turns a text into one vector, and one matrix turns that into eight logits. That is how"
        " BERT is used: for spam, sentiment, topics. Leaving words out shows what a prediction depends on."
    ),
    attempt=(
        "Press “A held-out line” a few times. Then add “crown” or “Kate” to a line, and remove it again. Does"
        " a comma matter too?"
    ),
)
BY_HAND = (
    r"The model reads BEGIN, the words, END. Its final vectors $x_i$ are averaged into one, $\bar x$, and"
    r" $p = \mathrm{softmax}(\bar x\,W + b)$ are the eight probabilities. A cell is $p(\text{speaker} \mid"
    r" \text{text}) - p(\text{speaker} \mid \text{text without the word})$, in percentage points."
    "\n\nA column sums to 0: what one speaker gains, others lose. Columns do not sum to the probabilities:"
    " two words may carry the same information, and then leaving out one of them changes little."
    "\n\nTrain it yourself: [Train](/train?data=pairs&pairs=labels-speakers), Data, *Who speaks?*."
)
