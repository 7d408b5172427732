"""The view "Beam search": the tree, its knobs, and the winner beside greedy decoding and a sample."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.progress import single_piece
from pages.output.generation import beside_a_sample
from pages.output.generation.conversation import conversation
from studies.generation.beam import Beam, Node, beam_search
from studies.generation.decoding_comparison import Continuation, Rivals, dropped, ending_with, rivals
from ui import content, explain, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.axes import MONO
from ui.figures.labels import plain, short
from ui.figures.theme import colour
from ui.fit_text import show_token
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import scientific

TEXT = content.beside(__file__)
WIDEST, DEEPEST = 8, 24
MAX_SEED = 2**31 - 1
STOPS = {"none": "", "line": "\n", "full stop": ".", "space": " "}
ROW = 36  # pixels
PRUNED_ROWS = 2  # the best of the pruned that are drawn at each step
ABOVE = 0.28  # rows from an edge's end to its score
LETTERS, LETTER = 8, 8  # of a word in its box; pixels of one
EDGE_WORDS = 100  # with more edges than that, their scores are left to the boxes
PRUNED_WORDS = 16  # and of the pruned: each number costs the browser as much as a box

Ends = tuple[int, ...]  # tokens that finish a branch


def draw(subject: Subject) -> None:
    """Searches, draws the tree and compares; or puts the text beside a sample."""
    first, a, b, c, d = st.columns([4, 3, 3, 2, 2], gap="medium", vertical_alignment="bottom")
    parts = {part: TEXT(f"part {part}") for part in ("tree", "sample")}
    part = widgets.select(TEXT["part"], parts, "beam_part", container=first, hidden=True)
    subject, last, about = conversation(subject, d)
    if part == "sample":
        if about:
            st.caption(about)
        beside_a_sample.draw(subject, _width(a), _seed(b), last)
        return
    width, depth, penalty, stop, seed = _controls(subject, a, b, c)
    if about:
        st.caption(about)
    ends = tuple(sorted(ending_with(subject.tokenizer, stop, subject.config.vocab_size) | last))
    beam = _beam(subject, depth, width, penalty, ends)
    if beam is None:
        return
    if gone := dropped(len(subject.ids), depth, subject.config.context):
        st.caption(TEXT("dropped", context=subject.config.context, tokens=gone))
    _tree(subject, beam, width)
    others = measured(
        ("rivals", subject.key, subject.ids, depth, width, penalty, ends, seed),
        partial(single_piece, rivals, subject.model, subject.ids, beam, depth, frozenset(ends), seed),
        TEXT["comparing"],
    )
    if others is not None:
        explain.answer(verdict(others, width, bool(ends)))
        explain.measure_it(_compare, subject, others, width, seed)


def _beam(subject: Subject, depth: int, width: int, penalty: float, ends: Ends) -> Beam | None:
    """The tree; None while it is still being searched."""
    return measured(
        ("beam", subject.key, subject.ids, depth, width, penalty, ends),
        partial(
            beam_search,
            subject.model,
            subject.ids,
            depth,
            width,
            length_penalty=penalty,
            stop=frozenset(ends),
            shown=width + 2,
        ),
        TEXT["searching"],
    )


def _tree(subject: Subject, beam: Beam, width: int) -> None:
    tokens = [subject.vocabulary[node.token] for node in beam.nodes]
    paths: list[tuple[int, ...]] = []  # a branch stands behind its parent
    for node in beam.nodes:
        paths.append((*(() if node.parent is None else paths[node.parent]), node.token))
    texts = [_written(subject, path) for path in paths]
    table = {
        "node": [n.index for n in beam.nodes],
        "parent": [n.parent for n in beam.nodes],
        "depth": [n.depth for n in beam.nodes],
        "token": tokens,
        "branch": texts,
        "log_probability": [n.log_probability for n in beam.nodes],
        "total": [n.total for n in beam.nodes],
        "score": [n.score for n in beam.nodes],
        "kept": [n.in_beam for n in beam.nodes],
        "finished": [n.finished for n in beam.nodes],
    }
    step = spread([*tokens, subject.labels[-1]])
    lines = max(rows(beam).values()) + 1
    steps = beam.nodes[-1].depth
    st.html(
        "<style>.st-key-beam_tree { overflow-x: auto; } .st-key-beam_tree .gf-plot { min-width:"
        f" {step * (steps + 1)}px; }}</style>"
    )
    with st.container(key="beam_tree"):
        plot(
            beam_tree(beam, tokens, texts, root=subject.labels[-1]),
            key="beam_figure",
            height=90 + ROW * lines,
            name="beam-search",
            data=table,
            alt=TEXT("alt", steps=steps, width=width, winner=texts[beam.winner]),
        )


def _controls(subject: Subject, a: Any, b: Any, c: Any) -> tuple[int, int, float, str, int]:
    most = max(1, min(DEEPEST, subject.config.context))
    width = _width(a)
    first = min(16, most)  # where the shipped model's greedy way is not the best
    depth = widgets.slide(
        TEXT["depth"], 1, DEEPEST, first, "beam_depth", container=b, hint=TEXT["depth hint"]
    )
    # Streamlit's own: a box that opens over the page and takes no room on it
    with c.popover(TEXT["more"], width="stretch"):
        penalty, stop, seed = _more()
    return width, min(depth, most), penalty, STOPS[stop], seed


def _more() -> tuple[float, str, int]:
    """Returns the settings that matter where branches may end early, and to the sample."""
    hint = TEXT["penalty hint"]
    penalty = widgets.slide(TEXT["penalty"], -1.0, 2.0, 1.0, "beam_penalty", step=0.1, hint=hint)
    stop = widgets.select(TEXT["stop"], list(STOPS), "beam_stop", kind="list", hint=TEXT["stop hint"])
    return penalty, stop, _seed(st)


def _width(container: Any) -> int:
    return widgets.slide(
        TEXT["width"], 1, WIDEST, 4, "beam_width", container=container, hint=TEXT["width hint"]
    )


def _seed(container: Any) -> int:
    return widgets.whole(
        TEXT["seed"], 0, MAX_SEED, 0, "beam_seed", container=container, hint=TEXT["seed hint"]
    )


def _written(subject: Subject, tokens: tuple[int, ...]) -> str:
    return show_token(subject.tokenizer.decode(list(tokens)))


def verdict(rivals: Rivals, width: int, may_end: bool) -> str:
    """Says what the search found beside greedy decoding. `may_end`: a branch that ends frees its place, so
    even width 1 keeps other branches than the greedy one.
    """
    must = rivals.verdict == "same" and width == 1 and not may_end
    return TEXT(
        "greedy by definition" if must else f"verdict {rivals.verdict}",
        width=width,
        times=times(rivals.winner.times(rivals.greedy)),
        ours=len(rivals.winner.tokens),
        greedy=len(rivals.greedy.tokens),
    )


def times(value: float) -> content.Filled:
    """Returns a factor, as exact as anybody reads it.

    >>> times(1.53), times(124.7), times(5.7e18)
    ('1.5', '125', '5.7 × 10¹⁸')
    """
    plainly = f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
    return content.Filled(plainly if value < 1e6 else scientific(value))


def _compare(subject: Subject, rivals: Rivals, width: int, seed: int) -> None:
    entries = {
        TEXT("row beam", width=width): rivals.winner,
        TEXT["row greedy"]: rivals.greedy,
        TEXT("row sample", seed=seed): rivals.sample,
    }
    st.dataframe(
        pd.DataFrame([_row(subject, name, text) for name, text in entries.items()]),
        hide_index=True,
        key="beam_table",
        column_config={
            "log-probability": st.column_config.NumberColumn(format="%.3f"),
            "per token": st.column_config.NumberColumn(format="%.3f"),
            "probability": st.column_config.NumberColumn(format="scientific"),
        },
    )
    if rivals.winner.total <= rivals.sample.total:
        st.markdown(TEXT["sample more probable"])
        return
    less = times(rivals.winner.times(rivals.sample))
    st.markdown(TEXT("sample less probable", text=_written(subject, rivals.sample.tokens), times=less))


def _row(subject: Subject, name: str, text: Continuation) -> dict[str, object]:
    return {
        "method": name,
        "text": _written(subject, text.tokens),
        "log-probability": text.total,
        "per token": text.per_token,
        "probability": text.probability,
        "tokens": len(text.tokens),
    }


def rows(beam: Beam) -> dict[int, int]:
    """Returns node index -> row, 0 on top: by total at its step, kept ones first. Pruned ones below
    PRUNED_ROWS of their kind have none.
    """
    result: dict[int, int] = {}
    for depth in range(1, beam.nodes[-1].depth + 1):
        level = sorted(
            (node for node in beam.nodes if node.depth == depth),
            key=lambda node: (not node.in_beam, -node.total, node.index),
        )
        in_beam = sum(node.in_beam for node in level)
        result |= {node.index: row for row, node in enumerate(level[: in_beam + PRUNED_ROWS])}
    return result


def spread(words: Sequence[str]) -> int:
    """Pixels from step to step, so that a word's box and a number have room.

    >>> spread(["a", "⏎"]), spread(["␣Paris"])
    (60, 104)
    """
    longest = min(max(map(len, words), default=1), LETTERS)
    return 60 if longest <= 2 else LETTER * longest + 56


def beam_tree(beam: Beam, words: Sequence[str], texts: Sequence[str], *, root: str) -> go.Figure:
    """Draws words (node,): each node's token; texts (node,): its branch. Blue-grey: pruned; the output's
    colour: kept; filled: the winner's way.
    """
    row_of = rows(beam)
    way = _way(beam)
    step = spread([*words, root])
    shown = [node for node in beam.nodes if node.index in row_of]
    traces = [
        _edges(beam, row_of, [n for n in shown if not n.in_beam], "quiet", 1, "dot"),
        _edges(beam, row_of, [n for n in shown if n.in_beam], "output", 1.5, "solid"),
        _edges(beam, row_of, [n for n in shown if n.index in way], "output", 4, "solid"),
    ]
    scored = [
        (nodes, shade)
        for nodes, shade, most in (
            ([n for n in shown if n.in_beam], None, EDGE_WORDS),
            ([n for n in shown if not n.in_beam], "quiet", PRUNED_WORDS),
        )
        if len(nodes) <= most
    ]
    traces += [_gaps(row_of, nodes, 13 / step) for nodes, _ in scored] + [
        _scores(row_of, nodes, shade) for nodes, shade in scored
    ]
    groups = (
        ("pruned", [n for n in shown if not n.in_beam], "quiet", 1.0),
        ("kept", [n for n in shown if n.in_beam and n.index not in way], "output", 1.6),
        ("winner", [n for n in shown if n.index in way], "output", 0.0),
    )
    for name, nodes, shade, width in groups:
        winner = name == "winner"
        if step > 60:  # words: boxes as wide as they are long
            ends = [(n.depth, -row_of[n.index], len(short(words[n.index], LETTERS))) for n in nodes]
            traces += [_boxes(ends, shade, 25, step)]
            traces += [] if winner else [_boxes(ends, None, 25 - 2 * width, step, 2 * width)]
            traces += [_legend(name, shade, width)]
        traces.append(
            go.Scatter(
                x=[n.depth for n in nodes],
                y=[-row_of[n.index] for n in nodes],
                mode="markers+text",
                name=name,
                showlegend=step == 60,
                text=[plain(short(words[n.index], LETTERS)) for n in nodes],
                textfont=MONO
                | {"color": "var(--gf-seq0)" if winner else colour(shade) if name == "pruned" else None},
                marker={
                    "symbol": "square",
                    "size": 24,
                    "color": colour(shade) if winner else "var(--gf-seq0)",
                    "line": {"width": width, "color": colour(shade)},
                    "opacity": 1 if step == 60 else 0,
                },
                customdata=np.asarray([n.index for n in nodes], dtype=np.int32),
                hovertext=[_hint(n, texts) for n in nodes],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    if step > 60:
        ends = [(0, 0, len(short(root, LETTERS)))]
        traces += [_boxes(ends, "quiet", 27, step), _boxes(ends, None, 24, step, 3)]
    traces.append(
        go.Scatter(
            x=[0],
            y=[0],
            mode="markers+text",
            text=[plain(short(root, LETTERS))],
            textfont=MONO,
            hoverinfo="skip",
            showlegend=False,
            marker={
                "symbol": "square",
                "size": 28,
                "opacity": 1 if step == 60 else 0,
                "color": "var(--gf-seq0)",
                "line": {"width": 1.5, "color": colour("quiet")},
            },
        )
    )
    lowest = max(row_of.values(), default=0)
    return go.figure(
        traces,
        margin={"l": 8, "r": 8, "t": 30, "b": 40},
        hovermode="closest",
        xaxis=go.axis(TEXT["axis"], range=[-0.5, beam.nodes[-1].depth + 0.5], dtick=1, zeroline=False),
        yaxis={"visible": False, "range": [-lowest - 0.6, 0.6]},
        uirevision=f"beam-{beam.nodes[-1].depth}-{lowest}",
    )


def _way(beam: Beam) -> set[int]:
    """The winner's nodes."""
    indexes, at = set(), beam.nodes[beam.winner] if beam.nodes else None
    while at is not None:
        indexes.add(at.index)
        at = None if at.parent is None else beam.nodes[at.parent]
    return indexes


def _ends(beam: Beam, row_of: dict[int, int], node: Node) -> tuple[float, float, float, float]:
    """From the parent to the node: x, y, x, y."""
    parent = None if node.parent is None else beam.nodes[node.parent]
    return (node.depth - 1, 0.0 if parent is None else -row_of[parent.index], node.depth, -row_of[node.index])


def _edges(
    beam: Beam, row_of: dict[int, int], nodes: Sequence[Node], shade: str, width: float, dash: str
) -> go.Trace:
    x: list[float | None] = []
    y: list[float | None] = []
    for node in nodes:
        x0, y0, x1, y1 = _ends(beam, row_of, node)
        x += [x0, x1, None]
        y += [y0, y1, None]
    line = {"color": colour(shade, 100 if width > 1 else 50), "width": width, "dash": dash}
    return go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def _scores(row_of: dict[int, int], nodes: Sequence[Node], shade: str | None) -> go.Trace:
    """The log-probability of each token, half-way between the boxes, in the row where its edge arrives: no
    other edge arrives there.
    """
    return go.Scatter(
        x=[node.depth - 0.5 for node in nodes],
        y=[-row_of[node.index] + ABOVE for node in nodes],
        mode="text",
        showlegend=False,
        text=[score(node.log_probability) for node in nodes],
        textposition="middle center",
        hoverinfo="skip",
        textfont={"size": 11, "color": None if shade is None else colour(shade)},
    )


def _legend(name: str, shade: str, width: float) -> go.Trace:
    """Returns the legend's entry of a kind of box."""
    fill = "var(--gf-seq0)" if width else colour(shade)
    line = {"width": width, "color": colour(shade)}
    marker = {"symbol": "square", "size": 24, "color": fill, "line": line}
    return go.Scatter(x=[None], y=[None], mode="markers", name=name, marker=marker, hoverinfo="skip")


def _boxes(
    ends: Sequence[tuple[int, int, int]], shade: str | None, height: float, step: int, less: float = 0
) -> go.Trace:
    """A box behind each word: ends are (x, y, letters). A thick line is as good, and moves with the tree.
    Without a shade it is the page's own, `less` pixels narrower: what is left of the one below is its frame.
    """
    x: list[float | None] = []
    y: list[float | None] = []
    for at, row, letters in ends:
        half = (max(LETTER * letters + 10, 26) - less) / 2 / step
        x += [at - half, at + half, None]
        y += [row, row, None]
    line = {"color": "var(--gf-seq0)" if shade is None else colour(shade), "width": height}
    return go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def _gaps(row_of: dict[int, int], nodes: Sequence[Node], half: float) -> go.Trace:
    """The page's own colour behind each score, so that edges which pass there do not strike it through."""
    x: list[float | None] = []
    y: list[float | None] = []
    for node in nodes:
        x += [node.depth - 0.5 - half, node.depth - 0.5 + half, None]
        y += [ABOVE - row_of[node.index]] * 2 + [None]
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        line={"color": "var(--gf-seq0)", "width": 11},
    )


def score(log_probability: float) -> str:
    """
    >>> score(-1.234), score(-0.006), score(-0.004), score(-0.0)
    ('−1.23', '−0.01', '≈0', '0')
    """
    return (
        "0" if log_probability == 0 else "≈0" if log_probability > -0.005 else f"−{abs(log_probability):.2f}"
    )


def _hint(node: Node, texts: Sequence[str]) -> str:
    return TEXT(
        "hover",
        text=plain(texts[node.index]),
        log_p=node.log_probability,
        p=node.probability,
        total=node.total,
        score=node.score,
        end="finished" if node.finished else "kept" if node.in_beam else "pruned",
    )


VIEW = View("beam", TEXT, draw, code=(beam_search,), takes=(SAYS, CAUSAL), figures_only=True)
