"""A text as a row of tokens that can be pointed at and chosen from."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui import widgets
from ui.figures import theme
from ui.players.component import mounted


def token_strip(
    labels: Sequence[str],
    *,
    key: str,
    chosen: int,
    label: str,
    values: Sequence[float] | None = None,
    hints: Sequence[str] | None = None,
) -> int:
    """Draws the tokens, `chosen` marked, and returns the index that is chosen now: clicked, or reached by the
    arrow keys.

    `chosen` is what holds until somebody chooses; a value outside the text counts as its last token. `values`
    in [0, 1] shade the tokens, `hints` are shown on hover. The choice is kept in the URL under `key`; on
    another text it stays while it fits, and what nobody chose is chosen anew.
    """
    count = len(labels)
    held = st.session_state.get(key)
    index = held.get("index") if held is not None and hasattr(held, "get") else None
    if not isinstance(index, int):
        index = widgets.number_of(widgets.read_url(key))
    somebody = index is not None
    index = index if index is not None else chosen
    index = index if 0 <= index < count else count - 1  # beyond the text it counts as the last
    widgets.put_index(key, index if somebody else None)
    data = {
        "tokens": list(labels),
        "index": index,
        "label": label,
        "hints": list(hints) if hints else None,
        "values": [round(float(v), 3) for v in values] if values is not None else None,
        "palette": theme.palette(),
    }
    mounted("tokens")(key=key, data=data, on_index_change=lambda: None)
    return index
