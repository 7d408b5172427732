"""The view "Norms": how long the stream is, what is written to it, and whose the end is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import HeadError
from engine.parts.registry import NORMS
from pages.inside.residual.chosen_token import POSITION, first_position
from pages.inside.residual.writers import MANY, by_block, in_full, not_a_sum, part_bars, part_name
from studies.costs.cards.norms import NORM_CARDS, norm_title
from studies.residual.norm_example import EXAMPLE, NormExample, habits, norm_example
from studies.residual.stream import (
    Stream,
    Summary,
    Term,
    Write,
    cosines,
    landings,
    massive,
    mean,
    shares,
    states,
    stream,
    summary,
    sums,
    times_longer,
    without,
    writer_of,
)
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.axes import rows_axis, token_axis
from ui.figures.labels import LETTER, crowded, plain
from ui.figures.theme import SEQUENTIAL, colour
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot
from ui.players.tokens import token_strip

TEXT = content.beside(__file__)
BLOCKS_WORKED = 3
NAMED, LEFT_OUT = 6, 3  # writers in a sentence, tokens on a switch, at most


def draw(subject: Subject) -> None:
    """Draws the stream's norm from write to write; directions, shares and all tokens are folded."""
    measured = _stream(subject.key, subject.ids, subject)
    position = token_strip(subject.labels, key=POSITION, chosen=_first(subject), label=TEXT["token"])
    usual = _usual(subject, measured)
    rows = [state.label for state in measured.states]
    sizes = mean(usual.written).tolist()
    writes = [
        (write.label, write.part, at, size)
        for write, at, size in zip(measured.writes, landings(measured), sizes, strict=True)
    ]
    name = TEXT("stream of", position=position, token=subject.labels[position])
    plot(
        stream_line(mean(usual.lengths), measured.lengths[:, position], rows, name, writes),
        key="residual_line",
        height=370,
        name="stream-norm",
        data=pd.DataFrame({"after": rows, "mean_norm": mean(usual.lengths)}),
        alt=TEXT["alt"],
    )
    _answer(summary(usual), measured.wiring.replaces)
    explain.measure_it(_more, subject, measured, usual, position)
    explain.by_hand(_hand, subject, measured, position)


@memo.measured()
def _stream(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Stream:
    return stream(_subject.recording())


def _first(subject: Subject) -> int:
    """The token of the other views of this page; the middle one of a model that guesses none."""
    try:
        return first_position(subject)
    except HeadError:
        return len(subject.ids) // 2


def _answer(found: Summary, replaces: bool) -> None:
    """Says how long the stream gets, and by whom."""
    case = "replaced" if replaces else "grows" if found.last > found.first else "changes"
    gets = TEXT(case, first=found.first, last=found.last)
    full = in_full(found.longest)
    what = ("output" if replaces else "write") + " in full" * bool(full)
    by = TEXT(f"largest {what}", length=found.length, writer=found.longest, full=full)
    explain.answer(f"{gets} {by}")


def _more(subject: Subject, stream: Stream, usual: Stream, position: int) -> None:
    """Each write against a token's own, their directions, whose the end is, and all tokens."""
    _bars(
        stream.writes,
        usual.written,
        stream.written[:, position],
        TEXT["norm of write"],
        "residual_writes",
        TEXT["alt writes"],
    )
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_cosines(subject, stream, usual, position)
    with right:
        _draw_shares(subject, stream, usual, position)
    if usual.shares is not None:
        _tell_shares(summary(usual))
    rows = [state.label for state in stream.states]
    with st.container(key="residual_norm_table"):
        scrolled("residual_norm_table", 11 * len(subject.labels) + 120)
        plot(
            stream_map(stream.lengths, subject.labels, rows, float(usual.lengths.max())),
            key="residual_norms",
            height=max(230, min(24 * len(rows), 480) + 125),
            name="stream-norms",
            data=pd.DataFrame(stream.lengths.T, columns=rows).assign(token=subject.labels),
            alt=TEXT["alt map"],
        )


def _hand(subject: Subject, stream: Stream, position: int) -> None:
    """A token's sum; the norms in numbers; and where the models of the field have theirs."""
    _worked(subject, stream, position)
    worked = norms_worked(norm_example(EXAMPLE))
    for column, (title, lines) in zip(st.columns(len(worked), gap="small"), worked, strict=True):
        with column.container(border=True):
            st.markdown(f"**{title}**")
            st.latex(lines)
    others = [
        TEXT("another norm", title=card.title, source=card.source, sentence=content.Filled(card.sentence))
        for name, card in NORM_CARDS.items()
        if NORMS[name].present and not NORMS[name].divides
    ]
    st.caption(" ".join([TEXT["norms differ"], *others]))
    st.markdown(TEXT["where norms stand"])
    cells = [
        (TEXT(f"wiring {one.wiring}"), norm_title(one.norm, TEXT["no norm"]), ", ".join(one.models))
        for one in habits()
    ]
    rows = [f"| {' | '.join(row)} |" for row in cells]
    st.markdown("\n".join([TEXT["who has which"], *rows]))


def norms_worked(example: NormExample) -> list[tuple[str, str]]:
    """Returns (title, LaTeX) of every norm, on the example's numbers."""
    measured = {"mean": example.mean, "variance": example.variance, "rms": example.rms}
    cards = [(NORM_CARDS[name], output) for name, output in example.outputs.items()]
    return [
        (
            card.title,
            _aligned(
                f"x &= {_row(example.x)}\\\\ {card.statistics.format(**measured)}"
                f"\\\\ {card.bare} &= {_row(output)}"
            ),
        )
        for card, output in cards
    ]


def _aligned(lines: str) -> str:
    return f"\\begin{{aligned}}{lines}\\end{{aligned}}"


def _row(values: np.ndarray) -> str:
    return "[" + ",\\ ".join(f"{value:.3g}" for value in values.tolist()) + "]"


def _tell_shares(found: Summary) -> None:
    """Says which parts the final stream is made of."""
    largest = ", ".join(TEXT("share of", writer=writer, share=share) for writer, share in found.largest)
    st.markdown(
        TEXT(
            "negative shares" if found.negative else "no negative share",
            largest=content.Filled(largest),
            negative=few(found.negative),
        )
    )


def few(names: Sequence[str], most: int = NAMED) -> str:
    """Returns a list that stays one line.

    >>> few(["a", "b"]), few(list("abcd"), 2)
    ('a, b', 'a, b and 2 others')
    """
    more = len(names) - most
    if more <= 0:
        return ", ".join(names)
    return TEXT("some and others", names=", ".join(names[:most]), more=more)


def _usual(subject: Subject, stream: Stream) -> Stream:
    """Returns the stream that means are taken over: all tokens, or, where one is out of all proportion, the
    others.
    """
    odd = massive(stream)
    if not odd:
        return stream
    first, times = odd[0], times_longer(stream, odd[0])
    left, right = st.columns([2, 5], gap="medium", vertical_alignment="center")
    named = ", ".join(TEXT("quoted", token=subject.labels[i]) for i in odd[:LEFT_OUT])
    case = "leave out several" if len(odd) > LEFT_OUT else "leave out"
    label = TEXT(case, tokens=content.Filled(named))
    apart = widgets.switch(label, True, "residual_apart", container=left, hint=TEXT["leave out hint"])
    writer = writer_of(stream, first)
    right.caption(TEXT("massive", token=subject.labels[first], times=times, writer=writer))
    return without(stream, odd) if apart else stream


def _bars(
    items: Sequence[Write], values: np.ndarray, marks: np.ndarray, title: str, key: str, alt: str
) -> None:
    labels = [write.label for write in items]
    means = mean(values)
    plot(
        part_bars(
            labels,
            [write.part for write in items],
            means,
            title=title,
            marks=marks,
            marks_name=TEXT["chosen token"],
        ),
        key=key,
        height=330,
        name=title.replace(" ", "-"),
        data=pd.DataFrame({"write": labels, "mean": means, "chosen_token": marks}),
        alt=TEXT("alt marks", bars=alt),
    )


def _draw_cosines(subject: Subject, stream: Stream, usual: Stream, position: int) -> None:
    if not stream.added:
        st.info(TEXT["nothing added"])
        return
    other = "what it replaces" if stream.wiring.replaces else "the stream"
    _bars(
        stream.added,
        usual.cosines,
        stream.cosines[:, position],
        TEXT["cosine"],
        "residual_cosines",
        TEXT(f"alt cosine with {other}"),
    )
    st.caption(TEXT(f"cosine with {other}"))


def _draw_shares(subject: Subject, stream: Stream, usual: Stream, position: int) -> None:
    if stream.shares is None or usual.shares is None:
        st.info(not_a_sum(subject.config, subject.model.parts))
        return
    _bars(
        stream.writes,
        usual.shares,
        stream.shares[:, position],
        TEXT["share"],
        "residual_shares",
        TEXT["alt shares"],
    )
    st.caption(TEXT("shares sum", total=summary(usual).total))


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
        case = "worked out partly" if blocks else "worked out"
        st.markdown(TEXT(case, position=position, token=subject.labels[position], blocks=blocks))
        st.latex(_aligned("\\\\".join(lines)))
        st.caption(TEXT["pythagoras"])


def _named(term: Term) -> str:
    """A write with its norm written below."""
    index = "" if term.block is None else f"_{{{term.block}}}"
    return f"\\underbrace{{\\text{{{term.word}}}{index}}}_{{{term.size:.3g}}}"


def stream_map(values: np.ndarray, labels: Sequence[str], rows: Sequence[str], top: float) -> go.Figure:
    """Draws norms (state, query), the embedding at the bottom, stronger for longer, full from `top` on."""
    heat = go.Heatmap(
        z=values.astype(np.float32),
        zmin=0,
        zmax=max(top, 1e-6),
        colorscale=SEQUENTIAL,
        customdata=np.broadcast_to(np.asarray([plain(label) for label in labels]), values.shape).tolist(),
        hovertemplate=TEXT["hover map"] + "<extra></extra>",
        colorbar=go.scale_above(TEXT["stream norm"]),
    )
    tall = crowded(labels)
    margin = {"l": 8, "r": 8, "t": 8, "b": 44 + LETTER * tall}
    return go.figure(
        [heat],
        margin=margin,
        showlegend=False,
        xaxis=token_axis(labels, upright=tall > 0),
        yaxis=rows_axis(rows) | by_block(rows),
    )


def stream_line(
    mean: np.ndarray,
    token_norms: np.ndarray,
    rows: Sequence[str],
    token_name: str,
    writes: Sequence[tuple[str, str, int, float]],
) -> go.Figure:
    """Draws norm of the stream by state: the mean over tokens, and one token. Below the line the norm of each
    of `writes`: its label, its part, the state that it is in first, and its mean norm.
    """
    at = np.arange(len(rows))
    bars = []
    for part in dict.fromkeys(part for _, part, _, _ in writes):
        members = [write for write in writes if write[1] == part]
        bars.append(
            go.Bar(
                x=[write[2] for write in members],
                y=np.array([write[3] for write in members]),
                name=TEXT("written by", part=part_name(part)),
                marker={"color": colour(part)},
                customdata=[write[0] for write in members],
                hovertemplate="%{customdata}: %{y:.3f}<extra></extra>",
            )
        )
    average = go.line(at, mean, "residual", TEXT["mean"], "%{y:.3f}", width=4, points=6)
    single = go.line(at, token_norms, "quiet", plain(token_name), "%{y:.3f}", dash="dot", points=6)
    return go.figure(
        [*bars, average, single],
        margin={"l": 62, "r": 8, "t": 30, "b": 8},
        bargap=0.3,
        xaxis=rows_axis(
            rows, tickangle=-90 if 14 < len(rows) <= MANY else -45, tickfont={"size": 12}, automargin=True
        )
        | by_block(rows),
        yaxis={"title": {"text": TEXT["euclidean norm"]}, "rangemode": "tozero"},
    )


VIEW = View("norms", TEXT, draw, code=(states, shares, cosines), figures_only=True)
