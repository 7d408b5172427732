"""The view "Do alike tokens find each other?": one number, against chance, over the training; and the cosines
it is the mean of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import ModelConfig
from engine.measure.embeddings import Separation, case_cosines, cosines, embedding_of, separation
from engine.model import Transformer, build
from pages.input.embeddings import figures
from pages.input.embeddings.shared import Vocabulary, matrix_of, vocabulary_of
from ui import explain
from ui.course import course, steps_of
from ui.layout import scrolled
from ui.players.plot import plot
from ui.subject import UNTRAINED, Subject
from ui.text.markdown import safe
from ui.text.numbers import minus

MATRIX_TOKENS = 96  # in the matrix of cosines


@dataclass(frozen=True, eq=False)
class _Point:
    """What the curve needs of one snapshot."""

    difference: float
    chance: tuple[float, float] = field(repr=False)  # the middle 95% of the shuffles
    matched: tuple[float, float] | None = field(repr=False)


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
    return _measure(embedding_of(build(config)), _known)


def draw_classes(subject: Subject) -> None:
    """The number and where it lies among shuffles, its course over the training, class by class, and the
    cosines themselves.
    """
    known, matrix, steps = vocabulary_of(subject), matrix_of(subject), steps_of(subject)
    found = _separation(subject.key, len(matrix), matrix, known)
    if not np.isfinite(found.difference):
        st.info(
            "All tokens that occur belong to one class, or each to a class of its own: there are no two kinds"
            " of pairs to compare."
        )
        return
    left, right = st.columns([2, 3] if steps else [1, 1], gap="medium")
    with left:
        _draw_null(found)
    with right:
        if steps:
            st.markdown("**Over the training**")
            measure = partial(_point, known=known)
            course(
                "classes",
                subject.key[0],
                steps,
                measure,
                partial(_draw_course, shown=subject.key[1], end=steps[-1]),
            )
        else:
            _draw_start(subject, known, found)
    _draw_by_class(known, found)
    _draw_matrix(known, matrix)
    explain.takeaway(_summary(subject, known, found))


def _draw_null(found: Separation) -> None:
    st.markdown(f"**Within − across: {found.difference:+.3f}**")
    table = pd.concat(
        [
            pd.DataFrame({"labels": name, "within_minus_across": values})
            for name, values in (
                ("true", np.array([found.difference])),
                ("shuffled", found.chance),
                ("like_frequency", found.matched),
            )
            if values is not None
        ]
    )
    plot(
        figures.null_histogram(found.difference, found.chance, found.matched),
        key="embed_null",
        height=300,
        name="class-separation",
        data=table,
        alt=(
            "Dots: within minus across for shuffled labels, one dot for each shuffle; diamond: for the true"
            " classes."
        ),
    )
    st.caption(
        f"${found.within:+.4f}$ (mean cosine of two tokens of one class) minus ${found.across:+.4f}$ (of"
        f" different classes). A dot is one of {len(found.chance)} shuffles of the labels."
    )


def _draw_start(subject: Subject, known: Vocabulary, found: Separation) -> None:
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
    rows = {"a fresh model of this shape": start, "this model": found}
    st.table(
        pd.DataFrame(
            {
                name: [
                    *map(_number, (s.within, s.across, s.difference, float(np.quantile(s.chance, 0.975)))),
                    "not known" if s.matched is None else _number(float(np.quantile(s.matched, 0.975))),
                ]
                for name, s in rows.items()
            },
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


def _draw_course(points: dict[int, _Point], shown: int, end: int) -> None:
    there = list(points)
    chance = np.array([p.chance for p in points.values()])
    known = [p.matched for p in points.values() if p.matched is not None]
    matched = np.array(known) if len(known) == len(there) else None
    values = np.array([p.difference for p in points.values()])
    table = pd.DataFrame(
        {
            "step": there,
            "within_minus_across": values,
            "shuffled_low": chance[:, 0],
            "shuffled_high": chance[:, 1],
        }
    )
    if matched is not None:
        table = table.assign(like_frequency_low=matched[:, 0], like_frequency_high=matched[:, 1])
    plot(
        figures.emergence(np.asarray(there), values, chance, matched, shown, float(end)),
        key="embed_course",
        height=300,
        name="class-separation-over-training",
        data=table,
        alt=(
            "Line: within minus across at each snapshot; bands: the middle 95% of shuffled labels; the dashed"
            " line marks the step that is shown."
        ),
    )
    above = _risen(
        there, values, chance[:, 1] if matched is None else np.maximum(chance[:, 1], matched[:, 1])
    )
    st.caption(f"Bands: the middle 95% of the shuffles. {above}")


def _risen(steps: Sequence[int], values: np.ndarray, tops: np.ndarray) -> str:
    """From which snapshot on the number stays above the bands."""
    over = values > tops
    if not over[-1]:
        return "At the newest step measured, the classes do not stand out from the bands."
    last_under = int(np.flatnonzero(~over)[-1]) if (~over).any() else -1
    if last_under < 0:
        return "The classes are above the bands at every step measured."
    return f"The classes stay above the bands from step {steps[last_under + 1]:,} on."


def _point(model: Transformer, known: Vocabulary) -> _Point:
    found = _measure(embedding_of(model), known)
    return _Point(
        found.difference, _middle(found.chance), None if found.matched is None else _middle(found.matched)
    )


def _middle(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _draw_by_class(known: Vocabulary, found: Separation) -> None:
    rows: list[dict[str, Any]] = []
    for name, (size, within, across) in found.by_class.items():
        members = np.flatnonzero(known.classes == known.names.index(name))
        if known.counts is not None:
            members = members[known.counts[members] > 0]
            members = members[np.argsort(-known.counts[members], kind="stable")]
        rows.append(
            {
                "class": name,
                "tokens": size,
                "within": _number(within),
                "to the others": _number(across),
                "difference": _number(within - across),
                "its tokens": (
                    " ".join(known.words[i] for i in members[:14]) + (" …" if len(members) > 14 else "")
                ),
            }
        )
    st.markdown("**Class by class**")
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch")
    st.caption(
        "Mean cosine of the rows, the mean row taken off. A class of one token has no pair"
        f" within.{known.left_out}"
    )


def _number(value: float) -> str:
    return minus(f"{value:+.3f}") if np.isfinite(value) else "no pair"


def _draw_matrix(known: Vocabulary, matrix: np.ndarray) -> None:
    ids = known.drawn(MATRIX_TOKENS)
    ids = ids[np.argsort(known.classes[ids], kind="stable")]
    kinds, starts = np.unique(known.classes[ids], return_index=True)
    words = [known.words[i] for i in ids]
    met = known.met
    values = cosines(matrix[met], np.searchsorted(met, ids))
    st.markdown("**Every token with every other, sorted by class**")
    with st.container(key="embed_cosines_box"):
        scrolled("embed_cosines_box", 600)
        plot(
            figures.cosine_map(values, words, [*starts.tolist(), len(ids)], [known.names[k] for k in kinds]),
            key="embed_cosines",
            height=690,
            name="cosines-by-class",
            data=pd.DataFrame(values, columns=words).assign(token=words),
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
    cases = known.cases[np.isin(known.cases, met).all(1)]
    own, other = case_cosines(matrix[met], np.searchsorted(met, cases))
    pairs = len(cases)
    case = (
        ""
        if pairs < 2
        else (
            f" A token and its own capital (“a”, “A”): mean cosine {_number(own)} over {pairs} pairs; with"
            f" another's capital: {_number(other)}."
        )
    )
    st.caption(
        f"Orange: alike; blue: opposed. A square on the diagonal is one class among itself.{case}{some}"
    )


def _summary(subject: Subject, known: Vocabulary, found: Separation) -> str:
    beyond = int((found.chance >= found.difference).sum())
    how_many, reach = "none" if beyond == 0 else str(beyond), "reaches" if beyond < 2 else "reach"
    first = (
        f"**The true classes score {found.difference:+.3f}; {how_many} of {len(found.chance)} shuffles"
        f" {reach} that** (the highest: {found.chance.max():+.3f})."
    )
    if beyond > 0.05 * len(found.chance):
        first += " That is what chance gives: no claim about classes can be made of this model."
    second = ""
    if found.matched is not None:
        over = int((found.matched >= found.difference).sum())
        second = (
            f" Labels shuffled among tokens of like frequency score {found.matched.mean():+.3f} on average"
            f" (highest {found.matched.max():+.3f}): "
            + (
                "so much would be frequency alone, and the rest is more than that."
                if over == 0 and beyond == 0
                else "frequency alone can give as much."
                if over
                else ""
            )
        )
    best = max(
        ((v[1] - v[2], name) for name, v in found.by_class.items() if v[0] > 2 and np.isfinite(v[1] - v[2])),
        default=None,
    )  # one pair tells little
    third = (
        ""
        if best is None or beyond > 0.05 * len(found.chance)
        else (
            f" Most of one kind, among classes of more than two tokens: **{safe(best[1])}**, {best[0]:+.3f}."
        )
    )
    return first + second + third
