"""The view "Residuals on/off": two models that differ in nothing else, trained once and shipped."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Norm
from engine.data import corpora
from engine.parts.blocks import NoResidualBlock, PreNormBlock
from pages.inside.residual.wirings import decades, draw_wirings
from studies.costs.cards.norms import norm_title
from studies.experiments import no_residual
from studies.experiments.no_residual import DEPTHS, Pair, TrainedStack, compare, likeness, shipped
from studies.guesses import training
from studies.residual.gradient_by_depth import fresh, measure
from ui import content, explain, memo, session, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess, ask
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import minus

TEXT = content.beside(__file__)
Shown = Literal["losses", "gradients", "alike"]
NORMS: dict[Norm, str] = {name: norm_title(name) for name in no_residual.NORMS}
LITTLE = 0.01  # of the last block's gradient: less than that at the first block is next to nothing
TICKS = 7  # on a logarithmic axis, at most
LOOKS = {"added": ("run0", "solid"), "replaced": ("run4", "dash")}


def draw() -> None:
    """Draws two lines and the answer; the wirings of published models, and a training here and now, are
    folded.
    """
    pairs = _shipped()
    left, right = st.columns([3, 1], gap="medium")
    with right:
        depth = widgets.select(TEXT["blocks"], DEPTHS, "residual_depth", first=8)
        norm = widgets.select(TEXT["norm"], NORMS, "residual_pair_norm")
        # With norms the gradient is not the reason.
        offered: tuple[Shown, ...] = (
            ("losses", "alike", "gradients") if norm == "none" else ("losses", "alike")
        )
        titles = {shown: TEXT(f"show {shown}") for shown in offered}
        shown = widgets.select(TEXT["show"], titles, "residual_shown", hint=TEXT["shown hint"], wrap=True)
        st.caption(TEXT["stored"])
    pair = pairs[depth, norm]
    with left:
        _figure(pair, shown, "residual_pair", 400)
    explain.answer(_answer(pair, shown))
    other = min(DEPTHS) if depth > min(DEPTHS) else max(DEPTHS)
    ask("depth", depth_guess, pairs[other, norm])
    explain.measure_it(_more, depth, norm)


@memo.measured()
def _shipped() -> dict[tuple[int, Norm], Pair]:
    return shipped()


def _figure(pair: Pair, shown: Shown, key: str, height: int) -> None:
    axis = "step" if shown == "losses" else "after_block"
    at = pair.points if shown == "losses" else range(pair.depth)
    lines = {name: getattr(getattr(pair, name), shown) for name in LOOKS}
    plot(
        pair_lines(pair, shown),
        key=key,
        height=height,
        name=f"residual-{shown}",
        data=pd.DataFrame({axis: at, **lines}),
        alt=TEXT(f"alt {shown}", steps=pair.steps, depth=pair.depth),
    )


def _answer(pair: Pair, shown: Shown) -> str:
    """Returns the answer, from whichever figure is shown."""
    return {"losses": _by_loss, "gradients": _by_gradient, "alike": _by_likeness}[shown](pair)


def _by_loss(pair: Pair) -> str:
    alike = pair.replaced.last_alike
    case = "blurred" if alike > 0.9 else "more similar"
    lost = pair.replaced.reached < LITTLE
    tokens = TEXT(
        f"{case} without a gradient" if lost else case,
        depth=pair.depth,
        alike=alike,
        added=pair.added.last_alike,
    )
    learned = TEXT(
        f"learned {pair.learned}", steps=pair.steps, loss=pair.replaced.loss, added=pair.added.loss
    )
    return f"{tokens} {learned}"


def _by_gradient(pair: Pair) -> str:
    bare = pair.replaced.reached
    if pair.depth == 1:
        case = "of one block"
    elif math.isnan(bare) or bare == 0:
        case = "underflows"
    else:
        case = "vanishes" if bare < LITTLE else "survives"
    return TEXT(f"gradient {case}", depth=pair.depth, added=pair.added.reached, bare=bare)


def _by_likeness(pair: Pair) -> str:
    added, bare = pair.added.last_alike, pair.replaced.last_alike
    case = "all tokens alike" if bare > 0.9 > added else "two tokens alike"
    return TEXT(case, depth=pair.depth, bare=bare, added=added)


def depth_guess(pair: Pair) -> Guess:
    """Makes a guess about the pair of another depth: `pair` is that one."""
    truth = training.without_residuals(pair)
    n = truth.numbers
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", depth=pair.depth),
        TEXT(
            "outcome",
            steps=pair.steps,
            depth=pair.depth,
            without=n["without"],
            with_them=n["with"],
            counting=n["counting"],
        ),
        {"residual_depth": pair.depth, "residual_shown": "losses"},
    )


def _more(depth: int, norm: Norm) -> None:
    """The gradient where norms keep it up; the same training here and now, where somebody asks for it; then
    the wirings, fresh and untrained.
    """
    if norm != "none":
        st.subheader(TEXT["gradient title"], anchor=False)
        pair = _shipped()[depth, norm]
        _figure(pair, "gradients", "residual_pair_gradients", 300)
        st.markdown(_answer(pair, "gradients"))
    st.caption(TEXT["made by"])
    if widgets.switch(TEXT["again"], False, "residual_again", hint=TEXT["again hint"]):
        _again(depth, norm)
    st.subheader(TEXT["wirings title"], anchor=False)
    draw_wirings()


def _again(depth: int, norm: Norm) -> None:
    corpus = session.corpus(corpora.default_name())
    pair = measured(
        ("residuals", depth, norm, corpus.name), partial(compare, depth, norm, corpus), TEXT["training"]
    )
    if pair is None:
        return
    for column, shown in zip(st.columns(3, gap="medium"), get_args(Shown), strict=True):
        with column:
            _figure(pair, shown, f"residual_again_{shown}", 300)
    stored = _shipped()[depth, norm]
    st.caption(
        TEXT(
            "trained again",
            corpus=corpus.name,
            added=pair.added.loss,
            replaced=pair.replaced.loss,
            shipped_added=stored.added.loss,
            shipped_replaced=stored.replaced.loss,
        )
    )


def pair_lines(pair: Pair, shown: Shown) -> go.Figure:
    """Draws two lines: the loss over the steps of the training, or what stands after each block before it
    begins. A gradient of 0 has no place on its logarithmic axis.
    """
    over_steps = shown == "losses"
    x = pair.points if over_steps else np.arange(pair.depth)
    traces = [_line(name, x, getattr(pair, name), shown) for name in LOOKS]
    title = TEXT["step" if over_steps else "block"]
    unigram, font = TEXT("unigram", loss=pair.counting), {"size": 13, "color": colour("quiet")}
    return go.figure(
        traces,
        margin={"l": 60, "r": 16, "t": 30, "b": 44},
        hovermode="x unified",
        xaxis=go.axis(title, zeroline=False),
        yaxis={"title": {"text": TEXT(f"axis {shown}")}} | _scale(pair, shown),
        **(go.level(unigram, pair.counting, font=font) if over_steps else {}),
        uirevision=f"pair-{shown}-{pair.depth}",
    )


def _line(name: str, x: np.ndarray, trained: TrainedStack, shown: Shown) -> go.Trace:
    (shade, dash), y = LOOKS[name], getattr(trained, shown)
    y = np.where(y > 0, y, np.nan) if shown == "gradients" else y
    points = 0 if shown == "losses" else 6
    return go.line(x, y, shade, TEXT(f"model {name}"), "%{y:.3g}", width=4, dash=dash, points=points)


def _scale(pair: Pair, shown: Shown) -> dict[str, Any]:
    if shown == "alike":
        return {"range": [min(-0.05, *pair.added.alike, *pair.replaced.alike), 1.05]}
    if shown == "losses":
        return {}
    low, high = decades([pair.added.gradients, pair.replaced.gradients])
    powers = np.arange(math.ceil(low), math.floor(high) + 1)
    powers = powers[:: math.ceil(len(powers) / TICKS)]
    return {
        "type": "log",
        "range": [low, high],
        "tickvals": 10.0**powers,
        "ticktext": [power_of_ten(int(power)) for power in powers],
    }


def power_of_ten(power: int) -> str:
    """Returns a power of ten as it is read: in full where that is short.

    >>> power_of_ten(-2), power_of_ten(0), power_of_ten(-20)
    ('0.01', '1', '10<sup>−20</sup>')
    """
    return f"{10.0**power:.{max(0, -power)}f}" if -4 <= power <= 4 else f"10<sup>{minus(str(power))}</sup>"


VIEW = View(
    "highway",
    TEXT,
    draw,
    code=(PreNormBlock, NoResidualBlock, compare, likeness, measure, fresh),
    needs_model=False,
)
