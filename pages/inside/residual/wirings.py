"""Fresh models of every depth and wiring, measured live: how the gradient travels before any training."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Norm, Wiring
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.data.progress import Progress, Steps
from engine.errors import CorpusError
from engine.measure.residual.gradient_by_depth import (
    EPS,
    Init,
    LastBlock,
    Plan,
    Profile,
    Quantity,
    averaged,
    blocks_of,
    gradient_flow,
    last_block,
    measure,
    ratios,
    reason,
    unusable,
)
from engine.parts.cards.norms import NORM_CARDS, norm_title
from pages.inside.residual import figures
from ui import explain, session, widgets
from ui.background_jobs import measured
from ui.players.plot import plot
from ui.text.markdown import safe

DEPTHS = {"24": (2, 4, 8, 16, 24), "48": (2, 4, 8, 16, 24, 32, 48), "96": (2, 4, 8, 16, 24, 32, 48, 64, 96)}
NORMS: dict[str, Norm] = {norm_title(name): name for name in NORM_CARDS}
INITS: dict[str, Init] = {"as in GPT-2": "scaled", "writes not scaled": "unscaled", "1/√inputs": "fan_in"}
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
        "Measuring fresh models",
        lambda so_far: _draw(plan, so_far, quantity) if so_far else None,
    )
    if profiles is None:
        return
    st.caption(
        f"{len(profiles)} fresh models, none of them trained: width {plan.d_model}, {plan.n_heads}"
        f" heads, a batch of {plan.batch} windows of {plan.context} characters from the corpus"
        f" *{safe(corpus)}*."
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
        hint="Models of each kind; the geometric mean over them is drawn.",
    )
    norm = widgets.select(
        "Norm",
        list(NORMS),
        "residual_norm",
        container=row,
        hint="Without a norm, pre-norm and post-norm are the same model.",
    )
    hint = (
        "GPT-2: all matrices std 0.02, those that write to the stream also divided by √(2L). 1/√inputs keeps"
        " the size of what passes through a matrix."
    )
    init = widgets.select("Initial weights", list(INITS), "residual_init", container=row, hint=hint)
    hint = "Weights: all parameters of a block together."
    what = widgets.select("Gradient by", list(QUANTITIES), "residual_gradient", container=row, hint=hint)
    plan = Plan(depths=DEPTHS[deepest], norm=NORMS[norm], init=INITS[init], seeds=seeds)
    return plan, QUANTITIES[what]


def _draw(plan: Plan, profiles: tuple[Profile, ...], quantity: Quantity) -> tuple[dict[Quantity, Any], int]:
    """The figures of what is there; (its means, the depth of the deepest). Verdicts wait for the end."""
    means: dict[Quantity, Any] = {name: averaged(list(profiles), name) for name in get_args(Quantity)}
    reached = sorted({depth for _, depth in means["gradients"]})
    options = [*(str(depth) for depth in plan.depths[:-1]), DEEPEST]
    hint = "Which of the measured depths is drawn layer by layer."
    chosen = widgets.select(
        "Blocks, in the two figures by layer", options, "residual_blocks", first=DEEPEST, hint=hint
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


THEORY = {
    "pre": "the identity path carries the gradient to every block: flat",
    "post": "a norm after every sum damps the path, so gradients are larger near the output",
    "none": "a product of Jacobians: vanishes or explodes with depth",
}


def _say(
    plan: Plan, profiles: tuple[Profile, ...], means: dict[Quantity, Any], quantity: Quantity, depth: int
) -> None:
    """Theory and measurement side by side, for the deepest models."""
    lines = []
    for wiring in plan.wirings:
        values = means[quantity].get((wiring, depth))
        if values is not None:
            blocks = blocks_of(values, depth)
            remark = instead(plan, wiring, blocks, blocks_of(means["activations"][wiring, depth], depth))
            lines.append(
                f"| **{figures.WIRING_WORDS[wiring]}** | {THEORY[wiring]} | {seen(blocks)}{remark} |"
            )
    st.markdown(
        f"| wiring | theory, at initialisation | seen here, {depth} blocks |\n|---|---|---|\n"
        + "\n".join(lines)
    )
    broken = unusable(profiles)
    if broken:
        st.warning(
            f"{broken} of {len(profiles)} models gave numbers that are not finite (infinity, or not a"
            " number): too large for float32. Not drawn."
        )
    found = last_block(means["weights"], depth)
    if found is not None and NORM_CARDS[plan.norm].divides:
        explain.takeaway(_proved(found, plan.init))


def seen(blocks: np.ndarray) -> str:
    """Describes how gradients (block,) change on their way from the last block to the first.

    >>> seen(np.array([1e-6, 1.0]))
    'vanishes: the first block gets 1e-06 of the last one’s'
    """
    found = gradient_flow(blocks)
    return {
        "not finite": "not finite: it explodes beyond what float32 can hold",
        "zero": "0 everywhere: smaller than the smallest float32",
        "zero at the last": "0 at the last block",
        "zero at the first": (
            f"vanishes: exactly 0 at the first block, below the smallest float32; {found.reached} of"
            f" {found.blocks} blocks get any"
        ),
        "flat": f"flat: first ÷ last = {found.ratio:.2f}",
        "fades": f"fades: first ÷ last = {found.ratio:.2g}",
        "vanishes": f"vanishes: the first block gets {found.ratio:.2g} of the last one’s",
        "grows": f"grows towards the input: first ÷ last = {found.ratio:.2g}",
        "explodes": f"explodes: the first block gets {found.ratio:.2g} times the last one’s",
    }[found.fate]


def instead(plan: Plan, wiring: Wiring, blocks: np.ndarray, lengths: np.ndarray) -> str:
    """Returns a sentence where what was seen is not what theory says, or has a reason that can be seen.
    `lengths`: norm of the stream (block,).
    """
    found = reason(plan, wiring, blocks, lengths)
    if found is None:
        return ""
    words = {
        "no norm": "Not flat: with no norm in front, a write grows with the stream that it reads",
        "stream grows": (
            f"Not flat: the stream grows, from {lengths[0]:.2g} to {lengths[-1]:.2g}, and a norm divides"
            " gradients by the length of what it reads"
        ),
        "saturates": (
            f"Not flat: the stream grows, from {lengths[0]:.2g} to {lengths[-1]:.2g}, and where a number is"
            f" large {NORM_CARDS[plan.norm].title} has hardly a slope"
        ),
        "as pre-norm": "Without a norm this is the same model as pre-norm",
        "own paths": ("Not what was expected: presumably the sublayers' own paths carry what the norms damp"),
        "small writes": "Not what was expected: each write is small beside the stream",
        "restored": ("Not what was expected: the norm before each sublayer restores the size that was lost"),
        "epsilon": (
            f"The norms cannot stop it: the stream became so short that $\\varepsilon$ = {EPS:g} in their"
            " divisor outweighs it"
        ),
    }
    return f". {words[found]}"


def _proved(last_block: LastBlock, init: str) -> str:
    """Says what Xiong et al. 2020 prove about the last block: its gradient shrinks like 1/sqrt(L) in
    pre-norm, not in post-norm.
    """
    return (
        "Xiong et al. (2020) prove it for the *last* block: in pre-norm the gradient of its weights shrinks"
        " like $1/\\sqrt{L}$ with the number of blocks, in post-norm it does not. From"
        f" {last_block.least} to {last_block.depth} blocks $1/\\sqrt{{L}}$ would be a factor"
        f" {last_block.theory:.2f}; measured: pre-norm × {last_block.pre:.2f}, post-norm ×"
        f" {last_block.post:.2f}. "
        + (
            "These weights are like theirs."
            if init == "fan_in"
            else "Their weights start with std about $1/\\sqrt{inputs}$: choose that above to see it."
        )
    )
