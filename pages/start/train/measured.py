"""Folds below a run: numbers, the gradient norm and the learning rate, a batch, the arithmetic."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import GlassformerError
from engine.experiments.race_table import name_of
from engine.lab.faults import parts_of
from engine.measure.shapes.batch_example import shifted_batch
from engine.service.state import RunView
from engine.training.compare import MeanLoss
from pages.start.train import curve_points, curves, pairs, words, words_pairs
from pages.start.train.beside import compared
from pages.start.train.losses import LIVE_POINTS, number, numbers
from ui.players.plot import plot
from ui.run_text import corpus_of
from ui.text.markdown import token_word

SHOWN = 24  # tokens of a row of the batch


def measured(view: RunView, other: RunView | None = None) -> None:
    """Draws the newest numbers of a run, or of both of a pair, in every unit, with the two small charts; and
    what is fed to the model.
    """
    for run, mark in zip(compared(view, other), ("", "_other"), strict=False):
        if other is not None:
            st.markdown(words.of_which(name_of(run)))
        numbers(run)
        _small_charts(run, mark)
        _size(run)
    _batch(view)


def _size(view: RunView) -> None:
    noun = "symbol" if pairs.paired_of(view.spec.corpus) else token_word(view.spec.train.tokenizer)
    st.caption(words.size(view.parameters, view.spec.model.vocab_size, noun, view.precision))


def by_hand(view: RunView) -> None:
    """Draws the way from the probability of a text to the loss and the perplexity."""
    looks = [e for e in view.history.evaluations if math.isfinite(e.validation_loss)]
    if not looks:
        st.caption(words.NO_LOSS)
        return
    if (paired := pairs.paired_of(view.spec.corpus)) is not None:
        st.markdown(words_pairs.LABELS_BY_HAND if paired.labels else words_pairs.BY_HAND)
        return
    positions = view.spec.model.context
    mean_loss = MeanLoss(looks[-1].validation_loss, positions)
    st.markdown(words.likelihood(mean_loss, token_word(view.spec.train.tokenizer)))


def _batch(view: RunView) -> None:
    """The shifted pair x, y of a step."""
    corpus, spec = corpus_of(view.spec), view.spec
    if corpus is None:
        return
    st.markdown(words.BATCH)
    try:
        batch = shifted_batch(corpus, spec.model, spec.train, max(view.step, 1), parts=parts_of(spec.parts))
    except GlassformerError as error:
        st.caption(str(error))
        return
    lines = []
    for row, (start, x, y) in enumerate(zip(batch.starts, batch.x, batch.y, strict=True)):
        lines.append(f"x[{row}]  {_cells(x)}   ({words.starts_at(start)})")
        lines.append(f"y[{row}]  {_cells(y)}")
    st.code("\n".join(lines), language=None)
    st.caption(words.batch(batch, token_word(spec.train.tokenizer)))


def _cells(tokens: tuple[str, ...]) -> str:
    """Tokens of a row, spaces and line breaks made visible."""
    visible = [t.replace("\n", "⏎").replace(" ", "␣") or "·" for t in tokens[:SHOWN]]
    return " ".join(visible) + (" …" if len(tokens) > SHOWN else "")


def _small_charts(view: RunView, mark: str) -> None:
    h, total = view.history, float(view.total_steps)
    some = curve_points.spread(len(h.steps), LIVE_POINTS)
    left, right = st.columns(2)
    charts: list[tuple[DeltaGenerator, words.Small, np.ndarray, str, str, bool]] = [
        (left, words.NORM, h.grad_norms, "norm", "quiet", True),
        (right, words.LEARNING_RATE, h.learning_rates, "rate", "run0", False),
    ]
    for container, small, values, key, shade, log in charts:
        latest = number(float(values[-1]), ".3g") if len(values) else "–"
        title = small.title.lower()
        figure = curves.small_curve(h.steps[some], values[some], title=title, shade=shade, log=log, end=total)
        with container:
            st.markdown(f"**{small.title}** {latest}", help=small.hint)
            plot(figure, key=f"{key}_chart{mark}", alt=small.alt.format(latest), height=170)
