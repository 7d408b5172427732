"""Classes of tokens below the map: their separation against chance, over the training, and the cosines that
it is the mean of.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import ModelConfig
from engine.measure.embeddings.separation import Separation, case_cosines, separation, separation_curve
from engine.measure.embeddings.table import cosines, embedding_of, fresh_embedding
from engine.model import Transformer
from pages.input.embeddings import figures_classes as figures
from pages.input.embeddings import words
from pages.input.embeddings.shared import Vocabulary
from ui import memo
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.models import UNTRAINED
from ui.players.plot import plot
from ui.snapshot_measure import draw_over_snapshots, steps_of

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
        st.info(words.ONE_CLASS)
        return
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(words.shuffled(separation))
        _draw_null(separation)
        st.caption(words.difference(separation))
    with right:
        if steps := steps_of(subject):
            draw = partial(_draw_curve, shown=subject.key[1], end=steps[-1])
            draw_over_snapshots("classes", subject.key[0], steps, partial(_of_model, known=known), draw)
        elif not subject.key[0].startswith(UNTRAINED):
            st.markdown(words.fresh(_at_the_start(subject.key[0], subject.config, known)))
        _draw_by_class(known, separation)
    _draw_matrix(known, matrix)


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
        figures.null_histogram(separation.difference, separation.chance, separation.matched),
        key="embed_null",
        height=330,
        name="class-separation",
        data=pd.concat(tables),
        alt=words.ALT_SHUFFLES,
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
        figures.emergence(
            np.asarray(curve.steps), curve.differences, curve.chance, curve.matched, shown, float(end)
        ),
        key="embed_course",
        height=300,
        name="class-separation-over-training",
        data=pd.DataFrame(columns),
        alt=words.ALT_CURVE,
    )
    st.caption(words.risen(curve))


def _draw_by_class(known: Vocabulary, separation: Separation) -> None:
    rows = []
    for name, part in separation.by_class.items():
        members = known.members(name)
        more = " …" if len(members) > MEMBERS else ""
        rows.append(
            {
                "class": name,
                "tokens": part.tokens,
                "within": words.signed(part.within),
                "across classes": words.signed(part.across),
                "difference": words.signed(part.difference),
                "its tokens": " ".join(known.words[i] for i in members[:MEMBERS]) + more,
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="embed_classes")
    st.caption(words.BY_CLASS)


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
            figures.cosine_map(values, names, [*starts.tolist(), len(ids)], [known.names[k] for k in kinds]),
            key="embed_cosines",
            height=690,
            name="cosines-by-class",
            data=pd.DataFrame(values, columns=names).assign(token=names),
            alt=words.ALT_COSINES,
        )
    pairs = known.paired()
    st.caption(words.cosine_map(known, len(ids), len(pairs), case_cosines(matrix[met], pairs)))
