"""Which trained encoder-decoders there are, and what one wrote."""

from __future__ import annotations

import streamlit as st

from engine.checkpoints_paired import PairCheckpoint, load_pair
from engine.measure.crossing import Change, Crossing, crossing
from engine.tasks.paired import PAIR_TASKS
from ui.site import ROOT

FOLDER = ROOT / "checkpoints" / "paired"


def shipped() -> dict[str, str]:
    """Task -> title, of those whose model came with the app."""
    return {
        name: task.title for name, task in PAIR_TASKS.items() if (FOLDER / name / "config.json").is_file()
    }


@st.cache_resource(max_entries=8, show_spinner=False)
def opened(name: str) -> PairCheckpoint:
    return load_pair(FOLDER / name)


@st.cache_resource(max_entries=64, show_spinner=False)
def crossed(name: str, text: str, change: Change, seed: int) -> Crossing:
    """Raises what `engine.measure.crossing.crossing` raises."""
    found = opened(name)
    return crossing(found.model, found.tokenizer, text, change, seed)
