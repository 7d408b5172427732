"""Embeddings: a vector for each token, where the vectors lie, and whether alike tokens find each other."""

import streamlit as st

from engine.measure.embeddings import (
    cosines,
    kept_neighbours,
    lookup,
    neighbours,
    principal,
    project,
    separation,
)
from pages.input.embeddings import classes as embeddings_classes
from pages.input.embeddings import lookup as embeddings_lookup
from pages.input.embeddings import map as embeddings_map
from ui.look import look_inside

VIEWS = {
    "The lookup": embeddings_lookup.draw_lookup,
    "The map": embeddings_map.draw_map,
    "Do alike tokens find each other?": embeddings_classes.draw_classes,
}
CODE = {
    "The lookup": (lookup,),
    "The map": (principal, project, neighbours, kept_neighbours),
    "Do alike tokens find each other?": (separation, cosines),
}
WORDS = {
    "The lookup": {
        "see": (
            "On the left the embedding matrix $E$, a row for each token of the vocabulary. On the right the"
            " input of the model: for each token of the text a copy of its row, $X = E[ids]$, of shape"
            " (T, d)."
        ),
        "why": (
            "A network computes with numbers, and an id is only a name. The rows are learned like all other"
            " weights: they become whatever helps to predict."
        ),
        "attempt": (
            "Choose a letter that comes twice: both take the same row. Then look at what the position adds to"
            " it. With a run of yours, drag the step and see the rows grow out of noise."
        ),
    },
    "The map": {
        "see": (
            "Every token as a point. The axes are the directions in which the rows of $E$ differ most: the"
            " principal components of the rows, their mean taken off (Pearson 1901). Dotted lines lead to the"
            " nearest tokens by cosine, $\\cos(a, b) = \\frac{(e_a - \\bar e)\\cdot(e_b - \\bar e)}{|e_a -"
            " \\bar e|\\,|e_b - \\bar e|}$."
        ),
        "why": (
            "Tokens that are used alike are pushed the same way by the gradient. But a flat picture keeps"
            " only a part of the differences, so near in the picture is not always near in truth. The list of"
            " neighbours uses all dimensions."
        ),
        "attempt": (
            "Click on “e”, “T” and “.”. Colour by frequency: how much of the first axis is only that? Then"
            " take an untrained model: are there groups?"
        ),
    },
    "Do alike tokens find each other?": {
        "see": (
            "One number: the mean cosine of two tokens of the *same* class, minus that of two tokens of"
            " *different* classes. 0 means that the classes are not to be seen. Grey and violet: the same"
            " number with the labels shuffled, freely, and among eight tokens of like frequency only."
        ),
        "why": (
            "In a cloud of points everybody finds a pattern. A claim needs a number that could have come out"
            " otherwise. Nobody told the model what a vowel is."
        ),
        "attempt": (
            "Take an untrained model: the diamond lies among the shuffles. Then a trained one. In a run of"
            " yours, find the step at which the classes rise above chance."
        ),
    },
}

st.title("Embeddings")
st.markdown(
    "A model cannot compute with letters. Each token has a row of a matrix $E$: a vector of learned numbers,"
    " all that the blocks are given of it."
)

look_inside(VIEWS, WORDS, CODE, key="embed_view")
