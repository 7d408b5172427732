"""Measurements of the view "Why": the outputs row by row, all schemes with and without the mask, and what
order is worth to a trained model.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Position
from engine.measure.positions.permutation import (
    SCHEMES,
    Comparison,
    Move,
    OrderEffect,
    Plan,
    Setting,
    in_order_and_out,
    moves_nothing,
    new_order,
    word_order,
)
from engine.model import Transformer
from pages.input.positions import figures_why as figures
from pages.input.positions import words_answers, words_measured
from pages.input.positions.figures_why import short
from pages.input.positions.words_answers import TITLES
from ui import explain, memo, widgets
from ui.figures.axes import symmetric
from ui.layout import fewer_labels_on_phones
from ui.model_bar import Subject, subject_bar
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.numbers import number

THROUGH = "why_on"
MATERIALS = {"fresh": "These words, random weights", "trained": "A trained model"}
UNITS = ("words", "tokens")
MATCHED, STANDING = "matched", "as given"
MASKS = {False: "no mask", True: "causal mask"}
RANDOM = "random here, as before training"
ENTERS: dict[Position, str] = {
    "none": "nothing encodes the order",
    "sinusoidal": "sinusoids are added to the embeddings",
    "learned": f"a table is added to the embeddings ({RANDOM})",
    "rope": "queries and keys are rotated",
    "alibi": "the scores are penalised by distance",
    "t5": f"the scores get a bias for each distance ({RANDOM})",
}


def draw_measured(
    sentence: list[str], effect: OrderEffect, scheme: Position, causal: bool, move: Move, seed: int
) -> None:
    """Draws the words of the view, or a text through a trained model, in the order that was chosen above."""
    if widgets.select("Through", MATERIALS, THROUGH, hidden=True, wrap=True) == "trained":
        _draw_trained(move, seed)
        return
    hint = "Matched: each row is next to the same word's row on the left."
    label = "Rows of the second picture"
    matched = widgets.select(label, (MATCHED, STANDING), "why_rows", hint=hint, wrap=True) == MATCHED
    _draw_pictures(sentence, effect.comparisons[scheme, causal], matched)
    left, right = st.columns([1, 2], gap="medium")
    with left:
        _draw_largest(effect, scheme, causal)
    with right:
        _draw_schemes(effect, scheme, causal)


def _draw_pictures(sentence: list[str], comparison: Comparison, matched: bool) -> None:
    moved = [sentence[i] for i in comparison.order]
    top = symmetric(np.stack((comparison.before, comparison.after)))
    pictures = (
        ("before", "As written", comparison.before, sentence),
        (
            "after",
            "In the new order, matched" if matched else "In the new order",
            comparison.matched if matched else comparison.after,
            sentence if matched else moved,
        ),
        ("difference", "Difference, same scale", comparison.difference, sentence),
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


def _draw_largest(effect: OrderEffect, scheme: Position, causal: bool) -> None:
    plan = Plan(scheme, causal)
    explain.worked(
        "Largest difference",
        number(effect.largest(scheme, causal)),
        words_measured.LARGEST,
    )
    st.caption(words_measured.single_layer(plan, ENTERS.get(scheme, scheme)))


def _draw_schemes(effect: OrderEffect, scheme: Position, causal: bool) -> None:
    """All six schemes, with and without the mask; the one above is ringed."""
    every = {name: {TITLES[s]: effect.largest(s, mask) for s in SCHEMES} for mask, name in MASKS.items()}
    plot(
        figures.scheme_dots(every, (MASKS[causal], TITLES[scheme])),
        key="why_schemes",
        height=290,
        name="order-by-scheme",
        data=pd.DataFrame(
            [(s, name, v) for name, by in every.items() for s, v in by.items()],
            columns=["scheme", "mask", "largest_difference"],
        ),
        alt=(
            "Largest difference between the outputs in the two orders, for each of six position schemes, with"
            " and without the causal mask, logarithmic."
        ),
    )


def _draw_trained(move: Move, seed: int) -> None:
    """Draws a model and a text of one's own, in order and out of order."""
    with subject_bar() as subject:
        _draw_order(subject, move, seed)


def _draw_order(subject: Subject, move: Move, seed: int) -> None:
    """The text in another order: how far each token's vector moves, and the losses, with positions and mask
    on and off.
    """
    if len(subject.ids) < 2:
        st.info("This text has one token, so there is only one order. Type more above.")
        return
    hint = "Whole words, with the spaces after them, or single tokens."
    unit = widgets.select("What is reordered", UNITS, "why_unit", hint=hint, wrap=True)
    texts = [subject.tokenizer.decode([i]) for i in subject.ids]
    order = word_order(texts, move, seed) if unit == "words" else new_order(len(texts), move, seed)
    st.markdown(f"In the new order it reads: **{safe(''.join(subject.labels[i] for i in order))}**")
    if unit == "words" and moves_nothing(order):
        st.caption(words_measured.ONE_WORD)
    settings = _measured(subject.key, subject.ids, tuple(order.tolist()), subject.model)
    _draw_losses(settings, subject)
    _draw_moved(settings, subject)
    explain.takeaway(words_answers.lesson(settings, TITLES[subject.config.position]))


def _draw_losses(settings: tuple[Setting, ...], subject: Subject) -> None:
    """A row for each setting of the switches."""
    scheme = TITLES[subject.config.position]
    st.markdown(
        "\n".join(
            [
                "| positions | mask | tokens move by | loss in order | out of order |",
                "|---|---|---|---|---|",
                *(_row(setting, scheme) for setting in settings),
            ]
        )
    )
    none = (
        "the mask is off, so the answer is visible"
        if subject.config.causal
        else "the model predicts hidden tokens, not the next one"
    )
    st.caption(words_measured.moved_by(none, scheme))


def _draw_moved(settings: tuple[Setting, ...], subject: Subject) -> None:
    """How far each token moved, in one setting."""
    names = [words_answers.setting_name(s) for s in settings]
    chosen = widgets.select("Drawn token by token", names, "why_setting", wrap=True)
    fewer_labels_on_phones(len(subject.ids))
    plot(
        figures.moved_bars(settings[names.index(chosen)].moved, subject.labels),
        key="why_moved",
        height=270,
        name="moved-by-order",
        data=pd.DataFrame(
            {"token": subject.labels} | {words_answers.setting_name(s): s.moved for s in settings}
        ),
        alt=(
            f"How far the final vector of each token moves when the order of the text changes, with {chosen}."
        ),
    )


def _row(setting: Setting, scheme: str) -> str:
    losses = ["none" if x is None else f"{x:.3f}" for x in (setting.loss_in, setting.loss_out)]
    on = ("on" if scheme != TITLES["none"] else "the model has none") if setting.position else "off"
    return (
        f"| {on} | {'on' if setting.mask else 'off'} | {number(setting.relative)} | {losses[0]} | {losses[1]}"
        " |"
    )


@memo.measured()
def _measured(
    key: tuple[str, int], ids: tuple[int, ...], order: tuple[int, ...], _model: Transformer
) -> tuple[Setting, ...]:
    return in_order_and_out(_model, ids, np.array(order, dtype=np.int64))
