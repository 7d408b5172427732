"""The view "Heads": all patterns at once, and the chosen one enlarged."""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.measure.heads import HeadNumbers
from pages.inside.attention.habits import numbers_of
from pages.inside.attention.shared import TOPIC, arcs, has_heads, head_grid
from ui import widgets
from ui.figures.patterns import heatmap_height, pattern_heatmap, pattern_table
from ui.layout import fewer_labels_on_phones
from ui.players.plot import plot
from ui.subject import Subject


def draw_heads(subject: Subject) -> None:
    config = subject.config
    if not has_heads(subject):
        return
    recording = subject.recording()
    patterns = recording.stacked("pattern")
    numbers = numbers_of(subject)
    place = st.container()
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        layer, head = widgets.head(config, TOPIC)
        kind = widgets.one_of("Drawn as", ("Heatmap", "Arcs"), "attention_as")
    with place:
        head_grid(subject, patterns, hints(numbers), (layer, head))
    weights = patterns[layer, head]
    if kind == "Arcs":
        arcs(subject, patterns[layer], layer, head)
    else:
        alt = (
            f"Pattern of layer {layer}, head {head}: the weight that each token (down) gives to each token it"
            " sees (to the right), from 0 to 1."
        )
        table = pattern_table(weights, subject.labels)
        name = f"pattern-layer-{layer}-head-{head}"
        fewer_labels_on_phones(len(weights))
        plot(
            pattern_heatmap(weights, subject.labels),
            key="attention_pattern",
            alt=alt,
            height=heatmap_height(len(weights)),
            data=table,
            name=name,
        )
    st.caption(
        f"This is `blocks.{layer}.pattern[{head}]`: {len(weights)} × {len(weights)} weights."
        f" {hints(numbers)[layer * config.n_heads + head]}"
    )


def hints(numbers: HeadNumbers) -> list[str]:
    """A sentence for each head, layer by layer."""
    layers, heads = numbers.entropy.shape
    if not np.isfinite(numbers.first).any():
        return [
            f"Layer {i}, head {h}: there is one token, and it takes all the weight."
            for i in range(layers)
            for h in range(heads)
        ]
    return [
        f"Layer {i}, head {h}: looks {numbers.distance[i, h]:.1f} tokens away on average,"
        f" {numbers.previous[i, h]:.0%} of its weight on the previous token, {numbers.first[i, h]:.0%} on the"
        " first."
        for i in range(layers)
        for h in range(heads)
    ]
