"""The view "Side by side": six schemes by what they cost, what they know of distance, and how far beyond
their training they reach.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.config import Position
from engine.errors import CheckpointError
from engine.measure.schemes import SCHEMES, SEAM_WORDS, parameters_added
from engine.presets import PRESETS
from pages.input.positions.bench_losses import draw_extrapolation
from pages.input.positions.bench_similarity import draw_similarity
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
    draw_similarity(models)
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
