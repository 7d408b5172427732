"""How long the stream is, what is written to it, and whose the end is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import HeadError
from engine.measure.residual.norm_example import EXAMPLE, habits, norm_example
from engine.measure.residual.stream import (
    Stream,
    Term,
    Write,
    landings,
    massive,
    mean,
    stream,
    summary,
    sums,
    times_longer,
    without,
    writer_of,
)
from pages.inside.residual import figures, words
from pages.inside.residual.push import POSITION, first_position
from ui import explain, widgets
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.markdown import safe

BLOCKS_WORKED = 3


@st.cache_resource(max_entries=32, show_spinner=False)
def _stream(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Stream:
    return stream(_subject.recording())


def _first(subject: Subject) -> int:
    """The token of the other views of this page; the middle one of a model that guesses none."""
    try:
        return first_position(subject)
    except HeadError:
        return len(subject.ids) // 2


def draw_norms(subject: Subject) -> None:
    """Draws the stream's norm from write to write; directions, shares and all tokens are folded."""
    found = _stream(subject.key, subject.ids, subject)
    position = token_strip(subject.labels, key=POSITION, chosen=_first(subject), label="Token (dotted line)")
    usual = _usual(subject, found)
    rows, told = [state.label for state in found.states], summary(usual)
    sizes = mean(usual.written).tolist()
    writes = [
        (write.label, write.part, at, size)
        for write, at, size in zip(found.writes, landings(found), sizes, strict=True)
    ]
    one = f"stream of token {position}, “{subject.labels[position]}”"
    plot(
        figures.stream_line(mean(usual.lengths), found.lengths[:, position], rows, one, writes),
        key="residual_line",
        height=370,
        name="stream-norm",
        data=pd.DataFrame({"after": rows, "mean_norm": mean(usual.lengths)}),
        alt=(
            "Line: norm of the stream after each write, mean over tokens, and for the chosen token. Bars: the"
            " norm of each write, mean over tokens."
        ),
    )
    explain.answer(words.norms_answer(told, found.wiring.replaces))
    explain.measure_it(_more, subject, found, usual, position)
    explain.by_hand(_hand, subject, found, position)


def _more(subject: Subject, stream: Stream, usual: Stream, position: int) -> None:
    """Each write against a token's own, their directions, whose the end is, and all tokens."""
    _bars(
        stream.writes,
        usual.written,
        stream.written[:, position],
        "norm of the write",
        "residual_writes",
        "Bars: norm of each write, mean over tokens.",
    )
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_cosines(subject, stream, usual, position)
    with right:
        _draw_shares(subject, stream, usual, position)
    if usual.shares is not None:
        st.markdown(words.shares_sentence(summary(usual)))
    rows = [state.label for state in stream.states]
    with st.container(key="residual_norm_table"):
        scrolled("residual_norm_table", 11 * len(subject.labels) + 120)
        plot(
            figures.stream_map(stream.lengths, subject.labels, rows, float(usual.lengths.max())),
            key="residual_norms",
            height=max(230, min(24 * len(rows), 480) + 125),
            name="stream-norms",
            data=pd.DataFrame(stream.lengths.T, columns=rows).assign(token=subject.labels),
            alt=(
                "Heatmap: Euclidean norm of the residual stream after each write (rows, the embedding at the"
                " bottom) for each token (columns)."
            ),
        )


def _hand(subject: Subject, stream: Stream, position: int) -> None:
    """A token's sum; the norms in numbers; and where the models of the field have theirs."""
    _worked(subject, stream, position)
    worked = words.norms_worked(norm_example(EXAMPLE))
    for column, (title, lines) in zip(st.columns(len(worked), gap="small"), worked, strict=True):
        with column.container(border=True):
            st.markdown(f"**{title}**")
            st.latex(lines)
    st.caption(words.NORMS_DIFFER)
    st.markdown(words.WHERE_NORMS_STAND)
    st.markdown(words.who_has_which(habits()))


def _usual(subject: Subject, stream: Stream) -> Stream:
    """Returns the stream that means are taken over: all tokens, or, where one is out of all proportion, the
    others.
    """
    odd = massive(stream)
    if not odd:
        return stream
    first, times = odd[0], times_longer(stream, odd[0])
    names = ", ".join(f"“{safe(subject.labels[i])}”" for i in odd[:3]) + (" …" if len(odd) > 3 else "")
    left, right = st.columns([2, 5], gap="medium", vertical_alignment="center")
    hint = "Off: means are taken over all tokens, and one colour scale covers them all."
    apart = widgets.switch(f"Leave out {names}", True, "residual_apart", container=left, hint=hint)
    right.caption(
        f":material/info: The stream at “{safe(subject.labels[first])}” reaches {times:,.0f} times the"
        f" median token's norm, and most of it is written by {writer_of(stream, first)}: a massive"
        " activation (Sun et al. 2024). Idle heads attend there (an attention sink, Xiao et al. 2023)."
    )
    return without(stream, odd) if apart else stream


def _bars(
    items: Sequence[Write], values: np.ndarray, one: np.ndarray, title: str, key: str, alt: str
) -> None:
    labels = [write.label for write in items]
    means = mean(values)
    plot(
        figures.part_bars(
            labels, [write.part for write in items], means, title=title, marks=one, marks_name="chosen token"
        ),
        key=key,
        height=330,
        name=title.replace(" ", "-"),
        data=pd.DataFrame({"write": labels, "mean": means, "chosen_token": one}),
        alt=f"{alt} Diamonds: the chosen token.",
    )


def _draw_cosines(subject: Subject, stream: Stream, usual: Stream, position: int) -> None:
    if not stream.added:
        st.info(
            "Nothing is added to the embedding here: there is no position vector, no attention and no"
            " feed-forward network."
        )
        return
    target = "what it replaces" if stream.wiring.replaces else "the stream it is added to"
    _bars(
        stream.added,
        usual.cosines,
        stream.cosines[:, position],
        "cosine with the stream",
        "residual_cosines",
        f"Bars: cosine between each write and {target}, mean over tokens.",
    )
    st.caption(
        f"Cosine between a write and {target}: +1 lengthens it, −1 shortens it, 0 adds a new direction."
    )


def _draw_shares(subject: Subject, stream: Stream, usual: Stream, position: int) -> None:
    if stream.shares is None or usual.shares is None:
        st.info(words.not_a_sum(subject.config, subject.model.parts))
        return
    _bars(
        stream.writes,
        usual.shares,
        stream.shares[:, position],
        "share of the final stream",
        "residual_shares",
        "Bars: share of the final stream by writer, mean over tokens.",
    )
    st.caption(
        "Share of the final stream $x$ by writer: $w \\cdot x / x \\cdot x$, so they sum to 1 (here"
        f" {summary(usual).total:.6f}). A write with a negative share points away from the final stream."
    )


def _worked(subject: Subject, stream: Stream, position: int) -> None:
    """x0 = embed + pos; x1 = x0 + attn ... with this token's norms. The first blocks only: the figure has
    them all.
    """
    c = subject.config
    lines = []
    for n, row in enumerate(sums(stream, c, position, BLOCKS_WORKED)):
        terms = [f"x_{{{n - 1}}}"] * bool(n) + [_named(term) for term in row.terms]
        lines.append(f"x_{{{n}}} &= {' + '.join(terms)} && \\|x_{{{n}}}\\| = {row.length:.3g}")
        if row.normed is not None:
            lines.append(
                f"x_{{{n}}} &\\leftarrow \\text{{norm}}(x_{{{n}}}) && \\|x_{{{n}}}\\| = {row.normed:.3g}"
            )
    if not lines:
        return
    more = f" (the first {BLOCKS_WORKED} blocks)" if c.n_layers > BLOCKS_WORKED else ""
    with st.container(border=True):
        st.markdown(
            f"**Worked out** for token {position}, “{safe(subject.labels[position])}”{more}: the norm of each"
            " write, and of the sum."
        )
        st.latex("\\begin{aligned}" + "\\\\".join(lines) + "\\end{aligned}")
        st.caption(
            "Vectors add; their norms do not: perpendicular writes add by Pythagoras, and opposite ones"
            " shrink the sum."
        )


def _named(term: Term) -> str:
    """A write with its norm written below."""
    index = "" if term.block is None else f"_{{{term.block}}}"
    return f"\\underbrace{{\\text{{{term.word}}}{index}}}_{{{term.size:.3g}}}"
