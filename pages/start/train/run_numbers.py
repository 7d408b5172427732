"""The numbers of a run, folded below it: losses, the gradient norm and the learning rate, a batch."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import GlassformerError
from engine.parts.registry import parts_of
from engine.training.numerics import perplexity
from engine.training.records import Evaluation
from pages.start.train.curve_points import spread
from pages.start.train.loss_chart import LIVE_POINTS, comparable
from pages.start.train.run_kinds import OfText, bits, kind_of, number
from pages.start.train.shown_runs import compared
from runs.state import RunView
from studies.experiments.race_table import name_of
from studies.shapes.batch_example import shifted_batch
from ui import content
from ui.figures import specs as go
from ui.players.plot import plot
from ui.run_text import corpus_of

TEXT = content.beside(__file__)
SHOWN = 24  # tokens of a row of the batch


def measured(view: RunView, other: RunView | None = None) -> None:
    """Draws the newest numbers of a run, or of both of a pair, in every unit, with the two small charts; and
    what is fed to the model.
    """
    for run, mark in zip(compared(view, other), ("", "_other"), strict=False):
        if other is not None:
            st.markdown(TEXT("of which", name=name_of(run)))
        _losses(run)
        _small_charts(run, mark)
        _size(run)
    _batch(view)


def _losses(view: RunView) -> None:
    """Draws the newest validation loss in the three ways in which it is told."""
    kind, looks = kind_of(view.spec), view.history.evaluations
    loss = looks[-1].validation_loss if looks else math.nan
    with st.grid("auto", min_column_width=135):
        st.metric(TEXT["loss"], number(loss, ".3f"), help=TEXT("loss hint", noun=kind.noun))
        st.metric(
            TEXT["perplexity"],
            number(perplexity(loss), ".2f" if loss < 50 else ".3g"),
            help=TEXT("perplexity hint", noun=kind.noun),
        )
        if kind.characters:
            hint = f"{TEXT['bits hint']} {TEXT['masked hint']}" if kind.masked else TEXT["bits hint"]
            st.metric(TEXT["bits"], number(bits(looks[-1]) if looks else math.nan, ".3f"), help=hint)
    if looks:
        st.caption(_measured_on(looks[-1], kind))
    if kind.noun != "character" and kind.characters:
        st.caption(comparable())


def _measured_on(look: Evaluation, kind: OfText) -> str:
    """Says what part of the validation split a loss is of."""
    return TEXT(
        "whole" if look.complete else "part",
        step=look.step,
        tokens=kind.spec.train.eval_tokens,
        token=kind.token,
    )


def _size(view: RunView) -> None:
    token = kind_of(view.spec).token
    size = TEXT("size", parameters=view.parameters, vocabulary=view.spec.model.vocab_size, token=token)
    how = view.precision
    st.caption(f"{size} {how[:1].upper()}{how[1:]}." if how else size)


def by_hand(view: RunView) -> None:
    """Draws the way from the probability of a text to the loss and the perplexity."""
    losses = [look.validation_loss for look in view.history.evaluations]
    finite = [loss for loss in losses if math.isfinite(loss)]
    if finite:
        st.markdown(kind_of(view.spec).by_hand(finite[-1]))
    else:
        st.caption(TEXT["no loss"])


def _batch(view: RunView) -> None:
    """The shifted pair x, y of a step."""
    corpus, spec = corpus_of(view.spec), view.spec
    if corpus is None:
        return
    st.markdown(TEXT["batch heading"])
    try:
        batch = shifted_batch(corpus, spec.model, spec.train, max(view.step, 1), parts=parts_of(spec.parts))
    except GlassformerError as error:
        st.caption(str(error))
        return
    lines = []
    for row, (start, x, y) in enumerate(zip(batch.starts, batch.x, batch.y, strict=True)):
        lines.append(f"x[{row}]  {_cells(x)}   ({TEXT('starts at', position=start)})")
        lines.append(f"y[{row}]  {_cells(y)}")
    st.code("\n".join(lines), language=None)
    st.caption(
        TEXT(
            "batch",
            step=batch.step,
            rows=batch.rows,
            positions=batch.positions,
            noun=kind_of(spec).noun,
            bound=batch.bound,
            tokens=batch.tokens,
            shifted=batch.shifted,
            pairs=batch.pairs,
        )
    )


def _cells(tokens: tuple[str, ...]) -> str:
    """Tokens of a row, spaces and line breaks made visible."""
    visible = [t.replace("\n", "⏎").replace(" ", "␣") or "·" for t in tokens[:SHOWN]]
    return " ".join(visible) + (" …" if len(tokens) > SHOWN else "")


def _small_charts(view: RunView, mark: str) -> None:
    h, total = view.history, float(view.total_steps)
    some = spread(len(h.steps), LIVE_POINTS)
    left, right = st.columns(2)
    charts: list[tuple[DeltaGenerator, str, np.ndarray, str, bool]] = [
        (left, "norm", h.grad_norms, "quiet", True),
        (right, "rate", h.learning_rates, "run0", False),
    ]
    for container, name, values, shade, log in charts:
        title = TEXT[f"title {name}"]
        latest = number(float(values[-1]), ".3g") if len(values) else "–"
        with container:
            st.markdown(TEXT("small", title=title, latest=latest), help=TEXT[f"hint {name}"])
            plot(
                _small_curve(h.steps[some], values[some], title.lower(), shade, log, total),
                key=f"{name}_chart{mark}",
                alt=TEXT(f"alt {name}", latest=latest),
                height=170,
            )


def _small_curve(
    steps: np.ndarray, values: np.ndarray, title: str, shade: str, log: bool, end: float
) -> go.Figure:
    x, y = (np.asarray(each, np.float32) for each in (steps, values))
    y_axis = {"type": "log", "nticks": 4} if log else {"type": "linear", "rangemode": "tozero", "nticks": 4}
    return go.figure(
        [go.line(x, y, shade, title, width=1.5, hovertemplate="%{y:.4g}<extra></extra>")],
        uirevision=title,
        margin={"l": 48, "r": 12, "t": 8, "b": 34},
        showlegend=False,
        xaxis=go.axis("step", rangemode="tozero", range=[0, end]),
        yaxis=y_axis,
    )
