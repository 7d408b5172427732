"""The view "Beam search": the tree, its knobs, and the winner beside greedy decoding and a sample."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from engine.data.progress import Progress, Steps
from engine.sample.beam import Beam, searching
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
        over = f"Prompt and depth together exceed the context of {subject.config.context}"
        st.caption(f":material/info: {over}: the first {gone} tokens of the text are dropped.")
    _tree(subject, beam, width)
    others = measured(
        ("rivals", subject.key, subject.ids, depth, width, penalty, ends, seed),
        lambda: _rivalling(subject, beam, depth, ends, seed),
        words.COMPARING,
    )
    if others is not None:
        explain.answer(_verdict(others, width))
        explain.measure_it(_compare, subject, others, width, seed)


def _beam(subject: Subject, depth: int, width: int, penalty: float, ends: Ends) -> Beam | None:
    """The tree; None while it is still being searched."""
    return measured(
        ("beam", subject.key, subject.ids, depth, width, penalty, ends),
        lambda: searching(
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
    texts = [_written(subject, beam.path(node.index)) for node in beam.nodes]
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
            alt=(
                f"A tree of {steps} steps: {width} branches are kept at each, the pruned ones are grey; the"
                f" winner writes {texts[beam.winner]}."
            ),
        )


def _controls(subject: Subject, a: Any, b: Any, c: Any) -> tuple[int, int, float, str, int]:
    most = max(1, min(DEEPEST, subject.config.context))
    hint = "Branches kept at each step. 1 is greedy decoding."
    width = widgets.slide("Width", 1, WIDEST, 4, "beam_width", container=a, hint=hint)
    first = min(16, most)  # where the shipped model's greedy way is not the best
    depth = widgets.slide(
        "Depth", 1, DEEPEST, first, "beam_depth", container=b, hint="Tokens written at most."
    )
    # Streamlit's own: a box that opens over the page and takes no room on it
    with c.popover("More", width="stretch"):
        penalty, stop, seed = _more()
    return width, min(depth, most), penalty, STOPS[stop], seed


def _more() -> tuple[float, str, int]:
    """Returns the settings that matter where branches may end early, and to the sample."""
    hint = (
        "Finished branches are compared by sum / length^penalty: 0 favours short ones, above 1 long ones."
        " It matters only where branches can end early. The search goes on to the full depth, as Hugging"
        ' Face\'s with early_stopping="never"; its default may stop before.'
    )
    penalty = widgets.slide("Length penalty", -1.0, 2.0, 1.0, "beam_penalty", step=0.1, hint=hint)
    hint = "A token that ends with this sign finishes its branch."
    stop = widgets.select("A branch ends at", list(STOPS), "beam_stop", kind="list", hint=hint)
    hint = "Of the sample that the winner is compared with."
    seed = widgets.whole("Seed", 0, MAX_SEED, 0, "beam_seed", hint=hint)
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
    st.markdown(
        f"The sample, “{text}”, is {times(rivals.winner.times(rivals.sample))} times less"
        " probable than the winner. People's own text is not the likeliest either: of good models, a sample"
        " often reads better than the winner (Holtzman et al. 2020). Judge for yourself."
        if rivals.winner.total > rivals.sample.total
        else "This sample is more probable than the winner: a pruned branch can be."
    )


def times(value: float) -> str:
    """Returns a factor, as exact as anybody reads it.

    >>> times(1.53), times(124.7), times(5.7e18)
    ('1.5', '125', '5.7 × 10¹⁸')
    """
    if value < 1e6:
        return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
    mantissa, _, power = f"{value:.1e}".partition("e+")
    return f"{mantissa} × 10{power.lstrip('0').translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def _row(subject: Subject, name: str, text: Continuation) -> dict[str, object]:
    return {
        "found by": name,
        "it wrote": _written(subject, text.tokens),
        "log-probability": text.total,
        "per token": text.per_token,
        "probability": text.probability,
        "tokens": len(text.tokens),
    }


def _verdict(rivals: Rivals, width: int) -> str:
    ours, greedy = len(rivals.winner.tokens), len(rivals.greedy.tokens)
    more = times(rivals.winner.times(rivals.greedy))
    if rivals.verdict == "same":
        why = (
            ", as it must: width 1 is greedy."
            if width == 1
            else ": none of the branches it kept turned out more probable."
        )
        return f"**Here width {width} finds what greedy decoding finds**{why}"
    if rivals.verdict == "shorter":
        return (
            f"**The beam's text is {more} times as probable as the greedy one, and shorter**:"
            f" {ours} tokens against {greedy}. Each further token makes a text less probable."
        )
    if rivals.verdict == "likelier":
        return (
            f"**The beam's text is {more} times as probable as the greedy one**: somewhere the"
            " likeliest token led into a less likely text."
        )
    lengths = f"it is {ours} tokens long, the greedy one {greedy}"
    return f"**The beam's text has the better score, not the higher probability**: {lengths}."
