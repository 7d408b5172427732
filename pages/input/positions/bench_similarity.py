"""Part of the view "Extrapolation": what each scheme knows of distance before training, and after."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Position
from engine.measure.positions.extrapolation import TIMES
from engine.measure.positions.schemes import SCHEMES, Similarity, similarity
from engine.model import build
from engine.weights.checkpoints import Checkpoint
from pages.input.positions.figures_bench import similarity_panels
from ui import memo, widgets
from ui.layout import scrolled
from ui.players.plot import plot

Similarities = dict[Position, tuple[str, Similarity, Similarity]]  # (title, untrained, trained)


@memo.measured()
def _similarities(_models: dict[Position, Checkpoint]) -> Similarities:
    """Measures similarity by distance for each scheme, as far as the texts below are long."""
    result = {}
    for scheme, checkpoint in _models.items():
        reach, seed = TIMES * checkpoint.config.context, int(checkpoint.metrics["train"]["seed"])
        fresh = build(checkpoint.config, seed).requires_grad_(False).eval()
        result[scheme] = (
            SCHEMES[scheme].title,
            similarity(fresh, reach),
            similarity(checkpoint.model, reach),
        )
    return result


def draw_similarity(models: dict[Position, Checkpoint]) -> None:
    """Draws a panel for each scheme, and a sentence of what they make of near and far."""
    st.markdown("### Sensitivity to distance before training")
    context = next(iter(models.values())).config.context
    trained = widgets.switch("Also after training (dotted)", False, "bench_trained")
    similarities = _similarities(models)
    shown: dict[str, tuple[str, Similarity, Similarity | None]] = {
        name: (title, fresh, after if trained else None)
        for name, (title, fresh, after) in similarities.items()
    }
    with st.container(key="bench_panels"):
        scrolled("bench_panels", 700)
        plot(
            similarity_panels(shown, context, TIMES * context),
            key="bench_similarity",
            height=430,
            name="similarity-by-distance",
            data=_similarity_rows(similarities),
            alt=(
                "Six panels, one per scheme: similarity of a token to the same token further back, by"
                " distance, before training."
            ),
        )
    st.caption(
        "1 means that distance makes no difference. Added to the embedding: the cosine of the same token at"
        " two positions. RoPE: the score of equal q and k, rotated, as a share of that at distance 0. ALiBi"
        " and T5: the factor $e^{bias}$ by which the distance scales a weight, as a share of the largest, a"
        f" line per head. Dotted vertical: {context}, the training context. {_initial_sentence(similarities)}"
    )


def _initial_sentence(similarities: Similarities) -> str:
    """Says what the untrained schemes make of near and far, in numbers."""
    sentences = []
    for name in ("sinusoidal", "rope"):
        if name in similarities:
            title, fresh, _ = similarities[name]
            sentences.append(
                f"{title} {fresh.range_at(1)[0]:.2f} at distance 1, {fresh.range_at(16)[0]:.2f} at 16"
            )
    if "alibi" in similarities:
        low, high = similarities["alibi"][1].range_at(16)
        sentences.append(f"ALiBi from {low:.2f} to {high:.2f} at 16")
    near = f"Near and far differ from the start: {'; '.join(sentences)}. " if sentences else ""
    if "learned" in similarities:
        low, high = similarities["learned"][1].range_apart
        near += (
            f"An untrained table distinguishes two positions, but not how far apart they are: {low:.2f} to"
            f" {high:.2f} at every distance."
        )
    return near


def _similarity_rows(similarities: Similarities) -> pd.DataFrame:
    """A row for each distance, a column for each line."""
    columns = {
        f"{title}, {name}, {when}": pd.Series(values.astype(np.float32), index=s.distance)
        for title, fresh, trained in similarities.values()
        for when, s in (("untrained", fresh), ("trained", trained))
        for name, values in zip(s.lines, s.values, strict=True)
    }
    return pd.DataFrame(columns).rename_axis("distance").reset_index()
