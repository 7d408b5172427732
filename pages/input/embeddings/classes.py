"""Classes of tokens below the map: their separation against chance, over the training, and the cosines that
it is the mean of.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import ModelConfig
from engine.model import Transformer
from pages.input.embeddings.looks import token_rows
from pages.input.embeddings.vocabulary import Vocabulary
from studies.embeddings.separation import (
    Separation,
    SeparationCurve,
    case_cosines,
    separation,
    separation_curve,
)
from studies.embeddings.table import cosines, embedding_of, fresh_embedding
from ui import content, memo
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.models import UNTRAINED
from ui.players.plot import plot
from ui.snapshot_measure import draw_over_snapshots, steps_of

TEXT = content.beside(__file__)
MATRIX_TOKENS = 96  # in the matrix of cosines
MEMBERS = 14  # of a class that are named


def _measure(matrix: np.ndarray, known: Vocabulary) -> Separation:
    shuffles = 100 if len(matrix) <= 1024 else 25
    return separation(matrix, known.names, known.classes, counts=known.counts, shuffles=shuffles)


@memo.measured()
def separation_of(key: tuple[str, int], _matrix: np.ndarray, _known: Vocabulary) -> Separation:
    """Measures the model `key`; cached."""
    return _measure(_matrix, _known)


@memo.measured()
def _at_the_start(model: str, config: ModelConfig, _known: Vocabulary) -> Separation:
    """The same measure of a fresh model of this shape."""
    return _measure(fresh_embedding(config), _known)


def draw_separation(subject: Subject, known: Vocabulary, separation: Separation, matrix: np.ndarray) -> None:
    """Draws the shuffles, the curve over the training, class by class, and the cosines themselves."""
    if not np.isfinite(separation.difference):
        st.info(TEXT["one class"])
        return
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(_against_chance(separation))
        _draw_null(separation)
        count = separation.by_chance.count
        st.caption(TEXT("difference", within=separation.within, across=separation.across, count=count))
    with right:
        if steps := steps_of(subject):
            draw = partial(_draw_curve, shown=subject.key[1], end=steps[-1])
            draw_over_snapshots("classes", subject.key[0], steps, partial(_of_model, known=known), draw)
        elif not subject.key[0].startswith(UNTRAINED):
            start = _at_the_start(subject.key[0], subject.config, known)
            st.markdown(TEXT("fresh", difference=_signed(start.difference)))
        _draw_by_class(known, separation)
    _draw_matrix(known, matrix)


def _signed(value: float) -> content.Filled:
    """Returns a mean cosine; there is none of a class with one token."""
    return TEXT("signed", value=value) if np.isfinite(value) else TEXT["no pair"]


def _against_chance(separation: Separation) -> str:
    """Returns the number against both kinds of shuffles, and the class that stands out most."""
    chance, matched = separation.by_chance, separation.by_frequency
    said = [
        TEXT(
            "some reach" if chance.reached else "none reaches",
            true=_signed(separation.difference),
            reached=chance.reached,
            count=chance.count,
            highest=_signed(chance.highest),
        )
    ]
    if matched is not None:
        explains = "alone" if matched.reached else "less" if chance.reached else "part"
        numbers = {"mean": _signed(matched.mean), "highest": _signed(matched.highest)}
        said.append(TEXT(f"matched {explains}", **numbers))
    if separation.most is not None and not chance.like_chance:
        name, difference = separation.most
        said.append(TEXT("tightest", name=name, difference=_signed(difference)))
    return " ".join(said)


def _risen(curve: SeparationCurve) -> str:
    """Says from which snapshot on the number stays above the bands."""
    if curve.risen is None:
        return TEXT["risen never"]
    return TEXT("risen always" if curve.risen == curve.steps[0] else "risen from", step=curve.risen)


def cosine_caption(known: Vocabulary, drawn: int, pairs: int, cosines: tuple[float, float]) -> str:
    """Says how to read the matrix of `drawn` tokens; `cosines` are those of a token with its own capital, and
    with another's, over `pairs`.
    """
    said = [TEXT["squares"]]
    if pairs > 1:
        same, another = map(_signed, cosines)
        said.append(TEXT("capitals", same=same, another=another, pairs=pairs))
    if drawn < len(known.met):
        which = "drawn frequent" if known.counts is not None else "drawn first"
        said.append(TEXT(which, drawn=drawn, met=len(known.met)))
    return " ".join(said)


def _of_model(model: Transformer, known: Vocabulary) -> Separation:
    return _measure(embedding_of(model), known)


def _draw_null(separation: Separation) -> None:
    scores = {
        "true": np.array([separation.difference]),
        "shuffled": separation.chance,
        "like_frequency": separation.matched,
    }
    tables = [
        pd.DataFrame({"labels": name, "within_minus_across": values})
        for name, values in scores.items()
        if values is not None
    ]
    plot(
        null_histogram(separation.difference, separation.chance, separation.matched),
        key="embed_null",
        height=330,
        name="class-separation",
        data=pd.concat(tables),
        alt=TEXT["alt shuffles"],
    )


def _draw_curve(points: dict[int, Separation], shown: int, end: int) -> None:
    curve = separation_curve(points)
    columns = {
        "step": curve.steps,
        "within_minus_across": curve.differences,
        "shuffled_low": curve.chance[:, 0],
        "shuffled_high": curve.chance[:, 1],
    }
    if curve.matched is not None:
        columns |= {"like_frequency_low": curve.matched[:, 0], "like_frequency_high": curve.matched[:, 1]}
    plot(
        emergence(np.asarray(curve.steps), curve.differences, curve.chance, curve.matched, shown, float(end)),
        key="embed_course",
        height=300,
        name="class-separation-over-training",
        data=pd.DataFrame(columns),
        alt=TEXT["alt curve"],
    )
    st.caption(f"{TEXT['bands']} {_risen(curve)}")


def _draw_by_class(known: Vocabulary, separation: Separation) -> None:
    rows = []
    for name, part in separation.by_class.items():
        members = known.members(name)
        more = " …" if len(members) > MEMBERS else ""
        rows.append(
            {
                TEXT["column class"]: name,
                TEXT["column tokens"]: part.tokens,
                TEXT["column within"]: _signed(part.within),
                TEXT["column across"]: _signed(part.across),
                TEXT["column difference"]: _signed(part.difference),
                TEXT["column members"]: " ".join(known.words[i] for i in members[:MEMBERS]) + more,
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="embed_classes")
    st.caption(TEXT["by class"])


def _draw_matrix(known: Vocabulary, matrix: np.ndarray) -> None:
    met = known.met
    ids = known.drawn(MATRIX_TOKENS)
    ids = ids[np.argsort(known.classes[ids], kind="stable")]
    kinds, starts = np.unique(known.classes[ids], return_index=True)
    names = [known.words[i] for i in ids]
    values = cosines(matrix[met], np.searchsorted(met, ids))
    with st.container(key="embed_cosines_box"):
        scrolled("embed_cosines_box", 600)
        plot(
            cosine_map(values, names, [*starts.tolist(), len(ids)], [known.names[k] for k in kinds]),
            key="embed_cosines",
            height=690,
            name="cosines-by-class",
            data=pd.DataFrame(values, columns=names).assign(token=names),
            alt=TEXT["alt cosines"],
        )
    pairs = known.paired()
    st.caption(cosine_caption(known, len(ids), len(pairs), case_cosines(matrix[met], pairs)))


# Figures ------------------------------------------------------------------------------------------


def emergence(
    steps: np.ndarray,
    values: np.ndarray,
    chance: np.ndarray,
    matched: np.ndarray | None,
    here: int | None,
    end: float | None,
) -> go.Figure:
    """Draws `values` (step,); `chance` and `matched` (step, 2): the middle 95% of the shuffles. One step is
    drawn as a point with its bands.
    """
    traces: list[dict[str, Any]] = []
    bands = [(TEXT["shuffled"], chance.T, "quiet")] + (
        [(TEXT["shuffled alike"], matched.T, "run2")] if matched is not None else []
    )
    for name, edges, shade in bands:
        rim = {"color": colour(shade), "width": 1}
        traces.append(go.band(steps, edges[0], edges[1], shade, 30, name=name, line=rim))
    traces.append(
        go.Scatter(
            mode="lines+markers",
            x=steps,
            y=values.astype(np.float32),
            name=TEXT["true"],
            marker={"size": 7},
            line={"color": colour("embedding"), "width": 3},
            hovertemplate=TEXT["hover step"],
        )
    )
    line = go.rule(x=here, line={"color": colour("attention"), "width": 1.5, "dash": "dash"})
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 48, "b": 44},
        shapes=[line] if here is not None else [],
        xaxis=go.axis(TEXT["step"]) | ({"range": [-0.02 * end, 1.02 * end]} if end else {}),
        yaxis=go.axis(
            TEXT["score"],
            showgrid=True,
            exponentformat="power",
            zeroline=True,
            zerolinecolor=colour("quiet"),
        ),
    )


def null_histogram(value: float, chance: np.ndarray, matched: np.ndarray | None) -> go.Figure:
    """Draws where the true classes lie among shuffled ones: one point for each shuffle, in rows."""
    rows = [(TEXT["shuffled"], chance, "quiet")] + (
        [(TEXT["shuffled within"], matched, "run2")] if matched is not None else []
    )
    traces: list[dict[str, Any]] = []
    for index, (name, values, shade) in enumerate(rows):
        wobble = ((np.arange(len(values)) * 0.618) % 1 - 0.5) * 0.5  # spread out, the same every time
        traces.append(
            go.Scatter(
                mode="markers",
                x=values.astype(np.float32),
                y=index + wobble,
                name=name,
                marker={"size": 6, "color": colour(shade, 60)},
                hovertemplate=TEXT("hover shuffle", name=name),
            )
        )
    traces.append(
        go.Scatter(
            mode="markers",
            x=[value],
            y=[len(rows)],
            name=TEXT["true"],
            marker={"size": 14, "symbol": "diamond", "color": colour("embedding")},
            hovertemplate=TEXT("hover shuffle", name=TEXT["true"]),
        )
    )
    words = [name for name, _, _ in rows] + [TEXT["true"]]
    return go.figure(
        traces,
        margin={"l": 8, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        xaxis=go.axis(
            TEXT["score axis"],
            showgrid=True,
            exponentformat="power",
            zeroline=True,
            zerolinecolor=colour("quiet"),
        ),
        yaxis=go.ticks(list(range(len(words))), words, range=[-0.6, len(words) - 0.4]),
    )


def cosine_map(
    values: np.ndarray, words: Sequence[str], borders: Sequence[int], names: Sequence[str]
) -> go.Figure:
    """Draws cosines (token, token), sorted by class; lines where a class ends. The diagonal is left blank: it
    is 1 by definition.
    """
    shown = values.astype(np.float32).copy()
    np.fill_diagonal(shown, np.nan)
    heat = go.signed(
        shown,
        hovertemplate=TEXT["hover pair"],
        colorbar=go.scale(TEXT["cosine"]),
    )
    line = {"type": "line", "line": {"color": colour("residual"), "width": 1.2}}
    ends = [-0.5, len(words) - 0.5]
    shapes: list[dict[str, Any]] = []
    for border in borders[1:-1]:
        at = border - 0.5
        shapes += [
            line | {"x0": at, "x1": at, "y0": ends[0], "y1": ends[1]},
            line | {"y0": at, "y1": at, "x0": ends[0], "x1": ends[1]},
        ]
    middle = [(a + b - 1) / 2 for a, b in itertools.pairwise(borders)]
    notes = [
        go.note(
            name, x, 1.0, yref="paper", yanchor="bottom", textangle=-30, font={"size": 12}, xanchor="left"
        )
        for x, name in zip(middle, names, strict=True)
    ]
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 76, "b": 8},
        showlegend=False,
        shapes=shapes,
        annotations=notes,
        xaxis=token_rows(words) | {"range": ends},
        yaxis=token_rows(words),
    )
