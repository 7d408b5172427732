"""Small choosers that the RoPE, ALiBi and T5 views share. What comes back is always one of the options,
whatever the link said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.config import ModelConfig
from engine.errors import GlassformerError
from ui.site import ROOT

KEPT: dict[str, Any] = {
    "bind": "query-params",
    "persist_state": "session",
}  # in the URL, and still there after a look at another view
MASKS = ("causal", "both ways")


def one_of(label: str, options: Sequence[str], key: str, *, label_shown: bool = False) -> str:
    """A row of buttons; the first option holds until another is chosen."""
    if st.session_state.get(key) not in (None, *options):
        del st.session_state[key]  # another model has other options
    shown = "visible" if label_shown else "collapsed"
    found = st.segmented_control(
        label, options, default=options[0], key=key, required=True, label_visibility=shown, **KEPT
    )  # type: ignore[call-overload]
    return found if found in options else options[0]


def slide(label: str, options: Sequence[float], default: float, key: str, **rest: Any) -> Any:
    """A slider over a few numbers, written with thousands separated."""
    if st.session_state.get(key) not in (None, *options):
        del st.session_state[key]
    found = st.select_slider(label, options, default, key=key, format_func=lambda x: f"{x:,}", **KEPT, **rest)
    return found if found in options else default


def signed(value: float, digits: int = 3) -> str:
    """A number with a true minus sign.

    >>> signed(-1.5), signed(2.0, 1)
    ('−1.500', '2.0')
    """
    return f"{value:.{digits}f}".replace("-", "−")


def choose_mask(causal: bool, key: str) -> bool:
    """True for a causal mask; the model's own choice stands first."""
    return one_of("Mask", MASKS if causal else MASKS[::-1], key, label_shown=True) == MASKS[0]


def choose_head(config: ModelConfig, topic: str) -> tuple[int, int]:
    """(layer, head) of the model in the bar, counted from 0, kept as `<topic>_layer` and `<topic>_head`."""
    with st.container(horizontal=True, gap="medium"):
        return _choose("Layer", f"{topic}_layer", config.n_layers), _choose(
            "Head", f"{topic}_head", config.n_heads
        )


def _choose(label: str, key: str, count: int) -> int:
    options = list(range(count))
    if st.session_state.get(key) not in (None, *options):
        del st.session_state[key]
    if count <= 8:
        found = st.segmented_control(label, options, default=0, key=key, required=True, **KEPT)
    else:
        found = st.selectbox(label, options, key=key, width=120, **KEPT)
    return found if found in options else 0


def example(scheme: str) -> Checkpoint | None:
    """The small model that was trained with a scheme, `checkpoints/positions/<scheme>`; None where it is not
    there or not whole.
    """
    folder = ROOT / "checkpoints" / "positions" / scheme
    try:
        return _example(scheme, (folder / checkpoints.CONFIG).stat().st_mtime)
    except (OSError, GlassformerError):
        return None


@st.cache_resource(max_entries=4, show_spinner=False)
def _example(scheme: str, stamp: float) -> Checkpoint:
    return checkpoints.load(ROOT / "checkpoints" / "positions" / scheme)
