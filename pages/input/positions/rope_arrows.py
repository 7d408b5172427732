"""A topic of the view "RoPE": pairs of q and k as arrows that turn with position. Sliders, play and the sums
run in the browser; the page hears when the hand lets go.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions import rope
from engine.measure.positions.rope import Score, frequencies, score_at, unturned
from pages.input.positions import words_measured
from pages.input.positions.rope_turning import Turning, turning
from pages.input.positions.shared import signed, thousands
from pages.input.positions.words_answers import arrows_sentence, pair_sentence
from ui import explain, widgets
from ui.figures import theme
from ui.model_bar import Subject
from ui.players.component import mounted
from ui.players.tokens import token_strip
from ui.text.numbers import scientific

FIRST = 12  # place of the query, until somebody chooses
STRIP = 130  # pixels: four rows of letters, the others a turn of the wheel away
SHIFTS = (1, 10, 100, 1_000, 10_000, 100_000)


def draw_arrows(subject: Subject) -> None:
    """Draws the arrows of two tokens, which are chosen beside them."""
    last = len(subject.ids) - 1
    figure, controls = st.columns([5, 2], gap="medium")
    with controls:
        turned = turning(subject)
        st.caption("**Query**")
        with st.container(height=STRIP, border=False):
            m = token_strip(
                subject.labels, key="rope_query", chosen=min(FIRST, last), label="Token of the query"
            )
        st.caption("**Key**")
        with st.container(height=STRIP, border=False):
            n = token_strip(
                subject.labels, key="rope_key", chosen=max(0, min(FIRST, last) - 3), label="Token of the key"
            )
    q, k = turned.q[m], turned.k[n]
    note = words_measured.arrow_pairs(turned.rotary // 2)
    with figure:
        at = rope_arrows(
            q,
            k,
            base=turned.base,
            d_rotary=turned.rotary,
            most=max(subject.config.context - 1, last, 63),
            home=(m, n),
            labels=(subject.labels[m], subject.labels[n]),
            key="rope_at",
            note=note,
        )
        score = score_at(q, k, at[0], at[1], turned.base, turned.rotary)
        explain.answer(arrows_sentence(score, at))
    explain.measure_it(_shift, q, k, at, turned, score)


def _shift(q: np.ndarray, k: np.ndarray, at: tuple[int, int, int], turned: Turning, found_now: Score) -> None:
    st.markdown(pair_sentence(found_now))
    st.markdown("**Shifting both leaves the score unchanged**")
    shift = widgets.slide_over("Shift both by", SHIFTS, 10, "rope_shift", written=thousands)
    shifts = rope.shift_check(q, k, at[0], at[1], shift, turned.base, turned.rotary)
    table = pd.DataFrame(
        {
            f"q·k at ({at[0]}, {at[1]})": [signed(s.before, 6) for s in shifts],
            f"q·k at ({at[0] + shift:,}, {at[1] + shift:,})": [signed(s.after, 6) for s in shifts],
            "difference": [scientific(s.difference) for s in shifts],
        },
        index=pd.Index([s.precision for s in shifts], name="rotated in"),
    )
    st.table(table)
    st.caption(words_measured.SHIFTED)


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
    widgets.keep_in_url(key, "-".join(map(str, at)))
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
        "alt": (words_measured.ARROWS_ALT),
    }
    mounted("rope")(key=f"{key}_arrows", data=data, on_at_change=partial(_turn, key, name))
    return at


def _turn(key: str, home: str) -> None:
    """The hand has let go of the arrows of the tokens at `home`."""
    where, _, text = str(widgets.picked(f"{key}_arrows", "at")).partition("|")
    if where == home:
        widgets.keep_in_url(key, text)


def _held(key: str, home: str, most: int, pairs: int) -> tuple[int, int, int] | None:
    """Where the arrows stand, as the link says; None where they stand for other tokens."""
    if st.session_state.get(f"{key}_home", home) != home:
        return None
    return parse(widgets.read_url(key), most, pairs)


def _asked(key: str, most: int, pairs: int) -> tuple[int, int, int]:
    return parse(widgets.read_url(key), most, pairs) or (0, 0, 0)


def parse(text: str, most: int, pairs: int) -> tuple[int, int, int] | None:
    """Reads "query-key-pair", each kept inside what there is; None when it is not that.

    >>> parse("12-4-0", 127, 16), parse("9-900-99", 127, 16), parse("a-b-c", 127, 16)
    ((12, 4, 0), (9, 127, 15), None)
    """
    indexes = widgets.indexes_of(text, (most + 1, most + 1, pairs), nearest=True)
    return None if indexes is None else (indexes[0], indexes[1], indexes[2])
