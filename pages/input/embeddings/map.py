"""The view "Map": principal components of the token embedding, and the neighbours of one token."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import GlassformerError
from engine.measure.embeddings.separation import Separation
from engine.measure.embeddings.table import embedding_of, held_by, random_shares
from engine.measure.embeddings.token_map import (
    JOINED,
    Frame,
    TokenMap,
    alike,
    frame,
    frequency_links,
    nearest,
    token_map,
)
from pages.input.embeddings import figures_map as figures
from pages.input.embeddings import guesses, words
from pages.input.embeddings.classes import draw_separation, separation_of
from pages.input.embeddings.cloud import cloud
from pages.input.embeddings.looks import class_look
from pages.input.embeddings.shared import (
    DRAWN,
    LISTED,
    MAP,
    NAMED,
    NEAR,
    Vocabulary,
    choose_token,
    matrix_of,
    vocabulary_of,
)
from ui import explain, memo
from ui.guess import ask
from ui.model_bar import Subject
from ui.models import model_after
from ui.players.plot import plot
from ui.snapshot_measure import steps_of
from ui.widgets import select

COLOURS = ("class", "frequency")
PICTURES = {"2-D": 2, "3-D": 3}  # components that it shows
NEIGHBOURS = 10
HEIGHT = 500
COMPONENTS = 10  # whose shares are drawn


@dataclass(frozen=True, eq=False)
class _Shown:
    """The map that is drawn, and the chosen token with its neighbours, best first."""

    known: Vocabulary
    matrix: np.ndarray = field(repr=False)  # (vocab, d_model)
    token_map: TokenMap
    token: int
    near: np.ndarray  # ids
    cosine: np.ndarray

    @property
    def word(self) -> str:
        return self.known.words[self.token]

    @property
    def joined(self) -> np.ndarray:
        """Ids of the neighbours to which a line leads."""
        return self.near[:JOINED]


@memo.measured()
def _newest(name: str, step: int, _met: np.ndarray) -> Frame | None:
    """The axes of a training's newest snapshot, and how far its tokens reach on them; None when that has just
    gone.
    """
    try:
        matrix = embedding_of(model_after(name, step).model)
    except GlassformerError:
        return None
    return frame(matrix, _met) if np.isfinite(matrix).all() else None


@memo.measured()
def _map(
    key: tuple[str, int], newest_step: int, step_axes: bool, _matrix: np.ndarray, _met: np.ndarray
) -> TokenMap:
    newest = _newest(key[0], newest_step, _met) if newest_step >= 0 else None
    return token_map(_matrix, _met, newest, step_axes)


@memo.measured()
def _neighbours(
    key: tuple[str, int], token: int, _matrix: np.ndarray, _met: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    return nearest(_matrix, token, _met, NEIGHBOURS)


@memo.measured(copied=True)
def _random_shares(rows: int, width: int) -> np.ndarray:
    return random_shares(rows, width)


def draw_map(subject: Subject) -> None:
    """Draws the controls, the picture beside the list of neighbours, and how much the picture can
    be trusted.
    """
    matrix, steps = matrix_of(subject), steps_of(subject)
    if not np.isfinite(matrix).all():
        st.info(words.NOT_FINITE)
        return
    known = vocabulary_of(subject)
    first, second, third, fourth = st.columns([31, 25, 35, 58], gap="small")
    with first:
        token = choose_token(known, subject.tokenizer)
    picture = select("Picture", list(PICTURES), "embed_picture", container=second)
    colours = select(
        "Colour",
        COLOURS,
        "embed_colour",
        container=third,
        hint=words.COLOUR_HINT,
    )
    step_axes = bool(steps) and _choose_axes(fourth) == "own"
    by_frequency = colours == "frequency"
    if by_frequency and known.counts is None:
        st.caption(words.NOT_COUNTED)
    of_step = _map(subject.key, max(steps, default=-1), step_axes, matrix, known.met)
    shown = _Shown(known, matrix, of_step, token, *_neighbours(subject.key, token, matrix, known.met))
    left, right = st.columns([5, 3], gap="medium")
    with left:
        _draw_picture(shown, picture, known.frequency if by_frequency else None)
    separation = separation_of(subject.key, matrix, known)
    with right:
        explain.answer(_answer(shown, separation))
        _draw_neighbours(shown)
    ask("nearest", guesses.nearest, matrix, token, known.met, known.words, known.size <= LISTED)
    explain.measure_it(_measured, subject, shown, separation, picture)


def _answer(shown: _Shown, separation: Separation) -> str:
    known = shown.known
    kind = known.names[known.classes[shown.token]]
    return words.near_to(
        shown.word, kind, alike(known.classes, shown.token, shown.joined, known.met), separation
    )


def _measured(subject: Subject, shown: _Shown, separation: Separation, picture: str) -> None:
    """The classes against chance, how far the picture can be trusted, and how much of it is frequency."""
    draw_separation(subject, shown.known, separation, shown.matrix)
    st.markdown(_summary(shown, PICTURES[picture]))
    _draw_trust(shown)
    st.caption(_told(shown))


def _choose_axes(container: object) -> str:
    return select("Axes", words.AXES, "embed_axes", container=container, hint=words.AXES_HINT)


def _named(shown: _Shown) -> tuple[np.ndarray, np.ndarray]:
    """(ids that are drawn, which tokens carry their name (vocab,))."""
    known = shown.known
    ids = np.union1d(known.drawn(DRAWN), np.append(shown.joined, shown.token))
    labelled = np.zeros(known.size, dtype=bool)
    labelled[known.drawn(NAMED)] = True
    labelled[shown.joined] = labelled[shown.token] = True
    return ids, labelled


def _draw_picture(shown: _Shown, picture: str, frequency: np.ndarray | None) -> None:
    known, drawn = shown.known, shown.token_map
    ids, labelled = _named(shown)
    titles = [
        f"component {i + 1} ({share:.1%} of the variance)" for i, share in enumerate(drawn.variance_shares)
    ]
    ranges, reach = drawn.holding(shown.token)
    alt = words.map_alt(len(ids), frequency is not None, shown.word)
    if picture == "3-D":
        cloud(
            drawn.scores,
            known,
            ids,
            labelled,
            chosen=shown.token,
            near=shown.joined,
            titles=titles,
            reach=reach,
            frequency=frequency,
            data=_table(shown, ids),
            alt=alt,
        )
    else:
        figure = figures.token_map(
            drawn.scores,
            known.words,
            ids,
            known.names,
            known.classes,
            labelled=labelled,
            chosen=shown.token,
            near=shown.joined,
            titles=titles,
            ranges=(ranges[0], ranges[1]),
            frequency=frequency,
            letters=known.letters,
        )
        plot(figure, key=MAP, height=HEIGHT, name="embedding-map", data=_table(shown, ids), alt=alt)


def _table(shown: _Shown, ids: np.ndarray) -> pd.DataFrame:
    known, scores = shown.known, shown.token_map.scores
    data = pd.DataFrame(
        {
            "id": ids,
            "token": [known.words[i] for i in ids],
            "class": [known.names[known.classes[i]] for i in ids],
            **{f"pc{i + 1}": column for i, column in enumerate(scores[ids].T)},
        }
    )
    return data if known.counts is None else data.assign(count=known.counts[ids])


def _draw_neighbours(shown: _Shown) -> None:
    known, ids = shown.known, shown.near
    names = [known.words[i] for i in ids]
    plot(
        figures.neighbour_bars(
            names, shown.cosine, [class_look(known.names[known.classes[i]])[0] for i in ids], ids
        ),
        key=NEAR,
        height=270,
        name="neighbours",
        data={"id": ids, "token": names, "cosine": shown.cosine},
        alt=f"Bars: the {len(ids)} tokens with the largest cosine to {shown.word}, in all dimensions.",
    )


def _told(shown: _Shown) -> str:
    """The chosen token, and which tokens are drawn."""
    known = shown.known
    count = None if known.counts is None else int(known.counts[shown.token])
    kind = known.names[known.classes[shown.token]]
    drawn = len(_named(shown)[0]) if len(known.drawn(DRAWN)) < len(known.met) else None
    which = "most frequent" if known.counts is not None else "first"
    return " ".join(
        (
            words.looked_at(shown.word, shown.token, kind, count),
            words.left_out(known) if drawn is None else words.drawn_in_part(known, drawn, which),
        )
    ).strip()


def _draw_trust(shown: _Shown) -> None:
    """How much of the matrix the picture holds, and how much of it is frequency."""
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_shares(shown)
    with right:
        if shown.known.frequency is None:
            st.info(words.NO_FREQUENCY)
        else:
            _draw_frequency(shown, shown.known.frequency)


def _draw_shares(shown: _Shown) -> None:
    rows, width = len(shown.known.met), shown.matrix.shape[1]
    shares = shown.token_map.principal.shares[:COMPONENTS]
    random = _random_shares(rows, width)[: len(shares)]
    st.markdown(words.VARIANCE)
    plot(
        figures.share_bars(shares, random),
        key="embed_shares",
        height=300,
        name="explained-variance",
        data={
            "component": np.arange(1, len(shares) + 1),
            "share": shares,
            "random_numbers": random,
        },
        alt=words.ALT_VARIANCE,
    )
    st.caption(words.components(rows, width))


def _draw_frequency(shown: _Shown, frequency: np.ndarray) -> None:
    known, scores = shown.known, shown.token_map.scores
    links = frequency_links(shown.matrix, scores, frequency, known.met)
    title = f"component {links.best + 1}"
    st.markdown(f"**{title.capitalize()} against frequency**")
    plot(
        figures.frequency_scatter(
            frequency,
            scores[:, links.best],
            known.words,
            known.names,
            known.classes,
            known.drawn(DRAWN),
            title,
        ),
        key="embed_frequency",
        height=300,
        name="component-and-frequency",
        data={"token": known.words, "count": known.counts, "score": scores[:, links.best]},
        alt=f"Scatter: {title} of each token against the logarithm of its count.",
    )
    st.caption(words.linked(links))


def _summary(shown: _Shown, components: int) -> str:
    met, near = shown.known.met, shown.joined
    chance = held_by(_random_shares(len(met), shown.matrix.shape[1]), components)
    hits = shown.token_map.hits(shown.token, near, met, components)
    return words.mapped(shown.token_map, components, chance, shown.word, hits, len(near))
