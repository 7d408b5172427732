"""Pairs of q and k as arrows that turn with position: sliders, play and the sums run in the browser; the page
hears when the hand lets go.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.measure.rotary import frequencies, unturned
from ui.figures import theme
from ui.players.component import mounted


def rope_arrows(
    q: np.ndarray,
    k: np.ndarray,
    *,
    base: float,
    d_rotary: int,
    most: int,
    home: tuple[int, int],
    labels: tuple[str, str],
    key: str,
    note: str,
) -> tuple[int, int, int]:
    """Draws them. q, k (d_head,) before rotation, half-split, of which the first d_rotary dimensions turn;
    positions run from 0 to `most`, and begin at `home` (query, key).

    Returns (query position, key position, pair) as they stand now. They are kept in the URL under `key` as
    12-4-0, and go back to `home` when that changes, which happens when another token is chosen.
    """
    pairs = d_rotary // 2
    name = f"{home[0]},{home[1]}"
    at = _held(key, name, most, pairs) or (
        min(home[0], most),
        min(home[1], most),
        _asked(key, most, pairs)[2],
    )
    st.query_params[key] = "-".join(map(str, at))
    st.session_state[f"{key}_home"] = name
    colours = theme.palette()
    data = {
        "q": np.asarray(q[:d_rotary], dtype=np.float64).tolist(),
        "k": np.asarray(k[:d_rotary], dtype=np.float64).tolist(),
        "theta": frequencies(d_rotary, base).tolist(),
        "d_head": len(q),
        "rest": unturned(q, k, d_rotary),
        "most": most,
        "at": list(at),
        "home": name,
        "labels": list(labels),
        "note": note,
        "colours": {"q": colours["attention"], "k": colours["validation"]},
        "alt": (
            "The chosen pair: q and k as two arrows from the middle of a circle. The shaded angle between"
            " them depends on the distance only."
        ),
    }
    mounted("rope")(key=f"{key}_arrows", data=data, on_at_change=lambda: None)
    return at


def _held(key: str, home: str, most: int, pairs: int) -> tuple[int, int, int] | None:
    """Where the arrows stand: as they were last left for these tokens, else, when the page is new, as the
    link says.
    """
    value = st.session_state.get(f"{key}_arrows")
    left = value.get("at") if value is not None and hasattr(value, "get") else None
    where, _, text = str(left).partition("|")
    if where == home:
        return parse(text, most, pairs)
    return (
        parse(st.query_params.get(key, ""), most, pairs)
        if st.session_state.get(f"{key}_home", home) == home
        else None
    )


def _asked(key: str, most: int, pairs: int) -> tuple[int, int, int]:
    return parse(st.query_params.get(key, ""), most, pairs) or (0, 0, 0)


def parse(text: str, most: int, pairs: int) -> tuple[int, int, int] | None:
    """query-key-pair, each kept inside what there is; None when it is not that.

    >>> parse("12-4-0", 127, 16), parse("9-900-99", 127, 16), parse("a-b-c", 127, 16)
    ((12, 4, 0), (9, 127, 15), None)
    """
    parts = text.split("-")
    if len(parts) != 3 or not all(p.isdecimal() and p.isascii() and len(p) < 7 for p in parts):
        return None
    query, key, pair = map(int, parts)
    return min(query, most), min(key, most), min(pair, pairs - 1)
