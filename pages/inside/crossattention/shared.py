"""Which trained encoder-decoders there are, and what one wrote."""

from __future__ import annotations

import streamlit as st

from engine.checkpoints_paired import PairCheckpoint, load_pair
from engine.measure.crossing import Change, Crossing, crossing
from engine.pretrained import pairs
from engine.pretrained.pairs import PretrainedPair
from engine.tasks.paired import PAIR_TASKS
from ui import state
from ui.models import PRETRAINED, is_pretrained, title_of
from ui.site import ROOT

FOLDER = ROOT / "checkpoints" / "paired"
LONGEST = 48  # tokens that a model of others writes: it may never come to an end


def shipped() -> dict[str, str]:
    """Task -> title, of those whose model came with the app."""
    return {
        name: task.title for name, task in PAIR_TASKS.items() if (FOLDER / name / "config.json").is_file()
    }


def published() -> dict[str, str]:
    """Those that others trained, by their names in links -> title, as far as they are on this server."""
    return {PRETRAINED + name: title_of(PRETRAINED + name) for name in pairs.available()}


def opened(name: str) -> PairCheckpoint | PretrainedPair:
    """Raises GlassformerError where it cannot be read, or is too large for this server."""
    return _published(name.removeprefix(PRETRAINED)) if is_pretrained(name) else _shipped(name)


@st.cache_resource(max_entries=8, show_spinner=False)
def _shipped(name: str) -> PairCheckpoint:
    return load_pair(FOLDER / name)


@st.cache_resource(max_entries=1, show_spinner="Reading the model: a few seconds the first time …")
def _published(name: str) -> PretrainedPair:
    return pairs.load_pair(name, state.profile().max_pretrained)


@st.cache_resource(max_entries=64, show_spinner=False)
def crossed(name: str, text: str, change: Change, seed: int) -> Crossing:
    """Raises what `opened` and `engine.measure.crossing.crossing` raise."""
    found, longest = opened(name), LONGEST if is_pretrained(name) else None
    return crossing(found.model, found.tokenizer, text, change, seed, longest)
