"""Fresh models of every depth and wiring, measured live: how the gradient travels before any training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, get_args

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Norm, Wiring
from engine.data import corpora
from engine.errors import CorpusError
from engine.parts import registry
from studies.costs.cards.norms import NORM_CARDS, norm_title
from studies.residual.gradient_by_depth import (
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
    measuring,
    ratios,
    reason,
    unusable,
)
from ui import content, explain, session, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.players.plot import plot
from ui.text.markdown import safe

TEXT = content.beside(__file__)
DEPTHS = {"24": (2, 4, 8, 16, 24), "48": (2, 4, 8, 16, 24, 32, 48), "96": (2, 4, 8, 16, 24, 32, 48, 64, 96)}
NORMS: dict[Norm, str] = {name: norm_title(name) for name in get_args(Norm)}
SEEDS = (1, 3, 5)
DEEPEST = "deepest"
INITS: tuple[Init, ...] = ("scaled", "unscaled", "fan_in")
LOOKS = {"pre": ("run0", "solid"), "post": ("run2", "dash"), "none": ("run4", "dot")}  # of a wiring


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
        partial(measuring, plan, text),
        TEXT["measuring"],
        lambda so_far: _draw(plan, so_far, quantity) if so_far else None,
    )
    if profiles is None:
        return
    st.caption(
        TEXT(
            "fresh models",
            models=len(profiles),
            width=plan.d_model,
            heads=plan.n_heads,
            batch=plan.batch,
            context=plan.context,
            corpus=corpus,
        )
    )
    means, depth = _draw(plan, profiles, quantity)
    _say(plan, profiles, means, quantity, depth)


def _choose() -> tuple[Plan, Quantity]:
    """The plan from the widgets, whatever the URL says."""
    row = st.container(horizontal=True, gap="medium")
    deepest = widgets.select(
        TEXT["deepest"],
        list(DEPTHS),
        "residual_deepest",
        first="48",
        container=row,
        hint=TEXT["deepest hint"],
    )
    hint = TEXT["seeds hint"]
    seeds = widgets.select(TEXT["seeds"], SEEDS, "residual_seeds", first=3, container=row, hint=hint)
    norm = widgets.select(TEXT["norm"], NORMS, "residual_norm", container=row, hint=TEXT["norm hint"])
    inits = {init: TEXT(f"init {init}") for init in INITS}
    init = widgets.select(TEXT["init"], inits, "residual_init", container=row, hint=TEXT["weights hint"])
    quantities: dict[Quantity, str] = {"gradients": TEXT["of gradients"], "weights": TEXT["of weights"]}
    hint = TEXT["gradient hint"]
    quantity = widgets.select(TEXT["gradient of"], quantities, "residual_gradient", container=row, hint=hint)
    return Plan(depths=DEPTHS[deepest], norm=norm, init=init, seeds=seeds), quantity


def _draw(plan: Plan, profiles: tuple[Profile, ...], quantity: Quantity) -> tuple[dict[Quantity, Any], int]:
    """The figures of what is there; (its means, the depth of the deepest). Verdicts wait for the end."""
    means: dict[Quantity, Any] = {name: averaged(list(profiles), name) for name in get_args(Quantity)}
    reached = sorted({depth for _, depth in means["gradients"]})
    options = [*(str(depth) for depth in plan.depths[:-1]), DEEPEST]
    hint = TEXT["depth hint"]
    chosen = widgets.select(TEXT["depth"], options, "residual_blocks", first=DEEPEST, hint=hint)
    depth = int(chosen) if chosen != DEEPEST and int(chosen) in reached else reached[-1]
    what = TEXT(f"axis {quantity}")
    left, right = st.columns(2, gap="medium")
    for column, name, title, side in (
        (left, quantity, what, "left"),
        (right, "activations", TEXT["axis activations"], "right"),
    ):
        curves = {w: _curve(values, d) for (w, d), values in means[name].items() if d == depth}
        with column:
            plot(
                gradient_lines(curves, x=TEXT["after block"], y=title),
                key=f"residual_road_{side}",
                height=340,
                name=title.replace(" ", "-"),
                data=_by_layer(means[name]),
                alt=TEXT("alt blocks", title=title, depth=depth),
            )
    st.caption(TEXT("ratio", what=what))
    ends = {w: ratios(means[quantity], w, reached) for w in plan.wirings}
    curves = {w: (np.array(reached[: len(v)]), v) for w, v in ends.items()}
    plot(
        gradient_lines(curves, x=TEXT["blocks"], y=TEXT["first by last"], flat=True, end=max(plan.depths)),
        key="residual_road_ratio",
        height=330,
        name="gradient-ratio",
        data=pd.DataFrame({"blocks": reached}).assign(
            **{
                w: np.pad(v.astype(float), (0, len(reached) - len(v)), constant_values=math.nan)
                for w, v in ends.items()
            }
        ),
        alt=TEXT("alt ratio", what=what),
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
            rows.append(_theory_row(plan, wiring, blocks_of(values, depth), stream))
    st.markdown("\n".join([TEXT("theory", depth=depth), *rows]))
    if broken := unusable(profiles):
        st.warning(TEXT("overflowed", broken=broken, models=len(profiles)))
    last = last_block(means["weights"], depth)
    if last is not None and registry.NORMS[plan.norm].divides:
        explain.takeaway(_proved(last, plan.init))


def _theory_row(plan: Plan, wiring: Wiring, blocks: np.ndarray, lengths: np.ndarray) -> str:
    """Theory beside what was measured, as a row of a table; with a remark where what was seen is not what
    theory says, or has a reason that can be seen. `lengths`: norm of the stream (block,).
    """
    seen = _seen(blocks)
    if (why := reason(plan, wiring, blocks, lengths)) is not None:
        norm = NORM_CARDS[plan.norm].title
        because = TEXT(f"because {why}", first=lengths[0], last=lengths[-1], norm=norm, eps=EPS)
        seen = f"{seen}. {because}"
    return f"| **{TEXT(f'wiring {wiring}')}** | {TEXT(f'theory {wiring}')} | {seen} |"


def _seen(blocks: np.ndarray) -> str:
    """How gradients (block,) change on their way from the last block to the first."""
    flow = gradient_flow(blocks)
    return TEXT(f"seen {flow.fate}", ratio=flow.ratio, reached=flow.reached, blocks=flow.blocks)


def _proved(last: LastBlock, init: str) -> str:
    """Xiong et al. 2020 on the last block: its gradient shrinks like 1/sqrt(L) in pre-norm only."""
    proved = TEXT(
        "last block",
        least=last.least,
        depth=last.depth,
        theory=last.theory,
        pre=last.pre,
        post=last.post,
    )
    return f"{proved} {TEXT['weights like theirs' if init == 'fan_in' else 'other weights']}"


def gradient_lines(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]],
    *,
    x: str,
    y: str,
    flat: bool = False,
    end: float | None = None,
) -> go.Figure:
    """Draws wiring -> (x, y), on a logarithmic y axis, without values that are 0 or not finite.

    `flat` draws a line at 1; `end` is where the x axis stops while the curves are still short of it.
    """
    traces = []
    for wiring, (at, values) in curves.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            positive = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        (shade, dash), name = LOOKS[wiring], TEXT(f"wiring {wiring}")
        size = 6 if len(at) < 30 else 4
        traces.append(go.line(at, positive, shade, name, "%{y:.3g}", width=2.5, dash=dash, points=size))
    span = decades([v for _, v in curves.values()], flat)
    return go.figure(
        traces,
        margin={"l": 8, "r": 12, "t": 30, "b": 44},
        hovermode="x unified",
        **(go.level(TEXT["equal"], 1, width=1.2, y=0) if flat else {}),
        xaxis=go.axis(x, zeroline=False) | ({"range": [0, 1.03 * end]} if end else {}),
        yaxis=go.axis(
            y,
            showgrid=True,
            type="log",
            exponentformat="power",
            tickfont={"size": 12},
            range=span,
            tick0=0,
            dtick=max(1, math.ceil((span[1] - span[0]) / 7)),
        ),
    )


def decades(values: Sequence[np.ndarray], flat: bool = False) -> list[float]:
    """Returns a range of log10 that is never narrower than two decades, so that what is flat looks flat."""
    every = np.concatenate([*values, [1.0] if flat else []]) if values else np.ones(1)
    shown = np.log10(every[np.isfinite(every) & (every > 0)]) if len(every) else np.zeros(1)
    low, high = (float(shown.min()), float(shown.max())) if shown.size else (-1.0, 1.0)
    wanting = max(0.0, 2.0 - (high - low)) / 2
    return [low - wanting - 0.15, high + wanting + 0.15]
