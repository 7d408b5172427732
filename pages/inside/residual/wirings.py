"""Fresh models of every depth and wiring, measured live: how the gradient travels before any training."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Norm
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.data.progress import Progress, Steps
from engine.errors import CorpusError
from engine.measure.residual.gradient_by_depth import (
    Plan,
    Profile,
    Quantity,
    averaged,
    blocks_of,
    last_block,
    measure,
    ratios,
    unusable,
)
from engine.parts.cards.norms import NORM_CARDS, norm_title
from pages.inside.residual import figures
from pages.inside.residual import words_wirings as words
from ui import explain, session, widgets
from ui.background_jobs import measured
from ui.players.plot import plot
from ui.text.markdown import safe

DEPTHS = {"24": (2, 4, 8, 16, 24), "48": (2, 4, 8, 16, 24, 32, 48), "96": (2, 4, 8, 16, 24, 32, 48, 64, 96)}
NORMS: dict[Norm, str] = {name: norm_title(name) for name in NORM_CARDS}
SEEDS = (1, 3, 5)
DEEPEST = "deepest"


def draw_wirings() -> None:
    """Draws the controls, and what is measured of fresh models: as far as it is, then with the verdicts."""
    plan, quantity = _choose()
    corpus = corpora.default_name()
    try:
        text = session.corpus(corpus)
    except CorpusError as error:
        st.error(safe(str(error)))
        return
    profiles = measured(
        ("wirings", plan, corpus),
        lambda: _measuring(plan, text),
        words.MEASURED,
        lambda so_far: _draw(plan, so_far, quantity) if so_far else None,
    )
    if profiles is None:
        return
    st.caption(words.fresh_models(plan, len(profiles), corpus))
    means, depth = _draw(plan, profiles, quantity)
    _say(plan, profiles, means, quantity, depth)


def _measuring(plan: Plan, text: Corpus) -> Steps[tuple[Profile, ...]]:
    profiles: tuple[Profile, ...] = ()
    for profile in measure(plan, text.train, text.vocab_size):
        profiles = (*profiles, profile)
        yield Progress(profile.done, plan.work, profiles)
    return profiles


def _choose() -> tuple[Plan, Quantity]:
    """The plan from the widgets, whatever the URL says."""
    row = st.container(horizontal=True, gap="medium")
    deepest = widgets.select(
        words.DEEPEST_MODEL,
        list(DEPTHS),
        "residual_deepest",
        first="48",
        container=row,
        hint=words.DEEPEST_HINT,
    )
    seeds = widgets.select(
        words.SEEDS, SEEDS, "residual_seeds", first=3, container=row, hint=words.SEEDS_HINT
    )
    norm = widgets.select(words.NORM, NORMS, "residual_norm", container=row, hint=words.NORM_HINT)
    init = widgets.select(words.INIT, words.INITS, "residual_init", container=row, hint=words.INIT_HINT)
    quantity = widgets.select(
        words.GRADIENT_OF, words.QUANTITIES, "residual_gradient", container=row, hint=words.GRADIENT_HINT
    )
    return Plan(depths=DEPTHS[deepest], norm=norm, init=init, seeds=seeds), quantity


def _draw(plan: Plan, profiles: tuple[Profile, ...], quantity: Quantity) -> tuple[dict[Quantity, Any], int]:
    """The figures of what is there; (its means, the depth of the deepest). Verdicts wait for the end."""
    means: dict[Quantity, Any] = {name: averaged(list(profiles), name) for name in get_args(Quantity)}
    reached = sorted({depth for _, depth in means["gradients"]})
    options = [*(str(depth) for depth in plan.depths[:-1]), DEEPEST]
    chosen = widgets.select(
        words.DEPTH_DRAWN, options, "residual_blocks", first=DEEPEST, hint=words.DEPTH_HINT
    )
    depth = int(chosen) if chosen != DEEPEST and int(chosen) in reached else reached[-1]
    what = words.AXES[quantity]
    left, right = st.columns(2, gap="medium")
    for column, name, title, side in (
        (left, quantity, what, "left"),
        (right, "activations", words.AXES["activations"], "right"),
    ):
        curves = {w: _curve(values, d) for (w, d), values in means[name].items() if d == depth}
        with column:
            plot(
                figures.gradient_lines(curves, x=words.AFTER_BLOCK, y=title),
                key=f"residual_road_{side}",
                height=340,
                name=title.replace(" ", "-"),
                data=_by_layer(means[name]),
                alt=words.BLOCKS_ALT.format(title=title, depth=depth),
            )
    st.caption(words.RATIO_CAPTION.format(what=what))
    ends = {w: ratios(means[quantity], w, reached) for w in plan.wirings}
    curves = {w: (np.array(reached[: len(v)]), v) for w, v in ends.items()}
    plot(
        figures.gradient_lines(curves, x=words.BLOCKS, y=words.RATIO, flat=True, end=max(plan.depths)),
        key="residual_road_ratio",
        height=330,
        name="gradient-ratio",
        data=pd.DataFrame({"blocks": reached}).assign(
            **{
                w: np.pad(v.astype(float), (0, len(reached) - len(v)), constant_values=math.nan)
                for w, v in ends.items()
            }
        ),
        alt=words.RATIO_ALT.format(what=what),
    )
    return means, max(reached)


def _curve(values: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(depth), blocks_of(values, depth)


def _by_layer(means: dict[tuple[str, int], np.ndarray]) -> pd.DataFrame:
    rows = [
        (w, d, block, float(v))
        for (w, d), values in means.items()
        for block, v in enumerate(blocks_of(values, d))
    ]
    return pd.DataFrame(rows, columns=["wiring", "blocks", "block", "value"])


def _say(
    plan: Plan, profiles: tuple[Profile, ...], means: dict[Quantity, Any], quantity: Quantity, depth: int
) -> None:
    """Theory and measurement side by side, for the deepest models."""
    rows = []
    for wiring in plan.wirings:
        if (values := means[quantity].get((wiring, depth))) is not None:
            stream = blocks_of(means["activations"][wiring, depth], depth)
            rows.append(words.theory_row(plan, wiring, blocks_of(values, depth), stream))
    st.markdown(words.theory_table(rows, depth))
    if broken := unusable(profiles):
        st.warning(words.OVERFLOWED.format(broken=broken, models=len(profiles)))
    last = last_block(means["weights"], depth)
    if last is not None and NORM_CARDS[plan.norm].divides:
        explain.takeaway(words.proved(last, plan.init))
