"""Sentences of the view of one sentence in all three families."""

from __future__ import annotations

from engine.measure.families.three_families import (
    Continuation,
    FilledText,
    Hiding,
    Translation,
    WrittenSymbol,
)
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted
from ui.text.tokens import show_characters

QUESTION = "What does each do with the same sentence?"
FIRST = "this horse will fear the funny old friend"
HIDING: dict[Hiding, str] = {
    "letters": "every fifth character",
    "half": "every second character",
    "word": "a word",
}
TITLES = {
    "encoder": ("Encoder: fills in blanks", "reads in both directions"),
    "decoder": ("Decoder: continues the text", "sees only the past"),
    "both": ("Encoder-decoder: translates", "sees the whole source and its own past"),
}
SOURCE, TARGET = "English", "Velan, a made-up language"


def filled_line(filled: FilledText, step: int) -> str:
    blanks = _counted(len(filled.positions), "blank")
    return f"{blanks} to fill" if step == 0 else f"1 pass: {blanks}, all at once"


def continued_line(continued: Continuation, step: int) -> str:
    passes = continued.passes(step)
    return f"{_counted(passes, 'pass', 'es')}, {_counted(passes, 'character')}: one each"


def translated_line(translated: Translation, step: int) -> str:
    if step == 0:
        return "nothing read yet"
    return f"1 pass to read, {translated.passes(step) - 1} to write: one each"


def filled_sentence(filled: FilledText, index: int) -> str:
    guess, true = filled.symbols[index], filled.text[filled.positions[index]]
    verdict = "right" if guess.symbol == true else f"it was {quoted(true)}"
    return f"{step_sentence(guess)}: {verdict}"


def step_sentence(written: WrittenSymbol) -> str:
    return f"{quoted(written.symbol)}, {written.probability:.0%} sure"


def quoted(symbol: str) -> str:
    return f"“{show_characters(symbol)}”"


def cannot(error: str) -> str:
    """Says why a family does nothing with this sentence."""
    return f"Not run: {error}."


def answered(
    filled: FilledText | None, continued: Continuation | None, translated: Translation | None
) -> str:
    """Sums up what those wrote that could (Markdown)."""
    parts = []
    if filled is not None:
        parts.append(
            f"The encoder filled **{_counted(len(filled.positions), 'blank')} in 1 pass**, {filled.right}"
            " correctly."
        )
    if continued is not None:
        letters = len(continued.symbols)
        parts.append(
            f"The decoder wrote **{counted(letters, 'character')} in {counted(letters, 'pass', 'passes')}**."
        )
    if translated is not None:
        words = len(translated.symbols)
        parts.append(
            f"The encoder-decoder read in one pass and wrote “{safe(translated.text)}” in **{words}** more,"
            f" {verdict(translated)}."
        )
    return " ".join(parts) or "None of the three can read this: each says why above."


def verdict(translated: Translation) -> str:
    if translated.answer is None:
        return f"though this is not a sentence of the grammar: {safe(translated.why.partition('. ')[0])}"
    return (
        "a **correct** translation"
        if translated.right
        else f"a **wrong** translation: the grammar says “{safe(translated.answer)}”"
    )


def _counted(number: int, word: str, more: str = "s") -> str:
    """
    >>> _counted(1, "pass", "es"), _counted(2, "pass", "es")
    ('1 pass', '2 passes')
    """
    return f"{number} {word if number == 1 else word + more}"


LIVE = Words(
    see=(
        "One sentence in three trained models, which write in parallel. The framed symbol is the newest, or"
        " the one that you point at; what it attended to is shaded, more strongly for more. It could not see"
        " unshaded symbols."
    ),
    why=(
        "What a model may see decides what it can do. An encoder sees both sides of a blank and fills all"
        " blanks at once. A decoder sees only the past, so it has to write one symbol after another."
    ),
    attempt=(
        "Click on letters in the encoder's text to hide them, even a whole word; on a touch screen, the first"
        " tap on a blank shows what it attended to, the second its character. Then type a word that the"
        " translator does not know: the other two can read it."
    ),
)
BY_HAND = (
    "All three are in `checkpoints/`. The encoder (`encoders/blanks`) and the decoder (`shakespeare-modern`)"
    " learned characters of Shakespeare; the encoder-decoder (`paired/language`) learned to translate"
    " English into Velan, whose grammar says what is right. It was not trained on the sentences"
    " offered.\n\n**Passes**: for $n$ blanks, 1. For $n$ characters, $n$: the pass that reads the text"
    " writes the first. For $m$ words, $1 + (m + 1)$: one over the source, and one for each word and for the"
    " end.\n\nThe shade shows the attention weight, averaged over all layers and heads, relative to the"
    " largest."
)
