"""The view "Beam search": the tree, its knobs, and the winner beside greedy decoding and a sample."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from engine.data.progress import Progress, Steps
from engine.sample.beam import Beam, beam_search
from engine.sample.decoding_comparison import (
    Continuation,
    Rivals,
    dropped,
    ending_with,
    rivals,
)
from pages.output.generation import words
from pages.output.generation.figures_beam import beam_tree, rows, spread
from pages.output.generation.settings import conversation
from ui import explain, widgets
from ui.background_jobs import measured
from ui.fit_text import show_token
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe

WIDEST, DEEPEST = 8, 24
MAX_SEED = 2**31 - 1
STOPS = {"none": "", "line": "\n", "full stop": ".", "space": " "}
ROW = 36  # pixels
Ends = tuple[int, ...]  # tokens that finish a branch


def draw_beam(subject: Subject) -> None:
    """Searches, draws the tree and compares."""
    a, b, c, d = st.columns([3, 3, 2, 3], gap="medium", vertical_alignment="bottom")
    subject, last, about = conversation(subject, d)
    width, depth, penalty, stop, seed = _controls(subject, a, b, c)
    if about:
        st.caption(about)
    ends = tuple(sorted(_ends(subject, stop) | last))
    beam = _beam(subject, depth, width, penalty, ends)
    if beam is None:
        return
    if gone := dropped(len(subject.ids), depth, subject.config.context):
        st.caption(words.dropped(gone, subject.config.context))
    _tree(subject, beam, width)
    others = measured(
        ("rivals", subject.key, subject.ids, depth, width, penalty, ends, seed),
        lambda: _rivalling(subject, beam, depth, ends, seed),
        words.COMPARING,
    )
    if others is not None:
        explain.answer(words.verdict(others, width, bool(ends)))
        explain.measure_it(_compare, subject, others, width, seed)


def _beam(subject: Subject, depth: int, width: int, penalty: float, ends: Ends) -> Beam | None:
    """The tree; None while it is still being searched."""
    return measured(
        ("beam", subject.key, subject.ids, depth, width, penalty, ends),
        lambda: beam_search(
            subject.model,
            subject.ids,
            depth,
            width,
            length_penalty=penalty,
            stop=frozenset(ends),
            shown=width + 2,
        ),
        words.SEARCHING,
    )


def _rivalling(subject: Subject, beam: Beam, depth: int, ends: Ends, seed: int) -> Steps[Rivals]:
    yield Progress(0, 1)
    return rivals(subject.model, subject.ids, beam, depth, frozenset(ends), seed)


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
            alt=words.tree_alt(steps, width, texts[beam.winner]),
        )


def _controls(subject: Subject, a: Any, b: Any, c: Any) -> tuple[int, int, float, str, int]:
    most = max(1, min(DEEPEST, subject.config.context))
    width = widgets.slide("Width", 1, WIDEST, 4, "beam_width", container=a, hint=words.WIDTH_HINT)
    first = min(16, most)  # where the shipped model's greedy way is not the best
    depth = widgets.slide("Depth", 1, DEEPEST, first, "beam_depth", container=b, hint=words.DEPTH_HINT)
    # Streamlit's own: a box that opens over the page and takes no room on it
    with c.popover("More", width="stretch"):
        penalty, stop, seed = _more()
    return width, min(depth, most), penalty, STOPS[stop], seed


def _more() -> tuple[float, str, int]:
    """Returns the settings that matter where branches may end early, and to the sample."""
    hint = words.PENALTY_HINT
    penalty = widgets.slide("Length penalty", -1.0, 2.0, 1.0, "beam_penalty", step=0.1, hint=hint)
    stop = widgets.select("A branch ends at", list(STOPS), "beam_stop", kind="list", hint=words.STOP_HINT)
    seed = widgets.whole("Seed", 0, MAX_SEED, 0, "beam_seed", hint=words.RIVAL_SEED)
    return penalty, stop, seed


def _ends(subject: Subject, stop: str) -> frozenset[int]:
    """The tokens that finish a branch."""
    return ending_with(subject.tokenizer, stop, subject.config.vocab_size)


def _written(subject: Subject, tokens: tuple[int, ...]) -> str:
    return show_token(subject.tokenizer.decode(list(tokens)))


def _compare(subject: Subject, rivals: Rivals, width: int, seed: int) -> None:
    entries = {
        f"beam, width {width}": rivals.winner,
        "greedy (width 1)": rivals.greedy,
        f"a sample, temperature 1, seed {seed}": rivals.sample,
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
    text = safe(_written(subject, rivals.sample.tokens))
    st.markdown(words.sample(rivals, text))


def _row(subject: Subject, name: str, text: Continuation) -> dict[str, object]:
    return {
        "method": name,
        "text": _written(subject, text.tokens),
        "log-probability": text.total,
        "per token": text.per_token,
        "probability": text.probability,
        "tokens": len(text.tokens),
    }
