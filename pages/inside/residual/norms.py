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
from ui import explain, memo, widgets
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip

BLOCKS_WORKED = 3


@memo.measured()
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
    measured = _stream(subject.key, subject.ids, subject)
    position = token_strip(subject.labels, key=POSITION, chosen=_first(subject), label=words.STRIP)
    usual = _usual(subject, measured)
    rows = [state.label for state in measured.states]
    sizes = mean(usual.written).tolist()
    writes = [
        (write.label, write.part, at, size)
        for write, at, size in zip(measured.writes, landings(measured), sizes, strict=True)
    ]
    name = words.STREAM_OF.format(position=position, label=subject.labels[position])
    plot(
        figures.stream_line(mean(usual.lengths), measured.lengths[:, position], rows, name, writes),
        key="residual_line",
        height=370,
        name="stream-norm",
        data=pd.DataFrame({"after": rows, "mean_norm": mean(usual.lengths)}),
        alt=words.LINE_ALT,
    )
    explain.answer(words.norms_answer(summary(usual), measured.wiring.replaces))
    explain.measure_it(_more, subject, measured, usual, position)
    explain.by_hand(_hand, subject, measured, position)


def _more(subject: Subject, stream: Stream, usual: Stream, position: int) -> None:
    """Each write against a token's own, their directions, whose the end is, and all tokens."""
    _bars(
        stream.writes,
        usual.written,
        stream.written[:, position],
        words.NORM_OF_WRITE,
        "residual_writes",
        words.WRITES_ALT,
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
            alt=words.MAP_ALT,
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
    left, right = st.columns([2, 5], gap="medium", vertical_alignment="center")
    label = words.leave_out([subject.labels[i] for i in odd])
    apart = widgets.switch(label, True, "residual_apart", container=left, hint=words.LEAVE_OUT_HINT)
    right.caption(words.massive(subject.labels[first], times, writer_of(stream, first)))
    return without(stream, odd) if apart else stream


def _bars(
    items: Sequence[Write], values: np.ndarray, marks: np.ndarray, title: str, key: str, alt: str
) -> None:
    labels = [write.label for write in items]
    means = mean(values)
    plot(
        figures.part_bars(
            labels, [write.part for write in items], means, title=title, marks=marks, marks_name=words.CHOSEN
        ),
        key=key,
        height=330,
        name=title.replace(" ", "-"),
        data=pd.DataFrame({"write": labels, "mean": means, "chosen_token": marks}),
        alt=f"{alt} {words.MARKS_ALT}",
    )


def _draw_cosines(subject: Subject, stream: Stream, usual: Stream, position: int) -> None:
    if not stream.added:
        st.info(words.NOTHING_ADDED)
        return
    alt, caption = words.cosine_words(stream.wiring.replaces)
    _bars(
        stream.added,
        usual.cosines,
        stream.cosines[:, position],
        words.COSINE,
        "residual_cosines",
        alt,
    )
    st.caption(caption)


def _draw_shares(subject: Subject, stream: Stream, usual: Stream, position: int) -> None:
    if stream.shares is None or usual.shares is None:
        st.info(words.not_a_sum(subject.config, subject.model.parts))
        return
    _bars(
        stream.writes,
        usual.shares,
        stream.shares[:, position],
        words.SHARE,
        "residual_shares",
        words.SHARES_ALT,
    )
    st.caption(words.SHARES_SUM.format(summary=summary(usual)))


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
    with st.container(border=True):
        blocks = BLOCKS_WORKED if c.n_layers > BLOCKS_WORKED else None
        st.markdown(words.worked_for(position, subject.labels[position], blocks))
        st.latex("\\begin{aligned}" + "\\\\".join(lines) + "\\end{aligned}")
        st.caption(words.PYTHAGORAS)


def _named(term: Term) -> str:
    """A write with its norm written below."""
    index = "" if term.block is None else f"_{{{term.block}}}"
    return f"\\underbrace{{\\text{{{term.word}}}{index}}}_{{{term.size:.3g}}}"
