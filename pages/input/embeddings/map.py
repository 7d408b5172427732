"""The view "Map": principal components of the token embedding, and the neighbours of one token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import GlassformerError
from pages.input.embeddings.classes import draw_separation, separation_of
from pages.input.embeddings.cloud import cloud
from pages.input.embeddings.looks import class_look, cosine_bars
from pages.input.embeddings.map_trust import chance_shares, draw_trust
from pages.input.embeddings.vocabulary import (
    DRAWN,
    LISTED,
    MAP,
    NAMED,
    NEAR,
    Vocabulary,
    choose_token,
    finite_matrix,
    vocabulary_of,
)
from studies.embeddings.separation import Separation, separation
from studies.embeddings.table import (
    embedding_of,
    held_by,
    neighbours,
    preserved_neighbours,
    principal,
    project,
)
from studies.embeddings.token_map import JOINED, Frame, TokenMap, alike, frame, nearest, token_map
from studies.guesses import Truth
from studies.guesses import tokens as guesses
from ui import content, explain, memo
from ui.figures import specs as go
from ui.figures.axes import MONO
from ui.figures.labels import plain
from ui.figures.theme import SEQUENTIAL, colour
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.models import model_after
from ui.page_frame import View
from ui.players.plot import plot
from ui.snapshot_measure import steps_of
from ui.widgets import select

TEXT = content.beside(__file__)
COLOURS = ("class", "frequency")
PICTURES = {"2-D": 2, "3-D": 3}  # components that it shows
NEIGHBOURS = 10
HEIGHT = 500


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
    def kind(self) -> str:
        """The class of the token."""
        return self.known.names[self.known.classes[self.token]]

    @property
    def joined(self) -> np.ndarray:
        """Ids of the neighbours to which a line leads."""
        return self.near[:JOINED]


def draw(subject: Subject) -> None:
    """Draws the controls, the picture beside the list of neighbours, and how much the picture can
    be trusted.
    """
    matrix = finite_matrix(subject)
    if matrix is None:
        return
    known, steps = vocabulary_of(subject), steps_of(subject)
    first, second, third, fourth = st.columns([31, 25, 35, 58], gap="small")
    with first:
        token = choose_token(known, subject.tokenizer)
    picture = select(TEXT["picture"], list(PICTURES), "embed_picture", container=second)
    hint = TEXT["colour hint"]
    colours = select(TEXT["colour"], COLOURS, "embed_colour", container=third, hint=hint)
    step_axes = False
    if steps:
        axes, hint = {name: TEXT[f"axes {name}"] for name in ("newest", "own")}, TEXT["axes hint"]
        step_axes = select(TEXT["axes"], axes, "embed_axes", container=fourth, hint=hint) == "own"
    by_frequency = colours == "frequency"
    if by_frequency and known.counts is None:
        st.caption(TEXT["not counted"])
    of_step = _map(subject.key, max(steps, default=-1), step_axes, matrix, known.met)
    shown = _Shown(known, matrix, of_step, token, *_neighbours(subject.key, token, matrix, known.met))
    left, right = st.columns([5, 3], gap="medium")
    with left:
        _draw_picture(shown, picture, known.frequency if by_frequency else None)
    separation = separation_of(subject.key, matrix, known)
    with right:
        explain.answer(_answer(shown, separation))
        _draw_neighbours(shown)
    ask("nearest", _guess, matrix, token, known.met, known.words, known.size <= LISTED)
    explain.measure_it(_measured, subject, shown, separation, picture)


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


def _answer(shown: _Shown, separation: Separation) -> str:
    """Says how much more alike tokens of a class are than by chance, and of what class the neighbours are."""
    known, chance = shown.known, separation.by_chance
    found = alike(known.classes, shown.token, shown.joined, known.met)
    counts = {"of": found.of, "same": found.same, "expected": found.expected}
    near = TEXT("near", token=shown.word, kind=shown.kind, **counts)
    if not np.isfinite(separation.difference):
        return near
    pairs = TEXT(
        "by chance" if chance.like_chance else "above chance",
        difference=separation.difference,
        reached=chance.reached,
        count=chance.count,
        highest=chance.highest,
    )
    return f"{pairs} {near}"


def _guess(
    matrix: np.ndarray, token: int, met: np.ndarray, words: Sequence[str], listed: bool
) -> Guess | None:
    """A guess about the second neighbour of `token`: who is nearest to that? `listed`: the token is chosen
    from a list, else it is typed, in quotes.
    """
    row = guesses.nearest_row(matrix, token, met)
    if row is None:
        return None
    word, near = words[row.token], [words[i] for i in row.offered]
    choices = {name: TEXT("choice", word=each) for each, name in zip(near, row.names, strict=True)}
    truth = Truth(row.names[row.right], row.names, {})
    cosines = ", ".join(
        TEXT("cosine of", word=each, cosine=c) for each, c in zip(near, row.cosine, strict=True)
    )
    question, outcome = TEXT("guess", word=word), TEXT("outcome", word=word, cosines=cosines)
    chosen = word if listed else f'"{word}"'
    return Guess.of(TEXT, truth, question, outcome, {"embed_token": chosen}, choices)


def _measured(subject: Subject, shown: _Shown, separation: Separation, picture: str) -> None:
    """The classes against chance, how far the picture can be trusted, and how much of it is frequency."""
    draw_separation(subject, shown.known, separation, shown.matrix)
    st.markdown(_summary(shown, PICTURES[picture]))
    draw_trust(shown.known, shown.matrix, shown.token_map)
    st.caption(_about(shown))


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
    titles = [TEXT("component", number=i, share=s) for i, s in enumerate(drawn.variance_shares, 1)]
    ranges, reach = drawn.holding(shown.token)
    coloured = "alt by class" if frequency is None else "alt by frequency"
    alt = TEXT(coloured, tokens=len(ids), word=shown.word)
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
        figure = map_figure(
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
    """Draws cosines of the nearest tokens in the colours of their classes. A click gives an id."""
    known, ids = shown.known, shown.near
    names = [known.words[i] for i in ids]
    bars = cosine_bars(
        names,
        shown.cosine,
        [class_look(known.names[known.classes[i]])[0] for i in ids],
        {"title": {"text": TEXT["cosine"]}},
        TEXT["hover neighbour"],
        bargap=0.25,
        customdata=ids.astype(np.int32),
    )
    plot(
        bars,
        key=NEAR,
        height=270,
        name="neighbours",
        data={"id": ids, "token": names, "cosine": shown.cosine},
        alt=TEXT("alt neighbours", count=len(ids), word=shown.word),
    )


def _about(shown: _Shown) -> str:
    """Describes the chosen token, and says which tokens are drawn."""
    known = shown.known
    said = [TEXT("looked at", token=shown.word, number=shown.token, kind=shown.kind)]
    if known.counts is not None:
        said.append(TEXT("occurs", count=int(known.counts[shown.token])))
    if len(known.drawn(DRAWN)) < len(known.met):
        which = "drawn first" if known.counts is None else "drawn frequent"
        said.append(TEXT(which, drawn=len(_named(shown)[0]), met=len(known.met)))
    if known.never_met:
        said.append(TEXT("left out", never=known.never_met))
    return " ".join(said)


def _summary(shown: _Shown, components: int) -> str:
    """Says how far the picture can be trusted."""
    met, near, drawn = shown.known.met, shown.joined, shown.token_map
    share = drawn.share(components)
    said = [
        TEXT(
            "projection",
            share=share,
            lost=1 - share,
            chance=held_by(chance_shares(len(met), shown.matrix.shape[1]), components),
            components=components,
            near=len(near),
            token=shown.word,
            hits=drawn.hits(shown.token, near, met, components),
        )
    ]
    if drawn.overlap is not None:
        said.append(TEXT("overlap", overlap=drawn.overlap[components - 2]))
    return " ".join(said)


# Figures ------------------------------------------------------------------------------------------


def map_figure(
    scores: np.ndarray,
    words: Sequence[str],
    ids: np.ndarray,
    names: Sequence[str],
    classes: np.ndarray,
    *,
    labelled: np.ndarray,
    chosen: int,
    near: np.ndarray,
    titles: Sequence[str],
    ranges: tuple[Sequence[float], Sequence[float]],
    frequency: np.ndarray | None = None,
    letters: bool = True,
) -> go.Figure:
    """Draws scores (vocab, 2 or more); `ids` are the tokens drawn, `labelled` (vocab,) says which carry their
    name. A click gives an id.

    Thin lines go from `chosen` to its neighbours `near`. With `frequency` (vocab,) the colour is that, else
    the class. `letters`: tokens of one character, which stand inside their marker.
    """
    traces: list[dict[str, Any]] = []
    pairs = np.stack([np.full(len(near), chosen), near, np.full(len(near), -1)], axis=1).ravel()
    x, y = (np.where(pairs < 0, np.nan, scores[np.maximum(pairs, 0), axis]) for axis in (0, 1))
    line = {"color": colour("quiet"), "width": 1.2, "dash": "dot"}
    traces.append(go.Scatter(mode="lines", x=x, y=y, line=line, hoverinfo="skip", showlegend=False))
    inside = letters and frequency is None
    for index, name in enumerate(names):
        members = ids[classes[ids] == index]
        if not len(members):
            continue
        shade, symbol = class_look(name)
        marker: dict[str, Any] = {"symbol": symbol, "size": 18 if inside else 10 if letters else 7}
        if frequency is not None:
            top = max(float(frequency.max()), 1e-6)
            marker |= dict(
                color=frequency[members].astype(np.float32), cmin=0, cmax=top, colorscale=SEQUENTIAL
            )
            marker |= {"line": {"color": colour("quiet"), "width": 1}, "showscale": len(traces) == 1}
            marker |= {"colorbar": go.scale(TEXT["frequency scale"])}
        else:
            marker |= {
                "color": colour(shade, 25 if inside else 85),
                "line": {"color": colour(shade), "width": 1.3},
            }
        traces.append(
            go.Scatter(
                mode="markers+text",
                name=name,
                x=scores[members, 0],
                y=scores[members, 1],
                customdata=members.astype(np.int32),
                text=[plain(words[i]) if labelled[i] else "" for i in members],
                hovertext=[plain(words[i]) for i in members],
                marker=marker,
                textposition="middle center" if inside else "middle right",
                textfont=MONO | {"size": 14 if inside else 13},
                hovertemplate=TEXT("hover", name=name),
                cliponaxis=False,
            )
        )
    ring = {
        "size": 30 if inside else 20,
        "symbol": "circle-open",
        "color": colour("attention"),
        "line": {"width": 3},
    }
    traces.append(
        go.Scatter(
            mode="markers",
            x=scores[[chosen], 0],
            y=scores[[chosen], 1],
            marker=ring,
            hoverinfo="skip",
            showlegend=False,
        )
    )
    axis = {"zeroline": True, "zerolinecolor": colour("quiet", 40)}
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 44, "b": 44},
        xaxis=axis | {"title": {"text": titles[0]}, "range": list(ranges[0])},
        yaxis=axis | {"title": {"text": titles[1]}, "range": list(ranges[1])},
        showlegend=frequency is None,
        uirevision=f"map-{list(ranges[0])}",
    )


VIEW = View(
    "map",
    TEXT,
    draw,
    code=(principal, project, neighbours, preserved_neighbours, separation),
    brings_text=True,
    figures_only=True,
)
