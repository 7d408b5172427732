"""The view "Analogies": arithmetic with rows of the embedding, as it comes out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from pages.input.embeddings.looks import cosine_bars
from pages.input.embeddings.vocabulary import Vocabulary, finite_matrix, typed_token, vocabulary_of
from studies.embeddings.analogies import Analogy, Directions, analogy, directions_of
from ui import content, explain, memo
from ui.figures import specs as go
from ui.fit_text import token_named
from ui.model_bar import Subject
from ui.model_needs import SUMS
from ui.models import REAL_MODEL
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
Four = tuple[str, str, str, str]
OF_WORDS: tuple[Four, ...] = (
    ("man", "king", "woman", "queen"),
    ("France", "Paris", "Italy", "Rome"),
    ("walk", "walked", "jump", "jumped"),
    ("big", "bigger", "small", "smaller"),
    ("good", "better", "bad", "worse"),
    ("cat", "cats", "dog", "dogs"),
    ("he", "his", "she", "her"),
    ("happy", "unhappy", "known", "unknown"),
)
OF_LETTERS: tuple[Four, ...] = (
    ("a", "A", "e", "E"),
    ("s", "S", "t", "T"),
    ("b", "B", "m", "M"),
    ("a", "e", "A", "E"),
    (".", "!", ",", "?"),
)
BOXES = ("embed_a", "embed_b", "embed_c", "embed_d")
EXAMPLE = "embed_analogy"
NEAREST = 10
SHADES = {"input": "quiet", "expected": "output", "": "embedding"}


def draw(subject: Subject) -> None:
    """Draws four words, the tokens nearest to b - a + c, and where the expected one comes."""
    matrix = finite_matrix(subject)
    if matrix is None:
        return
    known = vocabulary_of(subject)
    examples = OF_LETTERS if known.letters else OF_WORDS
    left, right = st.columns([3, 4], gap="medium")
    with left:
        tokens = _choose(subject, known, examples)
    unit = _directions(subject.key, matrix)
    if tokens[3] in tokens[:3]:
        st.info(TEXT["expected among inputs"])
        return
    result = _analogy(subject.key, tokens, unit)
    names, near = [known.words[i] for i in tokens], [known.words[i] for i in result.ids]
    with right:
        _draw(result, near)
    with left:
        explain.answer(answer(result, names, near))
    explain.measure_it(_table, subject, unit, examples)


@memo.measured()
def _directions(key: tuple[str, int], _matrix: np.ndarray) -> Directions:
    return directions_of(_matrix)


@memo.measured()
def _analogy(key: tuple[str, int], tokens: Sequence[int], _unit: Directions) -> Analogy:
    return analogy(_unit, tokens[:3], tokens[3], NEAREST)


def answer(analogy: Analogy, names: Sequence[str], near: Sequence[str]) -> str:
    """Says what the arithmetic gives; `names` are those of a, b, c and the expected, `near` of
    the nearest.
    """
    a, b, c, expected = names
    itself = "nearest input" if analogy.nearest in analogy.terms else "nearest"
    moves = "same" if analogy.rank == analogy.rank_near_c else "hurts"
    does = "helps" if analogy.needs_arithmetic else moves
    ranks = {"rank": ordinal(analogy.rank), "near_c": ordinal(analogy.rank_near_c)}
    nearest = TEXT(itself, a=a, b=b, c=c, top=near[0])
    return f"{nearest} {TEXT(f'ranks {does}', expected=expected, c=c, **ranks)}"


def ordinal(rank: int) -> str:
    """
    >>> ordinal(1), ordinal(12), ordinal(22), ordinal(4103)
    ('first', '12th', '22nd', '4,103rd')
    """
    if rank == 1:
        return TEXT["first"]
    ending = {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th") if rank % 100 not in (11, 12, 13) else "th"
    return f"{rank:,}{ending}"


def _choose(subject: Subject, known: Vocabulary, examples: tuple[Four, ...]) -> list[int]:
    """Ids of a, b, c and the expected token."""
    titles = {f"{b} − {a} + {c}": (a, b, c, d) for a, b, c, d in examples}

    def take() -> None:
        chosen = titles.get(str(st.session_state.get(EXAMPLE)))
        if chosen is not None:
            st.session_state.update(zip(BOXES, chosen, strict=True))
            st.session_state[EXAMPLE] = None

    _follow(examples)
    # Streamlit's own: a button that fills the boxes; these have the values, and are in the link.
    label = TEXT["examples"]
    st.pills(label, list(titles), key=EXAMPLE, on_change=take, label_visibility="collapsed", wrap=True)
    result = []
    for half in (0, 2):
        for i, column in zip((half, half + 1), st.columns(2, gap="small"), strict=True):
            with column:
                label = TEXT[f"box {'abcd'[i]}"]
                result.append(typed_token(label, examples[0][i], BOXES[i], known, subject.tokenizer))
    return result


def _follow(examples: tuple[Four, ...]) -> None:
    """Lets a choice that nobody typed follow the kind of model: words for a model of words, letters for one
    of letters.
    """
    others = OF_LETTERS if examples is OF_WORDS else OF_WORDS
    if tuple(st.session_state.get(box) for box in BOXES) in others:
        st.session_state.update(zip(BOXES, examples[0], strict=True))


def _draw(analogy: Analogy, near: list[str]) -> None:
    """Draws cosines of the tokens nearest to the sum: inputs are grey, the expected one stands out."""
    ids = analogy.ids.tolist()
    kinds = ["input" if i in analogy.terms else "expected" if i == analogy.expected else "" for i in ids]
    bars = cosine_bars(
        near,
        analogy.cosine,
        [SHADES[kind] for kind in kinds],
        go.axis(TEXT["cosine"], showgrid=True),
        TEXT["hover"],
        bargap=0.2,
        text=[TEXT[f"bar {kind}"] if kind else "" for kind in kinds],
        textposition="inside",
        insidetextanchor="start",
    )
    plot(
        bars,
        key="embed_analogy_bars",
        height=400,
        name="analogy",
        data={"id": analogy.ids, "token": near, "cosine": analogy.cosine},
        alt=TEXT("alt", count=len(near)),
    )


def _table(subject: Subject, unit: Directions, examples: tuple[Four, ...]) -> None:
    rows: list[dict[str, str | int]] = []
    for a, b, c, d in examples:
        ids = [token_named(word, subject.tokenizer) for word in (a, b, c, d)]
        if any(len(pieces) != 1 for pieces in ids):
            rows.append({TEXT["column sum"]: f"{b} − {a} + {c}", TEXT["column expected"]: d})
            continue
        result = analogy(unit, [pieces[0] for pieces in ids[:3]], ids[3][0])
        rows.append(
            {
                TEXT["column sum"]: f"{b} − {a} + {c}",
                TEXT["column expected"]: d,
                TEXT["column nearest"]: subject.vocabulary[result.nearest],
                TEXT["column excluded"]: subject.vocabulary[result.answer],
                TEXT["column rank"]: result.rank,
                TEXT["column near c"]: result.rank_near_c,
            }
        )
    table = pd.DataFrame(rows)
    for column in {TEXT["column rank"], TEXT["column near c"]} & set(table):
        table[column] = table[column].astype("Int64")
    st.dataframe(table, hide_index=True, width="stretch", key="embed_analogies")
    st.caption(TEXT["ranks"])


VIEW = View(
    "analogies",
    TEXT,
    draw,
    code=(analogy,),
    brings_text=True,
    takes=(SUMS,),
    best=(REAL_MODEL,),
    figures_only=True,
)
