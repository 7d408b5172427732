"""How long the stream is, what is written to it, and whose the end is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.residual import State, Write, cosines, norms, shares, states, writes
from pages.inside.residual import figures
from pages.inside.residual.push import POSITION, not_a_sum
from ui import explain
from ui.layout import scrolled
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.subject import Subject
from ui.text.markdown import safe

BLOCKS_WORKED = 3


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Arrays (state or write, query), in the order of `states` and `writes`. Cosines are of the writes that
    have something to write onto.
    """

    states: list[State]
    writes: list[Write]
    lengths: np.ndarray
    written: np.ndarray
    shares: np.ndarray | None
    cosines: np.ndarray


@st.cache_resource(max_entries=32, show_spinner=False)
def _numbers(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> _Numbers:
    recording = _subject.recording()
    found, updates = states(recording), writes(recording)
    pairs = [(write.array, write.onto) for write in updates if write.onto is not None]
    angles = cosines(pairs) if pairs else np.zeros((0, len(ids)))
    return _Numbers(
        found,
        updates,
        norms([state.array for state in found]),
        norms([write.array for write in updates]),
        shares(recording),
        angles,
    )


def draw_norms(subject: Subject) -> None:
    """The stream's norm by place and token, the writes' norms, directions and shares, and a token's sum
    worked out.
    """
    found = _numbers(subject.key, subject.ids, subject)
    rows = [state.label for state in found.states]
    with st.container(key="residual_norm_table"):
        scrolled("residual_norm_table", 11 * len(subject.labels) + 120)
        plot(
            figures.stream_map(found.lengths, subject.labels, rows),
            key="residual_norms",
            height=max(230, 24 * min(len(rows), 26) + 125),
            name="stream-norms",
            data=pd.DataFrame(found.lengths.T, columns=rows).assign(token=subject.labels),
            alt=(
                "Heatmap: Euclidean norm of the residual stream after each write (rows, the embedding at the"
                " bottom) for each token (columns)."
            ),
        )
    position = token_strip(
        subject.labels, key=POSITION, chosen=len(subject.ids) - 1, label="Token that is worked out below"
    )
    left, right = st.columns(2, gap="medium")
    with left:
        plot(
            figures.stream_line(
                found.lengths.mean(1),
                found.lengths[:, position],
                rows,
                f"token {position}, “{subject.labels[position]}”",
            ),
            key="residual_line",
            height=330,
            name="stream-norm",
            data=pd.DataFrame({"after": rows, "mean_norm": found.lengths.mean(1)}),
            alt="Line: norm of the stream after each write, mean over tokens, and for the chosen token.",
        )
    with right:
        _bars(
            found.writes,
            found.written,
            position,
            "norm of the write",
            "residual_writes",
            "Bars: norm of each write, mean over tokens.",
        )
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_cosines(subject, found, position)
    with right:
        _draw_shares(subject, found, position)
    _worked(subject, found, position)
    explain.takeaway(_summary(found))


def _bars(items: list[Write], values: np.ndarray, position: int, title: str, key: str, alt: str) -> None:
    labels = [write.label for write in items]
    mean, one = values.mean(1), values[:, position]
    plot(
        figures.part_bars(
            labels, [write.part for write in items], mean, title=title, marks=one, marks_name="chosen token"
        ),
        key=key,
        height=330,
        name=title.replace(" ", "-"),
        data=pd.DataFrame({"write": labels, "mean": mean, "chosen_token": one}),
        alt=f"{alt} Diamonds: the chosen token.",
    )


def _draw_cosines(subject: Subject, found: _Numbers, position: int) -> None:
    onto = [write for write in found.writes if write.onto is not None]
    if not onto:
        st.info(
            "Nothing is written onto the embedding here: there is no position vector, no attention and no"
            " feed-forward network."
        )
        return
    target = "what it replaces" if subject.config.wiring == "none" else "the stream it is added to"
    _bars(
        onto,
        found.cosines,
        position,
        "cosine with the stream",
        "residual_cosines",
        f"Bars: cosine between each write and {target}, mean over tokens.",
    )
    st.caption(
        f"Cosine between a write and {target}: +1 makes it longer, −1 takes away, 0 adds a new direction."
    )


def _draw_shares(subject: Subject, found: _Numbers, position: int) -> None:
    if found.shares is None:
        st.info(not_a_sum(subject.config))
        return
    _bars(
        found.writes,
        found.shares,
        position,
        "share of the final stream",
        "residual_shares",
        "Bars: share of the final stream by writer, mean over tokens.",
    )
    st.caption(
        "Share of the final stream $x$ by writer: $w \\cdot x / x \\cdot x$, so they sum to 1 (here"
        f" {found.shares.mean(1).sum():.6f}). A negative share points away from what the stream became."
    )


SUBLAYERS = (
    ("attn", "attn_out", "resid_mid", "norm1"),
    ("ffn", "ffn_out", "resid_post", "norm2"),
)  # word, write, sum, norm on the stream


def _worked(subject: Subject, found: _Numbers, position: int) -> None:
    """x0 = embed + pos; x1 = x0 + attn ... with this token's norms. The first blocks only: the figure has
    them all.
    """
    c = subject.config
    if c.wiring == "none":
        return
    size = {write.name: float(found.written[i, position]) for i, write in enumerate(found.writes)}
    after = {state.name: float(found.lengths[i, position]) for i, state in enumerate(found.states)}
    start = [
        _named(word, size[name]) for word, name in (("embed", "embed"), ("pos", "pos_embed")) if name in size
    ]
    lines = [_equation(0, start, after.get("blocks.0.resid_pre", after["embed"]))]
    for i in range(min(c.n_layers, BLOCKS_WORKED)):
        scoped = [(word, *(f"blocks.{i}.{name}" for name in names)) for word, *names in SUBLAYERS]
        there = [sublayer for sublayer in scoped if sublayer[1] in size]
        if c.wiring == "parallel" and there:
            n = i + 1
            lines.append(
                _equation(
                    n,
                    [f"x_{{{n - 1}}}", *(_named(word, size[name], i) for word, name, _, _ in there)],
                    after[f"blocks.{i}.resid_post"],
                )
            )
            continue
        for word, name, total, norm in there:
            n = sum("underbrace" in line for line in lines)
            lines.append(_equation(n, [f"x_{{{n - 1}}}", _named(word, size[name], i)], after[total]))
            if c.wiring == "post" and norm in after:
                lines.append(
                    f"x_{{{n}}} &\\leftarrow \\text{{norm}}(x_{{{n}}}) && \\|x_{{{n}}}\\| = {after[norm]:.3g}"
                )
    more = f" (the first {BLOCKS_WORKED} blocks)" if c.n_layers > BLOCKS_WORKED else ""
    with st.container(border=True):
        st.markdown(
            f"**Worked out** for token {position}, “{safe(subject.labels[position])}”{more}: the norm of each"
            " write, and of the sum."
        )
        st.latex("\\begin{aligned}" + "\\\\".join(lines) + "\\end{aligned}")
        st.caption(
            "Norms do not add up like the vectors do: writes at right angles grow the sum by Pythagoras, and"
            " opposite ones shrink it."
        )


def _equation(n: int, terms: list[str], length: float) -> str:
    """x_n as a sum of terms, and its norm."""
    return f"x_{{{n}}} &= {' + '.join(terms)} && \\|x_{{{n}}}\\| = {length:.3g}"


def _named(word: str, size: float, block: int | None = None) -> str:
    """A write with its norm written below."""
    index = "" if block is None else f"_{{{block}}}"
    return f"\\underbrace{{\\text{{{word}}}{index}}}_{{{size:.3g}}}"


def _summary(found: _Numbers) -> str:
    lengths, written = found.lengths.mean(1), found.written.mean(1)
    largest = found.writes[int(written.argmax())].label
    words = (
        f"The stream's mean norm goes from **{lengths[0]:.2f}** at the embedding to **{lengths[-1]:.2f}** at"
        " the end. "
    )
    words += f"The longest write is {largest}'s, {written.max():.2f}."
    if found.shares is None:
        return words
    share = found.shares.mean(1)
    order = np.argsort(-share)
    told = ", ".join(f"{found.writes[i].label} {share[i]:+.0%}" for i in order[:3])
    negative = [found.writes[i].label for i in np.flatnonzero(share < 0)]
    against = (
        f"Negative on average: {', '.join(negative)}." if negative else "No writer's mean share is negative."
    )
    return f"{words} Largest shares of the final stream: {told}. {against}"
