"""With or without residual connections: two models that differ in nothing else, trained once and shipped."""

from __future__ import annotations

from typing import get_args

import pandas as pd
import streamlit as st

from engine.config import Norm
from engine.data import corpora
from engine.errors import CheckpointError
from engine.experiments import no_residual
from engine.experiments.no_residual import (
    DEPTHS,
    Pair,
    compare,
    shipped,
)
from engine.parts.cards.norms import norm_title
from pages.inside.residual import guesses
from pages.inside.residual import words_highway as words
from pages.inside.residual.figures_comparison import NAMES, pair_lines
from pages.inside.residual.wirings import draw_wirings
from pages.inside.residual.words_highway import Shown
from ui import explain, memo, session, widgets
from ui.background_jobs import measured
from ui.guess import ask
from ui.players.plot import plot

NORMS: dict[Norm, str] = {name: norm_title(name) for name in no_residual.NORMS}


@memo.measured()
def _shipped() -> dict[tuple[int, Norm], Pair]:
    return shipped()


def draw_highway() -> None:
    """Draws two lines and the answer; the wirings of published models, and a training here and now, are
    folded.
    """
    try:
        pairs = _shipped()
    except CheckpointError as error:
        st.info(str(error))
        return
    left, right = st.columns([3, 1], gap="medium")
    with right:
        depth = widgets.select(words.BLOCKS, DEPTHS, "residual_depth", first=8)
        norm = widgets.select(words.BLOCK_NORM, NORMS, "residual_pair_norm")
        # With norms the gradient is not the reason.
        offered = {
            shown: title for shown, title in words.SHOWN.items() if norm == "none" or shown != "gradients"
        }
        shown = widgets.select(words.SHOW, offered, "residual_shown", hint=words.SHOWN_HINT, wrap=True)
        st.caption(words.STORED)
    pair = pairs[depth, norm]
    with left:
        _figure(pair, shown, "residual_pair", 400)
    explain.answer(words.why_residual(pair, shown))
    other = min(DEPTHS) if depth > min(DEPTHS) else max(DEPTHS)
    ask("depth", guesses.depth, pairs[other, norm])
    explain.measure_it(_more, depth, norm)


def _figure(pair: Pair, shown: Shown, key: str, height: int) -> None:
    axis = "step" if shown == "losses" else "after_block"
    at = pair.points if shown == "losses" else range(pair.depth)
    lines = {name: getattr(getattr(pair, name), shown) for name in NAMES}
    plot(
        pair_lines(pair, shown),
        key=key,
        height=height,
        name=f"residual-{shown}",
        data=pd.DataFrame({axis: at, **lines}),
        alt=words.pair_alt(pair, shown),
    )


def _more(depth: int, norm: Norm) -> None:
    """The gradient where norms keep it up; the same training here and now, where somebody asks for it; then
    the wirings, fresh and untrained.
    """
    if norm != "none":
        st.subheader(words.GRADIENT_TITLE, anchor=False)
        pair = _shipped()[depth, norm]
        _figure(pair, "gradients", "residual_pair_gradients", 300)
        st.markdown(words.why_residual(pair, "gradients"))
    st.caption(words.MADE_BY)
    if widgets.switch(words.AGAIN, False, "residual_again", hint=words.AGAIN_HINT):
        _again(depth, norm)
    st.subheader(words.WIRINGS_TITLE, anchor=False)
    draw_wirings()


def _again(depth: int, norm: Norm) -> None:
    corpus = session.corpus(corpora.default_name())
    pair = measured(
        ("residuals", depth, norm, corpus.name), lambda: compare(depth, norm, corpus), words.AGAIN_MEASURED
    )
    if pair is None:
        return
    for column, shown in zip(st.columns(3, gap="medium"), get_args(Shown), strict=True):
        with column:
            _figure(pair, shown, f"residual_again_{shown}", 300)
    st.caption(words.trained_again(pair, _shipped()[depth, norm], corpus.name))
