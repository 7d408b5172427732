"""Home's running view of an encoder-decoder: the map of its two stacks, with the text that runs through them
while it writes.
"""

from __future__ import annotations

import streamlit as st

from engine.errors import GlassformerError
from engine.ledger import ledger
from engine.measure.families.written_target import WrittenTarget, write_target
from pages.start.home import words_pair as words
from pages.start.home.map import draw_stacks
from ui import explain, families, memo, models, widgets
from ui.fit_text import read
from ui.model_bar import Choice
from ui.text.markdown import safe
from ui.training_step import NEWEST


def draw_running_pair(choice: Choice) -> None:
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
        explain.answer(words.refused(safe(str(error))))
        return
    steps = len(wrote.written)
    answer, controls = st.columns([9, 3], gap="medium", vertical_alignment="center")
    with controls:
        step = widgets.slide("Writing step", 1, steps, min(2, steps), "home_step") - 1
    with answer:
        explain.answer(words.step(wrote, step))
    counted = ledger(pair.model.config.decoder, pair.model.config.encoder)
    draw_stacks(
        counted,
        key="map_running",
        alt=words.alt(wrote, step),
        live=words.lines(wrote, step, pair.tokenizer.shown(range(pair.tokenizer.vocab_size))),
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
