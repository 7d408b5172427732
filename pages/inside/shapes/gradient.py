"""The gradient of one prediction's loss, which the parts of "Backpropagation" show, and its numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.progress import single_piece
from engine.recording import next_token_losses, worst_position
from studies.shapes.backward import Backward, Matrix, backward
from ui import content, widgets
from ui.background_jobs import measured
from ui.model_bar import Subject
from ui.players.tokens import token_strip
from ui.text.numbers import minus, scientific

TEXT = content.beside(__file__)
POSITION = "shapes_position"
HEIGHT = 360
SMALL = 1e-3  # below it a power of ten is written


def has_gradient(subject: Subject) -> bool:
    """True if the text has a prediction with a finite loss; says so where it has none."""
    if len(subject.ids) < 2:
        st.info(TEXT["too short"])
    elif not np.isfinite(next_token_losses(subject.recording())).all():
        st.info(TEXT["diverged"])
    else:
        return True
    return False


def backpropagated(subject: Subject, *, strip: bool) -> Backward | None:
    """Returns the backward pass of the chosen position's loss; None where there is none, or none yet."""
    if not has_gradient(subject):
        return None
    position = _position(subject, strip)
    return measured(
        ("backward", subject.key, subject.ids, position),
        partial(single_piece, backward, subject.model, subject.ids, position),
        TEXT["backpropagating"],
    )


def _position(subject: Subject, strip: bool) -> int:
    """The position whose mistake is followed: the worst of the text's second half, until another is chosen in
    a strip that may be drawn.
    """
    losses = next_token_losses(subject.recording())
    worst = worst_position(losses)
    if strip:
        return token_strip(
            subject.labels[:-1],
            key=POSITION,
            chosen=worst,
            label=TEXT["strip"],
            values=(1 - np.exp(-losses)).tolist(),
            hints=[
                TEXT("next", token=subject.labels[i + 1], loss=three(float(loss)))
                for i, loss in enumerate(losses)
            ],
        )
    linked = widgets.url_index(POSITION, len(losses), nearest=True)
    return worst if linked is None else linked


def draw_matrices(prediction: Backward) -> None:
    """Draws a table of all matrices: their gradient's norm and largest entry."""
    every = list(prediction.gradients.values())
    table = {
        "matrix": [titled(each.matrix) for each in every],
        "shape": [f"{each.shape[0]:,} × {each.shape[1]:,}" for each in every],
        "gradient norm": [each.norm for each in every],
        TEXT["largest entry"]: [each.largest for each in every],
    }
    three = st.column_config.NumberColumn(format="%.3g")
    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        height=min(38 + 35 * len(every), 320),
        column_config=dict.fromkeys(list(table)[2:], three),
        key="shapes_matrices",
    )


def titled(matrix: Matrix) -> str:
    return matrix.title if matrix.block is None else f"block {matrix.block} · {matrix.title}"


def three(value: float, signed: bool = False) -> content.Filled:
    """Returns a number with three significant digits and a true minus sign.

    >>> three(-0.30712, signed=True), three(51.43), three(0.0)
    ('−0.307', '51.4', '0')
    """
    if not value or abs(value) < SMALL:
        return content.Filled(scientific(value))
    text = f"{value:+#.3g}" if signed else f"{value:#.3g}"
    return content.Filled(minus(text.rstrip(".")))
