"""The view "Do alike tokens find each other?": one number, against chance, over the training; and the cosines
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
from pages.input.embeddings import classes_figures as figures
from pages.input.embeddings import words
from pages.input.embeddings.shared import Vocabulary, matrix_of, vocabulary_of
from ui import explain
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.models import UNTRAINED
from ui.players.plot import plot
from ui.snapshot_measure import draw_over_snapshots, steps_of

MATRIX_TOKENS = 96  # in the matrix of cosines
MEMBERS = 14  # of a class that are named


def _shuffles(vocab_size: int) -> int:
    return 100 if vocab_size <= 1024 else 25


def _measure(matrix: np.ndarray, known: Vocabulary) -> Separation:
    return separation(
        matrix, known.names, known.classes, counts=known.counts, shuffles=_shuffles(len(matrix))
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _separation(key: tuple[str, int], vocab_size: int, _matrix: np.ndarray, _known: Vocabulary) -> Separation:
    return _measure(_matrix, _known)


@st.cache_resource(max_entries=16, show_spinner=False)
def _at_the_start(model: str, config: ModelConfig, _known: Vocabulary) -> Separation:
    """The same measure of a fresh model of this shape."""
    return _measure(fresh_embedding(config), _known)


def draw_classes(subject: Subject) -> None:
    """Draws the number, and where it lies among shuffles."""
    matrix = matrix_of(subject)
    if not np.isfinite(matrix).all():
        st.info(words.NOT_FINITE)
        return
    known = vocabulary_of(subject)
    separation = _separation(subject.key, len(matrix), matrix, known)
    if not np.isfinite(separation.difference):
        st.info(
            "All tokens that occur belong to one class, or each to a class of its own: there are no two kinds"
            " of pairs to compare."
        )
        return
    explain.answer(words.separated(separation))
    _draw_null(separation)
    explain.measure_it(_measured, subject, known, separation, matrix)


def _measured(subject: Subject, known: Vocabulary, separation: Separation, matrix: np.ndarray) -> None:
    """The curve over the training, class by class, and the cosines themselves."""
    steps = steps_of(subject)
    st.markdown(words.shuffled(separation))
    st.caption(words.difference(separation))
    if steps:
        st.markdown("**Over the training**")
        draw = partial(_draw_course, shown=subject.key[1], end=steps[-1])
        draw_over_snapshots("classes", subject.key[0], steps, partial(_of_model, known=known), draw)
    else:
        _draw_start(subject, known, separation)
    _draw_by_class(known, separation)
    _draw_matrix(known, matrix)


def _of_model(model: Transformer, known: Vocabulary) -> Separation:
    return _measure(embedding_of(model), known)


def _draw_null(separation: Separation) -> None:
    table = pd.concat(
        [
            pd.DataFrame({"labels": name, "within_minus_across": values})
            for name, values in (
                ("true", np.array([separation.difference])),
                ("shuffled", separation.chance),
                ("like_frequency", separation.matched),
            )
            if values is not None
        ]
    )
    plot(
        figures.null_histogram(separation.difference, separation.chance, separation.matched),
        key="embed_null",
        height=330,
        name="class-separation",
        data=table,
        alt=(
            "Dots: within minus across for shuffled labels, one dot for each shuffle; diamond: for the true"
            " classes."
        ),
    )


def _draw_start(subject: Subject, known: Vocabulary, separation: Separation) -> None:
    if subject.key[0].startswith(UNTRAINED):
        st.markdown("**Before the first step**")
        st.markdown(
            "This model has learned nothing: its rows are random numbers, and tokens of one class are no more"
            " alike than any others. Train a model on the Train page, and choose it here: the scrubber then"
            " shows when the classes appear."
        )
        return
    start = _at_the_start(subject.key[0], subject.config, known)
    st.markdown("**Before the training, and after**")
    st.table(
        pd.DataFrame(
            {"a fresh model of this shape": _column(start), "this model": _column(separation)},
            index=[
                "within a class",
                "across classes",
                "within − across",
                "97.5% of shuffles are below",
                "... of like frequency",
            ],
        )
    )
    st.caption(
        "This model has no snapshots on the way. Train one on the Train page to see the curve over the steps."
    )


def _column(separation: Separation) -> list[str]:
    matched = separation.by_frequency
    numbers = (separation.within, separation.across, separation.difference, separation.by_chance.high)
    return [
        *map(words.signed, numbers),
        "not known" if matched is None else words.signed(matched.high),
    ]


def _draw_course(points: dict[int, Separation], shown: int, end: int) -> None:
    found = separation_curve(points)
    table = pd.DataFrame(
        {
            "step": found.steps,
            "within_minus_across": found.differences,
            "shuffled_low": found.chance[:, 0],
            "shuffled_high": found.chance[:, 1],
        }
    )
    if found.matched is not None:
        table = table.assign(like_frequency_low=found.matched[:, 0], like_frequency_high=found.matched[:, 1])
    plot(
        figures.emergence(
            np.asarray(found.steps), found.differences, found.chance, found.matched, shown, float(end)
        ),
        key="embed_course",
        height=300,
        name="class-separation-over-training",
        data=table,
        alt=(
            "Line: within minus across at each snapshot; bands: the middle 95% of shuffled labels; the dashed"
            " line marks the step that is shown."
        ),
    )
    st.caption(f"Bands: the middle 95% of the shuffles. {words.risen(found)}")


def _draw_by_class(known: Vocabulary, separation: Separation) -> None:
    rows = []
    for name, one in separation.by_class.items():
        members = known.members(name)
        rows.append(
            {
                "class": name,
                "tokens": one.tokens,
                "within": words.signed(one.within),
                "to the others": words.signed(one.across),
                "difference": words.signed(one.difference),
                "its tokens": (
                    " ".join(known.words[i] for i in members[:MEMBERS])
                    + (" …" if len(members) > MEMBERS else "")
                ),
            }
        )
    st.markdown("**Class by class**")
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="embed_classes")
    st.caption(
        "Mean cosine of the rows, the mean row taken off. A class of one token has no pair within."
        f" {words.left_out(known)}".rstrip()
    )


def _draw_matrix(known: Vocabulary, matrix: np.ndarray) -> None:
    met = known.met
    ids = known.drawn(MATRIX_TOKENS)
    ids = ids[np.argsort(known.classes[ids], kind="stable")]
    kinds, starts = np.unique(known.classes[ids], return_index=True)
    names = [known.words[i] for i in ids]
    values = cosines(matrix[met], np.searchsorted(met, ids))
    st.markdown("**Every token with every other, sorted by class**")
    with st.container(key="embed_cosines_box"):
        scrolled("embed_cosines_box", 600)
        plot(
            figures.cosine_map(values, names, [*starts.tolist(), len(ids)], [known.names[k] for k in kinds]),
            key="embed_cosines",
            height=690,
            name="cosines-by-class",
            data=pd.DataFrame(values, columns=names).assign(token=names),
            alt=(
                "Heatmap of the cosine between every two tokens, sorted by class: where a class has found"
                " itself, its square on the diagonal is orange."
            ),
        )
    some = (
        f" The {len(ids)} {'most frequent' if known.counts is not None else 'first'} of {len(met):,} tokens."
        if len(ids) < len(met)
        else ""
    )
    pairs = known.paired()
    own, other = case_cosines(matrix[met], pairs)
    case = (
        ""
        if len(pairs) < 2
        else (
            f" A token and its own capital (“a”, “A”): mean cosine {words.signed(own)} over {len(pairs)}"
            f" pairs; with another's capital: {words.signed(other)}."
        )
    )
    st.caption(
        f"Orange: alike; blue: opposed. A square on the diagonal is one class among itself.{case}{some}"
    )
