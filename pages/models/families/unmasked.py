"""One text in a decoder with its mask, without it, in a model trained without it, and in an encoder, which is
asked for what it cannot see.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import GlassformerError
from engine.experiments.no_causal_mask import MASKED, UNMASKED, square
from engine.measure.families.unmasked_attention import (
    UnmaskedPatterns,
    continue_text,
    opened,
    read,
)
from engine.weights.checkpoints import Checkpoint, load
from pages.models.families import words_unmasked as words
from pages.models.families.figures_unmasked import square_figure
from ui import explain, memo, widgets
from ui.players.plot import plot
from ui.site import ROOT
from ui.text.markdown import safe
from ui.text.tokens import show_characters

HEIGHT, WRITTEN = 248, 20
BLANKS = "blanks"
KEPT = 32  # texts that are remembered


def draw_unmasked(line: DeltaGenerator) -> None:
    if not all(_there()):
        explain.answer(words.NONE)
        return
    with line:
        text = st.text_input(
            words.TYPED, words.FIRST, key="square_text", max_chars=words.LONGEST, width=300, **widgets.KEPT
        )
        options = {"all": words.ALL} | {
            str(i): f"layer {i}" for i in range(_models()[MASKED].config.n_layers)
        }
        chosen = widgets.select(words.LAYER, options, "square_layer")
    layer = None if chosen == "all" else int(chosen)
    if len(text) < 2:
        explain.answer(words.SHORT)
        return
    try:
        patterns, written = _read(text)
    except GlassformerError as error:
        explain.answer(words.refused(safe(str(error))))
        return
    _pictures(patterns, text, layer)
    st.table(_table(patterns, written, layer), border="horizontal")
    models = _models()
    with_mask = models[MASKED].metrics
    explain.answer(
        words.mask_sentence(
            with_mask, with_mask["opened"], models[UNMASKED].metrics, models[BLANKS].metrics["guessed_right"]
        )
    )
    explain.by_hand(lambda: st.markdown(words.BY_HAND))


def _pictures(patterns: dict[str, UnmaskedPatterns], text: str, layer: int | None) -> None:
    labels = [show_characters(letter) for letter in text]
    for column, (name, pattern) in zip(st.columns(len(patterns), gap="small"), patterns.items(), strict=True):
        chances = _placed(pattern.chances, len(text))
        with column:
            plot(
                square_figure(pattern.weights(layer), chances, words.TITLES[name], labels),
                key=f"square_{name}",
                alt=words.alt(name, pattern.ahead(layer)),
                height=HEIGHT,
                name=f"square-{name}",
                data={"letter": labels, "probability": chances}
                | {f"attends to {i} {label}": pattern.weights(layer)[:, i] for i, label in enumerate(labels)},
            )


def _placed(chances: np.ndarray, length: int) -> np.ndarray:
    """One for each letter: nobody says how probable the first is where the next is asked for."""
    return np.concatenate([np.full(length - len(chances), np.nan), chances])


def _table(patterns: dict[str, UnmaskedPatterns], written: dict[str, str], layer: int | None) -> pd.DataFrame:
    models = _models()
    metrics = {name: models[name].metrics for name in models} | {"opened": models[MASKED].metrics["opened"]}
    return pd.DataFrame(
        {
            words.TITLES[name]: [
                f"{pattern.ahead(layer):.0%}",
                words.loss_cell(metrics[name]["validation_loss"], hidden=name == BLANKS),
                words.loss_cell(metrics[name].get("end_loss")),
                f"“{safe(show_characters(written[name]))}”",
            ]
            for name, pattern in patterns.items()
        },
        index=list(words.ROWS),
    )


def _there() -> list[bool]:
    folder = ROOT / "checkpoints"
    names = (f"square/{MASKED}", f"square/{UNMASKED}", f"encoders/{BLANKS}")
    return [(folder / name / "config.json").is_file() for name in names]


@memo.loaded()
def _models() -> dict[str, Checkpoint]:
    return {
        MASKED: square(MASKED),
        UNMASKED: square(UNMASKED),
        BLANKS: load(ROOT / "checkpoints" / "encoders" / BLANKS),
    }


@memo.measured()
def _read(text: str) -> tuple[dict[str, UnmaskedPatterns], dict[str, str]]:
    """By name, in the order of the figure: a text as each of the four reads it, and what it writes then."""
    models = _models()
    ids = models[MASKED].tokenizer.encode(text)
    four = {
        MASKED: (models[MASKED].model, None),
        "opened": (opened(models[MASKED].model), None),
        UNMASKED: (models[UNMASKED].model, None),
        BLANKS: (models[BLANKS].model, models[BLANKS].config.vocab_size - 1),
    }
    patterns = {name: read(model, ids, blank) for name, (model, blank) in four.items()}
    written = {
        name: models[MASKED].tokenizer.decode(continue_text(model, ids, WRITTEN, blank))
        for name, (model, blank) in four.items()
    }
    return patterns, written
