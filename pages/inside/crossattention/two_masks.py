"""The view "Two masks": which mask belongs where, and a training in which they were swapped."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from engine.parts.attention import causal_mask, decoder_masks, padding_mask
from studies.experiments.masks_swapped import HEALTHY, SOURCE, SWAPPED, TASK, Swapped, learn, shipped
from studies.families.cross_attention import masks_of
from studies.pairs.presets import PAIRED
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.masks import HIDDEN_SHADE, Mask, masks_figure
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
HEIGHT, CURVES = 372, 250
BATCH = (("two", "kittens", "[end]"), ("the", "cat", "sat", "down", "[end]"))
TARGET = ("[begin]", "zwei", "kleine", "Katzen")


def draw() -> None:
    both = shipped()
    left, right = st.columns([7, 6], gap="medium") if both else (st.container(), st.container())
    with left, st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        swap = widgets.switch(TEXT["swap"], False, "cross_swap")
        rows = {0: TEXT["short source"], 1: TEXT["longest source"]}
        row = widgets.select(TEXT["source"], rows, "cross_row", hidden=True)
    lengths = [len(sentence) for sentence in BATCH]
    two = masks_of(SWAPPED if swap else HEALTHY, lengths, row, len(TARGET))
    source = (*BATCH[row], *["[pad]"] * (max(lengths) - len(BATCH[row])))
    masks = [
        Mask(TEXT("self-attention", shape=two.shapes[0]), two.self_visible, TARGET, TARGET),
        Mask(TEXT("cross-attention", shape=two.shapes[1]), two.cross_visible, TARGET, source),
    ]
    own, across = (int(np.count_nonzero(mask.cells)) for mask in masks)
    with left:
        plot(
            masks_figure(masks, [HIDDEN_SHADE, colour("attention", 60)]),
            key="cross_masks",
            alt=TEXT("alt swapped masks" if swap else "alt masks", own=own, across=across),
            height=HEIGHT,
            name="two-masks",
            data={"query": list(TARGET)}
            | {
                f"{name} {i}": mask.cells[:, i].astype(np.float32)
                for name, mask in zip(("own", "source"), masks, strict=True)
                for i in range(len(mask.keys))
            },
        )
    if both:
        with right:
            at = _trainings(both)
        good, bad = both[HEALTHY], both[SWAPPED]
        explain.answer(
            TEXT(
                "trained",
                step=good.steps[at],
                loss=good.losses[at],
                bad_loss=bad.losses[at],
                right=good.right[at],
                bad_right=bad.right[at],
            )
        )
    else:
        opened = "swapped" if two.hidden or two.ahead else "in place"
        explain.answer(TEXT(opened, hidden=two.hidden, ahead=two.ahead))
    explain.by_hand(lambda: st.markdown(TEXT["by hand"]))


def _trainings(both: Mapping[str, Swapped]) -> int:
    """Two trainings beside each other; which of their looks is chosen."""
    steps = both[HEALTHY].steps
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        quantities = {name: TEXT(f"quantity {name}") for name in ("losses", "right")}
        quantity = widgets.select(TEXT["quantity"], quantities, "cross_quantity", kind="list", width=240)
        step = widgets.slide_over(TEXT["step"], steps, steps[-1], "cross_steps", width=210)
    at = steps.index(step)
    plot(
        swapped_curves(both, at, quantity),
        key="cross_curves",
        alt=TEXT["alt curves"],
        height=CURVES,
        name="masks-swapped",
        data={
            "step": steps,
            **{f"{name}_loss": both[name].losses for name in (HEALTHY, SWAPPED)},
            **{f"{name}_right": both[name].right for name in (HEALTHY, SWAPPED)},
        },
    )
    for name in (HEALTHY, SWAPPED):
        wrote = "wrote swapped" if name == SWAPPED else "wrote healthy"
        st.caption(TEXT(wrote, source=SOURCE, written=both[name].texts[at]))
    return at


def swapped_curves(runs: Mapping[str, Swapped], at: int, quantity: str) -> go.Figure:
    """Draws, over the steps of the training, the `losses`, or the share that is `right` when it
    writes alone.
    """
    traces = []
    for name, shade, words in (
        (HEALTHY, "attention", TEXT["curve healthy"]),
        (SWAPPED, "output", TEXT["curve swapped"]),
    ):
        run = runs[name]
        values = getattr(run, quantity)
        traces.append(
            go.Scatter(
                mode="lines+markers",
                name=words,
                x=run.steps,
                y=values,
                line={"color": colour(shade), "width": 3},
                marker={"size": [11 if i == at else 3 for i in range(len(values))]},
                hovertemplate=TEXT("hover", name=words),
            )
        )
    return go.figure(
        traces,
        margin={"l": 54, "r": 8, "t": 28, "b": 40},
        xaxis=go.axis(TEXT["step axis"]),
        yaxis={"title": {"text": TEXT(f"axis {quantity}")}, "rangemode": "tozero"}
        | ({"tickformat": ".0%", "range": [0, 1.04]} if quantity == "right" else {}),
    )


VIEW = View(
    "masks",
    TEXT,
    draw,
    code=(causal_mask, padding_mask, decoder_masks, masks_of, learn),
    needs_model=False,
    fields={"layers": PAIRED[TASK].model.n_layers, "width": PAIRED[TASK].model.d_model},
)
