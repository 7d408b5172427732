"""Sentences of Home about an encoder-decoder that writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.ledger import Ledger
from engine.measure.families.written_target import WrittenTarget
from engine.presets import Preset
from ui.page_frame import Words
from ui.text.markdown import safe

LONGEST = 20  # characters of a text that stand in a box


def refused(why: str) -> str:
    return f"This cannot be read: {why}"


def shown(symbol: str) -> str:
    return "␣" if symbol == " " else symbol


def joined(symbols: Sequence[str], words: bool) -> str:
    """Joins symbols: letters stand close, words apart; the end of what is too long."""
    text = (" " if words else "").join(shown(symbol) for symbol in symbols)
    return text if len(text) <= LONGEST else f"…{text[-LONGEST:]}"


def of_words(wrote: WrittenTarget) -> bool:
    return any(len(symbol) > 1 for symbol in wrote.source[:-1])


def lines(wrote: WrittenTarget, step: int, vocabulary: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns the text of the boxes at a step, by part."""
    words, attended = of_words(wrote), wrote.most_attended(step)
    source = len(wrote.source)
    read = wrote.read[: step + 1]
    guess = [f"“{shown(vocabulary[token])}” {chance:.0%}" for token, chance in wrote.likeliest(step, 2)]
    return {
        "encoder.tokens": (joined(wrote.source[:-1], words), f"{source} tokens, all at once"),
        "encoder.attention": (f"{source} × {source} weights", "all-to-all"),
        "memory": (f"{source} vectors × {wrote.width}", "computed once"),
        "decoder.tokens": (joined(read[1:], words) or "nothing yet", f"{len(read)} with the start token"),
        "decoder.attention": (f"last token sees {len(read)}", "causal"),
        "decoder.cross_attention": (
            f"attends to “{shown(wrote.source[attended[0]])}”",
            f"{attended[1]:.0%} of weight, all heads",
        ),
        "decoder.softmax": tuple(guess),
        "encoder.block": (f"RMS {_sizes(wrote.source_sizes)}",),
        "decoder.block": (f"RMS {_sizes(wrote.sizes[:, step])}",),
    }


def _sizes(values: Iterable[float]) -> str:
    return " → ".join(f"{value:.2f}" for value in values)


def step(wrote: WrittenTarget, at: int) -> str:
    """Says what this step writes, and where it attended (Markdown)."""
    position, weight = wrote.most_attended(at)
    sure = wrote.certainty(at)
    over = "" if wrote.written[at] != "<end>" else ", the end token"
    text = (" " if of_words(wrote) else "").join(wrote.source[:-1])
    return (
        f"It reads “{safe(text)}” and writes “**{safe(wrote.text)}**”. Step {at + 1} of {len(wrote.written)}"
        f" writes **“{safe(shown(wrote.written[at]))}”**{over}, with probability **{sure:.0%}**, and attends"
        f" most to “{safe(shown(wrote.source[position]))}”: {weight:.0%} of the weight, averaged over heads."
    )


def alt(wrote: WrittenTarget, at: int) -> str:
    return (
        f"Map of an encoder-decoder at step {at + 1} of {len(wrote.written)}: the source goes through the"
        " encoder and becomes the memory, to which the decoder attends while it writes."
    )


def drawn(preset: Preset, counted: Ledger) -> str:
    """Returns a published one's map in words."""
    assert counted.encoder is not None
    return (
        f"Map of an encoder-decoder, {preset.title}: {counted.encoder.n_layers} encoder blocks,"
        f" {counted.config.n_layers} decoder blocks, and the memory between them; {counted.total:,}"
        " parameters."
    )


RUNNING = Words(
    see=(
        "Two residual streams. Above, the encoder reads the whole source at once; its output is the memory."
        " Below, the decoder writes: at each step it attends back to its own text, and across to the memory."
    ),
    why=(
        "A reader may look both ways; a writer must not see ahead. Two stacks let one model do both, and"
        " cross-attention is the only path between them."
    ),
    attempt=(
        "Change the step and see what the decoder attends to. Type a source of your own at the top right."
        " Click a part to open the page about it."
    ),
)
