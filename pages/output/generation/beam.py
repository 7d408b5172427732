"""The view "Beam search": the tree, its knobs, and the winner beside greedy decoding and a sample."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.sample import Beam, beam_search, fitting, greedy, sampled
from pages.output.generation.beam_figures import beam_tree, rows
from ui import explain
from ui.players.plot import plot
from ui.subject import Subject, show_token
from ui.text.markdown import safe

WIDEST, DEEPEST = 8, 24
STOPS = {"none": "", "line": "\n", "full stop": ".", "space": " "}
ROW = 40  # pixels


def draw_beam(subject: Subject) -> None:
    """Searches, draws the tree and compares."""
    if not subject.config.causal:
        st.info(
            "This model fills gaps and does not write on: there is nothing to search. Choose a causal model."
        )
        return
    width, depth, penalty, stop, seed = _controls(subject)
    beam = _search(subject.key, subject.ids, depth, width, penalty, stop, subject)
    dropped = max(0, len(subject.ids) + depth - 1 - subject.config.context)
    if dropped:
        over = f"Prompt and depth together exceed the context of {subject.config.context}"
        st.caption(f":material/info: {over}: the first {dropped} tokens of the text are dropped.")
    words = [subject.vocabulary[node.token] for node in beam.nodes]
    texts = [show_token(subject.tokenizer.decode(list(beam.path(node.index)))) for node in beam.nodes]
    table = {
        "node": [n.index for n in beam.nodes],
        "parent": [n.parent for n in beam.nodes],
        "depth": [n.depth for n in beam.nodes],
        "token": words,
        "branch": texts,
        "log_probability": [n.log_probability for n in beam.nodes],
        "total": [n.total for n in beam.nodes],
        "score": [n.score for n in beam.nodes],
        "kept": [n.kept for n in beam.nodes],
        "finished": [n.finished for n in beam.nodes],
    }
    lines = max(rows(beam).values()) + 1
    steps = beam.nodes[-1].depth
    st.html(
        "<style>.st-key-beam_tree { overflow-x: auto; } .st-key-beam_tree .gf-plot { min-width:"
        f" {60 * (steps + 1)}px; }}</style>"
    )
    with st.container(key="beam_tree"):
        plot(
            beam_tree(beam, words, texts, root=subject.labels[-1]),
            key="beam_figure",
            height=90 + ROW * lines,
            name="beam-search",
            data=table,
            alt=(
                f"A tree of {steps} steps: {width} branches are kept at each, the pruned ones are grey; the"
                f" winner writes {texts[beam.winner]}."
            ),
        )
    st.caption(
        "A column for each step, the best sum on top. The number on an edge is the token's log-probability."
        " Grey and dotted: pruned (the best four)."
    )
    _compare(subject, beam, width, depth, stop, seed)


def _controls(subject: Subject) -> tuple[int, int, float, str, int]:
    a, b, c, d, e = st.columns([2, 2, 2, 2, 1.3], gap="medium")
    most = max(1, min(DEEPEST, subject.config.context))
    width = a.slider(
        "Width",
        1,
        WIDEST,
        4,
        key="beam_width",
        bind="query-params",
        help="Branches kept at each step. 1 is greedy decoding.",
    )
    depth = b.slider(
        "Depth",
        1,
        DEEPEST,
        min(12, most),
        key="beam_depth",
        bind="query-params",
        help="Tokens written at most.",
    )
    penalty = c.slider(
        "Length penalty",
        -1.0,
        2.0,
        1.0,
        0.1,
        key="beam_penalty",
        bind="query-params",
        help=(
            "Finished branches are compared by sum / length^penalty: 0 favours short ones, above 1 long ones."
            " It matters only where branches can end early. The search goes on to the full depth, as Hugging"
            ' Face\'s with early_stopping="never"; its default may stop before.'
        ),
    )
    stop = d.selectbox(
        "A branch ends at",
        list(STOPS),
        key="beam_stop",
        bind="query-params",
        help="A token that ends with this sign finishes its branch.",
    )
    seed = e.number_input(
        "Seed",
        0,
        2**31 - 1,
        0,
        key="beam_seed",
        bind="query-params",
        help="Of the sample that the winner is compared with.",
    )
    width, depth, seed = (
        int(v) if isinstance(v, int | float) and math.isfinite(v) else 1 for v in (width, depth, seed)
    )
    penalty = float(penalty) if isinstance(penalty, int | float) and math.isfinite(penalty) else 1.0
    return (
        min(max(width, 1), WIDEST),
        min(max(depth, 1), most),
        min(max(penalty, -1.0), 2.0),
        STOPS.get(str(stop), ""),
        min(max(seed, 0), 2**31 - 1),
    )


@st.cache_resource(max_entries=64, show_spinner="Searching …")
def _search(
    key: tuple[str, int],
    ids: tuple[int, ...],
    depth: int,
    width: int,
    penalty: float,
    stop: str,
    _subject: Subject,
) -> Beam:
    ends = _ends(_subject, stop)
    return beam_search(_subject.model, ids, depth, width, length_penalty=penalty, stop=ends, shown=width + 2)


def _ends(subject: Subject, stop: str) -> frozenset[int]:
    """The tokens that finish a branch."""
    size = min(subject.tokenizer.vocab_size, subject.config.vocab_size)
    return (
        frozenset(i for i in range(size) if subject.tokenizer.decode([i]).endswith(stop))
        if stop
        else frozenset()
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _rivals(
    key: tuple[str, int], ids: tuple[int, ...], depth: int, stop: str, seed: int, _subject: Subject
) -> list[tuple[tuple[int, ...], float]]:
    """Greedy decoding and a sample from the same prompt as the beam's, up to their first stop."""
    ends, prompt = _ends(_subject, stop), fitting(ids, depth, _subject.config.context)
    free = SampleConfig(temperature=1.0, seed=seed)
    found = [greedy(_subject.model, prompt, depth), sampled(_subject.model, prompt, depth, free)]
    cut = [next((i + 1 for i, token in enumerate(tokens) if token in ends), depth) for tokens, _ in found]
    return [greedy(_subject.model, prompt, cut[0]), sampled(_subject.model, prompt, cut[1], free)]


def _compare(subject: Subject, beam: Beam, width: int, depth: int, stop: str, seed: int) -> None:
    winner = beam.nodes[beam.winner]
    (best, best_total), (drawn, drawn_total) = _rivals(subject.key, subject.ids, depth, stop, seed, subject)
    entries = [
        (f"beam, width {width}", beam.path(beam.winner), winner.total),
        ("greedy (width 1)", best, best_total),
        (f"a sample, temperature 1, seed {seed}", drawn, drawn_total),
    ]
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "found by": name,
                    "it wrote": show_token(subject.tokenizer.decode(list(ids))),
                    "log-probability": total,
                    "per token": total / len(ids),
                    "probability": math.exp(total),
                    "tokens": len(ids),
                }
                for name, ids, total in entries
            ]
        ),
        hide_index=True,
        key="beam_table",
        column_config={
            "log-probability": st.column_config.NumberColumn(format="%.3f"),
            "per token": st.column_config.NumberColumn(format="%.3f"),
            "probability": st.column_config.NumberColumn(format="scientific"),
        },
    )
    ahead = winner.total - best_total
    same = beam.path(beam.winner) == best
    if same:
        why = (
            ", as it must: width 1 is greedy."
            if width == 1
            else ": none of the branches it kept turned out more probable."
        )
        words = f"**Here width {width} finds what greedy decoding finds**{why}"
    elif ahead > 0 and len(beam.path(beam.winner)) < len(best):
        times, lengths = (
            math.exp(min(ahead, 700)),
            f"{len(beam.path(beam.winner))} tokens against {len(best)}",
        )
        words = (
            f"**The beam's text is {times:,.1f} times as probable as the greedy one, and shorter**:"
            f" {lengths}. "
        )
        words += "Each further token makes a text less probable."
    elif ahead > 0:
        times = math.exp(min(ahead, 700))
        words = (
            f"**The beam's text is {times:,.1f} times as probable as the greedy one**: somewhere the"
            " likeliest token led into a less likely text."
        )
    else:
        lengths = f"it is {len(beam.path(beam.winner))} tokens long, the greedy one {len(best)}"
        words = f"**The beam's text has the better score, not the higher probability**: {lengths}."
    text = safe(show_token(subject.tokenizer.decode(list(drawn))))
    explain.takeaway(
        f"{words} The sample, “{text}”, is {math.exp(min(winner.total - drawn_total, 700)):,.0f} times less"
        " probable than the winner. People's own text is not the likeliest either: of good models, a sample"
        " often reads better than the winner (Holtzman et al. 2020). Judge for yourself."
        if winner.total > drawn_total
        else f"{words} This sample is more probable than the winner: a pruned branch can be."
    )
