"""The part "Q and K" of "Scores": why raw similarity looks at itself, and how Q and K take that away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CheckpointError
from engine.slices import seed_median
from studies.experiments.lab_races import rung_losses
from studies.tasks.ladder import KINDS, WIDTHS, SelfTerm, self_term
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.axes import symmetric
from ui.figures.labels import plain
from ui.figures.theme import DIVERGING, SEQUENTIAL
from ui.fit_text import show_token
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
READ = "First Citizen:"
HEIGHT = 360
SEEDS = 6
GAP = 0.05  # of the figure's width, between two squares
TRAINED = ("last", "similarity", "two-matrices", "attention-1")  # rungs, with 64 numbers


def draw(line: DeltaGenerator) -> None:
    """Draws three squares, one for each rung: scores or weights before any training."""
    with line:
        d_model = widgets.slide_over(TEXT["width"], WIDTHS, 256, "attention_width", width=260)
        kinds = {"weights": TEXT["weights"], "scores": TEXT["scores"]}
        shown = widgets.select(TEXT["show"], kinds, "attention_self_shown")
        seed = widgets.slide(TEXT["seed"], 0, SEEDS - 1, 0, "attention_self_seed", width=200)
    terms = _measured(d_model, seed)
    arrays = [term.weights if shown == "weights" else term.scores for term in terms]
    scores = ", ".join(
        TEXT("alt of one", rung=_rung(term), own=term.self_score, weight=term.self_weight) for term in terms
    )
    plot(
        three(arrays, terms, [show_token(letter) for letter in READ], shown == "scores"),
        key="attention_self",
        height=HEIGHT,
        alt=TEXT("alt", width=d_model, scores=scores),
        data=pd.DataFrame({_rung(term): np.diag(array) for term, array in zip(terms, arrays, strict=True)}),
        name="self-term",
    )
    raw, _, two = terms
    explain.answer(
        TEXT(
            "answer",
            weight=raw.self_weight,
            own=raw.self_score,
            others=raw.other_score,
            apart=two.self_weight,
        )
    )
    explain.measure_it(_measured_more, seed)
    explain.by_hand(st.markdown, TEXT["by hand"])


def _rung(term: SelfTerm) -> str:
    return TEXT[f"rung {term.kind}"]


@memo.measured(copied=True)
def _measured(d_model: int, seed: int) -> tuple[SelfTerm, ...]:
    ids = CharTokenizer.train(READ).encode(READ)
    return tuple(self_term(kind, d_model, ids, seed) for kind in KINDS)


def three(
    arrays: Sequence[np.ndarray], terms: Sequence[SelfTerm], labels: Sequence[str], signed: bool
) -> go.Figure:
    """Draws arrays (query, key): weights in [0, 1], or scores, whose scale is one for all."""
    width = (1 - GAP * (len(arrays) - 1)) / len(arrays)
    end = max(symmetric(each) for each in arrays) if signed else 1.0
    ticks = {"tickvals": list(range(len(labels))), "ticktext": [plain(label) for label in labels]}
    axes, traces, headings = {}, [], []
    for n, (array, each) in enumerate(zip(arrays, terms, strict=True)):
        axis = "" if n == 0 else str(n + 1)
        left = n * (width + GAP)
        axes[f"xaxis{axis}"] = dict(domain=[left, left + width], anchor=f"y{axis}", showgrid=False) | ticks
        axes[f"yaxis{axis}"] = {
            "anchor": f"x{axis}",
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
            "showticklabels": n == 0,
        } | ticks
        traces.append(
            go.Heatmap(
                z=np.asarray(array, np.float32),
                xaxis=f"x{axis}",
                yaxis=f"y{axis}",
                colorscale=DIVERGING if signed else SEQUENTIAL,
                zmin=-end if signed else 0,
                zmax=end,
                showscale=False,
                hovertemplate="%{z:.2f}<extra></extra>",
            )
        )
        title = TEXT("title", rung=_rung(each), weight=each.self_weight)
        headings.append(go.heading(f"<b>{title}</b>", left + width / 2, xanchor="center"))
    margin = {"l": 40, "r": 8, "t": 34, "b": 36}
    return go.figure(traces, margin=margin, showlegend=False, annotations=headings, **axes)


def _measured_more(seed: int) -> None:
    """The same at every width, and what the trained rungs made of it."""
    if trained := _trained():
        st.markdown(trained)
    rows = [each for d_model in WIDTHS for each in _measured(d_model, seed)]
    st.table(
        pd.DataFrame(
            {
                TEXT["column width"]: [each.d_model for each in rows],
                TEXT["column rung"]: [_rung(each) for each in rows],
                TEXT["column own"]: [f"{each.self_score:.2f}" for each in rows],
                TEXT["column root"]: [f"{each.root:g}" for each in rows],
                TEXT["column others"]: [f"{each.other_score:.2f}" for each in rows],
                TEXT["column kept"]: [f"{each.self_weight:.0%}" for each in rows],
            }
        ).set_index(TEXT["column width"]),
        border="horizontal",
    )
    st.caption(TEXT["measured"])


def _trained() -> str:
    """Says what the trained rungs of the ladder made of that, medians over seeds; nothing where their file is
    missing, broken or not whole.
    """
    try:
        losses = {name: seed_median(over) for name, over in rung_losses().items()}
    except CheckpointError:
        return ""
    if any(name not in losses for name in TRAINED):
        return ""
    last, similar, apart, residual = (losses[name] for name in TRAINED)
    return TEXT("trained", last=last, similar=similar, apart=apart, residual=residual)


PART = View("self", TEXT, draw, code=(self_term,))
