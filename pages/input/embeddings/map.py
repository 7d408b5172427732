"""The view "The map": principal components of the token embedding, and the neighbours of one token."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import GlassformerError
from engine.measure.embeddings import (
    Principal,
    aligned,
    correlation,
    embedding_of,
    kept_neighbours,
    neighbours,
    principal,
    project,
)
from pages.input.embeddings import figures
from pages.input.embeddings.cloud import cloud
from pages.input.embeddings.shared import (
    MAP,
    NAMED,
    NEAR,
    Vocabulary,
    choose_token,
    matrix_of,
    pick,
    vocabulary_of,
)
from ui import explain, state
from ui.course import steps_of
from ui.players.plot import plot
from ui.subject import RUN, Subject
from ui.text.markdown import safe
from ui.text.numbers import minus

COLOURS = ["class", "frequency"]
AXES = ["of the newest step", "of this step"]
PICTURES = ["2-D", "3-D"]
NEIGHBOURS, JOINED = 10, 6
COMPONENTS = 10  # whose shares are drawn
OVERLAP_UP_TO = 600  # tokens: above, how well the picture keeps neighbours is told for the chosen token only


@dataclass(frozen=True, eq=False)
class _Map:
    """`scores` (vocab, 3) on axes that keep `kept` (3,) of this step's variance; `own` are this step's own
    axes. Both are of the tokens that were met.
    """

    scores: np.ndarray = field(repr=False)
    kept: np.ndarray
    own: Principal
    ranges: tuple[tuple[float, float], ...]
    reach: float  # of the outermost token from the mean, on three axes
    overlap: (
        tuple[float, float] | None
    )  # mean number of the JOINED nearest that the picture keeps near, in 2-D and in 3-D


@dataclass(frozen=True, eq=False)
class _Newest:
    found: Principal
    low: np.ndarray
    high: np.ndarray
    reach: float


@st.cache_resource(max_entries=64, show_spinner=False)
def _newest(run: str, step: int, _met: np.ndarray) -> _Newest | None:
    """The axes of a run's newest snapshot, and how far its tokens reach on them; None when that has just
    gone.
    """
    try:
        matrix = embedding_of(state.manager().model(run, step).model)
    except GlassformerError:
        return None
    found = principal(matrix[_met])
    scores, _ = project(matrix[_met], found.axes)
    return _Newest(found, scores.min(0), scores.max(0), float(np.linalg.norm(scores, axis=1).max()))


@st.cache_resource(max_entries=64, show_spinner=False)
def _map(
    key: tuple[str, int], newest_step: int, own_axes: bool, _matrix: np.ndarray, _met: np.ndarray
) -> _Map:
    seen = _matrix[_met]
    own = principal(seen)
    newest = _newest(key[0].removeprefix(RUN), newest_step, _met) if newest_step >= 0 else None
    if newest is not None:
        own = aligned(own, newest.found)
    axes = own.axes if own_axes or newest is None else newest.found.axes
    scores, kept = project(seen, axes)
    low, high, reach = scores.min(0), scores.max(0), float(np.linalg.norm(scores, axis=1).max())
    if (
        newest is not None
    ):  # a scale that holds still while the scrubber moves, so that growing is seen as growing
        low, high, reach = (
            np.minimum(low, newest.low),
            np.maximum(high, newest.high),
            max(reach, newest.reach),
        )
    pad = 0.08 * np.maximum(high - low, 1e-6)
    ranges = tuple((float(a), float(b)) for a, b in zip(low - pad, high + pad, strict=True))
    overlap = None
    if len(seen) <= OVERLAP_UP_TO:
        overlap = (
            float(kept_neighbours(seen, scores[:, :2], JOINED).mean()),
            float(kept_neighbours(seen, scores, JOINED).mean()),
        )
    every = ((_matrix - seen.mean(0, dtype=np.float64)) @ axes.T).astype(
        np.float32
    )  # a token that was never met has its place too, if it is chosen
    return _Map(every, kept, own, ranges, reach or 1.0, overlap)


@st.cache_resource(max_entries=256, show_spinner=False)
def _neighbours(
    key: tuple[str, int], token: int, _matrix: np.ndarray, _met: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    rows = np.union1d(_met, token)
    near, cosine = neighbours(_matrix[rows], int(np.searchsorted(rows, token)), NEIGHBOURS)
    return rows[near], cosine


@st.cache_data(max_entries=16, show_spinner=False)
def _random_shares(rows: int, width: int) -> np.ndarray:
    """Shares of the variance of a cloud of normal random numbers of the same shape: what is nothing but
    chance.
    """
    return principal(np.random.default_rng(0).standard_normal((rows, width))).shares


def draw_map(subject: Subject) -> None:
    """The controls, the picture beside the list of neighbours, and how much the picture can be trusted."""
    known, matrix, steps = vocabulary_of(subject), matrix_of(subject), steps_of(subject)
    first, second, third, fourth = st.columns([31, 25, 35, 58], gap="small")
    with first:
        token = choose_token(subject, known)
    picture = pick(second, "Picture", PICTURES, "embed_picture")
    colours = pick(
        third,
        "Colour",
        COLOURS,
        "embed_colour",
        "Frequency: how often the token occurs in the text of the training, as a logarithm.",
    )
    own_axes = (
        bool(steps)
        and pick(
            fourth,
            "Axes",
            AXES,
            "embed_axes",
            "Those of the newest step stay as they are while the scrubber moves, so that every change in the"
            " picture is a change of the embedding. A step's own axes show the most of it, turned to the side"
            " of the newest step's.",
        )
        == AXES[1]
    )
    if colours == COLOURS[1] and known.counts is None:
        st.caption(
            ":material/info: The text that this model was trained on is not on this server, so tokens cannot"
            " be counted: the colour is the class."
        )
    frequency = known.frequency if colours == COLOURS[1] else None
    found = _map(subject.key, max(steps, default=-1), own_axes, matrix, known.met)
    ids, cosine = _neighbours(subject.key, token, matrix, known.met)
    left, right = st.columns([5, 2], gap="medium")
    with left:
        _draw_picture(subject, known, found, token, ids[:JOINED], picture, frequency)
    with right:
        _draw_neighbours(known, token, ids, cosine)
    _draw_trust(known, found, matrix)
    explain.takeaway(_summary(known, found, matrix, token, ids[:JOINED], picture))


def _named(known: Vocabulary, token: int, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(ids that are drawn, which tokens carry their name (vocab,))."""
    ids = np.union1d(known.drawn(), np.append(near, token))
    labelled = np.zeros(len(known.words), dtype=bool)
    labelled[known.drawn(NAMED)] = True
    labelled[near] = labelled[token] = True
    return ids, labelled


def _draw_picture(
    subject: Subject,
    known: Vocabulary,
    found: _Map,
    token: int,
    near: np.ndarray,
    picture: str,
    frequency: np.ndarray | None,
) -> None:
    ids, labelled = _named(known, token, near)
    data = pd.DataFrame(
        {
            "id": ids,
            "token": [known.words[i] for i in ids],
            "class": [known.names[known.classes[i]] for i in ids],
            "pc1": found.scores[ids, 0],
            "pc2": found.scores[ids, 1],
            "pc3": found.scores[ids, 2],
        }
    )
    if known.counts is not None:
        data["count"] = known.counts[ids]
    titles = [f"component {i + 1} ({share:.1%} of the variance)" for i, share in enumerate(found.kept)]
    by = "class" if frequency is None else "frequency"
    mine = found.scores[token].astype(float)  # may lie outside, where nothing has taught it
    ranges, reach = (
        [(min(a, x), max(b, x)) for (a, b), x in zip(found.ranges, mine, strict=True)],
        max(found.reach, float(np.linalg.norm(mine))),
    )
    alt = (
        f"{len(ids)} tokens by the first components of their embedding, coloured by {by};"
        f" “{known.words[token]}” is marked."
    )
    if picture == PICTURES[1]:
        cloud(
            found.scores,
            known,
            ids,
            labelled,
            chosen=token,
            near=near,
            titles=titles,
            reach=reach,
            frequency=frequency,
            data=data,
            alt=alt,
        )
    else:
        figure = figures.token_map(
            found.scores,
            known.words,
            ids,
            known.names,
            known.classes,
            labelled=labelled,
            chosen=token,
            near=near,
            titles=titles,
            ranges=(ranges[0], ranges[1]),
            frequency=frequency,
            letters=known.letters,
        )
        plot(figure, key=MAP, height=600, name="embedding-map", data=data, alt=alt)
    if len(known.drawn()) < len(known.met):
        which = "most frequent" if known.counts is not None else "first"
        st.caption(
            f"{len(ids):,} of {len(known.met):,} tokens are drawn, the {which}; all of them are in the axes"
            f" and among the neighbours.{known.left_out}"
        )
    elif known.left_out:
        st.caption(known.left_out.strip())


def _draw_neighbours(known: Vocabulary, token: int, ids: np.ndarray, cosine: np.ndarray) -> None:
    st.markdown(f"**Nearest to “{safe(known.words[token])}”**, in all dimensions")
    shades = [figures.class_look(known.names[known.classes[i]])[0] for i in ids]
    words = [known.words[i] for i in ids]
    plot(
        figures.neighbour_bars(words, cosine, shades, ids),
        key=NEAR,
        height=380,
        name="neighbours",
        data={"id": ids, "token": words, "cosine": cosine},
        alt=f"Bars: the {len(ids)} tokens with the largest cosine to {known.words[token]}.",
    )
    times = "" if known.counts is None else f" It occurs {known.counts[token]:,} times in the text."
    st.caption(
        f"“{safe(known.words[token])}” is id {token}; class:"
        f" {safe(known.names[known.classes[token]])}.{times}"
    )


def _draw_trust(known: Vocabulary, found: _Map, matrix: np.ndarray) -> None:
    """How much of the matrix the picture holds, and how much of it is frequency."""
    left, right = st.columns(2, gap="medium")
    met = known.met
    shares, random = found.own.shares[:COMPONENTS], _random_shares(len(met), matrix.shape[1])[:COMPONENTS]
    with left:
        st.markdown("**How much a component holds**")
        plot(
            figures.share_bars(shares, random[: len(shares)]),
            key="embed_shares",
            height=300,
            name="explained-variance",
            data={
                "component": np.arange(1, len(shares) + 1),
                "share": shares,
                "random_numbers": random[: len(shares)],
            },
            alt=(
                "Bars: share of the variance of each of the first principal components; dotted: the same for"
                " random numbers of this shape."
            ),
        )
        st.caption(
            f"This step's own components. Dotted: normal random numbers, {len(met):,} × {matrix.shape[1]};"
            " even they have a first component."
        )
    with right:
        frequency = known.frequency
        if frequency is None:
            st.info(
                "How often each token occurs in the training is not known here, so its effect on the picture"
                " cannot be shown."
            )
            return
        links = [correlation(found.scores[met, i], frequency[met]) for i in range(3)]
        best = int(np.nanargmax(np.abs(links))) if np.isfinite(links).any() else 0
        lengths = correlation(np.linalg.norm(matrix[met], axis=1), frequency[met])
        st.markdown(f"**Component {best + 1} against frequency**")
        plot(
            figures.frequency_scatter(
                frequency,
                found.scores[:, best],
                known.words,
                known.names,
                known.classes,
                known.drawn(),
                f"component {best + 1}",
            ),
            key="embed_frequency",
            height=300,
            name="component-and-frequency",
            data={"token": known.words, "count": known.counts, "score": found.scores[:, best]},
            alt=f"Scatter: component {best + 1} of each token against the logarithm of its count.",
        )
        said = (
            ", ".join(f"component {i + 1}: {r:+.2f}" for i, r in enumerate(links) if np.isfinite(r))
            or "nothing varies"
        )
        st.caption(
            minus(
                f"Correlation with log₁₀(1 + count): {said}; of the rows' lengths: {lengths:+.2f}. A rare"
                " token is seldom taught by the lookup."
            )
        )


def _summary(
    known: Vocabulary, found: _Map, matrix: np.ndarray, token: int, near: np.ndarray, picture: str
) -> str:
    count = 2 if picture == PICTURES[0] else 3
    share = float(found.kept[:count].sum())
    flat = found.scores[:, :count].astype(np.float64)
    far = ((flat - flat[token]) ** 2).sum(1)
    far[np.setdiff1d(np.arange(len(far)), known.met)] = far[token] = np.inf
    drawn = set(np.argsort(far, kind="stable")[: len(near)].tolist())
    hits = sum(int(i) in drawn for i in near)
    mean = "" if found.overlap is None else f" On average over all tokens: {found.overlap[count - 2]:.1f}."
    chance = _random_shares(len(known.met), matrix.shape[1])[:count].sum()
    return (
        f"**The picture keeps {share:.1%} of the variance; {1 - share:.1%} is not in it.** Random numbers of"
        f" this shape would have {chance:.1%} on their own first {count} components. Of the {len(near)}"
        f" tokens nearest to “{safe(known.words[token])}”, {hits} are among the {len(near)} nearest"
        f" dots.{mean}"
    )
