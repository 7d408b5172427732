"""The part "Arrows" of "RoPE": pairs of q and k as arrows that turn with position. Sliders, play and the sums
run in the browser; the page hears when the hand lets go.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.parts.positions import Rope, rotate_half_pairs
from pages.input.positions.rotated_head import RotatedHead, rotated_head
from studies.positions import rope
from studies.positions.rope import Score, frequencies, score_at, unturned
from ui import content, explain, widgets
from ui.figures import theme
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.component import mounted
from ui.players.tokens import token_strip
from ui.text.numbers import minus, scientific

TEXT = content.beside(__file__)
FIRST = 12  # place of the query, until somebody chooses
STRIP = 130  # pixels: four rows of letters, the others a turn of the wheel away
SHIFTS = (1, 10, 100, 1_000, 10_000, 100_000)


def draw(subject: Subject) -> None:
    """Draws the arrows of two tokens, which are chosen beside them."""
    last = len(subject.ids) - 1
    figure, controls = st.columns([5, 2], gap="medium")
    with controls:
        turned = rotated_head(subject)
        m = _token(subject, "query", min(FIRST, last))
        n = _token(subject, "key", max(0, min(FIRST, last) - 3))
    q, k = turned.q[m], turned.k[n]
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
            note=TEXT("note", pairs=turned.rotary // 2),
        )
        score = score_at(q, k, at[0], at[1], turned.base, turned.rotary)
        explain.answer(TEXT("answer", query=at[0], key=at[1], score=score.total))
    explain.measure_it(_shift, q, k, at, turned, score)


def _token(subject: Subject, side: str, first: int) -> int:
    """Draws the tokens, of which one is chosen for that side."""
    st.caption(TEXT[f"{side} heading"])
    with st.container(height=STRIP, border=False):
        label = TEXT[f"{side} token"]
        return token_strip(subject.labels, key=f"rope_{side}", chosen=first, label=label)


def _shift(q: np.ndarray, k: np.ndarray, at: tuple[int, int, int], turned: RotatedHead, score: Score) -> None:
    st.markdown(TEXT("pair near" if score.near else "pair far", pair=score.pair, term=score.term))
    st.markdown(TEXT["shift heading"])
    shift = widgets.slide_over(TEXT["shift"], SHIFTS, 10, "rope_shift", written="{:,}".format)
    shifts = rope.shift_check(q, k, at[0], at[1], shift, turned.base, turned.rotary)
    here = TEXT("score at", query=at[0], key=at[1])
    shifted = TEXT("score at", query=at[0] + shift, key=at[1] + shift)
    table = pd.DataFrame(
        {
            here: [minus(f"{s.before:.6f}") for s in shifts],
            shifted: [minus(f"{s.after:.6f}") for s in shifts],
            TEXT["difference"]: [scientific(s.difference) for s in shifts],
        },
        index=pd.Index([s.precision for s in shifts], name=TEXT["precision"]),
    )
    st.table(table)
    st.caption(TEXT["shifted"])


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
    linked = parse(widgets.read_url(key), most, pairs)
    at = linked or (min(home[0], most), min(home[1], most), 0)
    if widgets.outdated(key, name):  # they stood for other tokens
        at = min(home[0], most), min(home[1], most), at[2]
    widgets.keep_in_url(key, "-".join(map(str, at)))
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
        "alt": TEXT["alt"],
    }
    mounted("rope")(key=f"{key}_arrows", data=data, on_at_change=partial(_turn, key, name))
    return at


def _turn(key: str, home: str) -> None:
    """The hand has let go of the arrows of the tokens at `home`."""
    where, _, text = str(widgets.picked(f"{key}_arrows", "at")).partition("|")
    if where == home:
        widgets.keep_in_url(key, text)


def parse(text: str, most: int, pairs: int) -> tuple[int, int, int] | None:
    """Reads "query-key-pair", each kept inside what there is; None when it is not that.

    >>> parse("12-4-0", 127, 16), parse("9-900-99", 127, 16), parse("a-b-c", 127, 16)
    ((12, 4, 0), (9, 127, 15), None)
    """
    indexes = widgets.indexes_of(text, (most + 1, most + 1, pairs), nearest=True)
    return None if indexes is None else (indexes[0], indexes[1], indexes[2])


PART = View("arrows", TEXT, draw, (Rope, rotate_half_pairs))
