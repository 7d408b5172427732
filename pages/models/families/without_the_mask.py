"""Without the mask, a part of the view "Why decoders": one text in a decoder with its mask, without it, in a
model trained without it, and in an encoder, which is asked for what it cannot see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.checkpoints import Checkpoint, load
from engine.errors import GlassformerError
from studies.experiments.no_causal_mask import MASKED, UNMASKED, square
from studies.families.unmasked_attention import UnmaskedPatterns, continue_text, end_loss, opened, read
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import SEQUENTIAL, colour
from ui.page_frame import View
from ui.players.plot import plot
from ui.site import ROOT
from ui.text.tokens import show_characters

TEXT = content.beside(__file__)
HEIGHT, WRITTEN = 248, 20
BLANKS = "blanks"
LONGEST = 32  # characters
STRIP, BETWEEN = 0.09, 0.04  # of the height: the letters' chances, and the room above them


def draw(line: DeltaGenerator) -> None:
    if not all(_there()):
        explain.answer(TEXT["none"])
        return
    with line:
        text = st.text_input(
            TEXT["typed"], TEXT["first"], key="square_text", max_chars=LONGEST, width=300, **widgets.KEPT
        )
        options = {"all": TEXT["all layers"]} | {
            str(i): TEXT("one layer", layer=i) for i in range(_models()[MASKED].config.n_layers)
        }
        chosen = widgets.select(TEXT["layer"], options, "square_layer")
    layer = None if chosen == "all" else int(chosen)
    if len(text) < 2:
        explain.answer(TEXT["short"])
        return
    try:
        patterns, written = _read(text)
    except GlassformerError as error:
        explain.answer(TEXT("refused", why=str(error)))
        return
    _pictures(patterns, text, layer)
    st.table(_table(patterns, written, layer), border="horizontal")
    models = _models()
    masked, unmasked = models[MASKED].metrics, models[UNMASKED].metrics
    explain.answer(
        TEXT(
            "answer",
            copying=unmasked["validation_loss"],
            end=unmasked["end_loss"],
            masked=masked["validation_loss"],
            opened=masked["opened"]["validation_loss"],
            right=models[BLANKS].metrics["guessed_right"],
        )
    )
    explain.by_hand(st.markdown, TEXT["by hand"])


def _pictures(patterns: dict[str, UnmaskedPatterns], text: str, layer: int | None) -> None:
    labels = [show_characters(letter) for letter in text]
    for column, (name, pattern) in zip(st.columns(len(patterns), gap="small"), patterns.items(), strict=True):
        chances = _placed(pattern.chances, len(text))
        with column:
            plot(
                square_figure(pattern.weights(layer), chances, TEXT(f"title {name}"), labels),
                key=f"square_{name}",
                alt=TEXT("alt", title=TEXT(f"title {name}"), ahead=pattern.ahead(layer)),
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
    cells = {
        TEXT(f"title {name}"): [
            f"{pattern.ahead(layer):.0%}",
            _loss(metrics[name]["validation_loss"], hidden=name == BLANKS),
            _loss(metrics[name].get("end_loss")),
            TEXT("sample", text=show_characters(written[name])),
        ]
        for name, pattern in patterns.items()
    }
    return pd.DataFrame(cells, index=[TEXT(f"row {row}") for row in ("ahead", "loss", "end", "sample")])


def _loss(loss: float | None, hidden: bool = False) -> str:
    """Returns a cell of the table; of an encoder it counts the `hidden` letters alone."""
    if loss is None:
        return TEXT["no loss"]
    return TEXT("loss of blanks" if hidden else "loss", loss=loss)


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


def square_figure(weights: np.ndarray, chances: np.ndarray, title: str, labels: Sequence[str]) -> go.Figure:
    """Draws weights (query, key) in [0, 1]; chances (query,) in [0, 1], NaN where nothing is said. Where no
    later letter has any weight, they are masked, and grey.
    """
    later = np.triu(np.ones_like(weights, dtype=bool), 1)
    shown = weights if weights[later].any() else np.where(later, np.nan, weights)
    letters = [TEXT("letter", letter=plain(label), place=i) for i, label in enumerate(labels)]
    square = {"x": letters, "y": letters, "hovertemplate": TEXT["weight"]}
    strip = {"x": letters, "y": [""], "hovertemplate": TEXT["probability"], "yaxis": "y2"}
    return go.figure(
        [_heat(shown, square), _heat(chances[None], strip)],
        margin={"l": 22, "r": 2, "t": 42, "b": 4},
        showlegend=False,
        plot_bgcolor=colour("quiet", 25),
        xaxis=_axis(labels) | {"side": "top", "tickangle": 0, "anchor": "y"},
        yaxis=_axis(labels) | {"autorange": "reversed", "domain": [STRIP + BETWEEN, 1]},
        yaxis2=_axis(()) | {"domain": [0, STRIP]},
        annotations=[go.heading(f"<b>{title}</b>", yshift=18)],
    )


def _heat(values: np.ndarray, rest: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "z": values.astype(np.float32),
        "zmin": 0,
        "zmax": 1,
        "colorscale": SEQUENTIAL,
        "showscale": False,
        "hoverongaps": False,
        **rest,
    }


def _axis(labels: Sequence[str]) -> dict[str, Any]:
    """With what its cells are called, or without."""
    return go.ticks(
        list(range(len(labels))),
        [plain(label) for label in labels],
        tickfont={"size": 9, "family": "monospace"},
        ticklabeloverflow="allow",
        ticks="",
        fixedrange=True,
    )


PART = View("unmasked", TEXT, draw, code=(opened, read, end_loss))
