"""The view "King − man + woman?": arithmetic with rows of the embedding, as it comes out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.embeddings.analogies import (
    Analogy,
    Directions,
    analogy,
    directions_of,
)
from pages.input.embeddings import words
from pages.input.embeddings.figures_analogies import nearest_bars
from pages.input.embeddings.shared import Vocabulary, matrix_of, typed_token, vocabulary_of
from ui import explain, memo
from ui.fit_text import token_named
from ui.model_bar import Subject
from ui.players.plot import plot

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
LABELS = ("a", "is to b", "as c", "is to")
EXAMPLE = "embed_analogy"
NEAREST = 10


@memo.measured()
def _directions(key: tuple[str, int], _matrix: np.ndarray) -> Directions:
    return directions_of(_matrix)


def draw_analogies(subject: Subject) -> None:
    """Draws four words, the tokens nearest to b - a + c, and where the expected one comes."""
    matrix = matrix_of(subject)
    if not np.isfinite(matrix).all():
        st.info(words.NOT_FINITE)
        return
    known = vocabulary_of(subject)
    examples = OF_LETTERS if known.letters else OF_WORDS
    left, right = st.columns([3, 4], gap="medium")
    with left:
        tokens = _choose(subject, known, examples)
    unit = _directions(subject.key, matrix)
    if tokens[3] in tokens[:3]:
        st.info("The expected word is one of the three inputs: choose another.")
        return
    result = analogy(unit, tokens[:3], tokens[3], NEAREST)
    names, near = [known.words[i] for i in tokens], [known.words[i] for i in result.ids]
    with right:
        _draw(result, near)
    with left:
        explain.answer(words.answered(result, names, near))
    explain.measure_it(_table, subject, unit, examples)


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
    st.pills("Examples", list(titles), key=EXAMPLE, on_change=take, label_visibility="collapsed", wrap=True)
    result = []
    for half in (0, 2):
        for i, column in zip((half, half + 1), st.columns(2, gap="small"), strict=True):
            with column:
                result.append(typed_token(LABELS[i], examples[0][i], BOXES[i], known, subject.tokenizer))
    return result


def _follow(examples: tuple[Four, ...]) -> None:
    """Lets a choice that nobody typed follow the kind of model: words for a model of words, letters for one
    of letters.
    """
    others = OF_LETTERS if examples is OF_WORDS else OF_WORDS
    if tuple(st.session_state.get(box) for box in BOXES) in others:
        st.session_state.update(zip(BOXES, examples[0], strict=True))


def _draw(analogy: Analogy, near: list[str]) -> None:
    plot(
        nearest_bars(near, analogy),
        key="embed_analogy_bars",
        height=400,
        name="analogy",
        data={"id": analogy.ids, "token": near, "cosine": analogy.cosine},
        alt=f"Bars: the {len(near)} tokens with the largest cosine to the sum; the inputs are grey.",
    )


def _table(subject: Subject, unit: Directions, examples: tuple[Four, ...]) -> None:
    rows: list[dict[str, str | int]] = []
    for a, b, c, d in examples:
        ids = [token_named(word, subject.tokenizer) for word in (a, b, c, d)]
        if any(len(pieces) != 1 for pieces in ids):
            rows.append({"sum": f"{b} − {a} + {c}", "expected": d})
            continue
        result = analogy(unit, [pieces[0] for pieces in ids[:3]], ids[3][0])
        rows.append(
            {
                "sum": f"{b} − {a} + {c}",
                "expected": d,
                "nearest of all": subject.vocabulary[result.nearest],
                "nearest, inputs excluded": subject.vocabulary[result.answer],
                "expected word's rank": result.rank,
                "its rank near c": result.rank_near_c,
            }
        )
    table = pd.DataFrame(rows)
    for column in {"expected word's rank", "its rank near c"} & set(table):
        table[column] = table[column].astype("Int64")
    st.dataframe(table, hide_index=True, width="stretch", key="embed_analogies")
    st.caption(words.RANKS)
