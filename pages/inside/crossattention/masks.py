"""The view "Two masks": which mask belongs where, and a training in which they were swapped."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from engine.experiments.masks_swapped import (
    HEALTHY,
    SWAPPED,
    Swapped,
    shipped,
)
from engine.measure.families.cross_attention import masks_of
from pages.inside.crossattention import words
from pages.inside.crossattention.figures import swapped_curves
from ui import explain, widgets
from ui.figures.masks import HIDDEN_SHADE, Mask, masks_figure
from ui.figures.theme import colour
from ui.players.plot import plot
from ui.text.markdown import safe

HEIGHT, CURVES = 372, 250
QUANTITIES = {"losses": "loss in training", "right": "exact match in generation"}


def draw_masks() -> None:
    both = shipped()
    left, right = st.columns([7, 6], gap="medium") if both else (st.container(), st.container())
    with left, st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        swap = widgets.switch("Swap the two masks", False, "cross_swap")
        row = widgets.select("Source", dict(enumerate(words.BATCH_NAMES)), "cross_row", hidden=True)
    decoder_masks = masks_of(
        SWAPPED if swap else HEALTHY, [len(sentence) for sentence in words.BATCH], row, len(words.TARGET)
    )
    longest = max(len(sentence) for sentence in words.BATCH)
    source = (*words.BATCH[row], *["[pad]"] * (longest - len(words.BATCH[row])))
    visibles = [(decoder_masks.self_visible, words.TARGET), (decoder_masks.cross_visible, source)]
    masks = [
        Mask(words.mask_title(i, decoder_masks.shapes[i]), visible, words.TARGET, keys)
        for i, (visible, keys) in enumerate(visibles)
    ]
    with left:
        plot(
            masks_figure(masks, [HIDDEN_SHADE, colour("attention", 60)]),
            key="cross_masks",
            alt=words.masks_alt(
                swap,
                *(int(np.count_nonzero(mask.cells)) for mask in masks),
            ),
            height=HEIGHT,
            name="two-masks",
            data={"query": list(words.TARGET)}
            | {
                f"{name} {i}": mask.cells[:, i].astype(np.float32)
                for name, mask in zip(("own", "source"), masks, strict=True)
                for i in range(len(mask.keys))
            },
        )
    if both:
        with right:
            at = _trainings(both)
        explain.answer(words.trained(both, at))
    else:
        explain.answer(words.opened(decoder_masks.hidden, decoder_masks.ahead))
    explain.by_hand(lambda: st.markdown(words.MASKS_BY_HAND))


def _trainings(both: Mapping[str, Swapped]) -> int:
    """Two trainings beside each other; which of their looks is chosen."""
    steps = both[HEALTHY].steps
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        quantity = widgets.select("Show", QUANTITIES, "cross_quantity", kind="list", width=240)
        step = widgets.slide_over("Training step", steps, steps[-1], "cross_steps", width=210)
    at = steps.index(step)
    plot(
        swapped_curves(both, at, quantity),
        key="cross_curves",
        alt=words.CURVES_ALT,
        height=CURVES,
        name="masks-swapped",
        data={
            "step": steps,
            **{f"{name}_loss": both[name].losses for name in (HEALTHY, SWAPPED)},
            **{f"{name}_right": both[name].right for name in (HEALTHY, SWAPPED)},
        },
    )
    for name in (HEALTHY, SWAPPED):
        st.caption(words.wrote(name == SWAPPED, safe(both[name].texts[at])))
    return at
