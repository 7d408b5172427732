"""The view "Why": the same words in another order, through attention that knows no positions, and through
attention that does.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.permutation import SCHEMES, Comparison, Plan, compare, fresh, new_order, word_ids
from pages.input.positions import figures
from pages.input.positions import order as positions_order
from pages.input.positions.order import choose_order, pick
from ui import explain
from ui.figures.axes import symmetric
from ui.players.plot import plot
from ui.subject import subject_bar
from ui.text.markdown import safe, whole
from ui.text.numbers import number

WORDS, TRAINED = "Words, fresh weights", "A trained model"
SENTENCES = (
    "dog bites man",
    "man bites dog",
    "not all who wander are lost",
    "the cat that the dog chased sat on the mat",
)
MATCHED, STANDING = "matched", "as they stand"
MASKS = {False: "no mask", True: "causal mask"}
MAX_WORDS, MAX_LETTERS = 16, 200
SAME = 1e-5  # differences below this are rounding in float32: the outputs here have sizes of 1 to 3
RANDOM = "random here, as before training"
ENTERS = {
    "none": "nothing tells the order",
    "sinusoidal": "waves are added to the embeddings",
    "learned": f"a table is added to the embeddings ({RANDOM})",
    "rope": "queries and keys are turned",
    "alibi": "the scores fall with the distance",
    "t5": f"the scores get a bias for each distance ({RANDOM})",
}


def draw_why() -> None:
    hint = "A fresh attention layer whose tokens are words, or a trained model with its own tokens."
    if pick("Through", [WORDS, TRAINED], WORDS, "why_on", hint, hidden=True) == TRAINED:
        with subject_bar() as subject:
            positions_order.draw_order(subject)
        return
    _fresh()
    explain.reading(
        see=(
            "The same words in two orders, through the same attention. The second picture has its rows"
            " matched by word; the third is what a word's vector is in the second order minus what it is in"
            " the first. The dots show the largest such difference for all six schemes."
        ),
        why=(
            "Attention is a sum over *all* tokens, weighted by what they hold, and a sum does not care about"
            " order (Vaswani et al. 2017, section 3.5). So order must be put in: into the embedding, into"
            " queries and keys, or into the scores."
        ),
        attempt=(
            "Switch the scheme from none to any other, then the causal mask on. Show the rows as they stand:"
            " without positions they are the same rows, in another order. Type a sentence that uses a word"
            " twice."
        ),
    )
    explain.show_code(compare, fresh, new_order)


def _fresh() -> None:
    words = _choose_words()
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        scheme = pick(
            "Positions",
            list(SCHEMES),
            "none",
            "why_scheme",
            "How the order is told. Each has a view of its own on this page.",
        )
        causal = bool(
            st.toggle(
                "Causal mask",
                key="why_causal",
                bind="query-params",
                help="Each word sees itself and the words before it.",
            )
        )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        rows = pick(
            "Rows of the second picture",
            [MATCHED, STANDING],
            MATCHED,
            "why_rows",
            "Matched: each row beside the same word's row on the left.",
        )
        move, seed = choose_order()
    order, ids = new_order(len(words), move, seed), word_ids(words)
    plan = Plan(scheme, causal)  # type: ignore[arg-type]
    found = _compared(ids, tuple(order.tolist()), plan)
    st.markdown(f"**{safe(' '.join(words))}**  →  **{safe(' '.join(words[i] for i in order))}**")
    _pictures(words, found, rows == MATCHED)
    every: dict[str, dict[str, float]] = {
        name: {s: _compared(ids, tuple(order.tolist()), Plan(s, mask)).largest for s in SCHEMES}
        for mask, name in MASKS.items()
    }
    explain.takeaway(lesson(words, order, plan, every))
    left, right = st.columns([1, 2], gap="medium")
    with left:
        explain.worked(
            "Largest difference",
            number(found.largest),
            "the largest $|after_w - before_w|$ over all words $w$ and dimensions, float32",
        )
        st.caption(
            f"One attention layer of {plan.n_heads} heads, width {plan.d_model}, seed {plan.seed}, untrained;"
            f" {ENTERS.get(plan.scheme, plan.scheme)}. Its matrices have the standard deviation"
            " $1/\\sqrt{inputs}$: with the usual 0.02 all words would look at each other almost alike."
        )
    with right:
        plot(
            figures.scheme_dots(every, (MASKS[plan.causal], plan.scheme)),
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


def _choose_words() -> list[str]:
    typed = st.text_input(
        "Sentence",
        SENTENCES[0],
        key="why_sentence",
        bind="query-params",
        max_chars=MAX_LETTERS,
        help="Its words are the tokens.",
    )
    st.pills(
        "Sentences", SENTENCES, key="why_example", on_change=_take_sentence, label_visibility="collapsed"
    )
    words = whole(typed or "").replace("\0", " ")[:MAX_LETTERS].split()
    if len(words) < 2:
        st.caption(
            f":material/info: There is no order in fewer than two words: “{SENTENCES[0]}” is used instead."
        )
        words = SENTENCES[0].split()
    if len(words) > MAX_WORDS:
        st.caption(f":material/info: The sentence has {len(words)} words; the first {MAX_WORDS} are used.")
    return words[:MAX_WORDS]


def _take_sentence() -> None:
    chosen = st.session_state.get("why_example")
    if chosen in SENTENCES:
        st.session_state["why_sentence"] = chosen
        st.session_state["why_example"] = None


@st.cache_data(max_entries=2048, show_spinner=False)
def _compared(ids: tuple[int, ...], order: tuple[int, ...], plan: Plan) -> Comparison:
    return compare(ids, np.array(order, dtype=np.int64), plan)


def _pictures(words: list[str], found: Comparison, matched: bool) -> None:
    moved = [words[i] for i in found.order]
    top = symmetric(np.stack((found.before, found.after)))
    pictures = (
        ("before", "As written", found.before, words),
        (
            "after",
            "In the new order, matched" if matched else "In the new order",
            found.matched if matched else found.after,
            words if matched else moved,
        ),
        ("difference", "Difference, same scale", found.difference, words),
    )
    for column, (name, title, values, labels) in zip(st.columns(3, gap="medium"), pictures, strict=True):
        with column:
            st.markdown(title)
            plot(
                figures.word_rows(values, [short(w) for w in labels], top, f"attn_out {name}"),
                key=f"why_{name}",
                height=120 + 28 * len(words),
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


def lesson(words: list[str], order: np.ndarray, plan: Plan, every: dict[str, dict[str, float]]) -> str:
    """What the numbers say; `every` is mask words -> scheme -> largest difference."""
    after = [words[i] for i in order]
    bare, masked = every["no mask"]["none"], every["causal mask"]["none"]
    largest = every[MASKS[plan.causal]][plan.scheme]
    if after == words:
        return (
            "In this order the sentence reads the same: there is nothing to tell apart. Choose another order."
        )
    if plan.scheme == "none" and not plan.causal:
        return (
            f"The outputs are the same rows, in another order: the largest difference is {number(largest)},"
            f" which is rounding. To this attention “{safe(' '.join(words))}” and “{safe(' '.join(after))}”"
            " are one and the same bag of words."
        )
    if plan.scheme == "none":
        return (
            "**The causal mask by itself leaks some position.** No scheme is on, and yet the outputs differ"
            f" by up to {number(masked)} (without the mask: {number(bare)}). A word early in the sentence"
            " averages over fewer words than a late one."
        )
    if plan.scheme == "alibi" and largest < SAME:
        return (
            f"The scheme is on, and still the difference is only {number(largest)}. ALiBi without a mask"
            " knows how far two words are apart and not which of them comes first, and turning a sentence"
            " round keeps every distance. Shuffle instead, or switch the mask on: then it tells."
        )
    return (
        f"With {plan.scheme} positions the same words come out different by up to {number(largest)}; without"
        f" any scheme, and without a mask, by {number(bare)}. Now the order counts."
    )
