"""The part "Top-k and top-p": what each keeps where the model is surest, and where it is least sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.errors import ShapeError
from engine.sample import Stage
from pages.output.sampling.position_and_seed import LIKELIEST, staged
from studies.generation.outcome import Cuts, likeliest_ids, surest_and_least_sure
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.axes import token_axis
from ui.figures.labels import LETTER, crowded, plain
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.players.plot import plot

TEXT = content.beside(__file__)
K, P = 10, 0.9  # where a reader begins
MOST = 50
SHADES = {
    "both": ("output", 100),
    "top_k": ("attention", 100),
    "top_p": ("feedforward", 100),
    "neither": ("quiet", 40),
}


def draw(subject: Subject) -> None:
    """Draws both positions side by side, under the two cuts."""
    a, b = st.columns(2, gap="medium")
    k = widgets.slide(TEXT["k"], 1, min(MOST, subject.config.vocab_size), K, "cut_k", container=a)
    p = widgets.slide(TEXT["p"], 0.05, 1.0, P, "cut_p", step=0.05, container=b)
    logits = subject.recording().logits
    try:
        positions = surest_and_least_sure(logits)
    except ShapeError:
        st.warning(TEXT["diverged"])
        return
    if positions[0] == positions[1]:
        st.info(TEXT["one position"])
        return
    sure, unsure = (cut(subject, position, logits[position], k, p) for position in positions)
    said: dict[str, Any] = {
        "at": TEXT["after a token" if subject.config.causal else "at a token"],
        "k": k,
        "p": p,
        "sure": sure.token,
        "unsure": unsure.token,
        "few": sure.left_by_p,
        "many": unsure.left_by_p,
        "few_k": sure.left_by_k,
        "many_k": unsure.left_by_k,
    }
    shown = [(each, likeliest_ids(each.probabilities, LIKELIEST)) for each in (sure, unsure)]
    plot(
        both_cuts(shown, subject.vocabulary, said["at"]),
        key="sampling_two_positions",
        height=330,
        name="top-k-and-top-p",
        alt=TEXT("alt", rows=min(LIKELIEST, subject.config.vocab_size), **said),
        data=pd.concat([_table(each, ids, subject.vocabulary) for each, ids in shown]),
    )
    case = "answer, no difference" if said["few"] == said["many"] else "answer"
    explain.answer(TEXT(case, **said))


def cut(subject: Subject, position: int, logits: np.ndarray, k: int, p: float) -> Cuts:
    """Cuts the model's distribution at a position by top-k and by top-p, each alone, at temperature 1."""

    def kept(config: SampleConfig) -> tuple[Stage, ...]:
        return staged(subject, position, config, logits)

    by_k = kept(SampleConfig(temperature=1.0, top_k=k))
    by_p = kept(SampleConfig(temperature=1.0, top_p=p))
    return Cuts.of(subject.labels[position], by_k, by_p)


def _table(cut: Cuts, ids: np.ndarray, vocabulary: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "after": cut.token,
            "token": [vocabulary[i] for i in ids],
            "id": ids,
            "probability": cut.probabilities[ids],
            "top_k_keeps": cut.top_k[ids],
            "top_p_keeps": cut.top_p[ids],
        }
    )


def both_cuts(
    shown: Sequence[tuple[Cuts, np.ndarray]], vocabulary: Sequence[str], where: content.Filled
) -> go.Figure:
    """Draws the likeliest tokens of two positions as bars; a colour says which of the two cuts keeps one."""
    traces, notes, axes = [], [], {}
    named: set[str] = set()
    highest = 1.05 * max(float(each.probabilities.max()) for each, _ in shown)  # one scale for both
    tall = max(crowded([vocabulary[i] for i in ids]) for _, ids in shown)
    for panel, (each, ids) in enumerate(shown):
        number = "" if panel == 0 else "2"
        tokens = [vocabulary[i] for i in ids]
        left_by = each.left_by(ids)
        for who, (shade, strength) in SHADES.items():
            at = [i for i, name in enumerate(left_by) if name == who]
            if at:
                traces.append(
                    go.Bar(
                        x=np.array(at),
                        y=each.probabilities[ids[at]].astype(np.float32),
                        xaxis=f"x{number}",
                        yaxis=f"y{number}",
                        name=TEXT[f"left by {who}"],
                        legendgroup=who,
                        showlegend=who not in named,
                        marker={"color": colour(shade, strength)},
                        hovertext=[plain(tokens[i]) for i in at],
                        hovertemplate=TEXT("hover", left=TEXT[f"left by {who}"]),
                    )
                )
                named.add(who)
        domain = [0, 0.46] if panel == 0 else [0.54, 1]
        axes[f"xaxis{number}"] = token_axis(tokens, TEXT["axis"], upright=tall > 0) | {
            "domain": domain,
            "anchor": f"y{number}",
        }
        axes[f"yaxis{number}"] = {"range": [0, highest], "anchor": f"x{number}"} | (
            {"title": {"text": TEXT["probability"]}} if panel == 0 else {}
        )
        said = TEXT("kept", at=where, token=plain(each.token), k=each.left_by_k, p=each.left_by_p)
        notes.append(
            go.note(said, domain[0], 1.0, xref="paper", yref="paper", xanchor="left", yanchor="bottom")
        )
    return go.figure(
        traces,
        margin={"l": 48, "r": 8, "t": 64, "b": 44 + LETTER * tall},
        annotations=notes,
        legend={"xref": "container", "yref": "container", "yanchor": "top"},
        bargap=0.2,
        **axes,
    )
