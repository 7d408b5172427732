"""The view "Side by side": six schemes by what they cost, what they know of distance, and how far beyond
their training they reach.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.config import Position
from engine.errors import CheckpointError
from engine.measure.extrapolation import TIMES
from engine.measure.schemes import SCHEMES, SEAM_WORDS, Similarity, parameters_added, similarity
from engine.model import build
from engine.presets import PRESETS
from pages.input.positions.bench_figures import similarity_panels
from pages.input.positions.bench_losses import draw_extrapolation
from ui.layout import scrolled
from ui.players.plot import plot
from ui.site import ROOT

FOLDER = ROOT / "checkpoints" / "positions"


def draw_bench() -> None:
    """Facts, similarity by distance, and loss by position, of the six schemes."""
    models = _models()
    if not models:
        st.error(
            "The models of this view are not there:"
            " `python -m engine.training.pretrain positions` trains them into `checkpoints/positions`."
        )
        return
    _draw_facts(models)
    _draw_similarity(models)
    draw_extrapolation(models)


@st.cache_resource(max_entries=1, show_spinner="Reading the models …")
def _models() -> dict[Position, Checkpoint]:
    """The shipped models, by scheme; one that is missing or damaged is left out."""
    found: dict[Position, Checkpoint] = {}
    for scheme in SCHEMES:
        try:
            found[scheme] = checkpoints.load(FOLDER / scheme)
        except CheckpointError:
            continue
    return found


# Facts ------------------------------------------------------------------------------------------


def _draw_facts(models: dict[Position, Checkpoint]) -> None:
    here, published = next(iter(models.values())).config, PRESETS["gpt2"].model
    st.markdown("#### Where they enter, and what they cost")
    rows = {
        scheme.title: {
            "enters at": SEAM_WORDS[scheme.seam],
            "tells": {
                "nothing": "nothing: the causal mask alone",
                "absolute": "which place",
                "relative": "how far back",
            }[scheme.carries],
            "parameters here": f"{parameters_added(here, name):,}",
            "at GPT-2 small's sizes": f"{parameters_added(published, name):,}",
            "longest text": scheme.limit,
            "used by (published)": scheme.used_by,
            "introduced in": scheme.source,
        }
        for name, scheme in SCHEMES.items()
    }
    st.table(pd.DataFrame.from_dict(rows, orient="index"))
    st.caption(
        f"Parameters are computed. Here: context {here.context}, width {here.d_model}, {here.n_heads} heads;"
        f" GPT-2 small: context {published.context:,}, width {published.d_model}, {published.n_heads} heads."
        " A learned table costs context × width, T5 a number for each of 32 buckets and each head."
    )


# Similarity -------------------------------------------------------------------------------------


@st.cache_resource(max_entries=2, show_spinner=False)
def _similarities() -> dict[Position, tuple[str, Similarity, Similarity]]:
    """scheme -> (title, at initialisation, after training), as far as the texts below are long."""
    found = {}
    for scheme, checkpoint in _models().items():
        reach, seed = TIMES * checkpoint.config.context, int(checkpoint.metrics["train"]["seed"])
        fresh = build(checkpoint.config, seed).requires_grad_(False).eval()
        found[scheme] = (SCHEMES[scheme].title, similarity(fresh, reach), similarity(checkpoint.model, reach))
    return found


def _draw_similarity(models: dict[Position, Checkpoint]) -> None:
    st.markdown("#### What they know of distance before training")
    context = next(iter(models.values())).config.context
    trained = st.toggle("Also after training (dotted)", key="bench_trained", bind="query-params")
    found = _similarities()
    shown: dict[str, tuple[str, Similarity, Similarity | None]] = {
        name: (title, fresh, after if trained else None) for name, (title, fresh, after) in found.items()
    }
    with st.container(key="bench_panels"):
        scrolled("bench_panels", 700)
        plot(
            similarity_panels(shown, context, TIMES * context),
            key="bench_similarity",
            height=430,
            name="similarity-by-distance",
            data=_similarity_rows(found),
            alt=(
                "Six panels, one for each scheme: how alike a token and the same token further back look, by"
                " distance, before training."
            ),
        )
    st.caption(
        "1 means that distance makes no difference. Added to the embedding: the cosine of the same token at"
        " two places. RoPE: the score of equal q and k, turned, as a share of that at distance 0. ALiBi and"
        " T5: the factor $e^{bias}$ that the distance puts on a weight, as a share of the largest, a line"
        f" for each head. Dotted upright: {context}, the training context. {_initial_sentence(found)}"
    )


def _initial_sentence(found: dict[Position, tuple[str, Similarity, Similarity]]) -> str:
    """What the untrained schemes make of near and far, in numbers."""
    told = []
    for name in ("sinusoidal", "rope"):
        if name in found:
            title, fresh, _ = found[name]
            told.append(f"{title} {fresh.values[0, 1]:.2f} at distance 1, {fresh.values[0, 16]:.2f} at 16")
    if "alibi" in found:
        values = found["alibi"][1].values[:, 16]
        told.append(f"ALiBi from {values.min():.2f} to {values.max():.2f} at 16")
    near = f"Near and far differ from the start: {'; '.join(told)}. " if told else ""
    if "learned" in found:
        values = found["learned"][1].values[0, 1:]
        near += (
            "An untrained table tells that two places differ, and not how far apart they are:"
            f" {values.min():.2f} to {values.max():.2f} at every distance."
        )
    return near


def _similarity_rows(found: dict[Position, tuple[str, Similarity, Similarity]]) -> pd.DataFrame:
    """A row for each distance, a column for each line."""
    columns = {
        f"{title}, {name}, {when}": pd.Series(values.astype(np.float32), index=s.distance)
        for title, fresh, trained in found.values()
        for when, s in (("untrained", fresh), ("trained", trained))
        for name, values in zip(s.lines, s.values, strict=True)
    }
    return pd.DataFrame(columns).rename_axis("distance").reset_index()
