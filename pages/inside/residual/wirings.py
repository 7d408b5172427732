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
    Init,
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
NORMS: dict[str, Norm] = {norm_title(name): name for name in NORM_CARDS}
INITS: dict[str, Init] = {"as in GPT-2": "scaled", "without 1/√(2L)": "unscaled", "1/√inputs": "fan_in"}
QUANTITIES: dict[str, Quantity] = {"the stream": "gradients", "each block's weights": "weights"}
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
        "Measuring freshly initialised models",
        lambda so_far: _draw(plan, so_far, quantity) if so_far else None,
    )
    if profiles is None:
        return
    st.caption(
        f"{len(profiles)} freshly initialised models: width {plan.d_model}, {plan.n_heads} heads, a batch of"
        f" {plan.batch} windows of {plan.context} characters from the corpus *{safe(corpus)}*."
    )
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
        "Deepest model (blocks)",
        list(DEPTHS),
        "residual_deepest",
        first="48",
        container=row,
        hint="More blocks take longer: about a second per 300 blocks.",
    )
    seeds = widgets.select(
        "Seeds",
        SEEDS,
        "residual_seeds",
        first=3,
        container=row,
        hint="Models of each kind; their geometric mean is plotted.",
    )
    norm = widgets.select(
        "Norm",
        list(NORMS),
        "residual_norm",
        container=row,
        hint="Without a norm, pre-norm and post-norm are the same model.",
    )
    hint = (
        "GPT-2: all matrices have std 0.02, and those that write to the stream are also divided by √(2L)."
        " 1/√inputs preserves the scale of what passes through a matrix."
    )
    init = widgets.select("Initial weights", list(INITS), "residual_init", container=row, hint=hint)
    hint = "Weights: all parameters of a block together."
    what = widgets.select("Gradient w.r.t.", list(QUANTITIES), "residual_gradient", container=row, hint=hint)
    plan = Plan(depths=DEPTHS[deepest], norm=NORMS[norm], init=INITS[init], seeds=seeds)
    return plan, QUANTITIES[what]


def _draw(plan: Plan, profiles: tuple[Profile, ...], quantity: Quantity) -> tuple[dict[Quantity, Any], int]:
    """The figures of what is there; (its means, the depth of the deepest). Verdicts wait for the end."""
    means: dict[Quantity, Any] = {name: averaged(list(profiles), name) for name in get_args(Quantity)}
    reached = sorted({depth for _, depth in means["gradients"]})
    options = [*(str(depth) for depth in plan.depths[:-1]), DEEPEST]
    hint = "The measured depth that is plotted block by block."
    chosen = widgets.select(
        "Depth in the two block-by-block figures", options, "residual_blocks", first=DEEPEST, hint=hint
    )
    depth = int(chosen) if chosen != DEEPEST and int(chosen) in reached else reached[-1]
    what = "gradient norm" if quantity == "gradients" else "gradient norm of the weights"
    left, right = st.columns(2, gap="medium")
    for place, name, title, side in (
        (left, quantity, what, "left"),
        (right, "activations", "norm of the stream", "right"),
    ):
        curves = {w: _curve(values, d) for (w, d), values in means[name].items() if d == depth}
        with place:
            plot(
                figures.gradient_lines(curves, x="after block (block 0 is next to the input)", y=title),
                key=f"residual_road_{side}",
                height=340,
                name=title.replace(" ", "-"),
                data=_by_layer(means[name]),
                alt=f"{title} at each of {depth} blocks on a logarithmic axis, one line for each wiring.",
            )
    st.caption(
        f"For every depth: {what} at the first block, divided by that at the last. At 1 the two are equal."
    )
    ends = {w: ratios(means[quantity], w, reached) for w in plan.wirings}
    curves = {w: (np.array(reached[: len(v)]), v) for w, v in ends.items()}
    plot(
        figures.gradient_lines(
            curves, x="blocks in the model", y="first ÷ last block", flat=True, end=max(plan.depths)
        ),
        key="residual_road_ratio",
        height=330,
        name="gradient-ratio",
        data=pd.DataFrame({"blocks": reached}).assign(
            **{
                w: np.pad(v.astype(float), (0, len(reached) - len(v)), constant_values=math.nan)
                for w, v in ends.items()
            }
        ),
        alt=(
            f"{what}: first block divided by last, against the number of blocks in the model; at 1 the two"
            " are equal."
        ),
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
    lines = []
    for wiring in plan.wirings:
        values = means[quantity].get((wiring, depth))
        if values is not None:
            blocks = blocks_of(values, depth)
            remark = words.instead(
                plan, wiring, blocks, blocks_of(means["activations"][wiring, depth], depth)
            )
            lines.append(
                f"| **{figures.WIRING_WORDS[wiring]}** | {words.THEORY[wiring]} |"
                f" {words.seen(blocks)}{remark} |"
            )
    st.markdown(
        f"| block | theory, at initialisation | measured here, {depth} blocks |\n|---|---|---|\n"
        + "\n".join(lines)
    )
    broken = unusable(profiles)
    if broken:
        st.warning(
            f"{broken} of {len(profiles)} models overflowed float32 (infinities or NaNs); they are not drawn."
        )
    found = last_block(means["weights"], depth)
    if found is not None and NORM_CARDS[plan.norm].divides:
        explain.takeaway(words.proved(found, plan.init))
