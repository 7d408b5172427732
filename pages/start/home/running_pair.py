"""Home's running view of an encoder-decoder: the map of its two stacks, with the text that runs through them
while it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import streamlit as st

from engine.errors import GlassformerError
from pages.start.home.map import draw_stacks
from studies.costs.ledger import ledger
from studies.families.written_target import WrittenTarget, write_target
from ui import content, explain, families, memo, models, widgets
from ui.fit_text import read
from ui.model_bar import Choice
from ui.text.markdown import safe
from ui.training_step import NEWEST

TEXT = content.beside(__file__)
LONGEST = 20  # characters of a text that stand in a box


def draw(choice: Choice) -> None:
    """Draws the stacks at a step of the writing; a part leads to the page about it, with the model and the
    text.
    """
    checkpoint, pair = models.model_of(choice.name, NEWEST, ()), families.pair_of(choice.name)
    assert checkpoint is not None and pair is not None
    choice.facts.caption(models.facts(choice.name, checkpoint, None, 0, ()))
    _, text, notes = read(choice.text or "", checkpoint.tokenizer, checkpoint.config.context, choice.letters)
    for note in notes:
        st.caption(f":material/info: {safe(note)}")
    try:
        wrote = _writing(choice.name, checkpoint.metrics.get("step"), text)
    except GlassformerError as error:
        explain.answer(TEXT("refused", why=str(error)))
        return
    steps = len(wrote.written)
    said, controls = st.columns([9, 3], gap="medium", vertical_alignment="center")
    with controls:
        step = widgets.slide(TEXT["writing step"], 1, steps, min(2, steps), "home_step") - 1
    with said:
        explain.answer(_answer(wrote, step))
    draw_stacks(
        ledger(pair.model.config.decoder, pair.model.config.encoder),
        key="map_running",
        alt=TEXT("alt", step=step + 1, steps=steps),
        live=_lines(wrote, step, pair.tokenizer.shown(range(pair.tokenizer.vocab_size))),
        query=_query(choice.name, text),
    )


def _query(name: str, text: str) -> dict[str, str]:
    task = families.pair_task(name)
    return {"model": name, "cross_task": str(families.crossed(name)), f"cross_text_{task}": text}


@memo.measured()
def _writing(name: str, step: object, text: str) -> WrittenTarget:
    """Writes with a training as it was after a `step`."""
    pair = families.pair_of(name, step if name.startswith(families.RUN) and isinstance(step, int) else NEWEST)
    assert pair is not None
    return write_target(pair.model, pair.tokenizer, text)


def _answer(wrote: WrittenTarget, at: int) -> str:
    """Says what this step writes, and where it attended (Markdown)."""
    position, weight = wrote.most_attended(at)
    return TEXT(
        "last step" if wrote.written[at] == "<end>" else "step",
        source=(" " if _of_words(wrote) else "").join(wrote.source[:-1]),
        target=wrote.text,
        step=at + 1,
        steps=len(wrote.written),
        token=_shown(wrote.written[at]),
        chance=wrote.certainty(at),
        attended=_shown(wrote.source[position]),
        weight=weight,
    )


def _lines(wrote: WrittenTarget, step: int, vocabulary: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns the text of the boxes at a step, by part."""
    words, (position, weight) = _of_words(wrote), wrote.most_attended(step)
    source, read = len(wrote.source), wrote.read[: step + 1]
    return {
        "encoder.tokens": (_joined(wrote.source[:-1], words), TEXT("tokens", count=source)),
        "encoder.attention": (TEXT("weights", source=source), TEXT["all-to-all"]),
        "memory": (TEXT("vectors", source=source, width=wrote.width), TEXT["once"]),
        "decoder.tokens": (
            _joined(read[1:], words) or TEXT["nothing"],
            TEXT("with start", count=len(read)),
        ),
        "decoder.attention": (TEXT("sees", count=len(read)), TEXT["causal"]),
        "decoder.cross_attention": (
            TEXT("attends", token=_shown(wrote.source[position])),
            TEXT("weight", weight=weight),
        ),
        "decoder.softmax": tuple(
            TEXT("guess", token=_shown(vocabulary[token]), chance=chance)
            for token, chance in wrote.likeliest(step, 2)
        ),
        "encoder.block": (_sizes(wrote.source_sizes),),
        "decoder.block": (_sizes(wrote.sizes[:, step]),),
    }


def _of_words(wrote: WrittenTarget) -> bool:
    return any(len(symbol) > 1 for symbol in wrote.source[:-1])


def _shown(symbol: str) -> str:
    return "␣" if symbol == " " else symbol


def _joined(symbols: Sequence[str], words: bool) -> str:
    """Joins symbols: letters stand close, words apart; the end of what is too long."""
    text = (" " if words else "").join(_shown(symbol) for symbol in symbols)
    return text if len(text) <= LONGEST else f"…{text[-LONGEST:]}"


def _sizes(values: Iterable[float]) -> str:
    return TEXT("sizes", sizes=" → ".join(f"{value:.2f}" for value in values))
