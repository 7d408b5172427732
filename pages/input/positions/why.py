"""The view "Why": the same words in another order, through attention that knows no positions, and through
attention that does. Through a trained model: `why_order`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Position
from engine.measure.order_effect import OrderEffect, order_effect
from engine.measure.permutation import (
    SCHEMES,
    Comparison,
    Plan,
    compare,
    fresh,
    in_order_and_out,
    new_order,
    word_ids,
    word_order,
)
from pages.input.positions import why_figures as figures
from pages.input.positions import words
from pages.input.positions.why_order import choose_order, draw_trained
from ui import explain, widgets
from ui.figures.axes import symmetric
from ui.look import Code, Words
from ui.players.plot import plot
from ui.text.markdown import safe, whole
from ui.text.numbers import number

THROUGH = "why_on"
SENTENCES = (
    "dog bites man",
    "man bites dog",
    "not all who wander are lost",
    "the cat that the dog chased sat on the mat",
)
MATCHED, STANDING = "matched", "as they stand"
MASKS = {False: "no mask", True: "causal mask"}
MAX_WORDS, MAX_LETTERS = 16, 200
RANDOM = "random here, as before training"
ENTERS: dict[Position, str] = {
    "none": "nothing tells the order",
    "sinusoidal": "waves are added to the embeddings",
    "learned": f"a table is added to the embeddings ({RANDOM})",
    "rope": "queries and keys are turned",
    "alibi": "the scores fall with the distance",
    "t5": f"the scores get a bias for each distance ({RANDOM})",
}


@dataclass(frozen=True)
class Material:
    """What order is looked at through."""

    title: str
    draw: Callable[[], None]
    words: Words
    code: Code


def draw_why() -> None:
    """Words through fresh weights, or a text through a trained model."""
    titles = {name: material.title for name, material in MATERIALS.items()}
    MATERIALS[widgets.one_of("Through", titles, THROUGH, hidden=True, wrap=True)].draw()


def chosen_material() -> Material:
    """The one that was drawn last."""
    return MATERIALS.get(str(st.session_state.get(THROUGH)), MATERIALS["fresh"])


def _draw_fresh() -> None:
    sentence = _choose_words()
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        hint = "How the order is told. Each has a view of its own on this page."
        scheme = widgets.one_of("Positions", SCHEMES, "why_scheme", hint=hint, wrap=True)
        hint = "Each word sees itself and the words before it."
        causal = widgets.switch("Causal mask", False, "why_causal", hint=hint)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        hint = "Matched: each row beside the same word's row on the left."
        label = "Rows of the second picture"
        rows = widgets.one_of(label, (MATCHED, STANDING), "why_rows", hint=hint, wrap=True)
        move, seed = choose_order()
    order = new_order(len(sentence), move, seed)
    effect = _effect(word_ids(sentence), tuple(order.tolist()))
    st.markdown(f"**{safe(' '.join(sentence))}**  →  **{safe(' '.join(sentence[i] for i in order))}**")
    _draw_pictures(sentence, effect.found[scheme, causal], rows == MATCHED)
    explain.takeaway(lesson(sentence, order, scheme, causal, effect))
    left, right = st.columns([1, 2], gap="medium")
    with left:
        _draw_largest(effect, scheme, causal)
    with right:
        _draw_schemes(effect, scheme, causal)


def _choose_words() -> list[str]:
    typed = st.text_input(
        "Sentence",
        SENTENCES[0],
        key="why_sentence",
        bind="query-params",
        max_chars=MAX_LETTERS,
        help="Its words are the tokens.",
    )
    # Streamlit's own: a button that puts a text into the box; the box has the value, and is in the link.
    st.pills(
        "Sentences", SENTENCES, key="why_example", on_change=_take_sentence, label_visibility="collapsed"
    )
    found = whole(typed or "").replace("\0", " ")[:MAX_LETTERS].split()
    if len(found) < 2:
        st.caption(
            f":material/info: There is no order in fewer than two words: “{SENTENCES[0]}” is used instead."
        )
        found = SENTENCES[0].split()
    if len(found) > MAX_WORDS:
        st.caption(f":material/info: The sentence has {len(found)} words; the first {MAX_WORDS} are used.")
    return found[:MAX_WORDS]


def _take_sentence() -> None:
    chosen = st.session_state.get("why_example")
    if chosen in SENTENCES:
        st.session_state["why_sentence"] = chosen
        st.session_state["why_example"] = None


@st.cache_resource(max_entries=256, show_spinner=False)
def _effect(ids: tuple[int, ...], order: tuple[int, ...]) -> OrderEffect:
    return order_effect(ids, np.array(order, dtype=np.int64))


def _draw_pictures(sentence: list[str], found: Comparison, matched: bool) -> None:
    moved = [sentence[i] for i in found.order]
    top = symmetric(np.stack((found.before, found.after)))
    pictures = (
        ("before", "As written", found.before, sentence),
        (
            "after",
            "In the new order, matched" if matched else "In the new order",
            found.matched if matched else found.after,
            sentence if matched else moved,
        ),
        ("difference", "Difference, same scale", found.difference, sentence),
    )
    for column, (name, title, values, labels) in zip(st.columns(3, gap="medium"), pictures, strict=True):
        with column:
            st.markdown(title)
            plot(
                figures.word_rows(values, [short(w) for w in labels], top, f"attn_out {name}"),
                key=f"why_{name}",
                height=120 + 28 * len(sentence),
                data=pd.DataFrame(values, columns=[f"dimension {i}" for i in range(values.shape[1])]).assign(
                    word=labels
                ),
                name=f"attention-{name}",
                alt=(
                    f"Attention's output, {name}: one row for each word, one column for each of"
                    f" {values.shape[1]} dimensions."
                ),
            )


def short(word: str, letters: int = 12) -> str:
    """A word that fits beside a picture.

    >>> short("incomprehensibilities")
    'incomprehen…'
    """
    return word if len(word) <= letters else word[: letters - 1] + "…"


def _draw_largest(effect: OrderEffect, scheme: Position, causal: bool) -> None:
    plan = Plan(scheme, causal)
    explain.worked(
        "Largest difference",
        number(effect.largest(scheme, causal)),
        "the largest $|after_w - before_w|$ over all words $w$ and dimensions, float32",
    )
    st.caption(
        f"One attention layer of {plan.n_heads} heads, width {plan.d_model}, seed {plan.seed}, untrained;"
        f" {ENTERS.get(scheme, scheme)}. Its matrices have the standard deviation $1/\\sqrt{{inputs}}$:"
        " with the usual 0.02 all words would look at each other almost alike."
    )


def _draw_schemes(effect: OrderEffect, scheme: Position, causal: bool) -> None:
    """All six schemes, with and without the mask; the one above is ringed."""
    every: dict[str, dict[str, float]] = {
        name: {s: effect.largest(s, mask) for s in SCHEMES} for mask, name in MASKS.items()
    }
    plot(
        figures.scheme_dots(every, (MASKS[causal], scheme)),
        key="why_schemes",
        height=290,
        name="order-by-scheme",
        data=pd.DataFrame(
            [(s, name, v) for name, by in every.items() for s, v in by.items()],
            columns=["scheme", "mask", "largest_difference"],
        ),
        alt=(
            "Largest difference between the outputs in the two orders, for each of six position schemes,"
            " with and without the causal mask, logarithmic."
        ),
    )


def lesson(
    sentence: list[str], order: np.ndarray, scheme: Position, causal: bool, effect: OrderEffect
) -> str:
    """What the numbers say."""
    largest = number(effect.largest(scheme, causal))
    bare = number(effect.largest("none", False))
    before, after = (safe(" ".join(sentence[i] for i in at)) for at in (range(len(sentence)), order))
    return {
        "reads the same": (
            "In this order the sentence reads the same: there is nothing to tell apart. Choose another order."
        ),
        "one bag": (
            f"The outputs are the same rows, in another order: the largest difference is {largest}, which is"
            f" rounding. To this attention “{before}” and “{after}” are one and the same bag of words."
        ),
        "mask leaks": (
            "**The causal mask by itself leaks some position.** No scheme is on, and yet the outputs differ"
            f" by up to {largest} (without the mask: {bare}). A word early in the sentence averages over"
            " fewer words than a late one."
        ),
        "distances kept": (
            f"The scheme is on, and still the difference is only {largest}. ALiBi without a mask knows how"
            " far two words are apart and not which of them comes first, and turning a sentence round keeps"
            " every distance. Shuffle instead, or switch the mask on: then it tells."
        ),
        "order counts": (
            f"With {scheme} positions the same words come out different by up to {largest}; without any"
            f" scheme, and without a mask, by {bare}. Now the order counts."
        ),
    }[effect.verdict(scheme, causal)]


MATERIALS = {
    "fresh": Material("Words, fresh weights", _draw_fresh, words.FRESH, (compare, fresh, new_order)),
    "trained": Material("A trained model", draw_trained, words.TRAINED, (in_order_and_out, word_order)),
}
